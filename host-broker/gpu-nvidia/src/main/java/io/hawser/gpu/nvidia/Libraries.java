package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.ManagedVariables.Variable;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Device code that belongs to no context: the driver makes a module of it in each context that uses it. A kernel's
 * handle for the guest is its handle in the context of its first lookup. {@link #here} maps that handle to the current
 * context. Session thread only.
 */
final class Libraries {
    /** A library and its modules, by context; the driver lays out a module's variables when it makes the module. */
    private record Library(long handle, Map<Long, Long> modules, List<Variable> expected,
        NvidiaVariablePlaces places) {}

    /** The origin of a kernel: its library and name, the context of its handle, and its handles in other contexts. */
    private record Kernel(Library library, String name, long context, Map<Long, Long> elsewhere) {}

    private final Map<Long, Library> libraries = new HashMap<>();
    private final Map<Long, Kernel> kernels = new HashMap<>();
    private long onlyContext; // the last context that has used libraries, 0 for none
    private boolean several; // several contexts have used libraries

    /**
     * Adds a library that the driver has loaded.
     *
     * @param places chooses addresses of its variables.
     */
    void add(long library, NvidiaVariablePlaces places) {
        libraries.put(library, new Library(library, new HashMap<>(), places.take(), places));
    }

    /** Whether a handle is a library's. */
    boolean has(long library) {
        return libraries.containsKey(library);
    }

    /** Unloads a library and its modules. */
    int unload(long library) {
        Library gone = libraries.remove(library);
        kernels.values().removeIf(kernel -> kernel.library == gone);
        return CudaNative.cuLibraryUnload(library);
    }

    /**
     * The module of a library in the current context.
     *
     * @param library a library's handle, or a module's, which is returned unchanged.
     * @param context the current context.
     * @return the module, or a negated CUresult on failure.
     */
    long module(long library, long context) {
        Library known = libraries.get(library);
        return known == null ? library : module(known, context);
    }

    private long module(Library library, long context) {
        Long known = library.modules.get(context);
        if (known != null) {
            return known;
        }
        List<Variable> expected = library.modules.isEmpty() ? library.expected : List.of(); // of the first context
        library.places.prepare(expected);
        long module = Natives.created(out -> CudaNative.cuLibraryGetModule(out, library.handle));
        library.places.placed(expected);
        if (module >= 0) {
            library.modules.put(context, module);
            several |= onlyContext != 0 && onlyContext != context;
            onlyContext = context;
        }
        return module;
    }

    /** Records a kernel that was found in a module of a library. */
    void record(long library, String name, long context, long function) {
        Library known = libraries.get(library);
        if (known != null) {
            kernels.putIfAbsent(function, new Kernel(known, name, context, new HashMap<>()));
        }
    }

    /**
     * The handle of a kernel in the current context.
     *
     * @param function a kernel's handle.
     * @param context the current context.
     * @return the handle there; unchanged when it belongs to that context or to no library.
     */
    long here(long function, long context) {
        if (!several && (context == onlyContext || onlyContext == 0)) {
            return function;
        }
        Kernel kernel = kernels.get(function);
        if (kernel == null || kernel.context == context) {
            return function;
        }
        Long known = kernel.elsewhere.get(context);
        if (known == null) {
            known = find(kernel, context);
            kernel.elsewhere.put(context, known);
        }
        return known;
    }

    /** The kernel's handle in a context. 0 on failure, which the driver rejects with its own error. */
    private long find(Kernel kernel, long context) {
        long module = module(kernel.library, context);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            int result = module < 0 ? CUresult.CUDA_ERROR_INVALID_HANDLE
                : CudaNative.cuModuleGetFunction(out, module, arena.allocateFrom(kernel.name));
            return result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0;
        }
    }

    /** Removes the modules and handles of a context that is being destroyed. */
    void forget(long context) {
        several |= context == onlyContext; // its kernels' handles are no longer valid
        libraries.values().forEach(library -> library.modules.remove(context));
        kernels.values().forEach(kernel -> kernel.elsewhere.remove(context));
    }
}

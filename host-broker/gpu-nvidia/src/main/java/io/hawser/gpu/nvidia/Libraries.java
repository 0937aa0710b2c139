package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * Device code that belongs to no context: the driver makes a module of it in each context that uses it. A kernel has
 * one handle here, that of the context in which it was asked for first, and {@link #here} says what it is in another.
 * Session thread only.
 */
final class Libraries {
    /** A library's modules, by context. */
    private record Library(long handle, Map<Long, Long> modules) { }

    /** Where a kernel comes from: its library, its name, and the context in which its handle is one. */
    private record Kernel(Library library, String name, long context, Map<Long, Long> elsewhere) { }

    private final Map<Long, Library> libraries = new HashMap<>();
    private final Map<Long, Kernel> kernels = new HashMap<>();
    private long onlyContext; // that has used libraries, 0 for none
    private boolean several; // contexts have used them

    /** Takes a library that the driver has loaded. */
    void add(long library) {
        libraries.put(library, new Library(library, new HashMap<>()));
    }

    /** Whether a handle is a library's. */
    boolean has(long library) {
        return libraries.containsKey(library);
    }

    /** Unloads a library; its modules go with it. */
    int unload(long library) {
        Library gone = libraries.remove(library);
        kernels.values().removeIf(kernel -> kernel.library == gone);
        return Driver.cuLibraryUnload(library);
    }

    /**
     * The module of a library in the current context.
     *
     * @param library a library's handle; that of a module is its own answer.
     * @param context the current one.
     * @return the module, or the CUresult that says why there is none, negated.
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
        long module = Natives.created(out -> Driver.cuLibraryGetModule(out, library.handle));
        if (module >= 0) {
            library.modules.put(context, module);
            several |= onlyContext != 0 && onlyContext != context;
            onlyContext = context;
        }
        return module;
    }

    /** Notes a kernel that was found in the module of a library. */
    void note(long library, String name, long context, long function) {
        Library known = libraries.get(library);
        if (known != null) {
            kernels.putIfAbsent(function, new Kernel(known, name, context, new HashMap<>()));
        }
    }

    /**
     * A kernel as the current context knows it.
     *
     * @param function a kernel's handle.
     * @param context the current one.
     * @return a kernel of that context; the same handle when it is one, or belongs to no library.
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

    /** The handle, or the foreign one, which the driver refuses by its own error. */
    private long find(Kernel kernel, long context) {
        long module = module(kernel.library, context);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            int result = module < 0 ? CUresult.CUDA_ERROR_INVALID_HANDLE
                : Driver.cuModuleGetFunction(out, module, arena.allocateFrom(kernel.name));
            return result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0;
        }
    }

    /** Forgets what a context that is being destroyed has had of libraries. */
    void forget(long context) {
        several |= context == onlyContext; // its kernels' handles are void
        libraries.values().forEach(library -> library.modules.remove(context));
        kernels.values().forEach(kernel -> kernel.elsewhere.remove(context));
    }
}

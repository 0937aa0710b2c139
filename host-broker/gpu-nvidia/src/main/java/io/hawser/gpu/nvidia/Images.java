package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.ManagedVariables.Variable;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;

/** Device code: loads it, and finds its kernels and variables. A context must be current. Session thread only. */
final class Images {
    private static final Logger LOG = System.getLogger(Images.class.getName());
    static final int FATBIN_MAGIC = 0xBA55ED50; // fatbinary_section.h
    private static final int WRAPPER_MAGIC = 0x466243B1; // fatbinary_section.h
    private static final int WRAPPER_BYTES = 24;
    private static final int ELF_MAGIC = 0x464C457F;
    private static final int LOG_BYTES = 64 << 10;
    private static final int MAX_FUNCTIONS = 1 << 20; // per module; bounds an array
    // CUjit_option of cuda.h
    private static final int[] JIT_OPTIONS = {3, 4, 5, 6}; // info log, its size, error log, its size

    private NvidiaVariablePlaces places = new NvidiaVariablePlaces(0, new NvidiaVariablePlaces.DriverFillers());
    private Set<Integer> architectures = Set.of();
    private final Map<Long, Long> libraries = new HashMap<>(); // by the module that was made from them
    private final Map<Long, DeviceSymbols> symbols = new HashMap<>(); // by module or library
    private final Set<Long> printing = new HashSet<>(); // modules and libraries whose kernels may print
    private MemorySegment measured = MemorySegment.NULL; // the image of the last call of bytes()
    private DeviceSymbols measuredSymbols;
    private boolean mayAllocate; // kernels that have been loaded so far

    /**
     * Takes the first memory for variables, in the current context of a new process. Returns 0.
     *
     * @param gpus the architectures of all GPUs, as 90 for sm_90; empty if the driver may choose any version of code.
     */
    int anchor(Set<Integer> gpus) {
        architectures = gpus;
        long address = DriverStart.anchor();
        LOG.log(Level.INFO, "the variables of device code begin at 0x{0}", Long.toHexString(address));
        places = new NvidiaVariablePlaces(address, new NvidiaVariablePlaces.DriverFillers());
        return 0;
    }

    /** Chooses addresses of variables. */
    NvidiaVariablePlaces places() {
        return places;
    }

    /** Estimates the device memory of an image; the next load may be of the same image. */
    long bytes(MemorySegment image) {
        CodeMemory memory = new CodeMemory();
        measuredSymbols = new DeviceSymbols();
        CodeParts.visit(image, architectures, memory, measuredSymbols);
        measured = image;
        return memory.bytes();
    }

    /** Notes what an image contains, unless its load has failed. */
    private int note(int result, MemorySegment image, MemorySegment out, LongConsumer keeper) {
        if (result != 0) {
            return result;
        }
        long loaded = out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
        keeper.accept(loaded);
        if (measured != image) {
            bytes(image);
        }
        symbols.put(loaded, measuredSymbols);
        mayAllocate |= measuredSymbols.mayAllocate();
        if (measuredSymbols.mayPrint()) {
            printing.add(loaded);
        }
        measured = MemorySegment.NULL;
        return 0;
    }

    /** Whether kernels of a module or library may print. */
    boolean mayPrint(long loaded) {
        return printing.contains(loaded);
    }

    /** Symbols of a module or library; null for one of another origin. */
    DeviceSymbols symbols(long loaded) {
        return symbols.get(loaded);
    }

    /** Whether kernels that have been loaded so far may allocate memory. */
    boolean mayAllocate() {
        return mayAllocate;
    }

    /** Forgets what is noted of a module or library. */
    void forget(long loaded) {
        symbols.remove(loaded);
        printing.remove(loaded);
    }

    /** Unloads a module from {@link #load}. */
    int unload(long module) {
        forget(module);
        Long library = libraries.remove(module);
        return library == null ? CudaNative.cuModuleUnload(module) : CudaNative.cuLibraryUnload(library);
    }

    /** Loads a module; {@code keeper} receives its handle, unless the load failed. */
    int load(MemorySegment image, MemorySegment out, StringBuilder log, LongConsumer keeper) {
        List<Variable> expected = places.take();
        places.prepare(expected);
        int result = note(load(image, out, log, false), image, out, keeper);
        places.placed(expected);
        return result;
    }

    /** As {@link #load}, but for every context: {@code out} receives a library. */
    int loadLibrary(MemorySegment image, MemorySegment out, StringBuilder log, LongConsumer keeper) {
        return note(load(image, out, log, true), image, out, keeper);
    }

    private int load(MemorySegment image, MemorySegment out, StringBuilder log, boolean library) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment options = arena.allocateFrom(ValueLayout.JAVA_INT, JIT_OPTIONS);
            MemorySegment info = arena.allocate(LOG_BYTES);
            MemorySegment error = arena.allocate(LOG_BYTES);
            MemorySegment values = arena.allocateFrom(ValueLayout.JAVA_LONG, info.address(), LOG_BYTES,
                error.address(), LOG_BYTES);
            MemorySegment readable = readable(image, arena);
            if (!library && readable.byteSize() == WRAPPER_BYTES && image.byteSize() != WRAPPER_BYTES) {
                return linked(readable, out);
            }
            int result = library
                ? CudaNative.cuLibraryLoadData(out, readable, options, values, JIT_OPTIONS.length, MemorySegment.NULL,
                    MemorySegment.NULL, 0)
                : CudaNative.cuModuleLoadDataEx(out, readable, JIT_OPTIONS.length, options, values);
            log.append(text(info)).append(text(error));
            return result;
        }
    }

    /** Loads code that nvcc has linked (-rdc). The driver accepts the wrapper only for libraries. */
    private int linked(MemorySegment wrapper, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment library = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment none = MemorySegment.NULL;
            int result = CudaNative.cuLibraryLoadData(library, wrapper, none, none, 0, none, none, 0);
            if (result != 0) {
                return result;
            }
            long handle = library.get(ValueLayout.JAVA_LONG, 0);
            result = CudaNative.cuLibraryGetModule(out, handle);
            if (result == 0) {
                libraries.put(out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0), handle);
            } else {
                CudaNative.cuLibraryUnload(handle);
            }
            return result;
        }
    }

    private static String text(MemorySegment log) {
        byte[] bytes = log.toArray(ValueLayout.JAVA_BYTE);
        int length = 0;
        while (length < bytes.length && bytes[length] != 0) {
            length++;
        }
        return new String(Arrays.copyOf(bytes, length), StandardCharsets.UTF_8);
    }

    /**
     * The image in the form that the driver needs: text ends with a NUL; several fat binaries get the wrapper of nvcc
     * -rdc.
     */
    private static MemorySegment readable(MemorySegment image, Arena arena) {
        int magic = image.byteSize() < Integer.BYTES ? 0 : image.get(ValueLayout.JAVA_INT_UNALIGNED, 0);
        if (magic == ELF_MAGIC) {
            return image;
        }
        if (magic != FATBIN_MAGIC) {
            return arena.allocate(image.byteSize() + 1).copyFrom(image);
        }
        List<Long> parts = new ArrayList<>();
        long at = 0;
        while (image.byteSize() - at >= 16 && image.get(ValueLayout.JAVA_INT_UNALIGNED, at) == FATBIN_MAGIC) {
            parts.add(image.address() + at);
            int header = Short.toUnsignedInt(image.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 6));
            long bytes = image.get(ValueLayout.JAVA_LONG_UNALIGNED, at + 8);
            if (bytes < 0 || bytes > image.byteSize() - at - header) {
                break; // the driver rejects a truncated binary
            }
            at += header + bytes + 7 & -8L;
        }
        if (parts.size() < 2) {
            return image;
        }
        MemorySegment others = arena.allocate((long) parts.size() * Long.BYTES, Long.BYTES);
        for (int i = 1; i < parts.size(); i++) {
            others.setAtIndex(ValueLayout.JAVA_LONG, i - 1L, parts.get(i));
        }
        MemorySegment wrapper = arena.allocate(WRAPPER_BYTES, Long.BYTES);
        wrapper.set(ValueLayout.JAVA_INT, 0, WRAPPER_MAGIC);
        wrapper.set(ValueLayout.JAVA_INT, 4, 2);
        wrapper.set(ValueLayout.JAVA_LONG, 8, parts.getFirst());
        wrapper.set(ValueLayout.JAVA_LONG, 16, others.address());
        return wrapper;
    }

    static int function(long module, String name, FunctionInfo info) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(2L * Long.BYTES, Long.BYTES);
            int result = CudaNative.cuModuleGetFunction(out, module, arena.allocateFrom(name));
            if (result != 0) {
                return result;
            }
            long function = out.get(ValueLayout.JAVA_LONG, 0);
            int[] offsets = new int[FunctionInfo.MAX_PARAMS];
            int[] sizes = new int[FunctionInfo.MAX_PARAMS];
            int count = 0;
            while (count < offsets.length
                && CudaNative.cuFuncGetParamInfo(function, count, out, out.asSlice(Long.BYTES)) == 0) {
                offsets[count] = (int) out.get(ValueLayout.JAVA_LONG, 0);
                sizes[count++] = (int) out.get(ValueLayout.JAVA_LONG, Long.BYTES);
            }
            info.set(function, Arrays.copyOf(offsets, count), Arrays.copyOf(sizes, count));
            for (int i = 0; i < FunctionInfo.ATTRIBUTES; i++) {
                int attribute = i;
                info.attribute(i,
                    Natives.number(value -> CudaNative.cuFuncGetAttribute(value, attribute, function), 0));
            }
            return 0;
        }
    }

    static List<String> functionNames(long module) {
        int count = Natives.number(out -> CudaNative.cuModuleGetFunctionCount(out, module), -1);
        if (count < 0 || count > MAX_FUNCTIONS) {
            return null;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment functions = arena.allocate(Math.max(1, (long) count) * Long.BYTES, Long.BYTES);
            if (CudaNative.cuModuleEnumerateFunctions(functions, count, module) != 0) {
                return null;
            }
            List<String> names = new ArrayList<>();
            MemorySegment name = arena.allocate(ValueLayout.ADDRESS);
            for (int i = 0; i < count; i++) {
                if (CudaNative.cuFuncGetName(name, functions.getAtIndex(ValueLayout.JAVA_LONG, i)) == 0) {
                    names.add(name.get(ValueLayout.ADDRESS, 0).reinterpret(Long.MAX_VALUE).getString(0));
                }
            }
            names.sort(null); // a fixed order: a guest that reads the names in several pieces then gets each name once
            return names;
        }
    }

    static int global(long module, String name, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            int result = CudaNative.cuModuleGetGlobal_v2(out, out.asSlice(Long.BYTES), module,
                arena.allocateFrom(name));
            return result == CUresult.CUDA_ERROR_INVALID_VALUE ? CUresult.CUDA_ERROR_NOT_FOUND : result;
        }
    }
}

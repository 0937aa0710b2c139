package io.hawser.broker.machine;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.ArrayList;
import java.util.List;

/**
 * Calls NVIDIA's driver. Only for a separate process that ends afterwards: the driver stays loaded, and uses memory and
 * threads.
 */
final class DriverCheck {
    private static final String LIBRARY = "libcuda.so.1";
    private static final int NAME_BYTES = 256;
    private static final int COMPUTE_CAPABILITY_MAJOR = 75; // CUDA 13.0 cuda.h, CUdevice_attribute
    private static final int COMPUTE_CAPABILITY_MINOR = 76;
    /** The oldest architecture for which nvcc 13 makes code. */
    private static final int LEAST_CAPABILITY = 75;

    private final Linker linker = Linker.nativeLinker();
    private final SymbolLookup library;
    private final List<Finding> findings = new ArrayList<>();

    private DriverCheck(SymbolLookup library) {
        this.library = library;
    }

    /** Reads the driver's version and its devices. */
    static List<Finding> run() {
        SymbolLookup library;
        try {
            library = SymbolLookup.libraryLookup(LIBRARY, Arena.global());
        } catch (IllegalArgumentException e) {
            return List.of(Finding.missing("GPU: " + LIBRARY + " of the NVIDIA driver cannot be loaded; it comes with"
                + " the driver (packages libcuda1, libnvidia-compute-580), and LD_LIBRARY_PATH may name its folder"));
        }
        DriverCheck check = new DriverCheck(library);
        try (Arena arena = Arena.ofConfined()) {
            check.devices(arena);
        } catch (Throwable e) { // invokeExact declares no less
            check.findings.add(Finding.missing("GPU: " + LIBRARY + " is not NVIDIA's: " + e.getMessage()));
        }
        return check.findings;
    }

    private int call(String name, FunctionDescriptor descriptor, Object... arguments) throws Throwable {
        return (int) linker.downcallHandle(library.find(name)
            .orElseThrow(() -> new IllegalStateException("no function " + name)), descriptor)
            .invokeWithArguments(arguments);
    }

    private static FunctionDescriptor of(MemoryLayout... arguments) {
        return FunctionDescriptor.of(JAVA_INT, arguments);
    }

    private void devices(Arena arena) throws Throwable {
        MemorySegment number = arena.allocate(JAVA_INT);
        call("cuDriverGetVersion", of(ADDRESS), number);
        int version = number.get(JAVA_INT, 0);
        int result = call("cuInit", of(JAVA_INT), 0);
        if (result != 0) {
            findings.add(Finding.missing("GPU: the driver's cuInit fails with error " + result + text(result, arena)));
            return;
        }
        call("cuDeviceGetCount", of(ADDRESS), number);
        int count = number.get(JAVA_INT, 0);
        findings.add(Finding.found("GPU: " + LIBRARY + " for CUDA " + version / 1000 + "." + version % 1000 / 10 + ", "
            + count + (count == 1 ? " device" : " devices")));
        if (count == 0) {
            findings.add(Finding.missing("GPU: the driver lists no device (CUDA_VISIBLE_DEVICES?)"));
        }
        MemorySegment name = arena.allocate(NAME_BYTES);
        for (int i = 0; i < count; i++) {
            call("cuDeviceGet", of(ADDRESS, JAVA_INT), number, i);
            int device = number.get(JAVA_INT, 0);
            call("cuDeviceGetName", of(ADDRESS, JAVA_INT, JAVA_INT), name, NAME_BYTES, device);
            int major = attribute(number, COMPUTE_CAPABILITY_MAJOR, device);
            int minor = attribute(number, COMPUTE_CAPABILITY_MINOR, device);
            String text = "GPU " + i + ": " + name.getString(0) + ", compute capability " + major + "." + minor;
            findings.add(10 * major + minor < LEAST_CAPABILITY
                ? Finding.note(text + ": programs built by CUDA 13 need 7.5") : Finding.found(text));
        }
    }

    private int attribute(MemorySegment number, int attribute, int device) throws Throwable {
        call("cuDeviceGetAttribute", of(ADDRESS, JAVA_INT, JAVA_INT), number, attribute, device);
        return number.get(JAVA_INT, 0);
    }

    private String text(int error, Arena arena) throws Throwable {
        MemorySegment pointer = arena.allocate(ADDRESS);
        if (call("cuGetErrorString", of(JAVA_INT, ADDRESS), error, pointer) != 0) {
            return "";
        }
        return " (" + pointer.get(ADDRESS, 0).reinterpret(NAME_BYTES).getString(0) + ")";
    }
}

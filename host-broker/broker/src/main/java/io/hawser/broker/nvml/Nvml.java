package io.hawser.broker.nvml;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jboss.logging.Logger;

/**
 * NVIDIA's management library. A call of a function that the driver lacks fails with {@code
 * NVML_ERROR_FUNCTION_NOT_FOUND}; all other functions still work. One thread.
 */
final class Nvml implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Nvml.class);
    /** The file name that drivers install. */
    static final String LIBRARY = "libnvidia-ml.so.1";
    private static final int MAX_DEVICES = 64;
    /** Limit of processes of a GPU; stops a wrong answer from using all memory. */
    private static final int MAX_PROCESSES = 4096;
    private static final int TEXT_BYTES = 256;
    private static final FunctionDescriptor NO_ARGUMENT = FunctionDescriptor.of(JAVA_INT);
    private static final FunctionDescriptor POINTER = FunctionDescriptor.of(JAVA_INT, ADDRESS);
    private static final FunctionDescriptor TWO_POINTERS = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS);

    private final Arena arena = Arena.ofConfined();
    private final SymbolLookup library;
    private final Map<String, MethodHandle> functions = new HashMap<>();
    // Buffers of this thread, used for all calls.
    private final MemorySegment words = arena.allocate(64, 8);
    private final MemorySegment text = arena.allocate(TEXT_BYTES);
    private MemorySegment processes = arena.allocate(64 * NvmlLayout.PROCESS_INFO_V2.byteSize(), 8);
    private MemorySegment events;

    /** A process on a GPU; {@code bytes} is null where the driver has no figure. */
    record Process(long pid, Long bytes) {}

    /** Device memory in bytes; {@code used} includes the driver's own part only with old drivers. */
    record Memory(long total, long used) {}

    /** An error that the driver has reported; {@code xid} is NVIDIA's number of its kind. */
    record Xid(MemorySegment device, long xid) {}

    private Nvml(SymbolLookup library) {
        this.library = library;
    }

    /**
     * Loads and initializes the library.
     *
     * @param name of the library.
     * @throws NvmlException when it is missing or the driver does not answer; the message gives the reason.
     */
    static Nvml open(String name) throws NvmlException {
        SymbolLookup library;
        try {
            // Never unloaded: the library leaves threads and handlers.
            library = SymbolLookup.libraryLookup(name, Arena.global());
        } catch (IllegalArgumentException e) {
            throw new NvmlException(name + " cannot be loaded", NvmlLayout.NVML_ERROR_FUNCTION_NOT_FOUND);
        }
        Nvml nvml = new Nvml(library);
        try {
            check("nvmlInit_v2", nvml.call("nvmlInit_v2", NO_ARGUMENT));
            return nvml;
        } catch (NvmlException e) {
            nvml.arena.close();
            throw e;
        }
    }

    /** Number of GPUs that the driver lists, including lost ones. */
    int deviceCount() throws NvmlException {
        check("nvmlDeviceGetCount_v2", call("nvmlDeviceGetCount_v2", POINTER, words));
        return Math.min(words.get(JAVA_INT, 0), MAX_DEVICES);
    }

    /** The handle of a GPU. */
    MemorySegment device(int index) throws NvmlException {
        String name = "nvmlDeviceGetHandleByIndex_v2";
        check(name, call(name, FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS), index, words));
        return words.get(ADDRESS, 0);
    }

    /** The UUID in the workers' form: lower-case hexadecimal digits, without {@code GPU-}. */
    String uuid(MemorySegment device) throws NvmlException {
        String name = "nvmlDeviceGetUUID";
        check(name, call(name, FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT), device, text,
            NvmlLayout.NVML_DEVICE_UUID_V2_BUFFER_SIZE));
        String uuid = text.getString(0, StandardCharsets.US_ASCII).toLowerCase(Locale.ROOT);
        return uuid.startsWith("gpu-") ? uuid.substring(4) : uuid;
    }

    /** The memory of a GPU. */
    Memory memory(MemorySegment device) throws NvmlException {
        if (has("nvmlDeviceGetMemoryInfo_v2")) {
            StructLayout layout = NvmlLayout.MEMORY_V2;
            words.asSlice(0, layout.byteSize()).fill((byte) 0);
            words.set(JAVA_INT, 0, NvmlLayout.MEMORY_V2_VERSION);
            int result = call("nvmlDeviceGetMemoryInfo_v2", TWO_POINTERS, device, words);
            if (result == NvmlLayout.NVML_SUCCESS) {
                return memory(layout);
            }
            if (new NvmlException("", result).isLoss()) {
                check("nvmlDeviceGetMemoryInfo_v2", result);
            }
        }
        check("nvmlDeviceGetMemoryInfo", call("nvmlDeviceGetMemoryInfo", TWO_POINTERS, device, words));
        return memory(NvmlLayout.MEMORY);
    }

    private Memory memory(StructLayout layout) {
        return new Memory(words.get(JAVA_LONG, NvmlLayout.offset(layout, "total")),
            words.get(JAVA_LONG, NvmlLayout.offset(layout, "used")));
    }

    /** The part of the last sample period in which a kernel ran, 0 to 100. */
    int utilizationPercent(MemorySegment device) throws NvmlException {
        String name = "nvmlDeviceGetUtilizationRates";
        check(name, call(name, TWO_POINTERS, device, words));
        return words.get(JAVA_INT, NvmlLayout.offset(NvmlLayout.UTILIZATION, "gpu"));
    }

    /** The temperature of the chip. */
    int temperatureCelsius(MemorySegment device) throws NvmlException {
        String name = "nvmlDeviceGetTemperature";
        check(name, call(name, FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS), device,
            NvmlLayout.NVML_TEMPERATURE_GPU, words));
        return words.get(JAVA_INT, 0);
    }

    /** The power of the whole board. */
    double powerWatts(MemorySegment device) throws NvmlException {
        String name = "nvmlDeviceGetPowerUsage";
        check(name, call(name, TWO_POINTERS, device, words));
        return Integer.toUnsignedLong(words.get(JAVA_INT, 0)) / 1000.0; // milliwatts
    }

    /** The computing processes, including those of MPS. */
    List<Process> processes(MemorySegment device) throws NvmlException {
        List<Process> found;
        if (has("nvmlDeviceGetComputeRunningProcesses_v3")) {
            found = processes("nvmlDeviceGetComputeRunningProcesses_v3", NvmlLayout.PROCESS_INFO_V2, device);
        } else if (has("nvmlDeviceGetComputeRunningProcesses_v2")) {
            found = processes("nvmlDeviceGetComputeRunningProcesses_v2", NvmlLayout.PROCESS_INFO_V2, device);
        } else {
            found = processes("nvmlDeviceGetComputeRunningProcesses", NvmlLayout.PROCESS_INFO_V1, device);
        }
        String mps = "nvmlDeviceGetMPSComputeRunningProcesses_v3";
        if (has(mps)) {
            try {
                found.addAll(processes(mps, NvmlLayout.PROCESS_INFO_V2, device));
            } catch (NvmlException e) {
                if (e.code() != NvmlLayout.NVML_ERROR_NOT_SUPPORTED) {
                    throw e;
                }
            }
        }
        return found;
    }

    private List<Process> processes(String name, StructLayout layout, MemorySegment device) throws NvmlException {
        FunctionDescriptor descriptor = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
        int result = NvmlLayout.NVML_ERROR_INSUFFICIENT_SIZE;
        // New processes may appear between two calls; the next try has room for them.
        for (int tries = 0; tries < 4 && result == NvmlLayout.NVML_ERROR_INSUFFICIENT_SIZE; tries++) {
            words.set(JAVA_INT, 0, (int) (processes.byteSize() / layout.byteSize()));
            result = call(name, descriptor, device, words, processes);
            long count = Integer.toUnsignedLong(words.get(JAVA_INT, 0));
            if (result == NvmlLayout.NVML_ERROR_INSUFFICIENT_SIZE && count <= MAX_PROCESSES) {
                processes = arena.allocate((count + 16) * layout.byteSize(), 8);
            }
        }
        check(name, result);
        List<Process> found = new ArrayList<>();
        int count = (int) Math.min(Integer.toUnsignedLong(words.get(JAVA_INT, 0)),
            processes.byteSize() / layout.byteSize());
        for (int i = 0; i < count; i++) {
            MemorySegment entry = processes.asSlice(i * layout.byteSize(), layout.byteSize());
            long bytes = entry.get(JAVA_LONG, NvmlLayout.offset(layout, "usedGpuMemory"));
            found.add(new Process(Integer.toUnsignedLong(entry.get(JAVA_INT, NvmlLayout.offset(layout, "pid"))),
                bytes == NvmlLayout.NVML_VALUE_NOT_AVAILABLE || bytes < 0 ? null : bytes));
        }
        return found;
    }

    /** Subscribes to the errors of a GPU; {@link #nextXid()} returns them. */
    void watch(MemorySegment device) throws NvmlException {
        if (events == null) {
            check("nvmlEventSetCreate", call("nvmlEventSetCreate", POINTER, words));
            events = words.get(ADDRESS, 0);
        }
        String name = "nvmlDeviceRegisterEvents";
        check(name, call(name, FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS), device,
            NvmlLayout.NVML_EVENT_TYPE_XID_CRITICAL_ERROR, events));
    }

    /** The next reported error; null when there is none. Does not wait. */
    Xid nextXid() throws NvmlException {
        if (events == null) {
            return null;
        }
        String name = "nvmlEventSetWait_v2";
        int result = call(name, FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT), events, words, 0);
        if (result == NvmlLayout.NVML_ERROR_TIMEOUT) {
            return null;
        }
        check(name, result);
        return new Xid(words.get(ADDRESS, NvmlLayout.offset(NvmlLayout.EVENT_DATA, "device")),
            words.get(JAVA_LONG, NvmlLayout.offset(NvmlLayout.EVENT_DATA, "eventData")));
    }

    private boolean has(String name) {
        return library.find(name).isPresent();
    }

    private int call(String name, FunctionDescriptor descriptor, Object... arguments) throws NvmlException {
        MethodHandle function = functions.get(name);
        if (function == null) {
            MemorySegment address = library.find(name).orElseThrow(() -> new NvmlException("the driver has no " + name,
                NvmlLayout.NVML_ERROR_FUNCTION_NOT_FOUND));
            function = Linker.nativeLinker().downcallHandle(address, descriptor);
            functions.put(name, function);
        }
        try {
            return (int) function.invokeWithArguments(arguments);
        } catch (Throwable e) { // invokeWithArguments declares no less
            throw new IllegalStateException(name + " was called with arguments that differ from its descriptor", e);
        }
    }

    private static void check(String name, int result) throws NvmlException {
        if (result != NvmlLayout.NVML_SUCCESS) {
            throw new NvmlException(name + " failed: error=" + result, result);
        }
    }

    @Override
    public void close() {
        try {
            check("nvmlShutdown", call("nvmlShutdown", NO_ARGUMENT));
        } catch (NvmlException e) {
            LOG.debugf("NVML could not be shut down: %s", e.getMessage());
        }
        arena.close();
    }
}

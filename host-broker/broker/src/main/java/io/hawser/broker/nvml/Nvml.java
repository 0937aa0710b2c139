package io.hawser.broker.nvml;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.nvml.NvmlMacros;
import io.hawser.cuda.generated.nvml.NvmlNative;
import io.hawser.cuda.generated.nvml.nvmlEventData_t;
import io.hawser.cuda.generated.nvml.nvmlFieldValue_t;
import io.hawser.cuda.generated.nvml.nvmlGpuP2PCapsIndex_t;
import io.hawser.cuda.generated.nvml.nvmlGpuP2PStatus_t;
import io.hawser.cuda.generated.nvml.nvmlMemoryErrorType_t;
import io.hawser.cuda.generated.nvml.nvmlMemory_t;
import io.hawser.cuda.generated.nvml.nvmlMemory_v2_t;
import io.hawser.cuda.generated.nvml.nvmlPciInfo_t;
import io.hawser.cuda.generated.nvml.nvmlProcessInfo_v1_t;
import io.hawser.cuda.generated.nvml.nvmlProcessInfo_v2_t;
import io.hawser.cuda.generated.nvml.nvmlReturn_t;
import io.hawser.cuda.generated.nvml.nvmlTemperatureSensors_t;
import io.hawser.cuda.generated.nvml.nvmlUtilization_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToIntBiFunction;
import org.jboss.logging.Logger;

/**
 * NVIDIA's management library. A call of a function that the driver lacks fails with {@code NVML_ERROR_NOT_SUPPORTED};
 * all other functions still work. A GPU's handle is a number. One thread.
 */
final class Nvml implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Nvml.class);
    /** The file name that drivers install. */
    static final String LIBRARY = "libnvidia-ml.so.1";
    private static final int MAX_DEVICES = 64;
    /** Limit of processes of a GPU; stops a wrong answer from using all memory. */
    private static final int MAX_PROCESSES = 4096;
    private static final int TEXT_BYTES = 256;
    private static final int CLOCKS = 4;
    /** The capabilities of {@link #peerStates}, in its order. */
    private static final List<Integer> PEER_CAPABILITIES = List.of(nvmlGpuP2PCapsIndex_t.NVML_P2P_CAPS_INDEX_READ,
        nvmlGpuP2PCapsIndex_t.NVML_P2P_CAPS_INDEX_WRITE, nvmlGpuP2PCapsIndex_t.NVML_P2P_CAPS_INDEX_ATOMICS,
        nvmlGpuP2PCapsIndex_t.NVML_P2P_CAPS_INDEX_PROP);

    private final Arena arena = Arena.ofConfined();
    private final NvmlNative library;
    // Buffers of this thread, used for all calls.
    private final MemorySegment words = arena.allocate(128, 8);
    private final MemorySegment text = arena.allocate(TEXT_BYTES);
    private MemorySegment processes = arena.allocate(64L * nvmlProcessInfo_v2_t.BYTES, 8);
    private long events;

    /** A process on a GPU; {@code bytes} is null where the driver has no figure. */
    record Process(long pid, Long bytes) {}

    /** Device memory in bytes; {@code used} includes the driver's own part only with old drivers. */
    record Memory(long total, long used) {}

    /** An error that the driver has reported; {@code xid} is NVIDIA's number of its kind. */
    record Xid(long device, long xid) {}

    /** The place and size of a process in a list. */
    private record Entry(int bytes, int pidOffset, int usedOffset) {
        private static final Entry V1 = new Entry(nvmlProcessInfo_v1_t.BYTES, nvmlProcessInfo_v1_t.PID_OFFSET,
            nvmlProcessInfo_v1_t.USED_GPU_MEMORY_OFFSET);
        private static final Entry V2 = new Entry(nvmlProcessInfo_v2_t.BYTES, nvmlProcessInfo_v2_t.PID_OFFSET,
            nvmlProcessInfo_v2_t.USED_GPU_MEMORY_OFFSET);
    }

    private Nvml(NvmlNative library) {
        this.library = library;
    }

    /**
     * Loads and initializes the library.
     *
     * @param name of the library.
     * @throws NvmlException when it is missing or the driver does not answer; the message gives the reason.
     */
    static Nvml open(String name) throws NvmlException {
        if (!NativeLibrary.isPresent(name)) {
            throw new NvmlException(name + " cannot be loaded", nvmlReturn_t.NVML_ERROR_LIBRARY_NOT_FOUND);
        }
        // Never unloaded: the library leaves threads and handlers.
        Nvml nvml = new Nvml(new NvmlNative(NativeLibrary.open(name)));
        try {
            check("nvmlInit_v2", nvml.library.nvmlInit_v2());
            return nvml;
        } catch (NvmlException e) {
            nvml.arena.close();
            throw e;
        }
    }

    /** The driver's version, for example 580.159.03. */
    String driverVersion() throws NvmlException {
        check("nvmlSystemGetDriverVersion", library.nvmlSystemGetDriverVersion(text,
            NvmlMacros.NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE));
        return text.getString(0, StandardCharsets.US_ASCII);
    }

    /** Number of GPUs that the driver lists, including lost ones. */
    int deviceCount() throws NvmlException {
        check("nvmlDeviceGetCount_v2", library.nvmlDeviceGetCount_v2(words));
        return Math.min(words.get(JAVA_INT, 0), MAX_DEVICES);
    }

    /** The handle of a GPU. */
    long device(int index) throws NvmlException {
        check("nvmlDeviceGetHandleByIndex_v2", library.nvmlDeviceGetHandleByIndex_v2(index, words));
        return words.get(JAVA_LONG, 0);
    }

    /** The UUID in the workers' form: lower-case hexadecimal digits, without {@code GPU-}. */
    String uuid(long device) throws NvmlException {
        check("nvmlDeviceGetUUID", library.nvmlDeviceGetUUID(device, text,
            NvmlMacros.NVML_DEVICE_UUID_V2_BUFFER_SIZE));
        String uuid = text.getString(0, StandardCharsets.US_ASCII).toLowerCase(Locale.ROOT);
        return uuid.startsWith("gpu-") ? uuid.substring(4) : uuid;
    }

    /** The memory of a GPU. */
    Memory memory(long device) throws NvmlException {
        words.asSlice(0, nvmlMemory_v2_t.BYTES).fill((byte) 0);
        words.set(JAVA_INT, nvmlMemory_v2_t.VERSION_OFFSET, NvmlMacros.nvmlMemory_v2);
        int result = library.nvmlDeviceGetMemoryInfo_v2(device, words);
        if (result == nvmlReturn_t.NVML_SUCCESS) {
            return new Memory(words.get(JAVA_LONG, nvmlMemory_v2_t.TOTAL_OFFSET),
                words.get(JAVA_LONG, nvmlMemory_v2_t.USED_OFFSET));
        }
        if (new NvmlException("", result).isLoss()) {
            check("nvmlDeviceGetMemoryInfo_v2", result);
        }
        check("nvmlDeviceGetMemoryInfo", library.nvmlDeviceGetMemoryInfo(device, words));
        return new Memory(words.get(JAVA_LONG, nvmlMemory_t.TOTAL_OFFSET),
            words.get(JAVA_LONG, nvmlMemory_t.USED_OFFSET));
    }

    /** The part of the last sample period in which a kernel ran, 0 to 100. */
    int utilizationPercent(long device) throws NvmlException {
        check("nvmlDeviceGetUtilizationRates", library.nvmlDeviceGetUtilizationRates(device, words));
        return words.get(JAVA_INT, nvmlUtilization_t.GPU_OFFSET);
    }

    /** The temperature of the chip. */
    int temperatureCelsius(long device) throws NvmlException {
        check("nvmlDeviceGetTemperature", library.nvmlDeviceGetTemperature(device,
            nvmlTemperatureSensors_t.NVML_TEMPERATURE_GPU, words));
        return words.get(JAVA_INT, 0);
    }

    /** The power of the whole board. */
    double powerWatts(long device) throws NvmlException {
        check("nvmlDeviceGetPowerUsage", library.nvmlDeviceGetPowerUsage(device, words));
        return Integer.toUnsignedLong(words.get(JAVA_INT, 0)) / 1000.0; // milliwatts
    }

    /** The further figures of a GPU; a figure that the GPU lacks is missing. */
    Map<Sensor, Long> sensors(long device) throws NvmlException {
        Map<Sensor, Long> found = new EnumMap<>(Sensor.class);
        put(found, Sensor.MEMORY_UTILIZATION_PERCENT, device, library::nvmlDeviceGetUtilizationRates,
            nvmlUtilization_t.MEMORY_OFFSET);
        put(found, Sensor.POWER_MILLIWATTS, device, library::nvmlDeviceGetPowerUsage, 0);
        put(found, Sensor.ENFORCED_LIMIT_MILLIWATTS, device, library::nvmlDeviceGetEnforcedPowerLimit, 0);
        put(found, Sensor.LIMIT_MILLIWATTS, device, library::nvmlDeviceGetPowerManagementLimit, 0);
        put(found, Sensor.DEFAULT_LIMIT_MILLIWATTS, device, library::nvmlDeviceGetPowerManagementDefaultLimit, 0);
        ToIntBiFunction<Long, MemorySegment> limits = (d, out) -> library.nvmlDeviceGetPowerManagementLimitConstraints(
            d, out, out.asSlice(Integer.BYTES));
        put(found, Sensor.MIN_LIMIT_MILLIWATTS, device, limits, 0);
        put(found, Sensor.MAX_LIMIT_MILLIWATTS, device, limits, Integer.BYTES);
        for (int i = 0; i < CLOCKS; i++) {
            int clock = i;
            put(found, Sensor.CLOCKS.get(i), device, (d, out) -> library.nvmlDeviceGetClockInfo(d, clock, out), 0);
            put(found, Sensor.MAX_CLOCKS.get(i), device, (d, out) -> library.nvmlDeviceGetMaxClockInfo(d, clock, out),
                0);
        }
        put(found, Sensor.PERFORMANCE_STATE, device, library::nvmlDeviceGetPerformanceState, 0);
        putLong(found, Sensor.ENERGY_MILLIJOULES, device, library::nvmlDeviceGetTotalEnergyConsumption);
        putLong(found, Sensor.CLOCK_REASONS, device, library::nvmlDeviceGetCurrentClocksEventReasons);
        putLong(found, Sensor.SUPPORTED_CLOCK_REASONS, device, library::nvmlDeviceGetSupportedClocksEventReasons);
        for (int i = 0; i < Sensor.ERRORS.size(); i++) {
            int counter = i / nvmlMemoryErrorType_t.NVML_MEMORY_ERROR_TYPE_COUNT;
            int kind = i % nvmlMemoryErrorType_t.NVML_MEMORY_ERROR_TYPE_COUNT;
            putLong(found, Sensor.ERRORS.get(i), device, (d, out) -> library.nvmlDeviceGetTotalEccErrors(d, kind,
                counter, out));
        }
        putField(found, Sensor.MEMORY_CELSIUS, device, NvmlMacros.NVML_FI_DEV_MEMORY_TEMP);
        putField(found, Sensor.INSTANT_POWER_MILLIWATTS, device, NvmlMacros.NVML_FI_DEV_POWER_INSTANT);
        return found;
    }

    /** The properties of a GPU. */
    Map<Trait, Long> traits(long device) throws NvmlException {
        Map<Trait, Long> found = new EnumMap<>(Trait.class);
        ToIntBiFunction<Long, MemorySegment> modes = (d, out) -> library.nvmlDeviceGetEccMode(d, out, out.asSlice(
            Integer.BYTES));
        put(found, Trait.ECC_MODE, device, modes, 0);
        put(found, Trait.PENDING_ECC_MODE, device, modes, Integer.BYTES);
        put(found, Trait.PCI_DEVICE_ID, device, library::nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t.PCI_DEVICE_ID_OFFSET);
        put(found, Trait.PCI_SUBSYSTEM_ID, device, library::nvmlDeviceGetPciInfo_v3,
            nvmlPciInfo_t.PCI_SUB_SYSTEM_ID_OFFSET);
        put(found, Trait.PCIE_GENERATION, device, library::nvmlDeviceGetMaxPcieLinkGeneration, 0);
        put(found, Trait.GPU_PCIE_GENERATION, device, library::nvmlDeviceGetGpuMaxPcieLinkGeneration, 0);
        put(found, Trait.MAX_PCIE_WIDTH, device, library::nvmlDeviceGetMaxPcieLinkWidth, 0);
        put(found, Trait.PCIE_WIDTH, device, library::nvmlDeviceGetCurrPcieLinkWidth, 0);
        return found;
    }

    /**
     * Whether a GPU has access to another GPU's memory: digits of {@code nvmlGpuP2PStatus_t} for reading, writing,
     * atomics, and properties.
     */
    String peerStates(long device, long peer) throws NvmlException {
        StringBuilder states = new StringBuilder();
        for (int capability : PEER_CAPABILITIES) {
            states.append(succeeds(library.nvmlDeviceGetP2PStatus(device, peer, capability, words)) ? words.get(
                JAVA_INT, 0) : nvmlGpuP2PStatus_t.NVML_P2P_STATUS_UNKNOWN);
        }
        return states.toString();
    }

    /** Adds a number of 32 bits that a function writes at an offset. */
    private <T> void put(Map<T, Long> found, T key, long device, ToIntBiFunction<Long, MemorySegment> function,
        int offset) throws NvmlException {
        if (succeeds(function.applyAsInt(device, words))) {
            found.put(key, Integer.toUnsignedLong(words.get(JAVA_INT, offset)));
        }
    }

    /** Adds a number of 64 bits. */
    private void putLong(Map<Sensor, Long> found, Sensor sensor, long device,
        ToIntBiFunction<Long, MemorySegment> function) throws NvmlException {
        if (succeeds(function.applyAsInt(device, words))) {
            found.put(sensor, words.get(JAVA_LONG, 0));
        }
    }

    /** Adds a number of 32 bits that has no function of its own. */
    private void putField(Map<Sensor, Long> found, Sensor sensor, long device, int field) throws NvmlException {
        words.asSlice(0, nvmlFieldValue_t.BYTES).fill((byte) 0);
        words.set(JAVA_INT, nvmlFieldValue_t.FIELD_ID_OFFSET, field);
        if (succeeds(library.nvmlDeviceGetFieldValues(device, 1, words))
            && succeeds(words.get(JAVA_INT, nvmlFieldValue_t.NVML_RETURN_OFFSET))) {
            found.put(sensor, Integer.toUnsignedLong(words.get(JAVA_INT, nvmlFieldValue_t.VALUE_OFFSET)));
        }
    }

    private static boolean succeeds(int result) throws NvmlException {
        NvmlException failure = new NvmlException("a sensor cannot be read: error=" + result, result);
        if (failure.isLoss() || result == nvmlReturn_t.NVML_ERROR_UNINITIALIZED) {
            throw failure;
        }
        return result == nvmlReturn_t.NVML_SUCCESS;
    }

    /** A function that lists processes. */
    @FunctionalInterface
    private interface Lister {
        int list(long device, MemorySegment count, MemorySegment infos);
    }

    /** The computing processes, including those of MPS. */
    List<Process> processes(long device) throws NvmlException {
        List<Process> found = processes("nvmlDeviceGetComputeRunningProcesses_v3",
            library::nvmlDeviceGetComputeRunningProcesses_v3, Entry.V2, device);
        if (found == null) {
            found = processes("nvmlDeviceGetComputeRunningProcesses_v2",
                library::nvmlDeviceGetComputeRunningProcesses_v2, Entry.V2, device);
        }
        if (found == null) {
            found = processes("nvmlDeviceGetComputeRunningProcesses", library::nvmlDeviceGetComputeRunningProcesses,
                Entry.V1, device);
        }
        List<Process> mps = processes("nvmlDeviceGetMPSComputeRunningProcesses_v3",
            library::nvmlDeviceGetMPSComputeRunningProcesses_v3, Entry.V2, device);
        if (found == null) {
            throw new NvmlException("the driver lists no processes", nvmlReturn_t.NVML_ERROR_NOT_SUPPORTED);
        }
        found.addAll(mps == null ? List.of() : mps);
        return found;
    }

    /** The processes; null when the function is not supported. */
    private List<Process> processes(String name, Lister lister, Entry entry, long device) throws NvmlException {
        int result = nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE;
        // New processes may appear between two calls; the next try has room for them.
        for (int tries = 0; tries < 4 && result == nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE; tries++) {
            words.set(JAVA_INT, 0, (int) (processes.byteSize() / entry.bytes()));
            result = lister.list(device, words, processes);
            long count = Integer.toUnsignedLong(words.get(JAVA_INT, 0));
            if (result == nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE && count <= MAX_PROCESSES) {
                processes = arena.allocate((count + 16) * entry.bytes(), 8);
            }
        }
        if (result == nvmlReturn_t.NVML_ERROR_NOT_SUPPORTED) {
            return null;
        }
        check(name, result);
        List<Process> found = new ArrayList<>();
        int count = (int) Math.min(Integer.toUnsignedLong(words.get(JAVA_INT, 0)),
            processes.byteSize() / entry.bytes());
        for (int i = 0; i < count; i++) {
            MemorySegment process = processes.asSlice((long) i * entry.bytes(), entry.bytes());
            long bytes = process.get(JAVA_LONG, entry.usedOffset());
            // Below 0: NVML_VALUE_NOT_AVAILABLE.
            found.add(new Process(Integer.toUnsignedLong(process.get(JAVA_INT, entry.pidOffset())),
                bytes < 0 ? null : bytes));
        }
        return found;
    }

    /** Subscribes to the errors of a GPU; {@link #nextXid()} returns them. */
    void watch(long device) throws NvmlException {
        if (events == 0) {
            check("nvmlEventSetCreate", library.nvmlEventSetCreate(words));
            events = words.get(JAVA_LONG, 0);
        }
        check("nvmlDeviceRegisterEvents", library.nvmlDeviceRegisterEvents(device,
            NvmlMacros.nvmlEventTypeXidCriticalError, events));
    }

    /** The next reported error; null when there is none. Does not wait. */
    Xid nextXid() throws NvmlException {
        if (events == 0) {
            return null;
        }
        int result = library.nvmlEventSetWait_v2(events, words, 0);
        if (result == nvmlReturn_t.NVML_ERROR_TIMEOUT) {
            return null;
        }
        check("nvmlEventSetWait_v2", result);
        return new Xid(words.get(JAVA_LONG, nvmlEventData_t.DEVICE_OFFSET),
            words.get(JAVA_LONG, nvmlEventData_t.EVENT_DATA_OFFSET));
    }

    private static void check(String name, int result) throws NvmlException {
        if (result != nvmlReturn_t.NVML_SUCCESS) {
            throw new NvmlException(name + " failed: error=" + result, result);
        }
    }

    @Override
    public void close() {
        try {
            check("nvmlShutdown", library.nvmlShutdown());
        } catch (NvmlException e) {
            LOG.debugf("NVML could not be shut down: %s", e.getMessage());
        }
        arena.close();
    }
}

package io.hawser.broker.nvml;

import io.hawser.broker.nvml.GpuReading.Health;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jboss.logging.Logger;

/** Readings of NVIDIA's GPUs. A driver without NVML, or without some function of it, leaves figures unknown. */
final class NvmlSource implements GpuSource {
    private static final Logger LOG = Logger.getLogger(NvmlSource.class);
    private static final long RETRY_NS = TimeUnit.SECONDS.toNanos(30);
    /** Errors taken at a time; stops a driver that reports without end from keeping the thread. */
    private static final int MAX_XIDS = 64;

    private final String library;
    private final Supplier<Set<String>> known;
    private final Map<String, Device> devices = new LinkedHashMap<>();
    private final Map<Integer, String> missing = new TreeMap<>(); // GPUs that NVML counts and does not show, and why
    private final Set<String> told = new HashSet<>();
    private Nvml nvml;
    private long nextTryNs;

    /** A GPU once seen; {@code ill} is what an error has made of it. */
    private static final class Device {
        private MemorySegment handle;
        private Health health = Health.OK;
        private String detail = "";
    }

    /** Asks NVML; null where this driver or GPU does not tell. */
    @FunctionalInterface
    private interface Question<T> {
        T ask() throws NvmlException;
    }

    /**
     * Makes a source.
     *
     * @param library {@link Nvml#LIBRARY}, or another one in tests.
     * @param known UUIDs of the GPUs that workers have told of: one can be lost before NVML was asked for the first
     * time.
     */
    NvmlSource(String library, Supplier<Set<String>> known) {
        this.library = library;
        this.known = known;
        nextTryNs = System.nanoTime();
    }

    @Override
    public Map<String, GpuReading> read() {
        if (nvml == null) {
            open();
        }
        Map<String, GpuReading> readings = new HashMap<>();
        if (nvml == null) {
            devices.forEach((uuid, device) -> readings.put(uuid, GpuReading.unknown(uuid, device.health,
                device.detail)));
            return readings;
        }
        List.copyOf(missing.keySet()).forEach(this::find);
        readXids();
        for (Map.Entry<String, Device> entry : devices.entrySet()) {
            readings.put(entry.getKey(), read(entry.getKey(), entry.getValue()));
            if (nvml == null) {
                break; // it had to be closed; the next read opens it again
            }
        }
        if (!missing.isEmpty()) {
            String why = "it fell off the bus: " + missing.values().iterator().next();
            known.get().stream().filter(uuid -> !devices.containsKey(uuid))
                .forEach(uuid -> readings.put(uuid, GpuReading.unknown(uuid, Health.LOST, why)));
        }
        return readings;
    }

    private void open() {
        if (System.nanoTime() - nextTryNs < 0) {
            return;
        }
        nextTryNs = System.nanoTime() + RETRY_NS;
        try {
            nvml = Nvml.open(library);
            int count = nvml.deviceCount();
            for (int i = 0; i < count; i++) {
                find(i);
            }
            LOG.infof("NVML tells of the GPUs: gpus=%d", devices.size());
        } catch (NvmlException e) {
            tell("figures of the GPUs are not known: " + e.getMessage());
            closeNvml();
        }
    }

    private void find(int index) {
        try {
            MemorySegment handle = nvml.device(index);
            Device device = devices.computeIfAbsent(nvml.uuid(handle), uuid -> new Device());
            device.handle = handle;
            missing.remove(index);
            nvml.watch(handle);
        } catch (NvmlException e) {
            if (e.tellsOfLoss()) {
                missing.put(index, e.getMessage()); // asked again each second, as one that was lost later
            }
            tell("GPU " + index + " does not tell all of itself: " + e.getMessage());
        }
    }

    private void readXids() {
        try {
            Nvml.Xid event = nvml.nextXid();
            for (int i = 0; event != null; event = i++ < MAX_XIDS ? nvml.nextXid() : null) {
                happened(event);
            }
        } catch (NvmlException e) {
            tell("errors of GPUs are not known: " + e.getMessage());
        }
    }

    private void happened(Nvml.Xid event) {
        Health health = XidKind.health(event.xid());
        devices.forEach((uuid, device) -> {
            if (!event.device().equals(device.handle)) {
                return;
            }
            // Guests can cause those that mean nothing for the GPU, as often as they like.
            LOG.logf(health == Health.OK ? Logger.Level.DEBUG : Logger.Level.ERROR,
                "the driver has reported an error: gpu=%s xid=%d", uuid, event.xid());
            // Until the broker starts again: no event tells that a GPU is well.
            if (health.compareTo(device.health) > 0) {
                device.health = health;
                device.detail = "the driver has reported XID " + event.xid();
            }
        });
    }

    private GpuReading read(String uuid, Device device) {
        if (device.handle == null) {
            return GpuReading.unknown(uuid, Health.LOST, "the driver does not find it any more");
        }
        try {
            Nvml.Memory memory = orNull(() -> nvml.memory(device.handle));
            Integer utilization = orNull(() -> nvml.utilizationPercent(device.handle));
            Integer temperature = orNull(() -> nvml.temperatureCelsius(device.handle));
            Double power = orNull(() -> nvml.powerWatts(device.handle));
            List<Nvml.Process> processes = orNull(() -> nvml.processes(device.handle));
            Map<Long, Long> bytes = new HashMap<>();
            if (processes != null) {
                processes.stream().filter(p -> p.bytes() != null).forEach(p -> bytes.merge(p.pid(), p.bytes(),
                    Long::sum));
            }
            return new GpuReading(uuid, device.health, device.detail, memory == null ? null : memory.used(),
                memory == null ? null : memory.total(), utilization, temperature, power, Map.copyOf(bytes));
        } catch (NvmlException e) {
            if (e.code() == NvmlLayout.NVML_ERROR_UNINITIALIZED) {
                closeNvml();
                return GpuReading.unknown(uuid, device.health, device.detail);
            }
            tell("a GPU is lost: gpu=" + uuid + ": " + e.getMessage());
            return GpuReading.unknown(uuid, Health.LOST, e.code() == NvmlLayout.NVML_ERROR_GPU_IS_LOST
                ? "it fell off the bus: " + e.getMessage() : "it must be reset: " + e.getMessage());
        }
    }

    /** The answer; null when there is none but the GPU is there. */
    private <T> T orNull(Question<T> question) throws NvmlException {
        try {
            return question.ask();
        } catch (NvmlException e) {
            if (e.tellsOfLoss() || e.code() == NvmlLayout.NVML_ERROR_UNINITIALIZED) {
                throw e;
            }
            tell("a figure of a GPU is not known: " + e.getMessage());
            return null;
        }
    }

    /** Once: the same is found each second. */
    private void tell(String text) {
        if (told.add(text)) {
            LOG.warn(text);
        }
    }

    private void closeNvml() {
        if (nvml != null) {
            nvml.close();
            nvml = null;
            missing.clear();
            devices.values().forEach(device -> device.handle = null);
        }
    }

    @Override
    public void close() {
        closeNvml();
    }
}

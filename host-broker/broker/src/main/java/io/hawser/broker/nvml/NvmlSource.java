package io.hawser.broker.nvml;

import io.hawser.broker.nvml.GpuReading.Health;
import io.hawser.cuda.generated.nvml.nvmlReturn_t;
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

/** Readings of NVIDIA's GPUs. Figures stay unknown when the driver lacks NVML or one of its functions. */
final class NvmlSource implements GpuSource {
    private static final Logger LOG = Logger.getLogger(NvmlSource.class);
    private static final long RETRY_NS = TimeUnit.SECONDS.toNanos(30);
    /** Errors per read; stops a driver that reports without end from blocking the thread. */
    private static final int MAX_XIDS = 64;

    private final String library;
    private final Supplier<Set<String>> known;
    private final Map<String, Device> devices = new LinkedHashMap<>();
    private final Map<Integer, String> missing = new TreeMap<>(); // indexes of GPUs without a handle, and the reason
    private final Set<String> logged = new HashSet<>();
    private Nvml nvml;
    private String driverVersion = "";
    private long nextTryNs;

    /** A GPU that was found once. Its health changes by reported errors. */
    private static final class Device {
        private long handle; // 0: the driver does not find it
        private Health health = Health.OK;
        private String detail = "";
        private Map<Trait, Long> traits; // null until they are read
        private final Map<String, String> peers = new HashMap<>();
    }

    /** A query of NVML. */
    @FunctionalInterface
    private interface Query<T> {
        T run() throws NvmlException;
    }

    /**
     * Creates a source.
     *
     * @param library {@link Nvml#LIBRARY}, or another one in tests.
     * @param known UUIDs of the GPUs that workers have reported: a GPU can be lost before the first query of NVML.
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
                break; // NVML was closed; the next read opens it again
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
            driverVersion = nvml.driverVersion();
            int count = nvml.deviceCount();
            for (int i = 0; i < count; i++) {
                find(i);
            }
            LOG.infof("NVML reports the GPUs: gpus=%d", devices.size());
        } catch (NvmlException e) {
            logOnce("the figures of the GPUs are unknown: " + e.getMessage());
            closeNvml();
        }
    }

    private void find(int index) {
        try {
            long handle = nvml.device(index);
            Device device = devices.computeIfAbsent(nvml.uuid(handle), uuid -> new Device());
            device.handle = handle;
            missing.remove(index);
            nvml.watch(handle);
        } catch (NvmlException e) {
            if (e.isLoss()) {
                missing.put(index, e.getMessage()); // each read tries again
            }
            logOnce("some figures of GPU " + index + " are unknown: " + e.getMessage());
        }
    }

    private void readXids() {
        try {
            Nvml.Xid event = nvml.nextXid();
            for (int i = 0; event != null; event = i++ < MAX_XIDS ? nvml.nextXid() : null) {
                handle(event);
            }
        } catch (NvmlException e) {
            logOnce("errors of GPUs are unknown: " + e.getMessage());
        }
    }

    private void handle(Nvml.Xid event) {
        Health health = XidKind.health(event.xid());
        devices.forEach((uuid, device) -> {
            if (event.device() != device.handle) {
                return;
            }
            // DEBUG for errors that do not concern the GPU's health: guests can cause them at will.
            LOG.logf(health == Health.OK ? Logger.Level.DEBUG : Logger.Level.ERROR,
                "the driver has reported an error: gpu=%s xid=%d", uuid, event.xid());
            // Until the broker restarts: no event reports a recovered GPU.
            if (health.compareTo(device.health) > 0) {
                device.health = health;
                device.detail = "the driver has reported XID " + event.xid();
            }
        });
    }

    private GpuReading read(String uuid, Device device) {
        if (device.handle == 0) {
            return GpuReading.unknown(uuid, Health.LOST, "the driver no longer finds it");
        }
        try {
            Nvml.Memory memory = orNull(() -> nvml.memory(device.handle));
            Integer utilization = orNull(() -> nvml.utilizationPercent(device.handle));
            Integer temperature = orNull(() -> nvml.temperatureCelsius(device.handle));
            Double power = orNull(() -> nvml.powerWatts(device.handle));
            Map<Sensor, Long> sensors = nvml.sensors(device.handle);
            readProperties(device);
            List<Nvml.Process> processes = orNull(() -> nvml.processes(device.handle));
            Map<Long, Long> bytes = new HashMap<>();
            if (processes != null) {
                processes.stream().filter(p -> p.bytes() != null).forEach(p -> bytes.merge(p.pid(), p.bytes(),
                    Long::sum));
            }
            return new GpuReading(uuid, device.health, device.detail, memory == null ? null : memory.used(),
                memory == null ? null : memory.total(), utilization, temperature, power, sensors, device.traits,
                Map.copyOf(device.peers), Map.copyOf(bytes));
        } catch (NvmlException e) {
            if (e.code() == nvmlReturn_t.NVML_ERROR_UNINITIALIZED) {
                closeNvml();
                return GpuReading.unknown(uuid, device.health, device.detail);
            }
            logOnce("a GPU is lost: gpu=" + uuid + ": " + e.getMessage());
            return GpuReading.unknown(uuid, Health.LOST, e.code() == nvmlReturn_t.NVML_ERROR_GPU_IS_LOST
                ? "it fell off the bus: " + e.getMessage() : "it must be reset: " + e.getMessage());
        }
    }

    /** Reads once what does not change. */
    private void readProperties(Device device) throws NvmlException {
        if (device.traits == null) {
            device.traits = nvml.traits(device.handle);
        }
        for (Map.Entry<String, Device> other : devices.entrySet()) {
            Device peer = other.getValue();
            if (peer != device && peer.handle != 0 && !device.peers.containsKey(other.getKey())) {
                device.peers.put(other.getKey(), nvml.peerStates(device.handle, peer.handle));
            }
        }
    }

    /** The result of a query; null when the query failed but the GPU is present. */
    private <T> T orNull(Query<T> query) throws NvmlException {
        try {
            return query.run();
        } catch (NvmlException e) {
            if (e.isLoss() || e.code() == nvmlReturn_t.NVML_ERROR_UNINITIALIZED) {
                throw e;
            }
            logOnce("a figure of a GPU is unknown: " + e.getMessage());
            return null;
        }
    }

    /** Logs a text once, since each second finds the same. */
    private void logOnce(String text) {
        if (logged.add(text)) {
            LOG.warn(text);
        }
    }

    private void closeNvml() {
        if (nvml != null) {
            nvml.close();
            nvml = null;
            missing.clear();
            devices.values().forEach(device -> device.handle = 0);
        }
    }

    @Override
    public String driverVersion() {
        return driverVersion;
    }

    @Override
    public void close() {
        closeNvml();
    }
}

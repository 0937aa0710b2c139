package io.hawser.broker.nvml;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.SessionView;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * Readings of the software GPU: the memory that its sessions hold, and as utilization the part of the machine's
 * processors that their workers used. Several software GPUs share the processors; a session with several GPUs counts
 * for each with an equal part.
 */
final class SoftwareSource implements GpuSource {
    private static final String ALL_ACCESS = "0000"; // of Nvml.peerStates

    private final Supplier<List<Device>> devices;
    private final Supplier<List<SessionView>> sessions;
    private final int processors = Runtime.getRuntime().availableProcessors();
    private Map<Long, Duration> cpuBefore = Map.of(); // by worker's process
    private long beforeNs;

    SoftwareSource(Supplier<List<Device>> devices, Supplier<List<SessionView>> sessions) {
        this.devices = devices;
        this.sessions = sessions;
        beforeNs = System.nanoTime();
    }

    @Override
    public Map<String, GpuReading> read() {
        long nowNs = System.nanoTime();
        double capacityNs = Math.max(1, nowNs - beforeNs) * (double) processors;
        Map<Long, Duration> cpu = new HashMap<>();
        Map<String, Double> shares = new HashMap<>();
        Map<String, Long> bytes = new HashMap<>();
        for (SessionView session : sessions.get()) {
            if (session.gpus().isEmpty() || session.workerPid() == 0) {
                continue;
            }
            // A session reports one figure for all its GPUs: it counts for the first.
            bytes.merge(session.gpus().getFirst(), session.statistics().deviceBytes(), Long::sum);
            Optional<Duration> used = ProcessHandle.of(session.workerPid()).flatMap(p -> p.info().totalCpuDuration());
            if (used.isEmpty()) {
                continue;
            }
            cpu.put(session.workerPid(), used.get());
            Duration before = cpuBefore.get(session.workerPid());
            if (before != null) {
                double share = used.get().minus(before).toNanos() / capacityNs / session.gpus().size();
                session.gpus().forEach(uuid -> shares.merge(uuid, share, Double::sum));
            }
        }
        cpuBefore = cpu;
        beforeNs = nowNs;
        Map<String, GpuReading> readings = new HashMap<>();
        for (Device device : devices.get()) {
            int percent = Math.clamp(Math.round(100 * shares.getOrDefault(device.uuid(), 0.0)), 0, 100);
            Map<String, String> peers = devices.get().stream().filter(peer -> peer != device)
                .collect(Collectors.toMap(Device::uuid, peer -> ALL_ACCESS));
            readings.put(device.uuid(), new GpuReading(device.uuid(), GpuReading.Health.OK, "",
                bytes.getOrDefault(device.uuid(), 0L), device.totalBytes(), percent, null, null, Map.of(), Map.of(),
                peers, Map.of()));
        }
        return readings;
    }

    @Override
    public void close() {
        cpuBefore = Map.of();
    }
}

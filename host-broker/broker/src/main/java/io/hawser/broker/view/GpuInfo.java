package io.hawser.broker.view;

import io.hawser.broker.Broker;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.vgpu.GpuLoad;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** A GPU; see openapi.yml. Null is unknown. */
public record GpuInfo(int index, String name, String uuid, String backend, long totalBytes, long usedBytes,
    String pciBusId, String computeCapability, int sessions, long reservedBytes, long contextBytes, int vgpus,
    String health, String healthDetail, Integer utilizationPercent, Long memoryUsedBytes, Integer temperatureCelsius,
    Double powerWatts) {

    /** The GPUs in the workers' order, from snapshots; any thread. */
    public static List<GpuInfo> list(Broker broker) {
        PoolState pool = broker.pool();
        List<SessionView> sessions = broker.sessions().list();
        List<GpuInfo> gpus = new ArrayList<>();
        for (Device device : pool.devices()) {
            gpus.add(of(broker, gpus.size(), device, pool.backend(),
                sessions.stream().filter(s -> s.gpus().contains(device.uuid())).toList()));
        }
        return gpus;
    }

    private static GpuInfo of(Broker broker, int index, Device device, String backend,
        List<SessionView> users) {
        GpuReading reading = broker.gpuMonitor().reading(device.uuid());
        GpuReading.Health health = reading.health();
        String detail = reading.healthDetail();
        if (health == GpuReading.Health.OK && !broker.workerFailure(device.uuid()).isEmpty()) {
            health = GpuReading.Health.FAILING;
            detail = "no worker can be started: " + broker.workerFailure(device.uuid());
        }
        Optional<GpuLoad> load = broker.vgpus().gpus().stream().filter(g -> g.device().uuid().equals(device.uuid()))
            .findFirst();
        long used = users.stream().map(s -> s.guest().vgpu()).distinct()
            .mapToLong(vgpu -> broker.ledgers().usedBytes(vgpu, device.uuid())).sum();
        return new GpuInfo(index, device.name(), device.uuid(), backend, device.totalBytes(), used, device.pciBusId(),
            device.computeCapability(), users.size(), load.map(GpuLoad::reservedBytes).orElse(0L),
            broker.gpuMonitor().contextBytes(device.uuid()),
            load.map(GpuLoad::vgpus).orElse(0), health.name().toLowerCase(Locale.ROOT),
            detail, reading.utilizationPercent(), reading.memoryUsedBytes(), reading.temperatureCelsius(),
            reading.powerWatts());
    }
}

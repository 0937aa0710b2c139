package io.hawser.broker.view;

import io.hawser.broker.admin.PoolView;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.nvml.GpuMonitor;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.vgpu.GpuLoad;
import io.hawser.broker.vgpu.VgpuTable;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** The GPUs with their figures, from snapshots. Any thread. */
@Singleton
public final class GpuInventory {
    private final WorkerPools pools;
    private final SessionRegistry sessions;
    private final GpuMonitor monitor;
    private final VgpuTable vgpus;
    private final Ledgers ledgers;
    private final PoolView pool;

    /** Reads these parts of the broker. */
    @Inject
    public GpuInventory(WorkerPools pools, SessionRegistry sessions, GpuMonitor monitor, VgpuTable vgpus,
        Ledgers ledgers, PoolView pool) {
        this.pools = pools;
        this.sessions = sessions;
        this.monitor = monitor;
        this.vgpus = vgpus;
        this.ledgers = ledgers;
        this.pool = pool;
    }

    /** The GPUs in the workers' order. */
    public List<GpuInfo> list() {
        PoolState pool = pools.state();
        List<SessionView> present = sessions.list();
        List<GpuInfo> gpus = new ArrayList<>();
        for (Device device : pool.devices()) {
            gpus.add(info(gpus.size(), device, pool.backend(),
                present.stream().filter(s -> s.gpus().contains(device.uuid())).toList()));
        }
        return gpus;
    }

    private GpuInfo info(int index, Device device, String backend, List<SessionView> users) {
        GpuReading reading = monitor.reading(device.uuid());
        GpuReading.Health health = reading.health();
        String detail = reading.healthDetail();
        String failure = pools.failure(device.uuid());
        if (health == GpuReading.Health.OK && !failure.isEmpty()) {
            health = GpuReading.Health.FAILING;
            detail = "no worker can be started: " + failure;
        }
        Optional<GpuLoad> load = vgpus.gpus().stream().filter(g -> g.device().uuid().equals(device.uuid()))
            .findFirst();
        long used = users.stream().map(s -> s.guest().vgpu()).distinct()
            .mapToLong(vgpu -> ledgers.usedBytes(vgpu, device.uuid())).sum();
        return new GpuInfo(index, device.name(), device.uuid(), backend, device.totalBytes(), used, device.pciBusId(),
            device.computeCapability(), users.size(), load.map(GpuLoad::reservedBytes).orElse(0L),
            monitor.contextBytes(device.uuid()), load.map(GpuLoad::vgpus).orElse(0),
            health.name().toLowerCase(Locale.ROOT), detail, reading.utilizationPercent(), reading.memoryUsedBytes(),
            reading.temperatureCelsius(), reading.powerWatts(),
            load.map(GpuLoad::drained).orElse(false), pool.name());
    }
}

package io.hawser.broker.view;

import io.hawser.broker.admin.PoolView;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.swap.SwapSource;
import io.hawser.broker.vgpu.VgpuTable;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;
import java.util.List;
import java.util.Map;

/** The vGPUs with the figures of their sessions, from snapshots. Any thread. */
@Singleton
public final class VgpuInventory {
    private final VgpuTable vgpus;
    private final WorkerPools pools;
    private final Ledgers ledgers;
    private final SwapSource swaps;
    private final PoolView pool;

    /** Reads these parts of the broker. */
    @Inject
    public VgpuInventory(VgpuTable vgpus, WorkerPools pools, Ledgers ledgers, SwapSource swaps,
        PoolView pool) {
        this.vgpus = vgpus;
        this.pools = pools;
        this.ledgers = ledgers;
        this.swaps = swaps;
        this.pool = pool;
    }

    /** The vGPUs of this broker, by name. */
    public List<VgpuInfo> list() {
        Map<String, Integer> waiting = pools.state().waiting();
        return vgpus.list().stream().map(view -> info(view, waiting)).toList();
    }

    /** A vGPU of this broker or of the pool, with the figures that this broker has. */
    public VgpuInfo info(VgpuView view) {
        return info(view, pools.state().waiting());
    }

    private VgpuInfo info(VgpuView view, Map<String, Integer> waiting) {
        String name = view.vgpu().name();
        boolean isHere = vgpus.find(name).isPresent();
        return VgpuInfo.of(view, waiting.getOrDefault(name, 0), ledgers.usedBytes(name),
            isHere && view.vgpu().swappable() ? swaps.of(name) : null, isHere ? pool.name() : pool.brokerOf(name));
    }
}

package io.hawser.broker.metrics;

import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.view.GpuInventory;
import io.hawser.broker.view.PeerInfo;
import io.hawser.broker.view.VgpuInventory;
import java.util.List;
import java.util.function.Supplier;

/**
 * The parts of a broker whose figures are metrics.
 *
 * @param brokers of its pool; empty when it is alone.
 */
public record Sources(SessionRegistry sessions, WorkerPools pools, Regions regions, GpuInventory gpus,
    VgpuInventory vgpus, Supplier<List<PeerInfo>> brokers) {}

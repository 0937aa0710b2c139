package io.hawser.broker.metrics;

import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.view.GpuInventory;
import io.hawser.broker.view.VgpuInventory;

/** The parts of a broker whose figures are metrics. */
public record Sources(SessionRegistry sessions, WorkerPools pools, Regions regions, GpuInventory gpus,
    VgpuInventory vgpus) {}

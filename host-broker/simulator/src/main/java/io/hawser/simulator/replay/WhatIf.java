package io.hawser.simulator.replay;

import io.hawser.simulator.engine.Simulation;
import io.hawser.simulator.engine.Tenant;
import java.util.ArrayList;
import java.util.List;

/** Lets recorded sessions join a simulation with other rules. Their states become demands: pauses and work. */
public final class WhatIf {
    private final List<Tenant> tenants = new ArrayList<>();

    /**
     * Plans joins, leaves and weights, before the simulation runs.
     *
     * @param simulation with as many GPUs as the replay.
     */
    public WhatIf(Replay replay, Simulation simulation) {
        for (Demand demand : replay.demands()) {
            if (!demand.gpus.isEmpty()) {
                simulation.at(demand.joinedNs, () -> join(simulation, demand));
            }
        }
        replay.weightChanges().forEach(change -> simulation.at(change.timeNs(),
            () -> simulation.setWeight(change.vgpu(), change.weight())));
        if (replay.leftEqualNs() >= 0) {
            simulation.at(replay.leftEqualNs(), simulation::leaveEqual);
        }
    }

    private void join(Simulation simulation, Demand demand) {
        Tenant tenant = simulation.add(demand.vgpu, demand.weight, demand.gpus, demand.work());
        tenants.add(tenant);
        if (demand.leftNs() < Long.MAX_VALUE) {
            simulation.at(demand.leftNs(), () -> simulation.remove(tenant));
        }
    }

    /** Tenants that have joined, also those that have left. */
    public List<Tenant> tenants() {
        return List.copyOf(tenants);
    }
}

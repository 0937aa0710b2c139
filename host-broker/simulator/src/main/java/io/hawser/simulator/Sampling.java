package io.hawser.simulator;

import io.hawser.simulator.engine.Simulation;
import io.hawser.simulator.engine.Tenant;
import io.hawser.simulator.report.SharePlot;
import io.hawser.simulator.report.ShareSeries;
import io.hawser.simulator.report.TenantResult;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/** Runs a simulation to its end and reads the tenants' times for a plot. */
final class Sampling {
    private final Simulation simulation;
    private final double lengthNs;
    private final ShareSeries series;

    /** A tenant and the name of its row. */
    record Sampled(Tenant tenant, String group) {
    }

    Sampling(Simulation simulation, double lengthNs) {
        this.simulation = simulation;
        this.lengthNs = lengthNs;
        series = new ShareSeries(lengthNs);
    }

    /** Runs; reads the present list of tenants, which may grow, at the end of each bin. */
    void run(Supplier<List<Sampled>> tenants) {
        Map<Tenant, ShareSeries.Entry> entries = new IdentityHashMap<>();
        Map<Tenant, Double> before = new IdentityHashMap<>();
        long startNs = simulation.nowNs();
        for (int i = 0; i < SharePlot.BINS; i++) {
            long endNs = startNs + (long) (lengthNs * (i + 1) / SharePlot.BINS);
            simulation.run(endNs - simulation.nowNs());
            for (Sampled sampled : tenants.get()) {
                Tenant tenant = sampled.tenant();
                double ranNs = tenant.ranNs();
                entries.computeIfAbsent(tenant, added -> series.add(sampled.group(), added.vgpu()))
                    .add(i, ranNs - before.getOrDefault(tenant, 0.0));
                before.put(tenant, ranNs);
            }
        }
    }

    ShareSeries series() {
        return series;
    }

    static TenantResult result(Tenant tenant, String group) {
        return new TenantResult(group, tenant.vgpu(), tenant.weight(), tenant.gpus(), tenant.joinedNs(),
            tenant.leftNs(), tenant.ranNs(), tenant.waits(), tenant.longestWaitNs(), tenant.turns(),
            tenant.lostTurns());
    }
}

package io.hawser.simulator.load;

import io.hawser.simulator.engine.Simulation;
import io.hawser.simulator.engine.Tenant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Lets the tenants of loads join and leave a simulation. */
public final class GeneratedRun {
    private final Simulation simulation;
    private final int gpus;
    private final Placement placement;
    private final List<Placed> placed = new ArrayList<>();

    /**
     * A tenant of a load.
     *
     * @param load index of its load.
     */
    public record Placed(int load, Tenant tenant) {
    }

    /**
     * Plans the joins and leaves, before the simulation runs.
     *
     * @param gpus of the simulation; each load uses at most as many.
     * @param seed of all random values.
     */
    public GeneratedRun(Simulation simulation, int gpus, Placement placement, List<Load> loads, long seed) {
        this.simulation = simulation;
        this.gpus = gpus;
        this.placement = placement;
        int number = 0;
        for (int i = 0; i < loads.size(); i++) {
            Load load = loads.get(i);
            for (int j = 0; j < load.tenants(); j++) {
                String name = load.kind() + "-" + ++number;
                long ownSeed = seed * 1_000_003 + number;
                int index = i;
                simulation.at(load.fromNs(), () -> join(index, load, name, ownSeed));
            }
        }
    }

    private void join(int index, Load load, String name, long seed) {
        List<Tenant> present = simulation.tenants();
        List<Placement.Gpu> views = IntStream.range(0, gpus).mapToObj(gpu -> {
            List<Tenant> on = present.stream().filter(tenant -> tenant.gpus().contains(gpu)).toList();
            return new Placement.Gpu(gpu, on.size(), on.stream().mapToLong(Tenant::weight).sum());
        }).toList();
        List<Integer> chosen = placement.place(load, views);
        if (chosen.stream().distinct().count() != load.gpus()) {
            throw new IllegalStateException("a placement must select as many GPUs as the tenant uses: tenant=" + name
                + " gpus=" + chosen);
        }
        Tenant tenant = simulation.add(name, load.weight(), chosen, load.work(seed));
        placed.add(new Placed(index, tenant));
        if (load.untilNs() < Long.MAX_VALUE) {
            simulation.at(load.untilNs(), () -> simulation.remove(tenant));
        }
    }

    /** Tenants that have joined, also those that have left. */
    public List<Placed> placed() {
        return List.copyOf(placed);
    }
}

package io.hawser.simulator.load;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/** Selects the GPUs of a tenant that joins. */
@FunctionalInterface
public interface Placement {
    /**
     * A GPU as a placement sees it.
     *
     * @param index its number, from 0.
     * @param tenants present on it.
     * @param weight the sum of their weights.
     */
    record Gpu(int index, int tenants, long weight) {
    }

    /**
     * Selects GPUs.
     *
     * @param load of the tenant.
     * @param gpus all GPUs by their numbers, at least as many as the tenant uses.
     * @return numbers of as many different GPUs as the tenant uses.
     */
    List<Integer> place(Load load, List<Gpu> gpus);

    /** One GPU after the other. */
    static Placement roundRobin() {
        int[] next = new int[1];
        return (load, gpus) -> {
            int first = next[0];
            next[0] = (first + load.gpus()) % gpus.size();
            return IntStream.range(0, load.gpus()).mapToObj(i -> (first + i) % gpus.size()).toList();
        };
    }

    /** The GPUs with the least sum of weights, of equal ones the first. */
    static Placement leastLoaded() {
        return (load, gpus) -> {
            List<Gpu> sorted = new ArrayList<>(gpus);
            sorted.sort(Comparator.comparingLong(Gpu::weight).thenComparingInt(Gpu::index));
            return sorted.stream().limit(load.gpus()).map(Gpu::index).toList();
        };
    }
}

package io.hawser.broker.session;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.ObjIntConsumer;
import java.util.function.ToIntFunction;

/**
 * Divides the processors' time by the vGPUs' compute shares. The sessions of a vGPU divide its share, so that more
 * sessions give a vGPU no additional time. Event loop only.
 *
 * @param <W> a worker.
 */
final class CpuShares<W> {
    /** Linux cgroup v2, cpu.weight: the range of weights. */
    static final int MIN_WEIGHT = 1;
    static final int MAX_WEIGHT = 10_000;

    private static final int WEIGHT_OF_ONE = 100;

    private final ToIntFunction<String> shares;
    private final ObjIntConsumer<W> workers;
    private final Map<String, Set<W>> byVgpu = new HashMap<>();

    /**
     * Makes a divider without workers.
     *
     * @param shares compute shares of vGPUs by name, 1 to 100.
     * @param workers receives the weight of a worker.
     */
    CpuShares(ToIntFunction<String> shares, ObjIntConsumer<W> workers) {
        this.shares = shares;
        this.workers = workers;
    }

    /** Adds a worker that starts to serve a session of a vGPU. */
    void begin(W worker, String vgpu) {
        byVgpu.computeIfAbsent(vgpu, name -> new LinkedHashSet<>()).add(worker);
        updateWeights(vgpu);
    }

    /** Removes a worker from a vGPU; does nothing when the worker served none of its sessions. */
    void end(W worker, String vgpu) {
        Set<W> serving = byVgpu.get(vgpu);
        if (serving != null && serving.remove(worker)) {
            if (serving.isEmpty()) {
                byVgpu.remove(vgpu);
            } else {
                updateWeights(vgpu);
            }
        }
    }

    /** Sets the weights of a vGPU's workers, after a change of its share or its sessions. */
    void updateWeights(String vgpu) {
        Set<W> serving = byVgpu.getOrDefault(vgpu, Set.of());
        if (!serving.isEmpty()) {
            int weight = weight(shares.applyAsInt(vgpu), serving.size());
            serving.forEach(worker -> workers.accept(worker, weight));
        }
    }

    /**
     * The weight of each session.
     *
     * @param computeShare 1 to 100.
     * @param sessions of the vGPU, 1 or more.
     */
    static int weight(int computeShare, int sessions) {
        return Math.clamp(computeShare * WEIGHT_OF_ONE / sessions, MIN_WEIGHT, MAX_WEIGHT);
    }
}

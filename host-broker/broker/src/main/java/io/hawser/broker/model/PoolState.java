package io.hawser.broker.model;

import java.util.List;
import java.util.Map;

/**
 * A snapshot of the pool.
 *
 * @param size number of workers to keep ready.
 * @param grown how many of them demand has added.
 * @param ready workers that wait for a session.
 * @param starting workers that are not ready yet.
 * @param assigned workers with a session.
 * @param failures failed starts in a row.
 * @param lastFailure reason of the last start's failure; empty when it succeeded.
 * @param backend the GPU backend that workers opened; empty before the first was ready.
 * @param devices the GPUs that workers see.
 * @param waiting starts that wait for a worker, by vGPU; a vGPU without any has no entry.
 */
public record PoolState(int size, int grown, int ready, int starting, int assigned, int failures, String lastFailure,
    String backend, List<Device> devices, Map<String, Integer> waiting) {

    /** Whether a new session can expect a worker. */
    public boolean usable() {
        return ready > 0 || failures == 0;
    }
}

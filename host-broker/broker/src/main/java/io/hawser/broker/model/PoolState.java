package io.hawser.broker.model;

import java.util.List;
import java.util.Map;

/**
 * What the pool looks like from outside, at one moment.
 *
 * @param size workers to keep ready.
 * @param ready workers that wait for a session.
 * @param starting workers that have not said ready.
 * @param assigned workers with a session.
 * @param failures failed starts in a row.
 * @param lastFailure why the last start failed, empty when the last one succeeded.
 * @param backend the GPU backend that workers opened, empty before the first was ready.
 * @param devices the GPUs that workers see.
 * @param waiting starts that wait for a worker, by vGPU; a vGPU without any is not in it.
 */
public record PoolState(int size, int ready, int starting, int assigned, int failures, String lastFailure,
    String backend, List<Device> devices, Map<String, Integer> waiting) {

    /** Whether a session that is asked for now can be expected to get a worker. */
    public boolean usable() {
        return ready > 0 || failures == 0;
    }
}

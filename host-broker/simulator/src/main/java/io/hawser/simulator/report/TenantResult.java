package io.hawser.simulator.report;

import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * What a session got.
 *
 * @param group tenants that a table shows in one row.
 * @param vgpu name of its vGPU.
 * @param weight of its vGPU.
 * @param gpus numbers of its GPUs.
 * @param fromNs when it joined.
 * @param untilNs when it left; {@code Long.MAX_VALUE} if it did not.
 * @param ranNs GPU time.
 * @param waits ended waits for a launch with nothing in flight, in nanoseconds.
 * @param longestWaitNs the longest, also of waits that have not ended.
 * @param turns that it has had.
 * @param lostTurns in which it launched nothing.
 */
public record TenantResult(String group, String vgpu, int weight, List<Integer> gpus, long fromNs, long untilNs,
    double ranNs, Histogram waits, long longestWaitNs, long turns, long lostTurns) {
    /** Whether the session has launched or wanted to. */
    boolean isActive() {
        return ranNs > 0 || longestWaitNs > 0;
    }
}

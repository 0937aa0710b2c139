package io.hawser.broker.session;

import io.hawser.broker.model.WorkerStats;

/**
 * What the sessions of a vGPU have used since the vGPU was created or the broker started, running sessions included.
 *
 * @param sessions number of sessions that got a worker.
 * @param peakBytes the most device memory that they held at a time, of samples each second.
 */
public record VgpuUsage(long sessions, WorkerStats totals, long peakBytes) {
    /** No use. */
    static final VgpuUsage NONE = new VgpuUsage(0, WorkerStats.NONE, 0);

    VgpuUsage withSession() {
        return new VgpuUsage(sessions + 1, totals, peakBytes);
    }

    VgpuUsage plus(WorkerStats more) {
        return new VgpuUsage(sessions, totals.plus(more), peakBytes);
    }

    VgpuUsage withBytes(long bytes) {
        return bytes <= peakBytes ? this : new VgpuUsage(sessions, totals, bytes);
    }
}

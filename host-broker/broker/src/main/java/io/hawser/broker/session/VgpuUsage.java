package io.hawser.broker.session;

import io.hawser.broker.model.WorkerStats;

/**
 * The use of a vGPU by its sessions, running ones included, since it was created or the broker started. It goes with
 * the vGPU to another broker of the pool.
 *
 * @param sessions number of sessions that got a worker.
 * @param peakBytes the most device memory that they held at a time, of samples each second.
 */
public record VgpuUsage(long sessions, WorkerStats totals, long peakBytes) {
    /** No use. */
    public static final VgpuUsage NONE = new VgpuUsage(0, WorkerStats.NONE, 0);

    VgpuUsage withSession() {
        return new VgpuUsage(sessions + 1, totals, peakBytes);
    }

    VgpuUsage plus(WorkerStats more) {
        return new VgpuUsage(sessions, totals.plus(more), peakBytes);
    }

    VgpuUsage plus(VgpuUsage more) {
        return new VgpuUsage(sessions + more.sessions, totals.plus(more.totals), Math.max(peakBytes, more.peakBytes));
    }

    /** The same use for the vGPU's next broker, which counts the sessions that have come with it. */
    public VgpuUsage without(int moved) {
        return new VgpuUsage(Math.max(0, sessions - moved), totals, peakBytes);
    }

    VgpuUsage withBytes(long bytes) {
        return bytes <= peakBytes ? this : new VgpuUsage(sessions, totals, bytes);
    }
}

package io.hawser.broker.view;

import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.session.VgpuUsage;

/** The totals of a vGPU's sessions; see openapi.yml. */
public record VgpuStatistics(long sessions, long calls, long roundTrips, long bytesIn, long bytesOut, long kernels,
    long gpuTimeMs, long waitedMs, long peakBytes) {
    /** Converts the use of a vGPU to its form in the REST interface. */
    public static VgpuStatistics of(VgpuUsage usage) {
        WorkerStats totals = usage.totals();
        return new VgpuStatistics(usage.sessions(), totals.calls(), totals.roundTrips(), totals.bytesIn(),
            totals.bytesOut(), totals.kernels(), totals.gpuTimeMs(), totals.waitedMs(), usage.peakBytes());
    }
}

package io.hawser.broker.model;

/**
 * The totals of a session since its start; all 0 or more.
 *
 * @param calls records received.
 * @param replies replies sent.
 * @param roundTrips calls whose caller waited.
 * @param bytesIn bytes from the guest.
 * @param bytesOut bytes to the guest.
 * @param refusedRecords records that no correct guest library sends.
 * @param deviceBytes device memory held now; from the ledger, not from the worker.
 * @param kernels kernels launched.
 * @param gpuTimeMs time in which kernels of the session were on the GPU, or behind others of it.
 * @param waitedMs time in which kernels waited for the vGPU's turn.
 */
public record WorkerStats(long calls, long replies, long roundTrips, long bytesIn, long bytesOut, long refusedRecords,
    long deviceBytes, long kernels, long gpuTimeMs, long waitedMs) {

    /** All zero. */
    public static final WorkerStats NONE = new WorkerStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    /** Limit of each total; stops a lying worker from overflowing a counter of the broker. */
    private static final long MAX_TOTAL = 1L << 53;

    /** Takes newer totals. Counters never shrink, whatever the worker reports. */
    public WorkerStats advance(WorkerStats next) {
        return new WorkerStats(grow(calls, next.calls), grow(replies, next.replies),
            grow(roundTrips, next.roundTrips), grow(bytesIn, next.bytesIn), grow(bytesOut, next.bytesOut),
            grow(refusedRecords, next.refusedRecords), 0,
            grow(kernels, next.kernels), grow(gpuTimeMs, next.gpuTimeMs), grow(waitedMs, next.waitedMs));
    }

    /** The sum of two sessions' totals. */
    public WorkerStats plus(WorkerStats other) {
        return new WorkerStats(calls + other.calls, replies + other.replies, roundTrips + other.roundTrips,
            bytesIn + other.bytesIn, bytesOut + other.bytesOut, refusedRecords + other.refusedRecords,
            deviceBytes + other.deviceBytes, kernels + other.kernels,
            gpuTimeMs + other.gpuTimeMs, waitedMs + other.waitedMs);
    }

    /** The same totals without held memory, for an ended session. */
    public WorkerStats retired() {
        return withDeviceBytes(0);
    }

    /** The same totals with this amount of held memory. */
    public WorkerStats withDeviceBytes(long bytes) {
        return new WorkerStats(calls, replies, roundTrips, bytesIn, bytesOut, refusedRecords, bytes, kernels,
            gpuTimeMs, waitedMs);
    }

    private static long grow(long before, long after) {
        return Math.max(before, Math.min(after, MAX_TOTAL));
    }
}

package io.hawser.worker.session;

/**
 * The arithmetic of the credit window (architecture 2.4): what the guest has sent, what has been executed, what it has
 * been told. Bytes are those of whole records. Session thread only.
 */
public final class CreditWindow {
    /** What a guest may have waiting in streams; sizes the worker's memory. */
    public static final long DEFAULT_BYTES = 32L << 20;

    private final long windowBytes;
    private long receivedBytes;
    private long releasedBytes;
    private long reportedBytes;

    /**
     * Opens a window.
     *
     * @param windowBytes its size, several times the largest record.
     */
    public CreditWindow(long windowBytes) {
        this.windowBytes = windowBytes;
    }

    /**
     * Size of the window.
     *
     * @return bytes.
     */
    public long windowBytes() {
        return windowBytes;
    }

    /**
     * Takes a record's cost.
     *
     * @param bytes the record's length.
     * @return false when the guest has overdrawn what it was told, with nothing changed.
     */
    public boolean charge(long bytes) {
        if (receivedBytes + bytes - reportedBytes > windowBytes) {
            return false;
        }
        receivedBytes += bytes;
        return true;
    }

    /**
     * Notes that work has been executed, or that its stream has failed.
     *
     * @param bytes the records' length, charged before.
     */
    public void release(long bytes) {
        if (releasedBytes + bytes > receivedBytes) {
            throw new IllegalStateException("credit released must have been charged: releasedBytes=" + releasedBytes
                + " bytes=" + bytes + " receivedBytes=" + receivedBytes);
        }
        releasedBytes += bytes;
    }

    /**
     * What waits in streams.
     *
     * @return bytes charged and not yet released.
     */
    public long outstandingBytes() {
        return receivedBytes - releasedBytes;
    }

    /**
     * Whether so much waits that a guest could soon lack credit: then all streams should be watched for their ends.
     *
     * @return true past half the window, which leaves room for many of the largest records.
     */
    public boolean isScarce() {
        return outstandingBytes() > windowBytes / 2;
    }

    /**
     * Whether a CREDIT record is due: a quarter of the window is unreported, or the guest believes that less than half
     * is left although more is.
     *
     * @return true when the guest should be told.
     */
    public boolean isReportDue() {
        long unreported = releasedBytes - reportedBytes;
        return unreported >= windowBytes / 4
            || unreported > 0 && receivedBytes - reportedBytes > windowBytes / 2;
    }

    /**
     * What to put in a CREDIT record that is sent now.
     *
     * @return total bytes released since the session began.
     */
    public long report() {
        reportedBytes = releasedBytes;
        return releasedBytes;
    }
}

package io.hawser.worker.session;

/**
 * The arithmetic of the credit window (wire.md, "Credit"): bytes that the guest has sent, that have been executed, and
 * that have been reported to the guest. Counts the bytes of whole records. Session thread only.
 */
public final class CreditWindow {
    /** Bytes of a guest's records that may wait in streams; bounds the worker's memory. */
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

    /** Bytes charged since the session began. */
    long receivedBytes() {
        return receivedBytes;
    }

    /** Bytes that the guest knows to be released. */
    long reportedBytes() {
        return reportedBytes;
    }

    /**
     * Goes on for the window of another worker.
     *
     * @return false, with nothing changed, when the numbers cannot be those of a window.
     */
    boolean resume(long received, long released, long reported) {
        if (reported < 0 || released < reported || received < released || received - reported > windowBytes) {
            return false;
        }
        receivedBytes = received;
        releasedBytes = released;
        reportedBytes = reported;
        return true;
    }

    /**
     * Charges a record.
     *
     * @param bytes the record's length.
     * @return false, with nothing changed, when the guest has sent more than its reported credit allows.
     */
    public boolean charge(long bytes) {
        if (receivedBytes + bytes - reportedBytes > windowBytes) {
            return false;
        }
        receivedBytes += bytes;
        return true;
    }

    /**
     * Releases credit after work has been executed or its stream has failed.
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
     * Bytes of records that wait in streams.
     *
     * @return bytes charged and not yet released.
     */
    public long outstandingBytes() {
        return receivedBytes - releasedBytes;
    }

    /**
     * Whether a guest could soon lack credit, because many bytes wait. Then all streams should have markers.
     *
     * @return true beyond half the window, which leaves room for many of the largest records.
     */
    public boolean isScarce() {
        return outstandingBytes() > windowBytes / 2;
    }

    /**
     * Whether a CREDIT record is due. A report is due when a quarter of the window is unreported. It is also due when
     * the guest's reported credit is below half the window and more has been released.
     *
     * @return true when the guest should get a report.
     */
    public boolean isReportDue() {
        long unreported = releasedBytes - reportedBytes;
        return unreported >= windowBytes / 4
            || unreported > 0 && receivedBytes - reportedBytes > windowBytes / 2;
    }

    /**
     * Records that a CREDIT record is sent now, and returns its value.
     *
     * @return total bytes released since the session began.
     */
    public long report() {
        reportedBytes = releasedBytes;
        return releasedBytes;
    }
}

package io.hawser.broker.machine;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Limits the log lines in a second and counts the rest, so that a flood of rejected guests cannot fill the log. Event
 * loop only.
 */
public final class LogLimiter {
    private final int linesASecond;
    private final LongSupplier nowNs;
    private long windowNs;
    private int lines;
    private long dropped;

    /** Permits so many lines in a second of the given clock. */
    public LogLimiter(int linesASecond, LongSupplier nowNs) {
        this.linesASecond = linesASecond;
        this.nowNs = nowNs;
        windowNs = nowNs.getAsLong();
    }

    /** Whether this line may be written. */
    public boolean allows() {
        long now = nowNs.getAsLong();
        if (now - windowNs > TimeUnit.SECONDS.toNanos(1)) {
            windowNs = now;
            lines = 0;
        }
        if (lines < linesASecond) {
            lines++;
            return true;
        }
        dropped++;
        return false;
    }

    /** Number of dropped lines since the last call. */
    public long takeDropped() {
        long count = dropped;
        dropped = 0;
        return count;
    }
}

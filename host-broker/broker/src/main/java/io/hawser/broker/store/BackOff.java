package io.hawser.broker.store;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Delays the retries of a failing operation: none after the first failure, then longer after each further one.
 * Thread-safe.
 */
final class BackOff {
    private final long firstNs;
    private final long maxNs;
    private final LongSupplier clock;
    private int failures;
    private long nextNs;

    /**
     * Starts without failures.
     *
     * @param first delay after the second failure in a row; doubled after each further one.
     * @param max upper bound of the delay.
     * @param clock of nanoseconds, as {@link System#nanoTime}.
     */
    BackOff(Duration first, Duration max, LongSupplier clock) {
        firstNs = first.toNanos();
        maxNs = max.toNanos();
        this.clock = clock;
    }

    /** Counts a failure. */
    synchronized void recordFailure() {
        failures++;
        long waitNs = failures == 1 ? 0 : failures > Long.SIZE / 2 ? maxNs
            : Math.min(maxNs, Math.multiplyExact(firstNs, 1L << failures - 2));
        nextNs = clock.getAsLong() + waitNs;
    }

    /** Resets the failures. */
    synchronized void recordSuccess() {
        failures = 0;
    }

    /** Milliseconds until the next try, rounded up; 0 for now. */
    synchronized long waitMs() {
        long leftNs = failures == 0 ? 0 : nextNs - clock.getAsLong();
        return leftNs <= 0 ? 0 : TimeUnit.NANOSECONDS.toMillis(leftNs) + 1;
    }
}

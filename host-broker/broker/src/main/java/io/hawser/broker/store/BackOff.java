package io.hawser.broker.store;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** When to try again what fails: at once after the first failure, then ever later. Thread-safe. */
final class BackOff {
    private final long firstNs;
    private final long maxNs;
    private final LongSupplier clock;
    private int failures;
    private long nextNs;

    /**
     * None has failed yet.
     *
     * @param first waited after the second failure in a row; doubled after each further one.
     * @param max never waited for longer.
     * @param clock of nanoseconds, as {@link System#nanoTime}.
     */
    BackOff(Duration first, Duration max, LongSupplier clock) {
        firstNs = first.toNanos();
        maxNs = max.toNanos();
        this.clock = clock;
    }

    /** It has failed. */
    synchronized void failed() {
        failures++;
        long waitNs = failures == 1 ? 0 : failures > Long.SIZE / 2 ? maxNs
            : Math.min(maxNs, Math.multiplyExact(firstNs, 1L << failures - 2));
        nextNs = clock.getAsLong() + waitNs;
    }

    /** It has not. */
    synchronized void succeeded() {
        failures = 0;
    }

    /** Milliseconds until it is to be tried, rounded up; 0 for now. */
    synchronized long waitMs() {
        long leftNs = failures == 0 ? 0 : nextNs - clock.getAsLong();
        return leftNs <= 0 ? 0 : TimeUnit.NANOSECONDS.toMillis(leftNs) + 1;
    }
}

package io.hawser.system;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** Waits for conditions of other processes, with a limit. */
final class Await {
    /** The limit of every step of a test; far longer than any step, so that a loaded machine fails no test. */
    static final Duration LIMIT = Duration.ofSeconds(180);

    private static final long LOOK_EVERY_NS = Duration.ofMillis(20).toNanos();

    /** A condition that describes why it does not hold. */
    interface Condition {
        /** Empty if the condition holds, else a description of the problem. */
        String problem() throws Exception;
    }

    private Await() {
    }

    /** Polls until the condition holds. @throws AssertionError with the last problem after the limit. */
    static void until(String what, Condition condition) {
        until(what, LIMIT, () -> "", condition);
    }

    /**
     * Polls until the condition holds.
     *
     * @param otherwise further information for the error.
     * @throws AssertionError after the limit.
     */
    static void until(String what, Duration limit, Supplier<String> otherwise, Condition condition) {
        long end = System.nanoTime() + limit.toNanos();
        String seen;
        do {
            try {
                seen = condition.problem();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError("interrupted while waiting for " + what, e);
            } catch (Exception e) {
                seen = e.toString();
            }
            if (seen.isEmpty()) {
                return;
            }
            LockSupport.parkNanos(LOOK_EVERY_NS);
        } while (System.nanoTime() < end);
        throw new AssertionError(what + " did not happen within " + limit + ": " + seen + otherwise.get());
    }
}

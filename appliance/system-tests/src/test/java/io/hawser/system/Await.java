package io.hawser.system;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** Waits for conditions that other processes bring about, in bounded time. */
final class Await {
    /** What no step of a test may exceed; far above what any takes, so that a loaded machine does not fail a test. */
    static final Duration LIMIT = Duration.ofSeconds(180);

    private static final long LOOK_EVERY_NS = Duration.ofMillis(20).toNanos();

    /** A condition with what is seen instead of it. */
    interface Condition {
        /** Empty when it holds, else what is wrong. */
        String problem() throws Exception;
    }

    private Await() {
    }

    /** Looks until the condition holds. @throws AssertionError with the last thing seen after the limit. */
    static void until(String what, Condition condition) {
        until(what, LIMIT, () -> "", condition);
    }

    /**
     * Looks until the condition holds.
     *
     * @param otherwise told when it does not, for diagnosis.
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

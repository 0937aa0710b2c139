package io.hawser.broker.region;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps a guest that calls without end from keeping the event loop busy: so many calls in a while are answered at once,
 * as when many of its processes begin together, the rest after a pause each. One thread.
 */
final class Pace {
    private static final long WINDOW_NS = TimeUnit.MILLISECONDS.toNanos(100);
    /** More than all slots of a region being claimed at once. */
    private static final int AT_ONCE = 100;
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(2);

    private long windowNs = System.nanoTime();
    private int heard;

    /** Called after each call that was passed on; sleeps when there are too many. */
    void rest() {
        long nowNs = System.nanoTime();
        if (nowNs - windowNs > WINDOW_NS) {
            windowNs = nowNs;
            heard = 0;
        }
        if (++heard > AT_ONCE) {
            LockSupport.parkNanos(PAUSE_NS);
        }
    }
}

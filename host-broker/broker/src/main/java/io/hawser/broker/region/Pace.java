package io.hawser.broker.region;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Stops a guest that signals without end from keeping the event loop busy. The first signals in a window pass at once,
 * as when many processes of a guest start together. Each further signal waits for a pause. One thread.
 */
final class Pace {
    private static final long WINDOW_NS = TimeUnit.MILLISECONDS.toNanos(100);
    /** Larger than the number of slots in a region. */
    private static final int AT_ONCE = 100;
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(2);

    private long windowNs = System.nanoTime();
    private int heard;

    /** Call after each forwarded signal; sleeps when there were too many in the window. */
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

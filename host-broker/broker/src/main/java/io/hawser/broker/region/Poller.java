package io.hawser.broker.region;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Polls regions without a doorbell for claims of virtual machines, on its own thread. A poll reads one word of each
 * slot; waking the event loop for each poll would cost several times as much. The event loop handles what a poll finds.
 * {@link SlotSignal} reports processes of this kernel earlier.
 */
final class Poller {
    /** Interval between polls for a while after a find. */
    private static final long BUSY_NS = TimeUnit.MILLISECONDS.toNanos(2);
    /**
     * Interval between polls otherwise. Each poll wakes a processor, and 500 wake-ups a second would cost more than an
     * idle broker may.
     */
    private static final long IDLE_NS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long BUSY_FOR_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long STACK_BYTES = 128 * 1024;

    private volatile List<Region> regions = List.of();

    /** Sets the regions to poll; the thread ends when the list is empty. */
    void watch(List<Region> watched) {
        boolean starts = regions.isEmpty() && !watched.isEmpty();
        regions = watched;
        if (starts) {
            Thread.ofPlatform().daemon().name("hawser-poll").stackSize(STACK_BYTES).start(this::run);
        }
    }

    private void run() {
        long foundNs = System.nanoTime();
        for (List<Region> now = regions; !now.isEmpty(); now = regions) {
            boolean found = false;
            for (Region region : now) {
                found |= region.look();
            }
            long nowNs = System.nanoTime();
            if (found) {
                foundNs = nowNs;
            }
            LockSupport.parkNanos(nowNs - foundNs < BUSY_FOR_NS ? BUSY_NS : IDLE_NS);
        }
    }
}

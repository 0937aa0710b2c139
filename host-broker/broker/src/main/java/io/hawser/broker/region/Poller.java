package io.hawser.broker.region;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Looks for claims of virtual machines in regions without a doorbell, on a thread of its own: what it looks at is a
 * word a slot, and waking the event loop for each look would cost several times as much. What it finds it leaves to the
 * event loop. Processes of this kernel are heard by {@link SlotSignal} before it looks.
 */
final class Poller {
    /** Between two looks for a while after something was found. */
    private static final long BUSY_NS = TimeUnit.MILLISECONDS.toNanos(2);
    /** Between two looks else: each wakes a processor, which 500 times a second costs more than an idle broker may. */
    private static final long IDLE_NS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long BUSY_FOR_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long STACK_BYTES = 128 * 1024;

    private volatile List<Region> regions = List.of();

    /** Looks at these from now on; the thread ends when there is none. */
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

package io.hawser.worker.channel.shm;

import io.hawser.shm.RegionLayout;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.ring.Sleeper;
import io.hawser.shm.ring.Waker;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * How a session thread sleeps and what wakes it: the guest, by the words of its slot, and this process's other threads,
 * which do not depend on what the guest writes there: at worst they lengthen a sleep to its limit. The session thread
 * calls {@code prepare}, looks for work, calls {@code sleep}, and always {@code awake}.
 */
abstract class ShmSleep {
    private static final Logger LOG = System.getLogger(ShmSleep.class.getName());

    /** A guest that leaves, or that spoils its own words, is noticed after this at the latest. */
    private static final long LIMIT_NS = 100_000_000;

    private final AtomicBoolean asleep = new AtomicBoolean();
    private volatile Thread sleeper;
    private volatile boolean detached;

    /** How the guest of a region can be waited for. */
    static ShmSleep of(SharedRegion region, EventFd doorbell) {
        if (region.place().kind() == RegionLayout.KIND_PROCESS) {
            return new ByFutex(region);
        }
        return doorbell == null ? new ByPolling() : new ByDoorbell(region, doorbell);
    }

    /** Says that the session thread is about to sleep; look for work after this. */
    final void prepare(boolean forRoom) {
        if (sleeper == null) {
            sleeper = Thread.currentThread();
        }
        asleep.set(true); // pairs with wake(): a task that is added after the look for work finds this
        if (!detached) {
            announce(forRoom);
        }
    }

    /** Sleeps until something may have happened. */
    final void sleep(long limitNs) throws IOException {
        if (limitNs <= 0 || !asleep.get()) {
            return;
        }
        if (detached) {
            LockSupport.parkNanos(this, Math.min(limitNs, LIMIT_NS));
        } else {
            await(Math.min(limitNs, LIMIT_NS));
        }
    }

    /** Ends what {@link #prepare} began. */
    final void awake() {
        asleep.set(false);
    }

    /** Ends the sleep, if there is one. Any thread. */
    final void wake() {
        if (asleep.get() && asleep.compareAndSet(true, false)) {
            if (detached) {
                unpark();
            } else {
                rouse();
            }
        }
    }

    final void unpark() {
        LockSupport.unpark(sleeper);
    }

    /** The guest is not waited for any more, and its memory not touched. Session thread. */
    final void detach() {
        detached = true;
    }

    /** The guest has sent something. */
    void guestIsQuick() {
    }

    abstract void announce(boolean forRoom);

    abstract void await(long limitNs) throws IOException;

    abstract void rouse();

    /** The guest looks at the waiting words of its slot. */
    private abstract static class ByWords extends ShmSleep {
        final Sleeper command;
        final Sleeper room;
        int seen;

        ByWords(SharedRegion region) {
            command = new Sleeper(region.memory(), waiting(region), signal(region));
            room = new Sleeper(region.memory(), region.geometry().hostPage(region.place().slot())
                + RegionLayout.HOST_ROOM_WAITING_OFFSET, signal(region));
        }

        static long waiting(SharedRegion region) {
            return region.geometry().hostPage(region.place().slot()) + RegionLayout.HOST_COMMAND_WAITING_OFFSET;
        }

        static long signal(SharedRegion region) {
            return region.geometry().guestPage(region.place().slot()) + RegionLayout.GUEST_COMMAND_SIGNAL_OFFSET;
        }

        @Override
        final void announce(boolean forRoom) {
            seen = command.prepare();
            if (forRoom) {
                room.prepare(); // the same signal: the count seen first is the one to wait by
            }
        }
    }

    /** The guest is a process under this kernel. */
    private static final class ByFutex extends ByWords {
        private final Waker self;

        ByFutex(SharedRegion region) {
            super(region);
            self = new Waker(region.memory(), waiting(region), signal(region));
        }

        @Override
        void await(long limitNs) {
            command.sleep(seen, limitNs);
        }

        @Override
        void rouse() {
            try {
                self.signal();
            } catch (InternalError e) {
                // The guest has cut its region's file: the session thread finds that out at the end of its sleep, and
                // whoever has something for it must not die of it.
                LOG.log(Level.DEBUG, "the session thread cannot be woken: {0}", e.getMessage());
            }
        }
    }

    /** The guest is a machine that rings. */
    private static final class ByDoorbell extends ByWords {
        private final EventFd doorbell;

        ByDoorbell(SharedRegion region, EventFd doorbell) {
            super(region);
            this.doorbell = doorbell;
        }

        @Override
        void await(long limitNs) throws IOException {
            doorbell.poll(limitNs);
        }

        @Override
        void rouse() {
            try {
                doorbell.signal();
            } catch (IOException e) {
                throw new IllegalStateException("a worker's doorbell can be rung", e);
            }
        }
    }

    /** The guest is a machine that cannot ring. */
    private static final class ByPolling extends ShmSleep {
        private static final long SHORTEST_NS = 50_000; // what the kernel's timers add anyway
        private static final long LONGEST_NS = 20_000_000;

        private long napNs = SHORTEST_NS;

        @Override
        void guestIsQuick() {
            napNs = SHORTEST_NS;
        }

        @Override
        void announce(boolean forRoom) {
        }

        @Override
        void await(long limitNs) {
            LockSupport.parkNanos(this, Math.min(limitNs, napNs));
            napNs = Math.min(2 * napNs, LONGEST_NS);
        }

        @Override
        void rouse() {
            unpark();
        }
    }
}

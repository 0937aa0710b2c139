package io.hawser.worker.channel.shm;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.Sleeper;
import io.hawser.shm.ring.Waker;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * Lets a session thread sleep and wakes it. The guest wakes it by the words of its slot. Other threads of this process
 * wake it too; whatever the guest writes there can only lengthen a sleep to its limit. The session thread calls {@code
 * prepare}, checks for work, calls {@code sleep}, and always calls {@code awake}.
 */
abstract class ShmSleep {
    private static final Logger LOG = System.getLogger(ShmSleep.class.getName());

    /** The longest sleep: the worker then notices a guest that has left or has overwritten its own words. */
    private static final long LIMIT_NS = 100_000_000;

    private final AtomicBoolean asleep = new AtomicBoolean();
    private volatile Thread sleeper;
    private volatile boolean detached;

    /** Selects the way to wait for the guest of a region. */
    static ShmSleep of(SharedRegion region, EventFd doorbell) {
        if (region.place().kind() == RegionLayout.KIND_PROCESS) {
            return new ByFutex(region);
        }
        return doorbell == null ? new ByPolling() : new ByDoorbell(region, doorbell);
    }

    /** Announces that the session thread is about to sleep. The caller checks for work after this. */
    final void prepare(boolean forRoom) {
        if (sleeper == null) {
            sleeper = Thread.currentThread();
        }
        asleep.set(true); // pairs with wake(): a thread that adds a task after the check for work sees this
        if (!detached) {
            announce(forRoom);
        }
    }

    /** Sleeps until there may be work, or until the limit. */
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

    /** Ends the phase that {@link #prepare} began. */
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

    /** Stops waiting for the guest and never touches its memory again. Session thread. */
    final void detach() {
        detached = true;
    }

    /** Makes the next naps short, because the guest has just sent records. */
    void shortenNaps() {
    }

    abstract void announce(boolean forRoom);

    abstract void await(long limitNs) throws IOException;

    abstract void rouse();

    /** For a guest that reads the waiting words of its slot. */
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
                // Both words share one signal word, so the thread waits by the value that command.prepare() returned.
                room.prepare();
            }
        }
    }

    /** For a guest that is a process under this kernel. */
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
                // The guest has truncated its region's file. The session thread notices that when its sleep ends. The
                // calling thread must not fail because of it.
                LOG.log(Level.DEBUG, "the session thread cannot be woken: {0}", e.getMessage());
            }
        }
    }

    /** For a guest that is a virtual machine and rings a doorbell. */
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
                throw new IllegalStateException("a worker must be able to signal its doorbell", e);
            }
        }
    }

    /** For a guest that is a virtual machine and has no doorbell. */
    private static final class ByPolling extends ShmSleep {
        private static final long SHORTEST_NS = 50_000; // the kernel's timers add that much anyway
        private static final long LONGEST_NS = 20_000_000;

        private long napNs = SHORTEST_NS;

        @Override
        void shortenNaps() {
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

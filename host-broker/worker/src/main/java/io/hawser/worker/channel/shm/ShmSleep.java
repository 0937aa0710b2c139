package io.hawser.worker.channel.shm;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.Sleeper;
import io.hawser.shm.ring.Waker;
import io.hawser.worker.channel.ring.RingSleep;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.locks.LockSupport;

/** The sleep of a session thread whose guest has a slot of a region: the guest wakes it by the words of its slot. */
final class ShmSleep {
    private static final Logger LOG = System.getLogger(ShmSleep.class.getName());

    private ShmSleep() {}

    /** Selects the way to wait for the guest of a region. */
    static RingSleep of(SharedRegion region, EventFd doorbell) {
        if (region.place().kind() == RegionLayout.KIND_PROCESS) {
            return new ByFutex(region);
        }
        return doorbell == null ? new ByPolling() : new ByDoorbell(region, doorbell);
    }

    /** For a guest that reads the waiting words of its slot. */
    private abstract static class ByWords extends RingSleep {
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
        protected final void announce(boolean forRoom) {
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
        protected void await(long limitNs) {
            command.sleep(seen, limitNs);
        }

        @Override
        protected void rouse() {
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
        protected void await(long limitNs) throws IOException {
            doorbell.poll(limitNs);
        }

        @Override
        protected void rouse() {
            try {
                doorbell.signal();
            } catch (IOException e) {
                throw new IllegalStateException("a worker must be able to signal its doorbell", e);
            }
        }
    }

    /** For a guest that is a virtual machine and has no doorbell. */
    private static final class ByPolling extends RingSleep {
        private static final long SHORTEST_NS = 50_000; // the kernel's timers add that much anyway
        private static final long LONGEST_NS = 20_000_000;

        private long napNs = SHORTEST_NS;

        @Override
        protected void shortenNaps() {
            napNs = SHORTEST_NS;
        }

        @Override
        protected void announce(boolean forRoom) {
        }

        @Override
        protected void await(long limitNs) {
            LockSupport.parkNanos(this, Math.min(limitNs, napNs));
            napNs = Math.min(2 * napNs, LONGEST_NS);
        }

        @Override
        protected void rouse() {
            unpark();
        }
    }
}

package io.hawser.worker.session;

import io.hawser.worker.memory.StagingPool.Staging;
import io.hawser.worker.memory.StagingPool;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.Set;

/**
 * Buffers through which device memory goes to the guest. A piece of a copy uses a fresh buffer while the budget allows;
 * past it the piece is issued behind an earlier use of a buffer, and its stream waits, inside a host function, until
 * that use has been sent. Such a wait always points to work that was issued before, so waits cannot form a ring.
 *
 * <p>Known deviation: when the budget is spent, a piece may wait for a piece of another stream, so a program whose
 * kernels wait for each other across streams by polling memory can stand still where a GPU would not.
 */
public final class DataBuffers {
    private static final int SMALL_BYTES = 64 * 1024;
    private static final long SMALL_BUDGET_BYTES = 16L << 20;
    private static final int SLOTS_PER_STREAM = 8;
    private static final int SLOTS = 48;
    private static final int SLOTS_WITH_RESERVE = 64; // the rest is for streams that have none

    private final StagingPool pool;
    private final int largeBytes;
    private final ArrayDeque<Slot> large = new ArrayDeque<>();
    private long smallBytes;
    private volatile boolean closed;

    /**
     * Makes an empty set.
     *
     * @param pool gives the memory.
     * @param largeBytes length of the largest piece.
     */
    DataBuffers(StagingPool pool, int largeBytes) {
        this.pool = pool;
        this.largeBytes = largeBytes;
    }

    /** One use of a buffer by one piece. */
    static final class Use {
        final Slot slot;
        final int ticket;

        private Use(Slot slot, int ticket) {
            this.slot = slot;
            this.ticket = ticket;
        }

        /** Whether an earlier use is not over yet: the stream must wait with {@link DataBuffers#await}. */
        boolean mustWait() {
            return slot.isBusyBefore(ticket);
        }
    }

    /** A buffer and the queue of its uses, which end in any order. */
    static final class Slot {
        final Staging staging;
        private final StreamState stream;
        private final boolean small;
        private int issued;
        private int ended; // every use below this ticket is over; guarded by this
        private final Set<Integer> endedEarly = new HashSet<>();

        private Slot(Staging staging, StreamState stream, boolean small) {
            this.staging = staging;
            this.stream = stream;
            this.small = small;
        }

        private synchronized boolean isBusyBefore(int ticket) {
            return ended != ticket;
        }

        /** Ends a use; true when no use is left. */
        private synchronized boolean end(int ticket) {
            endedEarly.add(ticket);
            while (endedEarly.remove(ended)) {
                ended++;
            }
            notifyAll();
            return ended == issued;
        }
    }

    /**
     * Finds a buffer for a piece. Session thread.
     *
     * @return its use, to be ended by {@link #end}; null when there is no memory at all.
     */
    Use acquire(StreamState stream, int bytes) {
        if (bytes <= SMALL_BYTES && smallBytes < SMALL_BUDGET_BYTES) {
            Staging staging = pool.take(bytes);
            if (staging != null) {
                smallBytes += staging.segment().byteSize();
                return use(new Slot(staging, stream, true));
            }
        }
        boolean mayGrow = stream.slots.isEmpty() ? large.size() < SLOTS_WITH_RESERVE
            : stream.slots.size() < SLOTS_PER_STREAM && large.size() < SLOTS;
        Staging staging = mayGrow ? pool.take(largeBytes) : null;
        if (staging != null) {
            Slot slot = new Slot(staging, stream, false);
            stream.slots.add(slot);
            large.add(slot);
            return use(slot);
        }
        if (!stream.slots.isEmpty()) {
            stream.nextSlot = (stream.nextSlot + 1) % stream.slots.size();
            return use(stream.slots.get(stream.nextSlot));
        }
        Slot oldest = large.poll();
        if (oldest == null) {
            return null;
        }
        large.add(oldest);
        return use(oldest);
    }

    private static Use use(Slot slot) {
        synchronized (slot) {
            return new Use(slot, slot.issued++);
        }
    }

    /** Waits until the buffer's earlier uses are over, or the session is. A backend's host function thread. */
    void await(Use use) {
        synchronized (use.slot) {
            while (use.slot.ended < use.ticket && !closed) {
                try {
                    use.slot.wait();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt(); // the backend is being closed: let its thread end
                    return;
                }
            }
        }
    }

    /** Ends a use: the piece has been sent, or never will be. Session thread. */
    void end(Use use) {
        Slot slot = use.slot;
        if (!slot.end(use.ticket)) {
            return;
        }
        if (slot.small) {
            smallBytes -= slot.staging.segment().byteSize();
        } else {
            slot.stream.slots.remove(slot);
            slot.stream.nextSlot = 0;
            large.remove(slot);
        }
        pool.give(slot.staging);
    }

    /** Ends all waits. Session thread, at the end of the session. */
    void close() {
        closed = true;
        for (Slot slot : large) {
            synchronized (slot) {
                slot.notifyAll();
            }
        }
    }
}

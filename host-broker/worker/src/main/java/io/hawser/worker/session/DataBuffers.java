package io.hawser.worker.session;

import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import java.util.ArrayDeque;

/**
 * Buffers through which device memory goes to the guest in DATA records: a budget of small and of large ones. Copies
 * that are issued before their stream has come to them take buffers that lie idle until then, so they leave a reserve
 * to copies whose stream waits for nothing but buffers: those always come to their end. Session thread only.
 */
final class DataBuffers {
    private static final int SMALL_BYTES = 64 * 1024;
    private static final long SMALL_BUDGET_BYTES = 16L << 20;
    private static final int LARGE = 64;
    private static final int RESERVE = 16; // of these

    private final StagingPool pool;
    private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
    private long smallBytes;
    private int large;

    /**
     * Makes an empty set.
     *
     * @param pool gives the memory.
     */
    DataBuffers(StagingPool pool) {
        this.pool = pool;
    }

    /**
     * A buffer in use.
     *
     * @param staging its memory.
     * @param isSmall which budget it counts against.
     */
    record Buffer(Staging staging, boolean isSmall) { }

    /** Whether so many pieces can be taken at once without touching the reserve. */
    boolean hasRoomFor(long pieces, int bytes) {
        return bytes <= SMALL_BYTES ? smallBytes + pieces * bytes <= SMALL_BUDGET_BYTES
            : pieces <= LARGE - RESERVE - large;
    }

    /**
     * Takes a buffer.
     *
     * @return null when the budget is spent, or there is no memory.
     */
    Buffer take(int bytes) {
        boolean small = bytes <= SMALL_BYTES && smallBytes + bytes <= SMALL_BUDGET_BYTES;
        if (!small && large >= LARGE) {
            return null;
        }
        Staging staging = pool.take(bytes);
        if (staging == null) {
            return null;
        }
        if (small) {
            smallBytes += staging.segment().byteSize();
        } else {
            large++;
        }
        return new Buffer(staging, small);
    }

    /** Whether any buffer is in use, so that one will be given back. */
    boolean isInUse() {
        return smallBytes > 0 || large > 0;
    }

    /** Runs an action, once, when a buffer has been given back; after those that came before. */
    void whenFree(Runnable action) {
        waiting.add(action);
    }

    /** Takes a buffer back: the piece has been sent, or never will be. */
    void give(Buffer buffer) {
        if (buffer.isSmall()) {
            smallBytes -= buffer.staging().segment().byteSize();
        } else {
            large--;
        }
        pool.give(buffer.staging());
        Runnable next = waiting.poll();
        if (next != null) {
            next.run();
        }
    }
}

package io.hawser.worker.session;

import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import java.util.ArrayDeque;

/**
 * Buffers for device memory on its way to the guest in DATA records, within one budget for small and one for large
 * ones. A copy that is issued before its stream reaches it holds a buffer that is idle until then. Such copies leave a
 * reserve for copies whose stream already waits for buffers, so that these always finish. Session thread only.
 */
final class DataBuffers {
    private static final int SMALL_BYTES = 64 * 1024;
    private static final long SMALL_BUDGET_BYTES = 16L << 20;
    private static final int LARGE = 64;
    private static final int RESERVE = 16; // large buffers in the reserve

    private final StagingPool pool;
    private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
    private long smallBytes;
    private int large;

    /**
     * Makes an empty set.
     *
     * @param pool allocates the memory.
     */
    DataBuffers(StagingPool pool) {
        this.pool = pool;
    }

    /**
     * A buffer in use.
     *
     * @param staging its memory.
     * @param isSmall whether it counts against the budget of small buffers.
     */
    record Buffer(Staging staging, boolean isSmall) {}

    /** Whether so many pieces can be taken now without using the reserve. */
    boolean hasRoomFor(long pieces, int bytes) {
        return bytes <= SMALL_BYTES ? smallBytes + pieces * bytes <= SMALL_BUDGET_BYTES
            : pieces <= LARGE - RESERVE - large;
    }

    /**
     * Takes a buffer.
     *
     * @return null when the budget is used up, or no memory is left.
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

    /** Whether any buffer is in use, and so will be given back. */
    boolean isInUse() {
        return smallBytes > 0 || large > 0;
    }

    /** Runs an action once, after a buffer has been given back and earlier actions have run. */
    void whenFree(Runnable action) {
        waiting.add(action);
    }

    /** Takes a buffer back: its piece has been sent, or never will be. */
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

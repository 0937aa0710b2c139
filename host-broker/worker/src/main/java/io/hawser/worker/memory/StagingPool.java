package io.hawser.worker.memory;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.function.Consumer;
import java.util.function.LongFunction;

/**
 * Private native memory through which copies pass, in a few sizes, kept for reuse. The backend allocates it, so that a
 * GPU can reach it directly. What is in use is bounded by those who take: credit, and the budgets of
 * the buffers of device-to-host copies. Session thread only.
 */
public final class StagingPool {
    /** Room beside the bulk for the fixed part of a record, so that a bulk of a power of two stays in its class. */
    private static final int SLACK_BYTES = 256;
    private static final int SMALLEST_SHIFT = 12;
    private static final int CLASSES = 9; // 4 KiB .. 1 MiB, plus slack
    private static final long KEEP_BYTES = 48L << 20; // idle memory above this goes back to the backend

    private final LongFunction<MemorySegment> allocate;
    private final Consumer<MemorySegment> free;
    private final ArrayDeque<Staging>[] idle;
    private final int largestBytes;
    private long idleBytes;
    private long usedBytes;
    private Runnable whenEmpty; // not null once the pool is closed

    /**
     * Makes an empty pool.
     *
     * @param largestBytes the most that is ever taken at once.
     * @param allocate gives memory of so many bytes, 8-aligned.
     * @param free takes it back.
     */
    @SuppressWarnings({"unchecked", "rawtypes"})
    public StagingPool(int largestBytes, LongFunction<MemorySegment> allocate, Consumer<MemorySegment> free) {
        this.largestBytes = largestBytes;
        this.allocate = allocate;
        this.free = free;
        this.idle = new ArrayDeque[CLASSES + 1];
        for (int i = 0; i < idle.length; i++) {
            idle[i] = new ArrayDeque<>();
        }
    }

    /** A piece of staging memory, owned by whoever took it until it is given back. */
    public static final class Staging {
        private final MemorySegment segment;
        private final ByteBuffer view;
        private final int sizeClass;
        private boolean isTaken = true;

        private Staging(MemorySegment segment, int sizeClass) {
            this.segment = segment;
            this.view = segment.asByteBuffer();
            this.sizeClass = sizeClass;
        }

        /**
         * The memory.
         *
         * @return at least the bytes asked for; contents undefined.
         */
        public MemorySegment segment() {
            return segment;
        }

        /**
         * The memory as a direct buffer, whose position and limit are the holder's to set.
         *
         * @return always the same buffer.
         */
        public ByteBuffer view() {
            return view;
        }
    }

    /**
     * Takes memory.
     *
     * @param bytes 1..largestBytes.
     * @return memory of at least so many bytes, contents undefined; null when the backend has none left.
     */
    public Staging take(int bytes) {
        if (bytes < 0 || bytes > largestBytes) {
            throw new IllegalArgumentException("staging must be 0.." + largestBytes + ": bytes=" + bytes);
        }
        int sizeClass = sizeClass(bytes);
        Staging staging = idle[sizeClass].poll();
        if (staging != null) {
            idleBytes -= staging.segment.byteSize();
            staging.isTaken = true;
        } else {
            MemorySegment segment = allocate.apply(capacity(sizeClass));
            if (segment == null) {
                return null;
            }
            staging = new Staging(segment, sizeClass);
        }
        usedBytes += staging.segment.byteSize();
        return staging;
    }

    /**
     * Gives memory back; nothing may use it any more.
     *
     * @param staging what {@link #take} gave.
     */
    public void give(Staging staging) {
        if (!staging.isTaken) {
            throw new IllegalStateException("staging memory is given back once");
        }
        staging.isTaken = false;
        long bytes = staging.segment.byteSize();
        usedBytes -= bytes;
        if (whenEmpty != null || idleBytes + bytes > KEEP_BYTES) {
            free.accept(staging.segment);
            tellWhenEmpty();
            return;
        }
        idleBytes += bytes;
        staging.view.clear();
        idle[staging.sizeClass].push(staging);
    }

    /**
     * Memory that is taken and not given back.
     *
     * @return bytes.
     */
    public long usedBytes() {
        return usedBytes;
    }

    /**
     * Gives all memory back to the backend: what is idle now, the rest as it comes.
     *
     * @param whenAllIsBack run once when nothing is in use any more, perhaps at once.
     */
    public void close(Runnable whenAllIsBack) {
        whenEmpty = whenAllIsBack;
        for (ArrayDeque<Staging> list : idle) {
            for (Staging staging = list.poll(); staging != null; staging = list.poll()) {
                idleBytes -= staging.segment.byteSize();
                free.accept(staging.segment);
            }
        }
        tellWhenEmpty();
    }

    private void tellWhenEmpty() {
        if (whenEmpty != null && usedBytes == 0) {
            whenEmpty.run();
        }
    }

    private static int sizeClass(int bytes) {
        int wanted = Math.max(bytes - SLACK_BYTES, 1);
        int shift = Integer.SIZE - Integer.numberOfLeadingZeros(wanted - 1);
        return Math.clamp(shift - SMALLEST_SHIFT, 0, CLASSES);
    }

    private long capacity(int sizeClass) {
        return sizeClass == CLASSES ? largestBytes
            : Math.min(largestBytes, (1L << SMALLEST_SHIFT + sizeClass) + SLACK_BYTES);
    }
}

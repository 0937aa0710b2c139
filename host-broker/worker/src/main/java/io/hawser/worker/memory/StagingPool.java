package io.hawser.worker.memory;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.function.Consumer;
import java.util.function.LongFunction;

/**
 * Pool of private native memory for copies, in a few sizes. The backend allocates the memory, so that a GPU can reach
 * it directly. The pool does not limit the memory in use: credit and the budgets of the buffers for device-to-host
 * copies limit it. Session thread only.
 */
public final class StagingPool {
    /** Room beside the bulk for a record's fixed part, so that a bulk of a power of two stays in its size class. */
    private static final int SLACK_BYTES = 256;
    private static final int SMALLEST_SHIFT = 12;
    private static final int CLASSES = 9; // 4 KiB .. 1 MiB, plus slack
    private static final long KEEP_BYTES = 48L << 20; // idle memory beyond this returns to the backend

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
     * @param largestBytes the largest piece.
     * @param allocate allocates memory of so many bytes, 8-aligned.
     * @param free frees it.
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

    /** A piece of staging memory. It belongs to the code that took it until that code gives it back. */
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
         * @return at least as many bytes as requested; contents undefined.
         */
        public MemorySegment segment() {
            return segment;
        }

        /**
         * The memory as a direct buffer. The holder sets its position and limit.
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
     * @param bytes 0..largestBytes.
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
     * Gives memory back; the caller must not use it afterwards.
     *
     * @param staging a piece from {@link #take}.
     */
    public void give(Staging staging) {
        if (!staging.isTaken) {
            throw new IllegalStateException("staging memory must be given back only once");
        }
        staging.isTaken = false;
        long bytes = staging.segment.byteSize();
        usedBytes -= bytes;
        if (whenEmpty != null || idleBytes + bytes > KEEP_BYTES) {
            free.accept(staging.segment);
            runIfEmpty();
            return;
        }
        idleBytes += bytes;
        staging.view.clear();
        idle[staging.sizeClass].push(staging);
    }

    /**
     * Memory that is in use.
     *
     * @return bytes.
     */
    public long usedBytes() {
        return usedBytes;
    }

    /**
     * Gives all memory back to the backend: idle memory now, memory in use when it returns.
     *
     * @param whenAllIsBack runs once, when no memory is in use any more; possibly during this call.
     */
    public void close(Runnable whenAllIsBack) {
        whenEmpty = whenAllIsBack;
        for (ArrayDeque<Staging> list : idle) {
            for (Staging staging = list.poll(); staging != null; staging = list.poll()) {
                idleBytes -= staging.segment.byteSize();
                free.accept(staging.segment);
            }
        }
        runIfEmpty();
    }

    private void runIfEmpty() {
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

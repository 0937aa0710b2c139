package io.hawser.worker.session;

import io.hawser.shm.RecordLayout;
import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Whole records that cannot be served yet ({@link RecordOrder}): a queue of those that wait for one another, and those
 * that were set aside alone. Credited ones are bounded by their credit, the others here. Session thread only.
 */
final class HeldRecords {
    /** What a guest may have waiting without credit: it sends a million such calls only to do harm. */
    static final long MAX_UNCREDITED_BYTES = 64L << 20;

    private static final int BLOCK_BYTES = 64 * 1024;

    private final ArrayDeque<Held> queue = new ArrayDeque<>();
    private final Set<Held> aside = new LinkedHashSet<>();
    private MemorySegment block = MemorySegment.NULL; // freed when no record lies in it any more
    private long blockUsed;
    private long uncreditedBytes;

    /**
     * A record.
     *
     * @param opcode its opcode.
     * @param bytes where it lies, from the start.
     * @param lengthBytes its length.
     * @param isCredited whether it has been charged.
     * @param memory its own, or null when it lies among others.
     */
    record Held(int opcode, MemorySegment bytes, int lengthBytes, boolean isCredited, Staging memory) { }

    /**
     * Copies a record, or takes its memory when credit bounds that; it is held until {@link #release}.
     */
    Held hold(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        int length = header.lengthBytes();
        if (!header.isCredited()) {
            uncreditedBytes += length;
        }
        if (memory != null && header.isCredited()) {
            return new Held(header.opcode(), memory.segment(), length, header.isCredited(), memory);
        }
        if (block.byteSize() - blockUsed < length) {
            block = Arena.ofAuto().allocate(Math.max(BLOCK_BYTES, length), RecordLayout.ALIGNMENT_BYTES);
            blockUsed = 0;
        }
        MemorySegment copy = block.asSlice(blockUsed, length).copyFrom(bytes.asSlice(offset, length));
        blockUsed += length; // a multiple of 8
        return new Held(header.opcode(), copy, length, header.isCredited(), null);
    }

    /** Appends a record to the queue. */
    void add(Held held) {
        queue.add(held);
    }

    /** Keeps a record that waits for no other. */
    void setAside(Held held) {
        aside.add(held);
    }

    /** Whether the queue has none. */
    boolean isEmpty() {
        return queue.isEmpty();
    }

    /** Whether more is held than any honest guest sends. */
    boolean isTooMuch() {
        return uncreditedBytes > MAX_UNCREDITED_BYTES;
    }

    /** Opcode of the first of the queue. */
    int nextOpcode() {
        return queue.element().opcode;
    }

    /** Takes the first of the queue. */
    Held next() {
        return queue.remove();
    }

    /** Takes one that was set aside; false when it is gone. */
    boolean take(Held held) {
        return aside.remove(held);
    }

    /** A record is about to be served. */
    void release(Held held) {
        if (!held.isCredited) {
            uncreditedBytes -= held.lengthBytes;
        }
    }

    /** Hands all over that is left. */
    void drop(Consumer<Held> to) {
        queue.forEach(to);
        aside.forEach(to);
        queue.clear();
        aside.clear();
        uncreditedBytes = 0;
    }
}

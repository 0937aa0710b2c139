package io.hawser.worker.session;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * Complete records that cannot be served yet ({@link RecordOrder}): a queue of records that wait for one another, and
 * records set aside that wait alone. Credit limits the credited records; this class limits the others. Session thread
 * only.
 */
final class HeldRecords {
    /**
     * Waiting bytes of a guest's records without credit: about a million calls. Stops a guest that fills the worker's
     * memory.
     */
    static final long MAX_UNCREDITED_BYTES = 64L << 20;

    private static final int BLOCK_BYTES = 64 * 1024;

    private final ArrayDeque<Held> queue = new ArrayDeque<>();
    private final Set<Held> aside = new LinkedHashSet<>();
    private MemorySegment block = MemorySegment.NULL; // the garbage collector frees it when no record in it is left
    private long blockUsed;
    private long uncreditedBytes;

    /**
     * A held record.
     *
     * @param opcode its opcode.
     * @param bytes memory that begins with the record.
     * @param lengthBytes its length.
     * @param isAwaited whether the guest waits for its result.
     * @param isCredited whether credit was charged for it.
     * @param memory its own memory, or null when it shares a block.
     */
    record Held(int opcode, MemorySegment bytes, int lengthBytes, boolean isAwaited, boolean isCredited,
        Staging memory) {}

    /** Holds a record until {@link #release}: copies it, or keeps its memory when credit limits that. */
    Held hold(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        int length = header.lengthBytes();
        if (!header.isCredited()) {
            uncreditedBytes += length;
        }
        if (memory != null && header.isCredited()) {
            return new Held(header.opcode(), memory.segment(), length, header.wantsReply(), true, memory);
        }
        if (block.byteSize() - blockUsed < length) {
            block = Arena.ofAuto().allocate(Math.max(BLOCK_BYTES, length), RecordLayout.ALIGNMENT_BYTES);
            blockUsed = 0;
        }
        MemorySegment copy = block.asSlice(blockUsed, length).copyFrom(bytes.asSlice(offset, length));
        blockUsed += length; // a multiple of 8
        return new Held(header.opcode(), copy, length, header.wantsReply(), header.isCredited(), null);
    }

    /** Appends a record to the queue. */
    void add(Held held) {
        queue.add(held);
    }

    /** Puts a record before all others of the queue. */
    void addFirst(Held held) {
        queue.addFirst(held);
    }

    /** Keeps a record that waits alone. */
    void setAside(Held held) {
        aside.add(held);
    }

    /** Whether the queue is empty. */
    boolean isEmpty() {
        return queue.isEmpty();
    }

    /** Whether more is held than any correct guest sends. */
    boolean isOverLimit() {
        return uncreditedBytes > MAX_UNCREDITED_BYTES;
    }

    /** Whether any record of the queue has a property. */
    boolean anyMatch(Predicate<Held> property) {
        return queue.stream().anyMatch(property);
    }

    /** The queue's first record. */
    Held first() {
        return queue.element();
    }

    /** The queue's records, in their order. */
    List<Held> queue() {
        return List.copyOf(queue);
    }

    /** Whether records wait alone. */
    boolean hasAside() {
        return !aside.isEmpty();
    }

    /** Removes the queue's first record. */
    Held next() {
        return queue.remove();
    }

    /** Removes a record that was set aside; false when it is not there any more. */
    boolean take(Held held) {
        return aside.remove(held);
    }

    /** Subtracts a record that is about to be served. */
    void release(Held held) {
        if (!held.isCredited) {
            uncreditedBytes -= held.lengthBytes;
        }
    }

    /** Passes all remaining records to {@code to}, and removes them. */
    void drop(Consumer<Held> to) {
        queue.forEach(to);
        aside.forEach(to);
        queue.clear();
        aside.clear();
        uncreditedBytes = 0;
    }
}

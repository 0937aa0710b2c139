package io.hawser.worker.swap;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.LongFunction;

/**
 * Memory of the host for slabs. It grows by blocks, because each block costs a call of the driver to pin, and is given
 * out in pieces of any length. Freed pieces are whole again only when nothing is in use. One thread.
 */
final class HostMemory {
    /** Length of a block. */
    static final long BLOCK_BYTES = 64L << 20;

    private final LongFunction<MemorySegment> allocator;
    private final long maxBytes;
    private final List<MemorySegment> blocks = new ArrayList<>();
    private final Deque<MemorySegment> idle = new ArrayDeque<>();
    private long idleBytes;

    /**
     * Starts without memory.
     *
     * @param allocator allocates a block, or throws OutOfMemoryError, or returns null, when memory is short.
     * @param maxBytes limit; a rest that is shorter than a block stays unused.
     */
    HostMemory(LongFunction<MemorySegment> allocator, long maxBytes) {
        this.allocator = allocator;
        this.maxBytes = maxBytes;
    }

    /** Length of all blocks. */
    long allocatedBytes() {
        return blocks.size() * BLOCK_BYTES;
    }

    /** Allocates one more block. Returns false at the limit, or when memory is short. */
    boolean grow() {
        if (allocatedBytes() + BLOCK_BYTES > maxBytes) {
            return false;
        }
        MemorySegment block;
        try {
            block = allocator.apply(BLOCK_BYTES);
        } catch (OutOfMemoryError e) {
            block = null;
        }
        if (block == null) {
            return false;
        }
        blocks.add(block);
        idle.add(block);
        idleBytes += BLOCK_BYTES;
        return true;
    }

    /**
     * Takes memory.
     *
     * @return pieces that are together as long as this; null, with nothing taken, when memory is short.
     */
    List<MemorySegment> take(long bytes) {
        while (idleBytes < bytes) {
            if (!grow()) {
                return null;
            }
        }
        List<MemorySegment> pieces = new ArrayList<>();
        for (long missing = bytes; missing > 0;) {
            MemorySegment piece = idle.pop();
            if (piece.byteSize() > missing) {
                idle.push(piece.asSlice(missing));
                piece = piece.asSlice(0, missing);
            }
            pieces.add(piece);
            missing -= piece.byteSize();
        }
        idleBytes -= bytes;
        return pieces;
    }

    /** Gives pieces back that were taken. */
    void give(List<MemorySegment> pieces) {
        idle.addAll(pieces);
        idleBytes += pieces.stream().mapToLong(MemorySegment::byteSize).sum();
        if (idleBytes == allocatedBytes()) {
            idle.clear();
            idle.addAll(blocks);
        }
    }
}

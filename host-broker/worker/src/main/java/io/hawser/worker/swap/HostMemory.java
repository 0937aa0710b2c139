package io.hawser.worker.swap;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.LongFunction;

/**
 * Memory of the host for slabs. It grows by blocks, because each block costs a call of the driver to pin, and is given
 * out in pieces of any length. Freed pieces are whole again only when nothing is in use. Any thread; several threads
 * allocate blocks side by side.
 */
final class HostMemory {
    /** Length of a block. */
    static final long BLOCK_BYTES = 64L << 20;

    private final LongFunction<MemorySegment> allocator;
    private final long maxBytes;
    private final List<MemorySegment> blocks = new ArrayList<>();
    private final Deque<MemorySegment> idle = new ArrayDeque<>();
    private long idleBytes;
    private long growingBytes; // blocks that threads allocate now

    /**
     * Starts without memory.
     *
     * @param allocator allocates a block, or throws OutOfMemoryError, or returns null, when memory is short; any
     *     thread.
     * @param maxBytes limit; a rest that is shorter than a block stays unused.
     */
    HostMemory(LongFunction<MemorySegment> allocator, long maxBytes) {
        this.allocator = allocator;
        this.maxBytes = maxBytes;
    }

    /** Length of all blocks. */
    synchronized long allocatedBytes() {
        return blocks.size() * BLOCK_BYTES;
    }

    /**
     * Allocates one more block, which takes long.
     *
     * @param limitBytes of all blocks, also those that other threads allocate now.
     * @return false at this limit, at that of all memory, or when memory is short.
     */
    boolean grow(long limitBytes) {
        synchronized (this) {
            if (allocatedBytes() + growingBytes + BLOCK_BYTES > Math.min(limitBytes, maxBytes)) {
                return false;
            }
            growingBytes += BLOCK_BYTES;
        }
        MemorySegment block = null;
        try {
            block = allocator.apply(BLOCK_BYTES);
        } catch (OutOfMemoryError e) {
            return false;
        } finally {
            add(block);
        }
        return block != null;
    }

    /** Ends the allocation of a block; null if it failed. */
    private synchronized void add(MemorySegment block) {
        growingBytes -= BLOCK_BYTES;
        if (block != null) {
            blocks.add(block);
            idle.add(block);
            idleBytes += BLOCK_BYTES;
        }
        notifyAll();
    }

    /**
     * Takes memory, and allocates blocks for it if needed.
     *
     * @return pieces that are together as long as this; null, with nothing taken, when memory is short.
     */
    List<MemorySegment> take(long bytes) {
        List<MemorySegment> pieces = takeIdle(bytes);
        while (pieces == null && (grow(maxBytes) || awaitGrowth(bytes))) {
            pieces = takeIdle(bytes);
        }
        return pieces;
    }

    /** Waits while memory is missing and other threads allocate blocks; returns whether there is enough now. */
    private synchronized boolean awaitGrowth(long bytes) {
        try {
            while (idleBytes < bytes && growingBytes > 0) {
                wait();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the keeper ends
        }
        return idleBytes >= bytes;
    }

    private synchronized List<MemorySegment> takeIdle(long bytes) {
        if (idleBytes < bytes) {
            return null;
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
    synchronized void give(List<MemorySegment> pieces) {
        idle.addAll(pieces);
        idleBytes += pieces.stream().mapToLong(MemorySegment::byteSize).sum();
        if (idleBytes == allocatedBytes()) {
            idle.clear();
            idle.addAll(blocks);
        }
    }
}

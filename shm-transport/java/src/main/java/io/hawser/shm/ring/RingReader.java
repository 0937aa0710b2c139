package io.hawser.shm.ring;

import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import java.lang.foreign.MemorySegment;

/**
 * The reading end of a byte stream through shared memory; {@code hws_ring_t} of a reader in C. The writer may be
 * hostile: its position is read once and checked, and the bytes are copied before use. Allocates nothing, makes no
 * system call. One thread at a time.
 */
public final class RingReader extends Ring {

    /** Attaches to a fresh ring; as {@link RingWriter#RingWriter(MemorySegment, long, long, long, long)}. */
    public RingReader(MemorySegment region, long ringOffset, long ringBytes, long headOffset, long tailOffset) {
        this(region, ringOffset, ringBytes, headOffset, tailOffset, 0);
    }

    RingReader(MemorySegment region, long ringOffset, long ringBytes, long headOffset, long tailOffset,
        long position) {
        super(region, ringOffset, ringBytes, region, headOffset, tailOffset, position);
    }

    /** As above, with the positions in other memory; as the constructor of {@link RingWriter} with words. */
    public RingReader(MemorySegment memory, long ringOffset, long ringBytes, MemorySegment words, long headOffset,
        long tailOffset) {
        super(memory, ringOffset, ringBytes, words, headOffset, tailOffset, 0);
    }

    /** A worker's end of a slot's command ring. */
    public static RingReader command(MemorySegment region, RegionGeometry geometry, int slot) {
        return command(region, geometry, slot, 0);
    }

    /** A worker's end that goes on for another worker, which has taken and released all bytes up to a position. */
    public static RingReader command(MemorySegment region, RegionGeometry geometry, int slot, long position) {
        return new RingReader(region, geometry.slot(slot) + geometry.commandOffset(), geometry.commandBytes(),
            geometry.hostPage(slot) + RegionLayout.HOST_COMMAND_HEAD_OFFSET,
            geometry.guestPage(slot) + RegionLayout.GUEST_COMMAND_TAIL_OFFSET, position);
    }

    /** A guest's end of a slot's reply ring. */
    public static RingReader reply(MemorySegment region, RegionGeometry geometry, int slot) {
        return new RingReader(region, geometry.slot(slot) + geometry.replyOffset(), geometry.replyBytes(),
            geometry.guestPage(slot) + RegionLayout.GUEST_REPLY_HEAD_OFFSET,
            geometry.hostPage(slot) + RegionLayout.HOST_REPLY_TAIL_OFFSET);
    }

    /**
     * Number of bytes that can be taken now.
     *
     * @throws RingCorruptException if the writer's tail moved back, or beyond the ring's length.
     */
    public long available() throws RingCorruptException {
        long tail = peer();
        // Since the last valid tail, the writer can only have advanced by the room released to it.
        if (Long.compareUnsigned(tail - peerCached, ringBytes - (peerCached - published)) > 0 || (tail & 7) != 0) {
            throw new RingCorruptException("a writer's tail must be a multiple of 8 within the ring", tail,
                peerCached, published + ringBytes);
        }
        peerCached = tail;
        return tail - position;
    }

    /**
     * Copies bytes out of the ring.
     *
     * @param target private memory.
     * @param offset offset of the bytes in the target.
     * @param bytes number of bytes, at most the result of {@link #available}.
     * @throws IllegalArgumentException if fewer bytes are available.
     */
    public void take(MemorySegment target, long offset, long bytes) {
        if (bytes < 0 || bytes > peerCached - position) {
            throw new IllegalArgumentException("a take must not exceed the available bytes: bytes=" + bytes
                + ", available=" + (peerCached - position));
        }
        long first = firstPiece(bytes);
        MemorySegment.copy(region, place(), target, offset, first);
        if (first != bytes) {
            MemorySegment.copy(region, ringOffset, target, offset + first, bytes - first);
        }
        position += bytes;
    }

    /**
     * Copies the available bytes out, in at most two pieces; {@link #release} returns their room to the writer.
     *
     * @param target private memory.
     * @param offset offset of the bytes in the target.
     * @param maxBytes maximum number of bytes.
     * @return number of bytes, 0 when the ring is empty.
     * @throws RingCorruptException as {@link #available}.
     */
    public long takeAvailable(MemorySegment target, long offset, long maxBytes) throws RingCorruptException {
        long bytes = Math.min(available(), maxBytes);
        if (bytes > 0) {
            take(target, offset, bytes);
        }
        return bytes;
    }

    /** Returns the room of the taken bytes to the writer, in multiples of 8. */
    public void release() {
        publish();
    }
}

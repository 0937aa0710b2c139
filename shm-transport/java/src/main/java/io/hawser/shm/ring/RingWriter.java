package io.hawser.shm.ring;

import io.hawser.shm.RegionGeometry;
import io.hawser.shm.RegionLayout;
import java.lang.foreign.MemorySegment;

/**
 * The writing end of a byte stream through shared memory; {@code hws_ring_t} of a writer in C. The reader may be
 * hostile: its position is read once and checked. Allocates nothing, makes no system call. One thread at a time.
 */
public final class RingWriter extends Ring {

    /**
     * Attaches to a fresh ring: both positions 0, which this does not store.
     *
     * @param region shared memory.
     * @param ringOffset of the ring in it.
     * @param ringBytes its length, a power of two, at least 8.
     * @param headOffset of the reader's position in the region, aligned.
     * @param tailOffset of the writer's.
     * @throws IllegalArgumentException if one of them does not lie in the region.
     */
    public RingWriter(MemorySegment region, long ringOffset, long ringBytes, long headOffset, long tailOffset) {
        this(region, ringOffset, ringBytes, headOffset, tailOffset, 0);
    }

    RingWriter(MemorySegment region, long ringOffset, long ringBytes, long headOffset, long tailOffset,
            long position) {
        super(region, ringOffset, ringBytes, tailOffset, headOffset, position);
    }

    /** A worker's end of a slot's reply ring. */
    public static RingWriter reply(MemorySegment region, RegionGeometry geometry, int slot) {
        return new RingWriter(region, geometry.slot(slot) + geometry.replyOffset(), geometry.replyBytes(),
                geometry.guestPage(slot) + RegionLayout.GUEST_REPLY_HEAD_OFFSET,
                geometry.hostPage(slot) + RegionLayout.HOST_REPLY_TAIL_OFFSET);
    }

    /** A guest's end of a slot's command ring. */
    public static RingWriter command(MemorySegment region, RegionGeometry geometry, int slot) {
        return new RingWriter(region, geometry.slot(slot) + geometry.commandOffset(), geometry.commandBytes(),
                geometry.hostPage(slot) + RegionLayout.HOST_COMMAND_HEAD_OFFSET,
                geometry.guestPage(slot) + RegionLayout.GUEST_COMMAND_TAIL_OFFSET);
    }

    /**
     * Bytes that can be put now.
     *
     * @throws RingCorruptException if the reader's head went back, or past what was committed.
     */
    public long room() throws RingCorruptException {
        long head = peer();
        if (Long.compareUnsigned(head - peerCached, published - peerCached) > 0 || (head & 7) != 0) {
            throw new RingCorruptException("a reader's head must be a multiple of 8 in what was committed", head,
                    peerCached, published);
        }
        peerCached = head;
        return ringBytes - (position - head);
    }

    /** Whether {@code bytes} can be put, by the head seen last: cheaper, it leaves the reader's cache line alone. */
    public boolean hasRoom(long bytes) {
        return bytes <= ringBytes - (position - peerCached);
    }

    /**
     * Copies bytes in behind those put before. Not visible until {@link #commit}.
     *
     * @param source private memory.
     * @param offset of the bytes in it.
     * @param bytes how many, at most what {@link #room} answered.
     * @throws IllegalArgumentException if there is no room for them.
     */
    public void put(MemorySegment source, long offset, long bytes) {
        if (bytes < 0 || !hasRoom(bytes)) {
            throw new IllegalArgumentException("a put must not exceed the room: bytes=" + bytes + ", room="
                    + (ringBytes - (position - peerCached)));
        }
        long first = firstPiece(bytes);
        MemorySegment.copy(source, offset, region, place(), first);
        if (first != bytes) {
            MemorySegment.copy(source, offset + first, region, ringOffset, bytes - first);
        }
        position += bytes;
    }

    /** Makes what was put visible; where that is no multiple of 8, the bytes behind the last one stay for later. */
    public void commit() {
        publish();
    }

    /** Forgets what was put since the last commit. */
    public void abort() {
        position = published;
    }
}

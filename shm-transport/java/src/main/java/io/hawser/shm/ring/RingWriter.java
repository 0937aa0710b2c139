package io.hawser.shm.ring;

import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import java.lang.foreign.MemorySegment;

/**
 * The writing end of a byte stream through shared memory; {@code hws_ring_t} of a writer in C. The reader may be
 * hostile: its position is read once and checked. Allocates nothing, makes no system call. One thread at a time.
 */
public final class RingWriter extends Ring {

    /**
     * Attaches to a fresh ring: both positions are 0, which this does not store.
     *
     * @param region shared memory.
     * @param ringOffset offset of the ring in it.
     * @param ringBytes length of the ring, a power of two, at least 8.
     * @param headOffset offset of the reader's position in the region, aligned.
     * @param tailOffset offset of the writer's position in the region, aligned.
     * @throws IllegalArgumentException if one of them lies outside the region.
     */
    public RingWriter(MemorySegment region, long ringOffset, long ringBytes, long headOffset, long tailOffset) {
        this(region, ringOffset, ringBytes, headOffset, tailOffset, 0);
    }

    RingWriter(MemorySegment region, long ringOffset, long ringBytes, long headOffset, long tailOffset,
        long position) {
        super(region, ringOffset, ringBytes, region, tailOffset, headOffset, position);
    }

    /**
     * Attaches to a fresh ring whose positions lie in other memory.
     *
     * @param memory holds the ring.
     * @param ringOffset offset of the ring in it.
     * @param ringBytes length of the ring, a power of two, at least 8.
     * @param words holds the positions.
     * @param headOffset offset of the reader's position in the words, aligned.
     * @param tailOffset offset of the writer's position in the words, aligned.
     * @throws IllegalArgumentException if one of them lies outside its memory.
     */
    public RingWriter(MemorySegment memory, long ringOffset, long ringBytes, MemorySegment words, long headOffset,
        long tailOffset) {
        super(memory, ringOffset, ringBytes, words, tailOffset, headOffset, 0);
    }

    /** A worker's end of a slot's reply ring. */
    public static RingWriter reply(MemorySegment region, RegionGeometry geometry, int slot) {
        return reply(region, geometry, slot, 0, 0);
    }

    /**
     * A worker's end that goes on for another worker.
     *
     * @param position end of the bytes that the other worker has put and committed, a multiple of 8.
     * @param head the reader's position as that worker has last seen it.
     * @throws IllegalArgumentException if both cannot be true.
     */
    public static RingWriter reply(MemorySegment region, RegionGeometry geometry, int slot, long position, long head) {
        RingWriter ring = new RingWriter(region, geometry.slot(slot) + geometry.replyOffset(), geometry.replyBytes(),
            geometry.guestPage(slot) + RegionLayout.GUEST_REPLY_HEAD_OFFSET,
            geometry.hostPage(slot) + RegionLayout.HOST_REPLY_TAIL_OFFSET, position);
        if (Long.compareUnsigned(position - head, ring.ringBytes) > 0 || ((position | head) & 7) != 0) {
            throw new IllegalArgumentException("a reader's head must lie in the ring: position=" + position + " head="
                + head);
        }
        ring.peerCached = head;
        return ring;
    }

    /** The reader's position as it was last seen. */
    public long head() {
        return peerCached;
    }

    /** A guest's end of a slot's command ring. */
    public static RingWriter command(MemorySegment region, RegionGeometry geometry, int slot) {
        return new RingWriter(region, geometry.slot(slot) + geometry.commandOffset(), geometry.commandBytes(),
            geometry.hostPage(slot) + RegionLayout.HOST_COMMAND_HEAD_OFFSET,
            geometry.guestPage(slot) + RegionLayout.GUEST_COMMAND_TAIL_OFFSET);
    }

    /**
     * Number of bytes that can be put now.
     *
     * @throws RingCorruptException if the reader's head moved back, or beyond the committed bytes.
     */
    public long room() throws RingCorruptException {
        long head = peer();
        if (Long.compareUnsigned(head - peerCached, published - peerCached) > 0 || (head & 7) != 0) {
            throw new RingCorruptException("a reader's head must be a multiple of 8 within the committed bytes", head,
                peerCached, published);
        }
        peerCached = head;
        return ringBytes - (position - head);
    }

    /**
     * Whether {@code bytes} fit, by the last known head: cheaper, because it does not access the reader's cache line.
     */
    public boolean hasRoom(long bytes) {
        return bytes <= ringBytes - (position - peerCached);
    }

    /**
     * Appends bytes. They stay invisible to the reader until {@link #commit}.
     *
     * @param source private memory.
     * @param offset offset of the bytes in it.
     * @param bytes number of bytes, at most the result of {@link #room}.
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

    /** Makes the put bytes visible, up to a multiple of 8; a remainder becomes visible with a later commit. */
    public void commit() {
        publish();
    }

    /** Discards the bytes put since the last commit. */
    public void abort() {
        position = published;
    }
}

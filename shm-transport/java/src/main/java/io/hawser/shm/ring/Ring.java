package io.hawser.shm.ring;

import java.lang.foreign.MemorySegment;

/** State of either end of a ring: the ring's place in its memory, and this end's position. */
abstract sealed class Ring permits RingReader, RingWriter {
    final MemorySegment region;
    /** Holds both positions: the region itself, or private memory that a carrier keeps up to date. */
    final MemorySegment words;
    final long ringOffset;
    final long ringBytes;
    final long ownOffset;
    final long peerOffset;
    /** The end of the bytes that this end has put or taken. */
    long position;
    /** This end's position as the other end sees it. */
    long published;
    /** The other end's last valid position. */
    long peerCached;

    Ring(MemorySegment region, long ringOffset, long ringBytes, MemorySegment words, long ownOffset, long peerOffset,
        long position) {
        if (ringBytes < 8 || Long.bitCount(ringBytes) != 1) {
            throw new IllegalArgumentException("a ring's length must be a power of two and at least 8: ringBytes="
                + ringBytes);
        }
        if (ringOffset < 0 || ringBytes > region.byteSize() || ringOffset > region.byteSize() - ringBytes) {
            throw new IllegalArgumentException("a ring must lie in the region: ringOffset=" + ringOffset
                + ", ringBytes=" + ringBytes + ", regionBytes=" + region.byteSize());
        }
        this.region = region;
        this.words = words;
        this.ringOffset = ringOffset;
        this.ringBytes = ringBytes;
        this.ownOffset = Words.check(words, ownOffset, Long.BYTES);
        this.peerOffset = Words.check(words, peerOffset, Long.BYTES);
        this.position = position;
        published = position;
        peerCached = position;
    }

    /** Offset in the region of this end's position. */
    final long place() {
        return ringOffset + (position & ringBytes - 1);
    }

    /** Number of {@code bytes}, from this end's position, that lie before the ring's end. */
    final long firstPiece(long bytes) {
        return Math.min(bytes, ringBytes - (position & ringBytes - 1));
    }

    /** Publishes this end's position, rounded down to a multiple of 8; pairs with the other end's acquiring load. */
    final void publish() {
        published = position & ~7L;
        Words.I64.setRelease(words, ownOffset, published);
    }

    /** Reads the other end's position once; pairs with the other end's releasing store. */
    final long peer() {
        return (long) Words.I64.getAcquire(words, peerOffset);
    }

    /** Number of bytes ever put or taken. */
    public final long position() {
        return position;
    }

    /** This end's position as the other end may see it: that of the last commit or release. */
    public final long published() {
        return published;
    }
}

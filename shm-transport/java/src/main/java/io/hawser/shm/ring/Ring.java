package io.hawser.shm.ring;

import java.lang.foreign.MemorySegment;

/** What both ends of a ring have: where it lies, and how far this end has come. */
abstract sealed class Ring permits RingReader, RingWriter {
    final MemorySegment region;
    final long ringOffset;
    final long ringBytes;
    final long ownOffset;
    final long peerOffset;
    /** Put or taken up to here. */
    long position;
    /** What the other end sees of it. */
    long published;
    /** The other end's last good position. */
    long peerCached;

    Ring(MemorySegment region, long ringOffset, long ringBytes, long ownOffset, long peerOffset, long position) {
        if (ringBytes < 8 || Long.bitCount(ringBytes) != 1) {
            throw new IllegalArgumentException("a ring's length must be a power of two and at least 8: ringBytes="
                    + ringBytes);
        }
        if (ringOffset < 0 || ringBytes > region.byteSize() || ringOffset > region.byteSize() - ringBytes) {
            throw new IllegalArgumentException("a ring must lie in the region: ringOffset=" + ringOffset
                    + ", ringBytes=" + ringBytes + ", regionBytes=" + region.byteSize());
        }
        this.region = region;
        this.ringOffset = ringOffset;
        this.ringBytes = ringBytes;
        this.ownOffset = Words.check(region, ownOffset, Long.BYTES);
        this.peerOffset = Words.check(region, peerOffset, Long.BYTES);
        this.position = position;
        published = position;
        peerCached = position;
    }

    /** Place of this end in the region. */
    final long place() {
        return ringOffset + (position & ringBytes - 1);
    }

    /** Of {@code bytes} from this end's place on, those before the ring's end. */
    final long firstPiece(long bytes) {
        return Math.min(bytes, ringBytes - (position & ringBytes - 1));
    }

    /** Shows this end's position to the other, in multiples of 8; pairs with its acquiring load. */
    final void publish() {
        published = position & ~7L;
        Words.I64.setRelease(region, ownOffset, published);
    }

    /** The other end's position, once; pairs with the releasing store there. */
    final long peer() {
        return (long) Words.I64.getAcquire(region, peerOffset);
    }

    /** Bytes ever put or taken. */
    public final long position() {
        return position;
    }
}

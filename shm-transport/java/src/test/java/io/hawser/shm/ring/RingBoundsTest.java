package io.hawser.shm.ring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A ring lies in its region, and its ends move only valid bytes. */
class RingBoundsTest {
    private static final long HEAD = 0;
    private static final long TAIL = 64;
    private static final long RING = 128;
    private static final long RING_BYTES = 64;
    private static final long REGION_BYTES = RING + RING_BYTES;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment region = arena.allocate(REGION_BYTES, 64);
    private final MemorySegment target = MemorySegment.ofArray(new byte[128]);

    @AfterEach
    void free() {
        arena.close();
    }

    private void refuse(long ringOffset, long ringBytes, long headOffset, long tailOffset) {
        assertThrows(IllegalArgumentException.class,
            () -> new RingReader(region, ringOffset, ringBytes, headOffset, tailOffset));
        assertThrows(IllegalArgumentException.class,
            () -> new RingWriter(region, ringOffset, ringBytes, headOffset, tailOffset));
    }

    @Test
    void shouldRefuseRingOutsideOfItsRegion() {
        new RingReader(region, RING, RING_BYTES, HEAD, TAIL);
        new RingReader(region, 0, 8, HEAD, TAIL);
        new RingReader(region, REGION_BYTES - 8, 8, HEAD, TAIL);
        refuse(-8, RING_BYTES, HEAD, TAIL);
        refuse(Long.MIN_VALUE, RING_BYTES, HEAD, TAIL);
        refuse(RING + 8, RING_BYTES, HEAD, TAIL);
        refuse(REGION_BYTES, 8, HEAD, TAIL);
        refuse(0, 256, HEAD, TAIL);
        refuse(Long.MIN_VALUE + 192, 1L << 62, HEAD, TAIL);
        MemorySegment whole = region.asSlice(0, 64);
        new RingReader(whole, 0, 64, HEAD, 56); // a ring as long as its region
        assertThrows(IllegalArgumentException.class, () -> new RingReader(whole, -64, 128, HEAD, 56));
    }

    @Test
    void shouldRefuseLengthThatIsNoPowerOfTwo() {
        for (long bytes : new long[] {0, 1, 2, 4, 24, 48, -8, Long.MIN_VALUE}) {
            refuse(0, bytes, HEAD, TAIL);
        }
    }

    @Test
    void shouldRefusePositionsOutsideOfTheRegion() {
        for (long offset : new long[] {-8, REGION_BYTES, REGION_BYTES - 4, 4, Long.MIN_VALUE}) {
            refuse(RING, RING_BYTES, offset, TAIL);
            refuse(RING, RING_BYTES, HEAD, offset);
        }
    }

    @Test
    void shouldTakeOnlyWhatIsThere() throws RingCorruptException {
        RingReader reader = new RingReader(region, RING, RING_BYTES, HEAD, TAIL);
        region.set(ValueLayout.JAVA_LONG, TAIL, 16);
        assertEquals(16, reader.available());
        assertThrows(IllegalArgumentException.class, () -> reader.take(target, 0, 17));
        assertThrows(IllegalArgumentException.class, () -> reader.take(target, 0, -1));
        assertThrows(IllegalArgumentException.class, () -> reader.take(target, 0, Long.MIN_VALUE));
        assertEquals(0, reader.position());
        reader.take(target, 0, 16);
        assertEquals(16, reader.position());
        assertEquals(0, reader.takeAvailable(target, 0, 128));
        region.set(ValueLayout.JAVA_LONG, TAIL, 48);
        assertEquals(8, reader.takeAvailable(target, 0, 8));
        assertEquals(24, reader.takeAvailable(target, 0, 128));
        assertEquals(48, reader.position());
    }

    @Test
    void shouldPutOnlyWhatThereIsRoomFor() throws RingCorruptException {
        RingWriter writer = new RingWriter(region, RING, RING_BYTES, HEAD, TAIL);
        assertEquals(RING_BYTES, writer.room());
        assertThrows(IllegalArgumentException.class, () -> writer.put(target, 0, RING_BYTES + 1));
        assertThrows(IllegalArgumentException.class, () -> writer.put(target, 0, -1));
        assertThrows(IllegalArgumentException.class, () -> writer.put(target, 0, Long.MIN_VALUE));
        assertEquals(0, writer.position());
        writer.put(target, 0, RING_BYTES);
        assertThrows(IllegalArgumentException.class, () -> writer.put(target, 0, 1));
    }

    @Test
    void shouldRefuseTailPastTheRoomThatWasReleased() throws RingCorruptException {
        RingReader reader = new RingReader(region, RING, RING_BYTES, HEAD, TAIL);
        region.set(ValueLayout.JAVA_LONG, TAIL, 40);
        reader.takeAvailable(target, 0, 128);
        reader.release();
        region.set(ValueLayout.JAVA_LONG, TAIL, 64);
        assertEquals(24, reader.available());
        region.set(ValueLayout.JAVA_LONG, TAIL, 112);
        assertThrows(RingCorruptException.class, reader::available);
        region.set(ValueLayout.JAVA_LONG, TAIL, 104); // one ring length ahead of the released position
        assertEquals(64, reader.available());
    }

    @Test
    void shouldRefuseHeadPastWhatWasCommitted() throws RingCorruptException {
        RingWriter writer = new RingWriter(region, RING, RING_BYTES, HEAD, TAIL);
        writer.put(target, 0, 40);
        writer.commit();
        region.set(ValueLayout.JAVA_LONG, HEAD, 40);
        assertEquals(RING_BYTES, writer.room());
        writer.put(target, 0, 8);
        writer.commit();
        region.set(ValueLayout.JAVA_LONG, HEAD, 56);
        assertThrows(RingCorruptException.class, writer::room);
        region.set(ValueLayout.JAVA_LONG, HEAD, 48);
        assertEquals(RING_BYTES, writer.room());
    }
}

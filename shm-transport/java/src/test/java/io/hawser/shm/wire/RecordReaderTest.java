package io.hawser.shm.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class RecordReaderTest {
    private final RecordWriter writer = new RecordWriter(0);
    private final RecordReader reader = new RecordReader();

    @Test
    void shouldReadWhatWasWritten() {
        int length = sample();
        reader.wrap(writer.memory(), 0, length);
        assertEquals(7, reader.opcode());
        assertEquals(8, reader.sequence());
        assertEquals(9, reader.thread());
        assertEquals(10, reader.context());
        assertEquals(11, reader.flags());
        assertTrue(decode(), reader.reason());
    }

    @Test
    void shouldRefuseEveryTruncation() {
        int length = sample();
        for (int cut = RecordLayout.HEADER_BYTES; cut < length; cut += 8) {
            writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.LENGTH_OFFSET, cut);
            reader.wrap(writer.memory(), 0, cut);
            assertFalse(decode(), "cut=" + cut);
        }
    }

    @Test
    void shouldRefuseLengthThatHeaderDoesNotState() {
        int length = sample();
        writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.LENGTH_OFFSET, length + 8);
        reader.wrap(writer.memory(), 0, length);
        assertFalse(decode());
        assertEquals("length: stated=" + (length + 8) + ", received=" + length, reader.reason());
    }

    @Test
    void shouldRefuseBytesBeyondFields() {
        writer.begin(1, 1, 0, 0, 0);
        writer.fixed(16);
        reader.wrap(writer.memory(), 0, writer.end());
        reader.begin(8);
        assertFalse(reader.end());
    }

    @Test
    void shouldRefuseBufferBeyondLimit() {
        writer.begin(1, 1, 0, 0, 0);
        writer.fixed(8);
        writer.buffer(0, MemorySegment.ofArray(new byte[9]));
        reader.wrap(writer.memory(), 0, writer.end());
        reader.begin(8);
        assertEquals(0, reader.buffer(0, 8).byteSize());
        assertFalse(reader.end());
    }

    @Test
    void shouldRefuseNullWhereBufferIsDemanded() {
        writer.begin(1, 1, 0, 0, 0);
        writer.fixed(8);
        writer.buffer(0, null);
        reader.wrap(writer.memory(), 0, writer.end());
        reader.begin(8);
        reader.buffer(0, 1 << 20);
        assertFalse(reader.end());
    }

    @Test
    void shouldRefuseTextWithNul() {
        writer.begin(1, 1, 0, 0, 0);
        writer.fixed(8);
        writer.string(0, "a\0b");
        reader.wrap(writer.memory(), 0, writer.end());
        reader.begin(8);
        assertEquals("", reader.string(0, 100));
        assertFalse(reader.end());
    }

    @Test
    void shouldGiveZeroAfterFirstBadByte() {
        int length = sample();
        reader.wrap(writer.memory(), 0, length);
        reader.begin(40);
        assertEquals(0, reader.i64(1 << 20));
        assertEquals(0, reader.i64(8));
        assertEquals(0, reader.slice(0, 8).byteSize());
        assertFalse(reader.end());
    }

    /** A record of 16 payload bytes, 0x10 to 0x1f, in a longer segment that contains no byte 0. */
    private RecordReader amongOthers() {
        MemorySegment segment = MemorySegment.ofArray(new byte[96]).fill((byte) 0x77);
        for (int i = 0; i < 16; i++) {
            segment.set(ValueLayout.JAVA_BYTE, 8 + RecordLayout.HEADER_BYTES + i, (byte) (0x10 + i));
        }
        int length = RecordLayout.HEADER_BYTES + 16;
        segment.set(ValueLayout.JAVA_INT_UNALIGNED, 8 + RecordLayout.LENGTH_OFFSET, length);
        return reader.wrap(segment, 8, length);
    }

    @Test
    void shouldWrapOnlyWhatLiesInsideItsSegment() {
        MemorySegment segment = MemorySegment.ofArray(new byte[64]);
        assertThrows(IndexOutOfBoundsException.class, () -> reader.wrap(segment, -8, 40));
        assertThrows(IndexOutOfBoundsException.class, () -> reader.wrap(segment, 0, RecordLayout.HEADER_BYTES - 8));
        assertThrows(IndexOutOfBoundsException.class, () -> reader.wrap(segment, 0, 72));
        assertThrows(IndexOutOfBoundsException.class, () -> reader.wrap(segment, 32, 40));
        assertThrows(IndexOutOfBoundsException.class, () -> reader.wrap(segment, 8, Long.MAX_VALUE));
        segment.set(ValueLayout.JAVA_INT_UNALIGNED, 32 + RecordLayout.LENGTH_OFFSET, RecordLayout.HEADER_BYTES);
        reader.wrap(segment, 32, RecordLayout.HEADER_BYTES); // the shortest record, at the end
        reader.begin(0);
        assertTrue(reader.end(), reader.reason());
    }

    @Test
    void shouldRefuseLengthThatIsNoMultipleOfEight() {
        MemorySegment segment = MemorySegment.ofArray(new byte[64]);
        segment.set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.LENGTH_OFFSET, 36);
        assertTrue(reader.wrap(segment, 0, 36).isMalformed());
    }

    @Test
    void shouldRefuseRecordLongerThanTheLongest() {
        MemorySegment segment = MemorySegment.ofArray(new byte[RecordLayout.MAX_RECORD_BYTES + 8]);
        segment.set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.LENGTH_OFFSET, RecordLayout.MAX_RECORD_BYTES);
        assertFalse(reader.wrap(segment, 0, RecordLayout.MAX_RECORD_BYTES).isMalformed());
        segment.set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.LENGTH_OFFSET, RecordLayout.MAX_RECORD_BYTES + 8);
        assertTrue(reader.wrap(segment, 0, RecordLayout.MAX_RECORD_BYTES + 8).isMalformed());
    }

    @Test
    void shouldRefuseFixedPartLongerThanThePayload() {
        amongOthers().begin(16);
        assertFalse(reader.isMalformed());
        amongOthers().begin(24);
        assertTrue(reader.isMalformed());
        assertTrue(reader.reason().contains("shorter than its fixed part"), reader.reason());
    }

    @Test
    void shouldReadUpToThePayloadsLastByteAndNoFurther() {
        assertEquals(0x1f, amongOthers().i8(15));
        assertEquals(0x1f1e, amongOthers().i16(14));
        assertEquals(0x1f1e_1d1c, amongOthers().i32(12));
        assertEquals(0x1f1e_1d1c_1b1a_1918L, amongOthers().i64(8));
        assertEquals(16, amongOthers().slice(0, 16).byteSize());
        assertArrayEquals(new byte[] {0x1e, 0x1f}, amongOthers().slice(14, 2).toArray(ValueLayout.JAVA_BYTE));
        assertEquals(0, amongOthers().slice(16, 0).byteSize());
        assertFalse(reader.isMalformed(), "nothing, behind the last byte");
        assertEquals(0, amongOthers().i8(16));
        assertTrue(reader.isMalformed());
        assertEquals(0, amongOthers().i16(15));
        assertTrue(reader.isMalformed());
        assertEquals(0, amongOthers().i32(13));
        assertTrue(reader.isMalformed());
        assertEquals(0, amongOthers().i64(9));
        assertTrue(reader.isMalformed());
        assertEquals(0, amongOthers().slice(8, 9).byteSize());
        assertTrue(reader.isMalformed());
        for (long offset : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE}) {
            assertEquals(0, amongOthers().i8(offset), "offset=" + offset);
            assertTrue(reader.isMalformed(), "offset=" + offset);
        }
        for (long bytes : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE}) {
            assertEquals(0, amongOthers().slice(0, bytes).byteSize(), "bytes=" + bytes);
            assertTrue(reader.isMalformed(), "bytes=" + bytes);
        }
    }

    @Test
    void shouldGiveNothingOfARecordThatIsMalformed() {
        amongOthers().malformed("first");
        reader.malformed("second");
        assertEquals("first", reader.reason());
        assertEquals(0, reader.i8(0));
        assertEquals(0, reader.i16(0));
        assertEquals(0, reader.i32(0));
        assertEquals(0, reader.i64(0));
        assertEquals(0, reader.slice(0, 8).byteSize());
        assertEquals("", reader.stringOrNull(0, 8));
        assertEquals(0, reader.bufferOrNull(0, 8).byteSize());
        assertFalse(reader.end());
        assertEquals("first", reader.reason());
    }

    @Test
    void shouldRefuseBufferThatLeavesTheRecord() {
        writer.begin(1, 1, 0, 0, 0);
        writer.fixed(8);
        writer.buffer(0, MemorySegment.ofArray(new byte[] {1, 2, 3, 4, 5, 6, 7, 8}));
        int length = writer.end();
        long lengthWord = RecordLayout.HEADER_BYTES;
        for (int stated : new int[] {9, 1 << 20, Integer.MAX_VALUE, -2}) {
            writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, lengthWord, stated);
            reader.wrap(writer.memory(), 0, length).begin(8);
            assertEquals(0, reader.buffer(0, 1L << 33).byteSize(), "stated=" + stated);
            assertTrue(reader.reason().contains("must lie inside the record"), reader.reason());
        }
        writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, lengthWord, 8);
        reader.wrap(writer.memory(), 0, length).begin(8);
        assertEquals(8, reader.buffer(0, 8).get(ValueLayout.JAVA_BYTE, 7));
        assertTrue(reader.end(), reader.reason());
    }

    @Test
    void shouldTellNullFromEmptyText() {
        for (String text : new String[] {null, "", "x"}) {
            writer.begin(1, 1, 0, 0, 0);
            writer.fixed(8);
            writer.string(0, text);
            reader.wrap(writer.memory(), 0, writer.end()).begin(8);
            assertEquals(text, reader.stringOrNull(0, 8));
            assertTrue(reader.end(), reader.reason());
        }
    }

    private int sample() {
        writer.begin(7, 8, 9, 10, 11);
        writer.fixed(40);
        writer.i8(0, -1);
        writer.i16(2, -2);
        writer.i32(4, -3);
        writer.i64(8, Long.MIN_VALUE);
        writer.f32(16, 1.5f);
        writer.f64(24, -2.5);
        writer.buffer(20, MemorySegment.ofArray(new byte[] {1, 2, 3}));
        writer.string(32, "näme");
        writer.buffer(36, null);
        return writer.end();
    }

    private boolean decode() {
        reader.begin(40);
        int i8 = reader.u8(0);
        int i16 = reader.u16(2);
        int i32 = reader.i32(4);
        long i64 = reader.i64(8);
        float f32 = reader.f32(16);
        double f64 = reader.f64(24);
        byte[] buffer = reader.buffer(20, 3).toArray(ValueLayout.JAVA_BYTE);
        String text = reader.string(32, 5);
        MemorySegment nothing = reader.bufferOrNull(36, 0);
        if (!reader.end()) {
            return false;
        }
        assertEquals(255, i8);
        assertEquals(65534, i16);
        assertEquals(-3, i32);
        assertEquals(Long.MIN_VALUE, i64);
        assertEquals(1.5f, f32);
        assertEquals(-2.5, f64);
        assertArrayEquals(new byte[] {1, 2, 3}, buffer);
        assertEquals("näme", text);
        assertNull(nothing);
        return true;
    }
}

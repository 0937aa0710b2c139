package io.hawser.shm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
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

package io.hawser.shm.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class RecordWriterTest {
    @Test
    void shouldZeroTheBytesOfAnEarlierRecord() {
        RecordWriter writer = new RecordWriter(0);
        writer.begin(1, 1, 0, 0, 0);
        writer.fixed(8);
        writer.i64(0, -1);
        writer.buffer(0, MemorySegment.ofArray(new byte[] {-1, -1, -1, -1, -1, -1, -1, -1}));
        writer.end();
        writer.begin(1, 2, 0, 0, 0);
        writer.fixed(8);
        writer.buffer(0, MemorySegment.ofArray(new byte[] {5}));
        assertEquals(48, writer.end());
        assertEquals(1, writer.memory().get(ValueLayout.JAVA_LONG_UNALIGNED, 32));
        assertEquals(5, writer.memory().get(ValueLayout.JAVA_LONG_UNALIGNED, 40));
    }

    @Test
    void shouldRefuseRecordBeyondLimit() {
        RecordWriter writer = new RecordWriter(0);
        writer.begin(1, 1, 0, 0, 0);
        writer.fixed(8);
        MemorySegment large = MemorySegment.ofArray(new byte[RecordLayout.MAX_RECORD_BYTES]);
        assertThrows(IllegalArgumentException.class, () -> writer.buffer(0, large));
    }
}

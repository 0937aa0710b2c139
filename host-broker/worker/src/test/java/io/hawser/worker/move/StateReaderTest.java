package io.hawser.worker.move;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** A reader returns the values of a writer, and refuses anything else. */
class StateReaderTest {
    private static final byte[] LONG = new byte[300_000];

    static {
        new Random(4).nextBytes(LONG);
    }

    private static int sealed() throws IOException {
        try (StateWriter out = new StateWriter()) {
            out.i32(-7);
            out.bytes(MemorySegment.ofArray(LONG));
            out.i64(1L << 60);
            out.bytes(MemorySegment.NULL);
            return out.seal();
        }
    }

    @Test
    void shouldReadWhatWasWritten() throws IOException {
        int descriptor = sealed();
        try (StateReader in = StateReader.of(descriptor)) {
            assertEquals(-7, in.i32());
            assertArrayEquals(LONG, in.bytes().toArray(ValueLayout.JAVA_BYTE));
            assertThrows(IOException.class, in::end);
            in.expect(1L << 60, "a number");
            assertEquals(0, in.bytes().byteSize());
            in.end();
            assertThrows(IOException.class, in::i32);
        } finally {
            Descriptors.close(descriptor);
        }
    }

    @Test
    void shouldRefuseLengthsBeyondTheState() throws IOException {
        for (long length : new long[] {-1, 9, Long.MAX_VALUE, Long.MIN_VALUE}) {
            MemorySegment state = MemorySegment.ofArray(new byte[16]);
            state.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, length);
            assertThrows(IOException.class, () -> StateReader.of(state).bytes(), () -> "length=" + length);
        }
    }

    @Test
    void shouldRefuseCountsThatTheStateCannotHold() throws IOException {
        for (int count : new int[] {-1, 3, Integer.MAX_VALUE}) {
            MemorySegment state = MemorySegment.ofArray(new byte[4 + 16]);
            state.set(ValueLayout.JAVA_INT_UNALIGNED, 0, count);
            assertThrows(IOException.class, () -> StateReader.of(state).count(8), () -> "count=" + count);
        }
        MemorySegment state = MemorySegment.ofArray(new byte[4 + 16]);
        state.set(ValueLayout.JAVA_INT_UNALIGNED, 0, 2);
        assertEquals(2, StateReader.of(state).count(8));
    }

    @Test
    void shouldRefuseAnotherNumberThanExpected() {
        assertThrows(IOException.class,
            () -> StateReader.of(MemorySegment.ofArray(new byte[8])).expect(1, "a number"));
    }
}

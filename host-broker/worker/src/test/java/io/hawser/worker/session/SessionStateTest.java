package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SealedMemory;
import io.hawser.worker.fixture.StateBuilder;
import io.hawser.worker.move.StateReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** States of any content end in a state or an IOException. */
class SessionStateTest {
    private static byte[] valid() throws IOException {
        StateBuilder state = new StateBuilder().call(new byte[40], new byte[8]).call(new byte[32]);
        state.windows.add(new long[] {0, 1L << 45, 1L << 30, 1L << 45, 2 << 20});
        state.variables.add(new long[] {1, 2, 3, 16});
        state.events.add(5L);
        state.held.add(new byte[64]);
        state.stripes.add(new byte[][] {{}, {1, 2, 3, 4, 5, 6, 7, 8}, {}, {}});
        int descriptor = state.seal();
        try {
            byte[] bytes = new byte[Math.toIntExact(Descriptors.fileBytes(descriptor))];
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment memory = arena.allocate(bytes.length);
                SealedMemory.read(descriptor, memory);
                MemorySegment.copy(memory, 0, MemorySegment.ofArray(bytes), 0, bytes.length);
            }
            return bytes;
        } finally {
            Descriptors.close(descriptor);
        }
    }

    private static SessionState read(byte[] bytes) throws IOException {
        return SessionState.read(StateReader.of(MemorySegment.ofArray(bytes)));
    }

    @Test
    void shouldReadEachPart() throws IOException {
        SessionState state = read(valid());
        assertEquals(2, state.calls().size());
        assertEquals(8, state.calls().get(0).reply().byteSize());
        assertEquals(1, state.windows().getFirst().slabs().size());
        assertEquals(16, state.variables().getFirst().content().byteSize());
        assertEquals(64, state.held().getFirst().byteSize());
        assertEquals(8, state.stripes().getFirst().chunks().get(1).byteSize());
    }

    @Test
    void shouldRefuseEachPrefix() throws IOException {
        byte[] whole = valid();
        for (int length = 0; length < whole.length; length++) {
            byte[] part = Arrays.copyOf(whole, length);
            assertThrows(IOException.class, () -> read(part), "length=" + length);
        }
        byte[] longer = Arrays.copyOf(whole, whole.length + 1);
        assertThrows(IOException.class, () -> read(longer));
    }

    @Test
    void shouldReadAnyContent() throws IOException {
        byte[] whole = valid();
        Random random = new Random(9);
        int refused = 0;
        for (int i = 0; i < 20_000; i++) {
            byte[] broken = whole.clone();
            for (int change = random.nextInt(6); change >= 0; change--) {
                broken[random.nextInt(broken.length)] = (byte) random.nextInt();
            }
            try {
                read(broken);
            } catch (IOException e) {
                refused++;
            }
        }
        assertTrue(refused > 1000, "refused=" + refused);
    }
}

package io.hawser.worker.control;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import jnr.constants.platform.AddressFamily;
import jnr.constants.platform.Sock;
import jnr.posix.POSIX;
import jnr.posix.POSIXFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class ControlSocketTest {
    private final POSIX posix = POSIXFactory.getNativePOSIX();
    private final int[] pair = new int[2];
    private ControlSocket near;
    private ControlSocket far;

    @BeforeEach
    void open() {
        assertEquals(0, posix.socketpair(AddressFamily.AF_UNIX.intValue(), Sock.SOCK_STREAM.intValue(), 0, pair));
        near = new ControlSocket(pair[0]);
        far = new ControlSocket(pair[1]);
    }

    @AfterEach
    void close() {
        near.close();
        far.close();
    }

    private void raw(int... bytes) {
        byte[] data = new byte[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            data[i] = (byte) bytes[i];
        }
        assertEquals(data.length, posix.write(pair[0], data, data.length));
    }

    @Test
    void shouldKeepFramesApart() throws IOException {
        near.write("one".getBytes(StandardCharsets.UTF_8));
        near.write("two".getBytes(StandardCharsets.UTF_8));
        assertEquals("one", new String(far.read().json(), StandardCharsets.UTF_8));
        ControlSocket.Frame second = far.read();
        assertEquals("two", new String(second.json(), StandardCharsets.UTF_8));
        assertEquals(-1, second.descriptor());
    }

    @Test
    void shouldTakeLargestFrame() throws IOException {
        byte[] largest = new byte[ControlSocket.MAX_FRAME_BYTES];
        largest[largest.length - 1] = 7;
        Thread writer = Thread.ofVirtual().start(() -> {
            try {
                near.write(largest);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        });
        assertArrayEquals(largest, far.read().json());
        assertTrue(!writer.isInterrupted());
    }

    @Test
    void shouldWriteNothingToTheNextFileOfItsNumber() throws IOException {
        int[] next = new int[2];
        near.close();
        assertEquals(0, posix.socketpair(AddressFamily.AF_UNIX.intValue(), Sock.SOCK_STREAM.intValue(), 0, next));
        boolean isReused = next[0] == pair[0];
        if (!isReused) {
            assertEquals(pair[0], posix.dup2(next[0], pair[0]));
        }
        assertThrows(IOException.class, () -> near.write("late".getBytes(StandardCharsets.UTF_8)));
        assertEquals(1, posix.write(next[0], new byte[] {42}, 1));
        byte[] first = new byte[1];
        assertEquals(1, posix.read(next[1], first, 1));
        assertEquals(42, first[0]);
        List.of(next[0], next[1]).forEach(posix::close);
        if (!isReused) {
            posix.close(pair[0]);
        }
    }

    @Test
    void shouldCloseDuringAWriteThatWaits() throws Exception {
        CompletableFuture<IOException> failure = new CompletableFuture<>();
        Thread writer = Thread.ofPlatform().start(() -> {
            try {
                while (true) {
                    near.write(new byte[ControlSocket.MAX_FRAME_BYTES]); // nobody reads, so the buffers fill
                }
            } catch (IOException e) {
                failure.complete(e);
            }
        });
        near.close();
        assertTrue(failure.get() != null);
        writer.join();
    }

    @Test
    void shouldPassDescriptorWithItsFrame() throws IOException {
        int[] passed = new int[2];
        assertEquals(0, posix.socketpair(AddressFamily.AF_UNIX.intValue(), Sock.SOCK_STREAM.intValue(), 0, passed));
        near.write("before".getBytes(StandardCharsets.UTF_8));
        near.write("with".getBytes(StandardCharsets.UTF_8), passed[0]);
        near.write("after".getBytes(StandardCharsets.UTF_8));
        assertEquals(-1, far.read().descriptor());
        int received = far.read().descriptor();
        assertEquals(-1, far.read().descriptor());
        assertTrue(received >= 0 && received != passed[0]);
        assertEquals(1, posix.write(received, new byte[] {42}, 1));
        byte[] back = new byte[1];
        assertEquals(1, posix.read(passed[1], back, 1));
        assertEquals(42, back[0]);
        List.of(received, passed[0], passed[1]).forEach(posix::close);
    }

    @Test
    void shouldEndBetweenFrames() throws IOException {
        near.write("last".getBytes(StandardCharsets.UTF_8));
        near.close();
        far.read();
        assertNull(far.read());
    }

    @Test
    void shouldRefuseImpossibleLengths() {
        raw(0, 0, 0, 0);
        assertThrows(IOException.class, far::read);
    }

    @Test
    void shouldRefuseALengthBeyondTheLargest() {
        raw(1, 0, 1, 0); // 65,537
        near.close();
        assertTrue(assertThrows(IOException.class, far::read).getMessage().contains("control frame must be"));
    }

    @Test
    void shouldRefuseANegativeLength() {
        raw(255, 255, 255, 255);
        near.close();
        assertTrue(assertThrows(IOException.class, far::read).getMessage().contains("control frame must be"));
    }

    @Test
    void shouldRefuseEndInsideFrame() {
        raw(5, 0, 0, 0, 'x');
        near.close();
        assertThrows(IOException.class, far::read);
    }
}

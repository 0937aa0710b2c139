package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class DescriptorSocketTest {
    // Linux socket.h
    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int MAX_DESCRIPTORS = 253; // SCM_MAX_FD

    @Test
    void shouldPassDescriptorsInOrder() throws IOException {
        DescriptorSocket.Pair pair = DescriptorSocket.pair();
        try (DescriptorSocket receiver = pair.receiver();
            DescriptorSocket sender = DescriptorSocket.of(pair.sender())) {
            for (int bytes = 1; bytes <= 3; bytes++) {
                int descriptor = Descriptors.memory("test", bytes);
                sender.send(descriptor);
                Descriptors.close(descriptor);
            }
            for (int bytes = 1; bytes <= 3; bytes++) {
                int descriptor = receiver.receive();
                assertEquals(bytes, Descriptors.fileBytes(descriptor));
                Descriptors.close(descriptor);
            }
        }
    }

    @Test
    void shouldNotWaitForASenderThatSendsNothing() throws IOException {
        DescriptorSocket.Pair pair = DescriptorSocket.pair();
        try (DescriptorSocket receiver = pair.receiver()) {
            assertThrows(IOException.class, receiver::receive);
            Descriptors.close(pair.sender());
            assertThrows(IOException.class, receiver::receive);
        }
    }

    @Test
    void shouldRefuseAPacketWithoutADescriptor() throws IOException {
        DescriptorSocket.Pair pair = DescriptorSocket.pair();
        try (DescriptorSocket receiver = pair.receiver(); Arena arena = Arena.ofConfined()) {
            new SocketMessages(arena.allocate(64)).send(pair.sender(), 0, 64, -1);
            DescriptorSocket sender = DescriptorSocket.of(pair.sender());
            int descriptor = Descriptors.memory("test", 5);
            sender.send(descriptor);
            Descriptors.close(descriptor);
            assertThrows(IOException.class, receiver::receive);
            int received = receiver.receive();
            assertEquals(5, Descriptors.fileBytes(received));
            Descriptors.close(received);
            sender.close();
        }
    }

    private static long openDescriptors() throws IOException {
        try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
            return all.filter(DescriptorSocketTest::isMarked).count();
        }
    }

    private static boolean isMarked(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().contains("hawser-hostile ");
        } catch (IOException e) {
            return false; // closed since the listing
        }
    }

    /** A captured worker sends packets of any length with any number of descriptors. */
    @Test
    void shouldReceiveOneDescriptorFromEachPacketAndKeepNoOther() throws Throwable {
        MethodHandle sendmsg = Libc.find("sendmsg", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.INT);
        Random random = new Random(1);
        DescriptorSocket.Pair pair = DescriptorSocket.pair();
        int descriptor = Descriptors.memory("hawser-hostile", 7);
        try (DescriptorSocket receiver = pair.receiver(); Arena arena = Arena.ofConfined()) {
            for (int i = 0; i < 500; i++) {
                int count = random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(MAX_DESCRIPTORS);
                MemorySegment message = message(arena, random.nextInt(3) * random.nextInt(4096), descriptor, count);
                assertTrue((long) sendmsg.invokeExact(Libc.scratch().state, pair.sender(), message, 0) >= 0);
                if (count == 0) {
                    assertThrows(IOException.class, receiver::receive);
                } else {
                    int received = receiver.receive();
                    assertEquals(7, Descriptors.fileBytes(received));
                    Descriptors.close(received);
                }
                assertEquals(1, openDescriptors());
            }
        } finally {
            Descriptors.close(pair.sender());
            Descriptors.close(descriptor);
        }
    }

    /** A struct msghdr with a descriptor several times. */
    private static MemorySegment message(Arena arena, int bytes, int descriptor, int count) {
        MemorySegment part = arena.allocate(16, 8); // struct iovec
        part.set(ValueLayout.ADDRESS, 0, arena.allocate(Math.max(1, bytes)));
        part.set(ValueLayout.JAVA_LONG, 8, bytes);
        MemorySegment control = arena.allocate(16 + 4 * MAX_DESCRIPTORS, 8); // struct cmsghdr and its data
        control.set(ValueLayout.JAVA_LONG, 0, 16 + 4L * count);
        control.set(ValueLayout.JAVA_INT, 8, SOL_SOCKET);
        control.set(ValueLayout.JAVA_INT, 12, SCM_RIGHTS);
        for (int i = 0; i < count; i++) {
            control.set(ValueLayout.JAVA_INT, 16 + 4L * i, descriptor);
        }
        MemorySegment message = arena.allocate(56, 8);
        message.set(ValueLayout.ADDRESS, 16, part);
        message.set(ValueLayout.JAVA_LONG, 24, 1);
        message.set(ValueLayout.ADDRESS, 32, count == 0 ? MemorySegment.NULL : control);
        message.set(ValueLayout.JAVA_LONG, 40, count == 0 ? 0 : 16 + 4L * count);
        return message;
    }
}

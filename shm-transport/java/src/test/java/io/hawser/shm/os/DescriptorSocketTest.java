package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class DescriptorSocketTest {
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
}

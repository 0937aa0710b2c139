package io.hawser.broker.posix;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.OptionalInt;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SocketOwnerTest {
    private static InetSocketAddress local(Socket socket) {
        return (InetSocketAddress) socket.getLocalSocketAddress();
    }

    @ParameterizedTest
    @ValueSource(strings = {"127.0.0.1", "127.0.0.2", "::1"})
    void shouldNameTheUserOfAConnectedSocketAlone(String address) throws IOException, PosixException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.ofLiteral(address));
            Socket client = new Socket()) {
            client.bind(new InetSocketAddress(InetAddress.ofLiteral(address), 0));
            client.connect(server.getLocalSocketAddress());
            InetSocketAddress here = local(client);
            InetSocketAddress there = (InetSocketAddress) client.getRemoteSocketAddress();
            assertEquals(OptionalInt.of(Posix.userId()), SocketOwner.of(here, there));
            assertEquals(OptionalInt.empty(), SocketOwner.of(new InetSocketAddress(here.getAddress(), 1), there));
            assertEquals(OptionalInt.empty(), SocketOwner.of(there, new InetSocketAddress(there.getAddress(), 1)),
                "a listening socket must have no peer");
            client.close();
            // The kernel reports root as the owner of the closed socket.
            assertEquals(OptionalInt.empty(), SocketOwner.of(here, there));
        }
    }
}

package io.hawser.hypervisor;

import io.hawser.client.ClientException;
import io.hawser.client.Failure;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Sends bytes to a Unix socket and reads the answer, as a hook or an attacker would. */
record UnixHttp(Path socket) {
    /**
     * Sends a hook's body.
     *
     * @throws ClientException with the reason of a refusal.
     */
    void post(String path, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        String answer = raw("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + bytes.length
            + "\r\n\r\n" + body);
        if (!answer.startsWith("HTTP/1.1 200 ")) {
            throw new ClientException(Failure.REFUSED, answer.substring(answer.indexOf("\r\n\r\n") + 4).strip());
        }
    }

    /** Sends text unchanged, and reads until the other end closes. */
    String raw(String text) throws IOException {
        try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            channel.connect(UnixDomainSocketAddress.of(socket));
            ByteBuffer buffer = ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
            while (buffer.hasRemaining()) {
                channel.write(buffer);
            }
            return new String(Channels.newInputStream(channel).readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}

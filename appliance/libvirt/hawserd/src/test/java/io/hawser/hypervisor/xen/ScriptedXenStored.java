package io.hawser.hypervisor.xen;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** A peer that answers the requests of one connection by a script, and records them. */
final class ScriptedXenStored implements AutoCloseable {
    private final ServerSocketChannel server;
    private final Path socket;
    private final CompletableFuture<List<XenStoreMessage>> recorded = new CompletableFuture<>();

    /**
     * Listens.
     *
     * @param answers the bytes for each request, in order; null for no answer. After the last one the peer closes.
     */
    ScriptedXenStored(Path folder, List<Function<XenStoreMessage, byte[]>> answers) throws IOException {
        socket = folder.resolve("xenstored-" + System.nanoTime());
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(socket));
        Thread.ofVirtual().start(() -> serve(answers));
    }

    Path socket() {
        return socket;
    }

    /** The requests, after the conversation's end. */
    List<XenStoreMessage> requests() throws Exception {
        return recorded.get(120, TimeUnit.SECONDS);
    }

    private void serve(List<Function<XenStoreMessage, byte[]>> answers) {
        List<XenStoreMessage> requests = new ArrayList<>();
        try (SocketChannel channel = server.accept()) {
            for (Function<XenStoreMessage, byte[]> answer : answers) {
                ByteBuffer header = ByteBuffer.allocate(XenStoreMessage.HEADER_BYTES);
                if (!fill(channel, header)) {
                    break;
                }
                ByteBuffer payload = ByteBuffer.allocate(XenStoreMessage.payloadBytes(header));
                fill(channel, payload);
                XenStoreMessage request = XenStoreMessage.decode(header, payload.array());
                requests.add(request);
                byte[] bytes = answer.apply(request);
                if (bytes == null) {
                    channel.read(ByteBuffer.allocate(1)); // waits until the client has closed
                    break;
                }
                ByteBuffer out = ByteBuffer.wrap(bytes);
                while (out.hasRemaining()) {
                    channel.write(out);
                }
            }
            recorded.complete(requests);
        } catch (IOException e) {
            recorded.complete(requests); // the client closed early; the test checks its error
        } catch (RuntimeException e) {
            recorded.completeExceptionally(e);
        }
    }

    private static boolean fill(SocketChannel channel, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            if (channel.read(bytes) < 0) {
                return false;
            }
        }
        bytes.flip();
        return true;
    }

    @Override
    public void close() throws IOException {
        server.close();
    }

    /** An answer of the request's own type. */
    static Function<XenStoreMessage, byte[]> answer(String text) {
        return request -> new XenStoreMessage(request.type(), request.request(), request.transaction(),
            text.getBytes(StandardCharsets.UTF_8)).encode().array();
    }

    static Function<XenStoreMessage, byte[]> ok() {
        return answer("OK\0");
    }

    static Function<XenStoreMessage, byte[]> error(String name) {
        return request -> new XenStoreMessage(XenStoreMessage.ERROR, request.request(), request.transaction(),
            (name + "\0").getBytes(StandardCharsets.UTF_8)).encode().array();
    }
}

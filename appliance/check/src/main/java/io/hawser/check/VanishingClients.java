package io.hawser.check;

import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.shm.wire.TokenKeys;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Clients that connect at the same time and disconnect, each at its own stage of the handshake. */
final class VanishingClients {
    private static final byte[] NONCE = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    private static final int TIMEOUT_MS = 60_000;
    private static final int MAX_BYTES = 64 * 1024;

    /** The stage at which a client disconnects. */
    private enum Stage {
        CONNECTED, HALF_HELLO, HELLO, CHALLENGE, NOISE, WRONG_PROOF, PROOF, WELCOME
    }

    private final InetSocketAddress broker;
    private final long descriptionHash;
    private final String keyId;
    private final TokenKeys keys;

    /** @param token in the guests' format. */
    VanishingClients(String endpoint, long descriptionHash, String token) {
        int colon = endpoint.lastIndexOf(':');
        broker = new InetSocketAddress(InetAddress.getLoopbackAddress(),
            Integer.parseInt(endpoint.substring(colon + 1)));
        this.descriptionHash = descriptionHash;
        String[] parts = token.strip().split("\\.", 2);
        keyId = parts[0];
        keys = TokenKeys.ofSecret(parts[1]);
    }

    /**
     * Runs the clients, all at once. A few of them authenticate, and so get a worker each.
     *
     * @return how many clients reached their stage; the broker may reject the others.
     */
    int run(int count, int withWorkers) {
        AtomicInteger done = new AtomicInteger();
        CountDownLatch begin = new CountDownLatch(1);
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < count; i++) {
                Stage stage = i < withWorkers ? i % 2 == 0 ? Stage.PROOF : Stage.WELCOME
                    : Stage.values()[i % Stage.PROOF.ordinal()];
                boolean abrupt = i % 3 == 0;
                threads.submit(() -> {
                    begin.await();
                    try (Socket socket = new Socket()) {
                        if (abrupt) {
                            socket.setSoLinger(true, 0); // sends a reset instead of a FIN
                        }
                        socket.setSoTimeout(TIMEOUT_MS);
                        socket.connect(broker, TIMEOUT_MS);
                        goTo(stage, socket);
                        done.incrementAndGet();
                    }
                    return null;
                });
            }
            begin.countDown();
        }
        return done.get();
    }

    /**
     * A client that connects, and disconnects when it has its worker.
     *
     * @return ns from the connect to the worker's WELCOME.
     * @throws IOException if it gets no worker.
     */
    long start() throws IOException {
        long began = System.nanoTime();
        try (Socket socket = new Socket()) {
            socket.setSoTimeout(TIMEOUT_MS);
            socket.setTcpNoDelay(true);
            socket.connect(broker, TIMEOUT_MS);
            goTo(Stage.PROOF, socket);
            byte[] answer = receive(socket.getInputStream());
            long took = System.nanoTime() - began;
            if (ByteBuffer.wrap(answer).order(ByteOrder.LITTLE_ENDIAN).getInt(Integer.BYTES)
                != RecordLayout.CONTROL_WELCOME) {
                throw new IOException("refused");
            }
            return took;
        }
    }

    private void goTo(Stage stage, Socket socket) throws IOException {
        if (stage == Stage.CONNECTED) {
            return;
        }
        if (stage == Stage.NOISE) {
            socket.getOutputStream().write(NONCE);
            socket.getInputStream().readAllBytes(); // until the broker disconnects it
            return;
        }
        byte[] hello = hello();
        if (stage == Stage.HALF_HELLO) {
            socket.getOutputStream().write(hello, 0, hello.length / 2);
            return;
        }
        socket.getOutputStream().write(hello);
        if (stage == Stage.HELLO) {
            return;
        }
        byte[] challenge = receive(socket.getInputStream());
        if (stage == Stage.CHALLENGE) {
            return;
        }
        byte[] proof = new HandshakeProof(Arrays.copyOfRange(challenge, RecordLayout.HEADER_BYTES,
            RecordLayout.HEADER_BYTES + RecordLayout.NONCE_SERVER_BYTES),
            Arrays.copyOfRange(hello,
                RecordLayout.HEADER_BYTES, hello.length))
            .ofGuest(HandshakeProof.Purpose.SESSION, keys);
        if (stage == Stage.WRONG_PROOF) {
            proof[0] ^= 1;
        }
        socket.getOutputStream().write(proof(proof));
        if (stage != Stage.PROOF) {
            receive(socket.getInputStream()); // REFUSED, or the worker's WELCOME
        }
    }

    private byte[] hello() {
        RecordWriter writer = new RecordWriter(256);
        writer.begin(RecordLayout.CONTROL_HELLO, 1, 0, 0, 0);
        writer.fixed(RecordLayout.HELLO_FIXED_BYTES);
        writer.i32(RecordLayout.HELLO_HANDSHAKE_VERSION_OFFSET, RecordLayout.HANDSHAKE_VERSION);
        writer.i32(RecordLayout.HELLO_PID_OFFSET, 1);
        writer.i64(RecordLayout.HELLO_DESCRIPTION_HASH_OFFSET, descriptionHash);
        writer.struct(RecordLayout.HELLO_CLIENT_NONCE_OFFSET, MemorySegment.ofArray(NONCE), 0, NONCE.length);
        writer.string(RecordLayout.HELLO_KEY_ID_OFFSET, keyId);
        writer.string(RecordLayout.HELLO_PROGRAM_OFFSET, "vanishing");
        writer.string(RecordLayout.HELLO_HOST_OFFSET, "nowhere");
        return Arrays.copyOf(writer.array(), writer.end());
    }

    private static byte[] proof(byte[] bytes) {
        RecordWriter writer = new RecordWriter(128);
        writer.begin(RecordLayout.CONTROL_PROOF, 2, 0, 0, 0);
        writer.fixed(RecordLayout.PROOF_FIXED_BYTES);
        writer.struct(RecordLayout.PROOF_PROOF_OFFSET, MemorySegment.ofArray(bytes), 0, bytes.length);
        return Arrays.copyOf(writer.array(), writer.end());
    }

    private static byte[] receive(InputStream stream) throws IOException {
        DataInputStream in = new DataInputStream(stream);
        byte[] head = new byte[Integer.BYTES];
        in.readFully(head);
        int lengthBytes = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getInt();
        if (lengthBytes < RecordLayout.HEADER_BYTES || lengthBytes > MAX_BYTES) {
            throw new IOException("a record must have a length: lengthBytes=" + lengthBytes);
        }
        byte[] record = Arrays.copyOf(head, lengthBytes);
        in.readFully(record, head.length, lengthBytes - head.length);
        return record;
    }
}

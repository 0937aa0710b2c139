package io.hawser.broker.door;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.OldHandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.shm.wire.TokenKeys;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.Socket;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import javax.net.SocketFactory;

/** The guest's half of the handshake over a plain socket. */
public final class TestGuest implements AutoCloseable {
    public static final byte[] NONCE = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    private static final int READ_TIMEOUT_MS = 180_000; // ends a test that hangs

    private final Socket socket;
    private final DataInputStream in;
    private byte[] hello; // the payload of the last HELLO

    /** A record of the broker or worker. */
    public record Answer(int opcode, long sequence, byte[] payload) {
        public int refusedCode() {
            return words().getInt(0);
        }

        public String refusedMessage() {
            return new String(payload, 8, words().getInt(4), StandardCharsets.UTF_8);
        }

        public ByteBuffer words() {
            return ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
        }
    }

    public TestGuest(Broker.Parts broker) throws IOException {
        this(broker.door().endpoint());
    }

    public TestGuest(String endpoint) throws IOException {
        this(socket(endpoint, SocketFactory.getDefault()));
    }

    /** Connects with a socket of the factory, such as a TLS socket. */
    public static Socket socket(String endpoint, SocketFactory factory) throws IOException {
        URI uri = URI.create("tcp://" + endpoint);
        return factory.createSocket(uri.getHost(), uri.getPort());
    }

    public TestGuest(Socket connected) throws IOException {
        socket = connected;
        socket.setSoTimeout(READ_TIMEOUT_MS);
        socket.setTcpNoDelay(true);
        in = new DataInputStream(socket.getInputStream());
    }

    /** The secret of the token that the broker makes at its first start. */
    public static String secret(Path stateDir) throws IOException {
        return Files.readString(stateDir.resolve("default.token")).strip().split("\\.", 2)[1];
    }

    public static byte[] hello(int version, long hash, String keyId) {
        RecordWriter writer = new RecordWriter(256);
        writer.begin(RecordLayout.CONTROL_HELLO, 1, 0, 0, 0);
        writer.fixed(RecordLayout.HELLO_FIXED_BYTES);
        writer.i32(RecordLayout.HELLO_HANDSHAKE_VERSION_OFFSET, version);
        writer.i32(RecordLayout.HELLO_PID_OFFSET, 4711);
        writer.i64(RecordLayout.HELLO_DESCRIPTION_HASH_OFFSET, hash);
        writer.struct(RecordLayout.HELLO_CLIENT_NONCE_OFFSET, MemorySegment.ofArray(NONCE), 0, NONCE.length);
        writer.string(RecordLayout.HELLO_KEY_ID_OFFSET, keyId);
        writer.string(RecordLayout.HELLO_PROGRAM_OFFSET, "vector\nadd");
        writer.string(RecordLayout.HELLO_HOST_OFFSET, "guest-1");
        return Arrays.copyOf(writer.array(), writer.end());
    }

    /** A PROOF record with the given proof. */
    public static byte[] proof(byte[] bytes) {
        return proof(RecordLayout.CONTROL_PROOF, bytes);
    }

    /** A PROOF or ASK_STATUS record, which have the same fields. */
    public static byte[] proof(int opcode, byte[] bytes) {
        RecordWriter writer = new RecordWriter(64);
        writer.begin(opcode, 2, 0, 0, 0);
        writer.fixed(RecordLayout.PROOF_FIXED_BYTES);
        writer.struct(RecordLayout.PROOF_PROOF_OFFSET, MemorySegment.ofArray(bytes), 0, bytes.length);
        return Arrays.copyOf(writer.array(), writer.end());
    }

    /** An OPEN record with the given proof and offer. */
    public static byte[] open(byte[] bytes, byte[] offer) {
        RecordWriter writer = new RecordWriter(256 + offer.length);
        writer.begin(RecordLayout.CONTROL_OPEN, 2, 0, 0, 0);
        writer.fixed(RecordLayout.OPEN_FIXED_BYTES);
        writer.struct(RecordLayout.OPEN_PROOF_OFFSET, MemorySegment.ofArray(bytes), 0, bytes.length);
        writer.buffer(RecordLayout.OPEN_OFFER_OFFSET, MemorySegment.ofArray(offer));
        return Arrays.copyOf(writer.array(), writer.end());
    }

    /** The OPEN record of a guest whose HELLO has been answered by this challenge. */
    public byte[] open(byte[] challenge, String secret, byte[] offer) {
        return open(proofs(challenge).ofGuest(HandshakeProof.Purpose.SESSION, TokenKeys.ofSecret(secret)), offer);
    }

    /** The JOIN record of a connection whose HELLO has been answered by this challenge. */
    public byte[] join(byte[] challenge, String secret, long sessionId, byte[] nonce) {
        return ofSession(RecordLayout.CONTROL_JOIN, proofs(challenge).ofGuest(HandshakeProof.Purpose.JOIN,
            TokenKeys.ofSecret(secret)), sessionId, nonce);
    }

    /** The RESUME record of a connection whose HELLO has been answered by this challenge. */
    public byte[] resume(byte[] challenge, String secret, long sessionId, byte[] nonce) {
        return ofSession(RecordLayout.CONTROL_RESUME, proofs(challenge).ofGuest(HandshakeProof.Purpose.RESUME,
            TokenKeys.ofSecret(secret)), sessionId, nonce);
    }

    private static byte[] ofSession(int opcode, byte[] proof, long sessionId, byte[] nonce) {
        RecordWriter writer = new RecordWriter(RecordLayout.HEADER_BYTES + RecordLayout.JOIN_FIXED_BYTES);
        writer.begin(opcode, 2, 0, 0, 0);
        writer.fixed(RecordLayout.JOIN_FIXED_BYTES);
        writer.struct(RecordLayout.JOIN_PROOF_OFFSET, MemorySegment.ofArray(proof), 0, proof.length);
        writer.i64(RecordLayout.JOIN_SESSION_ID_OFFSET, sessionId);
        writer.struct(RecordLayout.JOIN_SESSION_NONCE_OFFSET, MemorySegment.ofArray(nonce), 0, nonce.length);
        return Arrays.copyOf(writer.array(), writer.end());
    }

    /** Sends HELLO and PROOF as an honest guest. */
    public void handshake(String keyId, String secret) throws IOException {
        handshake(keyId, secret, TestBroker.DESCRIPTION_HASH);
    }

    /** Sends HELLO with the given hash of the description, and PROOF. */
    public void handshake(String keyId, String secret, long hash) throws IOException {
        send(proof(HandshakeProof.Purpose.SESSION, challenge(keyId, hash), secret));
    }

    /** The PROOF or ASK_STATUS record of an honest guest for a result of {@link #challenge}. */
    public byte[] proof(HandshakeProof.Purpose purpose, byte[] challenge, String secret) {
        return proof(purpose == HandshakeProof.Purpose.STATUS ? RecordLayout.CONTROL_ASK_STATUS
            : RecordLayout.CONTROL_PROOF, proofs(challenge).ofGuest(purpose, TokenKeys.ofSecret(secret)));
    }

    /** The proofs of this connection's handshake. */
    public HandshakeProof proofs(byte[] challenge) {
        return new HandshakeProof(Arrays.copyOf(challenge, RecordLayout.NONCE_SERVER_BYTES), hello);
    }

    /** Sends HELLO and PROOF as a guest package before version 2 of the handshake. */
    public void oldHandshake(String keyId, String secret) throws IOException {
        oldHandshake(HandshakeProof.Purpose.SESSION, keyId, TokenKeys.ofSecret(secret).digest());
    }

    /** Sends HELLO and PROOF or ASK_STATUS as an old guest package that knows only the digest of the secret. */
    public void oldHandshake(HandshakeProof.Purpose purpose, String keyId, byte[] digest) throws IOException {
        send(hello(RecordLayout.OLD_HANDSHAKE_VERSION, TestBroker.DESCRIPTION_HASH, keyId));
        byte[] nonce = expect(RecordLayout.CONTROL_OLD_CHALLENGE);
        if (nonce.length != RecordLayout.NONCE_SERVER_BYTES) {
            throw new IOException("an old guest takes no other length: bytes=" + nonce.length);
        }
        send(proof(purpose == HandshakeProof.Purpose.STATUS ? RecordLayout.CONTROL_ASK_STATUS
            : RecordLayout.CONTROL_PROOF, OldHandshakeProof.of(purpose, digest, nonce, NONCE, keyId)));
    }

    /** Sends HELLO, and returns the payload of CHALLENGE. */
    public byte[] challenge(String keyId) throws IOException {
        return challenge(keyId, TestBroker.DESCRIPTION_HASH);
    }

    public byte[] challenge(String keyId, long hash) throws IOException {
        byte[] record = hello(RecordLayout.HANDSHAKE_VERSION, hash, keyId);
        hello = Arrays.copyOfRange(record, RecordLayout.HEADER_BYTES, record.length);
        send(record);
        return expect(RecordLayout.CONTROL_CHALLENGE);
    }

    private byte[] expect(int opcode) throws IOException {
        Answer answer = receive();
        if (answer.opcode() != opcode) {
            throw new IOException("not the challenge: opcode=" + answer.opcode()
                + (answer.opcode() == RecordLayout.CONTROL_REFUSED ? " " + answer.refusedMessage() : ""));
        }
        return answer.payload();
    }

    public void send(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        socket.getOutputStream().flush();
    }

    public Answer receive() throws IOException {
        ByteBuffer header = ByteBuffer.wrap(bytes(RecordLayout.HEADER_BYTES)).order(ByteOrder.LITTLE_ENDIAN);
        return new Answer(header.getInt(4), header.getLong(8), bytes(header.getInt(0) - RecordLayout.HEADER_BYTES));
    }

    public byte[] bytes(int count) throws IOException {
        byte[] bytes = new byte[count];
        in.readFully(bytes);
        return bytes;
    }

    /** Whether the broker or worker closes the connection without sending more. */
    public boolean closed() throws IOException {
        try {
            bytes(1);
            return false;
        } catch (EOFException e) {
            return true;
        }
    }

    public Socket socket() {
        return socket;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}

package io.hawser.broker.door;

import io.hawser.broker.model.Refusal;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordReader;
import io.hawser.shm.wire.RecordWriter;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Decodes and encodes the records of the handshake (wire.md, "Handshake"). */
final class HandshakeRecords {
    /** Limit of a record; stops a peer without a proof from making the broker hold more. */
    static final int MAX_RECORD_BYTES = 4096;
    /** Limit of a name that the guest chooses; the broker writes it to logs and lists. */
    private static final int MAX_NAME_BYTES = 256;
    /** Limit of a key id; equal to the limit of a token file. */
    private static final int MAX_KEY_ID_BYTES = 64;
    private static final long HELLO_SEQUENCE = 1;
    private static final long PROOF_SEQUENCE = 2;

    private HandshakeRecords() {
    }

    /**
     * The first record of a guest.
     *
     * @param payload of the whole record, which the proofs cover.
     */
    record Hello(int handshakeVersion, long pid, long descriptionHash, byte[] clientNonce, String keyId, String program,
        String host, byte[] payload) {}

    /**
     * The guest's answer to the challenge.
     *
     * @param purpose a session, the status, a further connection of a session, or a session from another broker.
     * @param bytes the proof, 32 bytes.
     * @param join the session of JOIN or RESUME; null for another purpose.
     * @param offer the guest's end of RDMA, RDMA_END_BYTES long; null when it offers none.
     */
    record Proof(HandshakeProof.Purpose purpose, byte[] bytes, Join join, byte[] offer) {}

    /**
     * The session that a further connection joins.
     *
     * @param sessionId of WELCOME.
     * @param sessionNonce the guest's nonce in the session's HELLO, 16 bytes.
     */
    record Join(long sessionId, byte[] sessionNonce) {}

    /** A record that violates the protocol. */
    static final class MalformedException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedException(String message) {
            super(message);
        }
    }

    /** The handshake version of a HELLO. Only this field has the same offset in every version. */
    static int versionOf(byte[] record) throws MalformedException {
        RecordReader reader = open(record, RecordLayout.CONTROL_HELLO, HELLO_SEQUENCE);
        int version = reader.i32(RecordLayout.HELLO_HANDSHAKE_VERSION_OFFSET);
        if (reader.isMalformed()) {
            throw new MalformedException(reader.reason());
        }
        return version;
    }

    static Hello hello(byte[] record) throws MalformedException {
        RecordReader reader = open(record, RecordLayout.CONTROL_HELLO, HELLO_SEQUENCE);
        reader.begin(RecordLayout.HELLO_FIXED_BYTES);
        byte[] nonce = reader.slice(RecordLayout.HELLO_CLIENT_NONCE_OFFSET, RecordLayout.NONCE_CLIENT_BYTES)
            .toArray(ValueLayout.JAVA_BYTE);
        Hello hello = new Hello(reader.i32(RecordLayout.HELLO_HANDSHAKE_VERSION_OFFSET),
            reader.u32(RecordLayout.HELLO_PID_OFFSET), reader.i64(RecordLayout.HELLO_DESCRIPTION_HASH_OFFSET), nonce,
            reader.string(RecordLayout.HELLO_KEY_ID_OFFSET, MAX_KEY_ID_BYTES),
            reader.string(RecordLayout.HELLO_PROGRAM_OFFSET, MAX_NAME_BYTES),
            reader.string(RecordLayout.HELLO_HOST_OFFSET, MAX_NAME_BYTES),
            Arrays.copyOfRange(record, RecordLayout.HEADER_BYTES, record.length));
        close(reader);
        return hello;
    }

    /**
     * The first record of another broker of the pool.
     *
     * @param ticket 32 bytes.
     */
    record Delivery(byte[] ticket, long sessionId) {}

    /** Whether a first record is another broker's. */
    static boolean isDelivery(byte[] record) {
        return new RecordReader().wrap(MemorySegment.ofArray(record), 0, record.length).opcode()
            == RecordLayout.CONTROL_DELIVER;
    }

    static Delivery delivery(byte[] record) throws MalformedException {
        RecordReader reader = open(record, RecordLayout.CONTROL_DELIVER, HELLO_SEQUENCE);
        reader.begin(RecordLayout.DELIVER_FIXED_BYTES);
        Delivery delivery = new Delivery(reader.slice(RecordLayout.DELIVER_TICKET_OFFSET, RecordLayout.TICKET_BYTES)
            .toArray(ValueLayout.JAVA_BYTE), reader.i64(RecordLayout.DELIVER_SESSION_ID_OFFSET));
        close(reader);
        return delivery;
    }

    static byte[] deliver(byte[] ticket, long sessionId) {
        RecordWriter writer = new RecordWriter(RecordLayout.HEADER_BYTES + RecordLayout.DELIVER_FIXED_BYTES);
        writer.begin(RecordLayout.CONTROL_DELIVER, HELLO_SEQUENCE, 0, 0, 0).fixed(RecordLayout.DELIVER_FIXED_BYTES);
        writer.struct(RecordLayout.DELIVER_TICKET_OFFSET, MemorySegment.ofArray(ticket), 0, ticket.length);
        writer.i64(RecordLayout.DELIVER_SESSION_ID_OFFSET, sessionId);
        return bytes(writer);
    }

    static byte[] parked() {
        RecordWriter writer = new RecordWriter(RecordLayout.HEADER_BYTES);
        writer.begin(RecordLayout.CONTROL_PARKED, 0, 0, 0, 0).fixed(RecordLayout.PARKED_FIXED_BYTES);
        return bytes(writer);
    }

    /** Decodes PROOF, OPEN, ASK_STATUS, JOIN or RESUME, which begin with the proof. */
    static Proof proof(byte[] record) throws MalformedException {
        int opcode = new RecordReader().wrap(MemorySegment.ofArray(record), 0, record.length).opcode();
        return switch (opcode) {
            case RecordLayout.CONTROL_ASK_STATUS -> proof(record, opcode, RecordLayout.ASK_STATUS_FIXED_BYTES,
                HandshakeProof.Purpose.STATUS);
            case RecordLayout.CONTROL_JOIN -> proof(record, opcode, RecordLayout.JOIN_FIXED_BYTES,
                HandshakeProof.Purpose.JOIN);
            case RecordLayout.CONTROL_RESUME -> proof(record, opcode, RecordLayout.RESUME_FIXED_BYTES,
                HandshakeProof.Purpose.RESUME);
            case RecordLayout.CONTROL_OPEN -> proof(record, opcode, RecordLayout.OPEN_FIXED_BYTES,
                HandshakeProof.Purpose.SESSION);
            default -> proof(record, RecordLayout.CONTROL_PROOF, RecordLayout.PROOF_FIXED_BYTES,
                HandshakeProof.Purpose.SESSION);
        };
    }

    private static Proof proof(byte[] record, int opcode, int fixedBytes, HandshakeProof.Purpose purpose)
        throws MalformedException {
        RecordReader reader = open(record, opcode, PROOF_SEQUENCE);
        reader.begin(fixedBytes);
        byte[] proof = reader.slice(RecordLayout.PROOF_PROOF_OFFSET, RecordLayout.PROOF_BYTES)
            .toArray(ValueLayout.JAVA_BYTE);
        boolean isOfSession = purpose == HandshakeProof.Purpose.JOIN || purpose == HandshakeProof.Purpose.RESUME;
        Join join = !isOfSession ? null // both have the same fields
            : new Join(reader.i64(RecordLayout.JOIN_SESSION_ID_OFFSET),
                reader.slice(RecordLayout.JOIN_SESSION_NONCE_OFFSET, RecordLayout.NONCE_CLIENT_BYTES)
                    .toArray(ValueLayout.JAVA_BYTE));
        byte[] offer = opcode == RecordLayout.CONTROL_OPEN ? offer(reader) : null;
        close(reader);
        return new Proof(purpose, proof, join, offer);
    }

    private static byte[] offer(RecordReader reader) throws MalformedException {
        byte[] offer = reader.buffer(RecordLayout.OPEN_OFFER_OFFSET, RecordLayout.RDMA_END_BYTES)
            .toArray(ValueLayout.JAVA_BYTE);
        if (!reader.isMalformed() && offer.length != RecordLayout.RDMA_END_BYTES) {
            throw new MalformedException("an end of RDMA must have " + RecordLayout.RDMA_END_BYTES + " bytes: bytes="
                + offer.length);
        }
        return offer;
    }

    static byte[] challenge(byte[] serverNonce, byte[] serverProof) {
        RecordWriter writer = new RecordWriter(RecordLayout.HEADER_BYTES + RecordLayout.CHALLENGE_FIXED_BYTES);
        writer.begin(RecordLayout.CONTROL_CHALLENGE, HELLO_SEQUENCE, 0, 0, 0);
        writer.fixed(RecordLayout.CHALLENGE_FIXED_BYTES);
        writer.struct(RecordLayout.CHALLENGE_SERVER_NONCE_OFFSET, MemorySegment.ofArray(serverNonce), 0,
            serverNonce.length);
        writer.struct(RecordLayout.CHALLENGE_SERVER_PROOF_OFFSET, MemorySegment.ofArray(serverProof), 0,
            serverProof.length);
        return bytes(writer);
    }

    /** Encodes the challenge for guests of version 1. */
    static byte[] oldChallenge(byte[] serverNonce) {
        RecordWriter writer = new RecordWriter(RecordLayout.HEADER_BYTES + RecordLayout.OLD_CHALLENGE_FIXED_BYTES);
        writer.begin(RecordLayout.CONTROL_OLD_CHALLENGE, HELLO_SEQUENCE, 0, 0, 0);
        writer.fixed(RecordLayout.OLD_CHALLENGE_FIXED_BYTES);
        writer.struct(RecordLayout.OLD_CHALLENGE_SERVER_NONCE_OFFSET, MemorySegment.ofArray(serverNonce), 0,
            serverNonce.length);
        return bytes(writer);
    }

    static byte[] refused(Refusal refusal, String message) {
        RecordWriter writer = new RecordWriter(256);
        writer.begin(RecordLayout.CONTROL_REFUSED, 0, 0, 0, 0);
        writer.fixed(RecordLayout.REFUSED_FIXED_BYTES);
        writer.i32(RecordLayout.REFUSED_CODE_OFFSET, refusal.code());
        writer.string(RecordLayout.REFUSED_MESSAGE_OFFSET, message);
        return bytes(writer);
    }

    static byte[] status(String text) {
        byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        RecordWriter writer = new RecordWriter(RecordLayout.HEADER_BYTES + RecordLayout.STATUS_FIXED_BYTES
            + utf8.length + RecordLayout.ALIGNMENT_BYTES);
        writer.begin(RecordLayout.CONTROL_STATUS, PROOF_SEQUENCE, 0, 0, 0);
        writer.fixed(RecordLayout.STATUS_FIXED_BYTES);
        writer.buffer(RecordLayout.STATUS_TEXT_OFFSET, MemorySegment.ofArray(utf8), 0, utf8.length);
        return bytes(writer);
    }

    private static byte[] bytes(RecordWriter writer) {
        return Arrays.copyOf(writer.array(), writer.end());
    }

    private static RecordReader open(byte[] record, int opcode, long sequence) throws MalformedException {
        RecordReader reader = new RecordReader().wrap(MemorySegment.ofArray(record), 0, record.length);
        if (reader.opcode() != opcode || reader.sequence() != sequence) {
            throw new MalformedException("the handshake must be HELLO, then PROOF: opcode="
                + Integer.toUnsignedString(reader.opcode()) + " sequence=" + Long.toUnsignedString(reader.sequence()));
        }
        if (reader.flags() != 0 || reader.thread() != 0 || reader.context() != 0) {
            throw new MalformedException("a record of the handshake must have no thread, context or flags");
        }
        return reader;
    }

    private static void close(RecordReader reader) throws MalformedException {
        if (!reader.end()) {
            throw new MalformedException(reader.reason());
        }
    }
}

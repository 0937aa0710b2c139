package io.hawser.shm.wire;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

/**
 * Proofs that a guest has a token's secret, and that a broker has its verifier (wire.md, "Handshake"). Each proof
 * covers the broker's nonce and the whole HELLO: versions, the guest's nonce, the key id and the names. A recorded
 * proof is therefore useless on another connection, and an attacker in the middle cannot change HELLO. Any thread.
 */
public final class HandshakeProof {
    private static final byte[] BROKER = "hawser-server-2".getBytes(StandardCharsets.US_ASCII);

    private final byte[] serverNonce;
    private final byte[] hello;

    /**
     * The purpose of a guest's proof. Each purpose has its own word, so that a proof for one is invalid for another.
     */
    public enum Purpose {
        /** A session: PROOF. */
        SESSION("hawser-proof-2"),
        /** The status of the vGPU: ASK_STATUS. */
        STATUS("hawser-status-2"),
        /** A further connection of a session: JOIN. */
        JOIN("hawser-join-2"),
        /** A running session that comes from another broker: RESUME. */
        RESUME("hawser-resume-2");

        private final byte[] domain;

        Purpose(String domain) {
            this.domain = domain.getBytes(StandardCharsets.US_ASCII);
        }
    }

    /**
     * Creates the proofs of one handshake.
     *
     * @param serverNonce nonce of CHALLENGE, 32 bytes.
     * @param hello payload of HELLO, unchanged.
     */
    public HandshakeProof(byte[] serverNonce, byte[] hello) {
        if (serverNonce.length != RecordLayout.NONCE_SERVER_BYTES || hello.length < RecordLayout.HELLO_FIXED_BYTES) {
            throw new IllegalArgumentException("nonce and HELLO must have their full length: serverNonceBytes="
                + serverNonce.length + " helloBytes=" + hello.length);
        }
        this.serverNonce = serverNonce.clone();
        this.hello = hello.clone();
    }

    /** The guest's proof, 32 bytes: its client key, hidden by an HMAC under the stored key. */
    public byte[] ofGuest(Purpose purpose, TokenKeys keys) {
        return xor(keys.clientKey(), mask(purpose, keys.verifier().storedKey()));
    }

    /** The broker's proof, 32 bytes. */
    public byte[] ofBroker(TokenKeys.Verifier verifier) {
        return TokenKeys.hmac(verifier.serverKey(), BROKER, serverNonce, hello);
    }

    /** Whether a proof of 32 bytes comes from a guest with the secret; takes the same time for every wrong proof. */
    public boolean isOfGuest(Purpose purpose, TokenKeys.Verifier verifier, byte[] proof) {
        byte[] clientKey = xor(proof, mask(purpose, verifier.storedKey()));
        return MessageDigest.isEqual(verifier.storedKey(), TokenKeys.sha256(clientKey));
    }

    /** Whether a proof comes from a broker with the token's verifier. */
    public boolean isOfBroker(TokenKeys keys, byte[] proof) {
        return MessageDigest.isEqual(ofBroker(keys.verifier()), proof);
    }

    private byte[] mask(Purpose purpose, byte[] storedKey) {
        return TokenKeys.hmac(storedKey, purpose.domain, serverNonce, hello);
    }

    private static byte[] xor(byte[] one, byte[] other) {
        if (one.length != other.length) {
            throw new IllegalArgumentException("a proof must be " + other.length + " bytes: bytes=" + one.length);
        }
        byte[] result = new byte[one.length];
        for (int i = 0; i < result.length; i++) {
            result[i] = (byte) (one[i] ^ other[i]);
        }
        return result;
    }
}

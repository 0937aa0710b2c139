package io.hawser.shm;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The proof that a guest knows a token's secret: HMAC-SHA256 over both sides' nonces, so that a recorded proof is
 * worth nothing. Any thread.
 */
public final class HandshakeProof {
    /** What a proof is for; a word of its own each, so that one cannot be used as the other. */
    public enum Purpose {
        /** A session: PROOF. */
        SESSION("hawser-proof-1"),
        /** The status of the vGPU: ASK_STATUS. */
        STATUS("hawser-status-1");

        private final byte[] domain;

        Purpose(String domain) {
            this.domain = domain.getBytes(StandardCharsets.US_ASCII);
        }
    }

    private HandshakeProof() {
    }

    /** SHA-256 of a token's secret: what the broker stores, and the key of the HMAC. */
    public static byte[] key(String secret) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(secret.getBytes(StandardCharsets.UTF_8));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /** The proof for a session; see below. */
    public static byte[] of(byte[] key, byte[] serverNonce, byte[] clientNonce, String keyId) {
        return of(Purpose.SESSION, key, serverNonce, clientNonce, keyId);
    }

    /**
     * Computes the proof.
     *
     * @param purpose what it proves the secret for.
     * @param key what {@link #key} gives, 32 bytes.
     * @param serverNonce of CHALLENGE, 32 bytes.
     * @param clientNonce of HELLO, 16 bytes.
     * @param keyId of HELLO.
     * @return 32 bytes.
     */
    public static byte[] of(Purpose purpose, byte[] key, byte[] serverNonce, byte[] clientNonce, String keyId) {
        if (serverNonce.length != RecordLayout.NONCE_SERVER_BYTES
                || clientNonce.length != RecordLayout.NONCE_CLIENT_BYTES) {
            throw new IllegalArgumentException("nonces must have their full length: serverNonceBytes="
                    + serverNonce.length + ", clientNonceBytes=" + clientNonce.length);
        }
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            mac.update(purpose.domain);
            mac.update(serverNonce);
            mac.update(clientNonce);
            mac.update(keyId.getBytes(StandardCharsets.UTF_8));
            return mac.doFinal();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java platform has HmacSHA256", e);
        }
    }

    /** Compares two proofs in a time that does not tell where they differ. */
    public static boolean matches(byte[] expected, byte[] given) {
        return MessageDigest.isEqual(expected, given);
    }
}

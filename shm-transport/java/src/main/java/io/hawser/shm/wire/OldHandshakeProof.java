package io.hawser.shm.wire;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

/**
 * The proof of guest packages with handshake version 1: an HMAC whose key is the digest of the token's secret. To check
 * it, a broker must keep that digest, which opens the vGPU as well as the token does. Guests of the current version
 * never send this proof. Any thread.
 */
public final class OldHandshakeProof {
    private static final byte[] SESSION = "hawser-proof-1".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] STATUS = "hawser-status-1".getBytes(StandardCharsets.US_ASCII);

    private OldHandshakeProof() {
    }

    /**
     * Computes the proof.
     *
     * @param digest the result of {@link TokenKeys#digest}, 32 bytes.
     * @param serverNonce nonce of OLD_CHALLENGE, 32 bytes.
     * @param clientNonce nonce of HELLO, 16 bytes.
     * @param keyId key id of HELLO.
     * @return 32 bytes.
     */
    public static byte[] of(HandshakeProof.Purpose purpose, byte[] digest, byte[] serverNonce, byte[] clientNonce,
        String keyId) {
        if (serverNonce.length != RecordLayout.NONCE_SERVER_BYTES
            || clientNonce.length != RecordLayout.NONCE_CLIENT_BYTES) {
            throw new IllegalArgumentException("nonces must have their full length: serverNonceBytes="
                + serverNonce.length + ", clientNonceBytes=" + clientNonce.length);
        }
        return TokenKeys.hmac(digest, purpose == HandshakeProof.Purpose.STATUS ? STATUS : SESSION, serverNonce,
            clientNonce, keyId.getBytes(StandardCharsets.UTF_8));
    }

    /** Compares two proofs in a time that does not reveal where they differ. */
    public static boolean matches(byte[] expected, byte[] given) {
        return MessageDigest.isEqual(expected, given);
    }
}

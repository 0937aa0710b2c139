package io.hawser.shm.wire;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The keys derived from a token's secret, as in SCRAM (RFC 5802, section 3). The guest needs the client key. The broker
 * keeps the {@link Verifier}, from which nobody can derive the client key. One HMAC suffices for each key: a secret has
 * 256 random bits, so neither a salt nor a slow hash would make it harder to guess. Any thread.
 */
public final class TokenKeys {
    /** Length of each key. */
    public static final int KEY_BYTES = 32;

    private static final byte[] CLIENT = "hawser-client-key-2".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] SERVER = "hawser-server-key-2".getBytes(StandardCharsets.US_ASCII);

    private final byte[] digest;

    /**
     * The part of a token that the broker keeps.
     *
     * @param storedKey SHA-256 of the client key, 32 bytes: checks a guest's proof but cannot make one.
     * @param serverKey key of the broker's proof, 32 bytes.
     */
    public record Verifier(byte[] storedKey, byte[] serverKey) {
        /** Checks the lengths. */
        public Verifier {
            if (storedKey.length != KEY_BYTES || serverKey.length != KEY_BYTES) {
                throw new IllegalArgumentException("keys must be " + KEY_BYTES + " bytes: storedKeyBytes="
                    + storedKey.length + " serverKeyBytes=" + serverKey.length);
            }
        }

        @Override
        public String toString() {
            return "Verifier";
        }
    }

    private TokenKeys(byte[] digest) {
        this.digest = digest;
    }

    /** The keys of a secret, which is the part of a token after its dot. */
    public static TokenKeys ofSecret(String secret) {
        return new TokenKeys(sha256(secret.getBytes(StandardCharsets.UTF_8)));
    }

    /**
     * The keys of a secret of which only the digest is known.
     *
     * @param digest SHA-256 of the secret, 32 bytes; older brokers stored it in place of a verifier.
     */
    public static TokenKeys ofDigest(byte[] digest) {
        if (digest.length != KEY_BYTES) {
            throw new IllegalArgumentException("a digest must be " + KEY_BYTES + " bytes: bytes=" + digest.length);
        }
        return new TokenKeys(digest.clone());
    }

    /** SHA-256 of the secret, 32 bytes: the key of old proofs; all other keys derive from it. */
    public byte[] digest() {
        return digest.clone();
    }

    /** The key whose possession a guest proves, 32 bytes. */
    public byte[] clientKey() {
        return hmac(digest, CLIENT);
    }

    /** The part that the broker keeps. */
    public Verifier verifier() {
        return new Verifier(sha256(clientKey()), hmac(digest, SERVER));
    }

    static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    static byte[] hmac(byte[] key, byte[]... pieces) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            for (byte[] piece : pieces) {
                mac.update(piece);
            }
            return mac.doFinal();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java platform has HmacSHA256", e);
        }
    }

    @Override
    public String toString() {
        return "TokenKeys";
    }
}

package io.hawser.broker.token;

import io.hawser.shm.TokenKeys;
import java.time.Duration;
import java.time.Instant;

/**
 * A token as it is kept: without its secret.
 *
 * @param keyId its public part, {@code [A-Za-z0-9_-]{1,64}}.
 * @param vgpu the share that it opens.
 * @param keys what it is known by.
 * @param note what for, as its maker says.
 * @param expires nobody is let in from then on; null for never.
 * @param lastUsed null for never; as the database has it, or later.
 */
public record Token(String keyId, String vgpu, Keys keys, String note, Instant created, Instant expires,
    Instant lastUsed) {
    /** An old guest package that was not seen for so long is taken for updated once a new one has come. */
    static final Duration OLD_PROOF_QUIET = Duration.ofDays(7);

    /**
     * What a token is known by.
     *
     * @param verifier checks proofs and makes none of a guest.
     * @param digest SHA-256 of the secret, for the proofs of old guest packages; it opens the vGPU. null for none.
     * @param oldProofUsed when an old guest package last used the token; null for never.
     */
    public record Keys(TokenKeys.Verifier verifier, byte[] digest, Instant oldProofUsed) {
        /** The keys of a new token, which takes no old proof. */
        public static Keys of(TokenKeys keys) {
            return new Keys(keys.verifier(), null, null);
        }

        @Override
        public String toString() {
            return "Keys";
        }
    }

    /** Whether it lets nobody in any more. */
    public boolean expired(Instant now) {
        return expires != null && !now.isBefore(expires);
    }

    /** Whether an old guest package can use it, because its digest is kept. */
    public boolean acceptsOldProof() {
        return keys.digest != null;
    }

    /** The same, used at another time by a guest package of now. Drops a digest that no old package needs. */
    public Token used(Instant time) {
        boolean needed = keys.digest != null && keys.oldProofUsed != null
            && time.isBefore(keys.oldProofUsed.plus(OLD_PROOF_QUIET));
        return with(needed ? keys : new Keys(keys.verifier, null, keys.oldProofUsed), time);
    }

    /** The same, used at another time by an old guest package. */
    Token usedByOldProof(Instant time) {
        return with(new Keys(keys.verifier, keys.digest, time), time);
    }

    private Token with(Keys now, Instant time) {
        return new Token(keyId, vgpu, now, note, created, expires, time);
    }

    @Override
    public String toString() {
        return "Token[" + keyId + " for " + vgpu + "]";
    }
}

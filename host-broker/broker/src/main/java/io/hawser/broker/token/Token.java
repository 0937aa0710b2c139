package io.hawser.broker.token;

import io.hawser.shm.wire.TokenKeys;
import java.time.Duration;
import java.time.Instant;

/**
 * A token as the broker stores it: without its secret.
 *
 * @param keyId the public part, {@code [A-Za-z0-9_-]{1,64}}.
 * @param vgpu name of the vGPU that the token opens.
 * @param keys for the check of proofs.
 * @param note purpose of the token, as its creator gave it.
 * @param expires time from which the broker rejects the token; null for never.
 * @param lastUsed time of the last use; null for never. It may be later than the database's value.
 */
public record Token(String keyId, String vgpu, Keys keys, String note, Instant created, Instant expires,
    Instant lastUsed) {
    /**
     * How long an old guest package must be silent, before the first use by a new package counts as the guest's update.
     */
    static final Duration OLD_PROOF_QUIET = Duration.ofDays(7);

    /**
     * The keys of a token.
     *
     * @param verifier checks proofs; cannot produce a guest's proof.
     * @param digest SHA-256 of the secret, for the proofs of old guest packages; it opens the vGPU. null for none.
     * @param oldProofUsed when an old guest package last used the token; null for never.
     */
    public record Keys(TokenKeys.Verifier verifier, byte[] digest, Instant oldProofUsed) {
        /** The keys of a new token, which accepts no old proof. */
        public static Keys of(TokenKeys keys) {
            return new Keys(keys.verifier(), null, null);
        }

        @Override
        public String toString() {
            return "Keys";
        }
    }

    /** Whether the token has expired. */
    public boolean isExpired(Instant now) {
        return expires != null && !now.isBefore(expires);
    }

    /** Whether an old guest package can use the token, because the broker still stores the digest. */
    public boolean acceptsOldProof() {
        return keys.digest != null;
    }

    /** The same token after a use by a current guest package. Drops the digest when no old package needs it. */
    public Token afterUse(Instant time) {
        boolean needed = keys.digest != null && keys.oldProofUsed != null
            && time.isBefore(keys.oldProofUsed.plus(OLD_PROOF_QUIET));
        return with(needed ? keys : new Keys(keys.verifier, null, keys.oldProofUsed), time);
    }

    /** The same token after a use by an old guest package. */
    Token afterOldProof(Instant time) {
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

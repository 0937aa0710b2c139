package io.hawser.broker.token;

import java.time.Instant;

/**
 * A token as it is kept: without its secret.
 *
 * @param keyId its public part, {@code [A-Za-z0-9_-]{1,64}}.
 * @param vgpu the share that it opens.
 * @param key SHA-256 of its secret, 32 bytes.
 * @param note what for, as its maker says.
 * @param expires nobody is let in from then on; null for never.
 * @param lastUsed null for never; as the database has it, or later.
 */
public record Token(String keyId, String vgpu, byte[] key, String note, Instant created, Instant expires,
    Instant lastUsed) {

    /** Whether it lets nobody in any more. */
    public boolean expired(Instant now) {
        return expires != null && !now.isBefore(expires);
    }

    /** The same, used at another time. */
    public Token used(Instant time) {
        return new Token(keyId, vgpu, key, note, created, expires, time);
    }

    @Override
    public String toString() {
        return "Token[" + keyId + " for " + vgpu + "]";
    }
}

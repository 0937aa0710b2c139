package io.hawser.broker.access;

import io.hawser.broker.token.Secrets;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Passwords that were right within the last minute. A client that sends its password with each request then needs no
 * comparison each time. Each entry is a digest with a key of this process, and counts only for the peer that sent the
 * password: guesses of other peers are compared and counted. Thread-safe.
 */
final class RecentPasswords {
    private static final int MAX_ENTRIES = 256;
    private static final long LIFE_NS = TimeUnit.SECONDS.toNanos(60);

    private final byte[] key = Secrets.random(32);
    private final LongSupplier nowNs;
    private final Map<String, Long> entries = new LinkedHashMap<>();

    RecentPasswords(LongSupplier nowNs) {
        this.nowNs = nowNs;
    }

    /** Whether the password with this {@link #digest} was right. */
    synchronized boolean has(String digest) {
        Long since = entries.get(digest);
        return since != null && nowNs.getAsLong() - since < LIFE_NS;
    }

    synchronized void add(String digest) {
        entries.remove(digest);
        entries.put(digest, nowNs.getAsLong());
        if (entries.size() > MAX_ENTRIES) {
            entries.remove(entries.keySet().iterator().next());
        }
    }

    /**
     * The digest of a password that a peer has sent.
     *
     * @param hash the user's stored hash; empty for an unknown user.
     */
    String digest(String peer, String name, String hash, char[] password) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(key);
            digest.update((peer + "\n" + name + "\n" + hash + "\n").getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest.digest(new String(password).getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}

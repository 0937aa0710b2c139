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
 * Passwords that were right a moment ago, so that a client which sends one with each request does not cost a comparison
 * each time. They are kept as digests with a key of this process, for a minute. Thread-safe.
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

    /** Whether it was right for this user with this hash. */
    synchronized boolean has(UsersFile.User user, char[] password) {
        Long since = entries.get(digest(user, password));
        return since != null && nowNs.getAsLong() - since < LIFE_NS;
    }

    synchronized void add(UsersFile.User user, char[] password) {
        String digest = digest(user, password);
        entries.remove(digest);
        entries.put(digest, nowNs.getAsLong());
        if (entries.size() > MAX_ENTRIES) {
            entries.remove(entries.keySet().iterator().next());
        }
    }

    private String digest(UsersFile.User user, char[] password) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(key);
            digest.update((user.name() + ":" + user.hash() + ":").getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest.digest(new String(password).getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}

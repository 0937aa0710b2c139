package io.hawser.broker.access;

import io.hawser.broker.token.Secrets;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Logins of the page, by cookie. Memory holds only digests of the cookies, so logins end with the broker. Thread-safe.
 */
public final class Logins {
    /** Logins at a time; stops a user from filling the memory. The oldest login is removed first. */
    private static final int MAX_LOGINS = 1000;
    private static final int COOKIE_BYTES = 32;

    private final long idleNs;
    private final long lifeNs;
    private final LongSupplier nowNs;
    private final Map<String, Login> logins = new LinkedHashMap<>();

    /**
     * One login.
     *
     * @param hash of the password at the login; empty for the admin token. The login ends when the user's hash changes.
     */
    public record Login(String name, Role role, String hash, long madeNs, long usedNs) {
        @Override
        public String toString() {
            return "Login[" + name + "]";
        }
    }

    /**
     * Starts without logins.
     *
     * @param idle a login ends after this time without use.
     * @param life a login ends after this time in any case.
     */
    public Logins(Duration idle, Duration life, LongSupplier nowNs) {
        idleNs = idle.toNanos();
        lifeNs = life.toNanos();
        this.nowNs = nowNs;
    }

    /** Creates a login and returns its cookie, which is not stored. */
    public synchronized String make(String name, Role role, String hash) {
        String cookie = Base64.getUrlEncoder().withoutPadding().encodeToString(Secrets.random(COOKIE_BYTES));
        long now = nowNs.getAsLong();
        logins.put(digest(cookie), new Login(name, role, hash, now, now));
        if (logins.size() > MAX_LOGINS) {
            logins.remove(logins.keySet().iterator().next());
        }
        return cookie;
    }

    /** Finds the login of a cookie and counts as its use; empty when the cookie is unknown or its login has ended. */
    public synchronized Optional<Login> use(String cookie) {
        String digest = digest(cookie);
        Login login = logins.get(digest);
        long now = nowNs.getAsLong();
        if (login == null || now - login.usedNs() > idleNs || now - login.madeNs() > lifeNs) {
            logins.remove(digest);
            return Optional.empty();
        }
        // Same key: the order by age stays.
        logins.put(digest, new Login(login.name(), login.role(), login.hash(), login.madeNs(), now));
        return Optional.of(login);
    }

    /** Ends the login of a cookie; returns whether there was one. */
    public synchronized boolean end(String cookie) {
        return logins.remove(digest(cookie)) != null;
    }

    /** Number of stored logins; some may have expired. */
    public synchronized int size() {
        return logins.size();
    }

    private static String digest(String cookie) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256")
                .digest(cookie.getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}

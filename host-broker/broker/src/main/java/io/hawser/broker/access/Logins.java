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
 * Logins of the page: what a cookie stands for. Only digests of the cookies are kept, in memory, so that a login ends
 * with the broker. Thread-safe.
 */
public final class Logins {
    /** Logins at a time; stops someone with a password from filling the memory. Who came longest ago goes. */
    private static final int MAX_LOGINS = 1000;
    private static final int COOKIE_BYTES = 32;

    private final long idleNs;
    private final long lifeNs;
    private final LongSupplier nowNs;
    private final Map<String, Login> logins = new LinkedHashMap<>();

    /**
     * What a cookie stands for.
     *
     * @param hash of the password that it was made with; empty for the admin token. The login is over when the user's
     *     is another.
     */
    public record Login(String name, Role role, String hash, long madeNs, long usedNs) {
        @Override
        public String toString() {
            return "Login[" + name + "]";
        }
    }

    /**
     * Makes it without logins.
     *
     * @param idle after which an unused login is over.
     * @param life after which each is.
     */
    public Logins(Duration idle, Duration life, LongSupplier nowNs) {
        idleNs = idle.toNanos();
        lifeNs = life.toNanos();
        this.nowNs = nowNs;
    }

    /** Makes a login and returns its cookie, which is told once. */
    public synchronized String make(String name, Role role, String hash) {
        String cookie = Base64.getUrlEncoder().withoutPadding().encodeToString(Secrets.random(COOKIE_BYTES));
        long now = nowNs.getAsLong();
        logins.put(digest(cookie), new Login(name, role, hash, now, now));
        if (logins.size() > MAX_LOGINS) {
            logins.remove(logins.keySet().iterator().next());
        }
        return cookie;
    }

    /** What a cookie stands for, which counts as use; empty when it is none or its login is over. */
    public synchronized Optional<Login> use(String cookie) {
        String digest = digest(cookie);
        Login login = logins.get(digest);
        long now = nowNs.getAsLong();
        if (login == null || now - login.usedNs() > idleNs || now - login.madeNs() > lifeNs) {
            logins.remove(digest);
            return Optional.empty();
        }
        // Same key: its place in the order, by age, stays.
        logins.put(digest, new Login(login.name(), login.role(), login.hash(), login.madeNs(), now));
        return Optional.of(login);
    }

    /** Ends the login of a cookie; whether there was one. */
    public synchronized boolean end(String cookie) {
        return logins.remove(digest(cookie)) != null;
    }

    /** Logins that are not known to be over. */
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

package io.hawser.broker.access;

import io.hawser.broker.token.AdminToken;
import io.hawser.broker.token.Secrets;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Identifies the sender of a request by the admin token, a name and a password, a login, or a token of a trusted
 * issuer. A few threads with a short queue compare passwords, so that attempts cannot occupy all processors.
 * Thread-safe; no method waits.
 */
public final class Access implements AutoCloseable {
    private static final String BEARER = "Bearer ";
    private static final String BASIC = "Basic ";
    /** A name, a colon and a password in base 64, with room to spare. */
    private static final int MAX_BASIC_CHARACTERS = 512;
    /** Larger than tokens of common issuers; limits the time to parse a header. */
    private static final int MAX_BEARER_CHARACTERS = 16 * 1024;
    private static final int MAX_COOKIE_CHARACTERS = 128;
    private static final int PASSWORD_THREADS = 2;
    private static final int PASSWORD_QUEUE = 32;
    private static final Duration ATTEMPT_WINDOW = Duration.ofMinutes(1);
    private static final String WHO = "an identity is needed: a bearer token (Authorization: Bearer <content of "
        + "admin.token in the state folder>), a user's name and password, or a login";

    private final AdminToken adminToken;
    private final UsersFile users;
    private final Logins logins;
    private final AttemptLimits attempts;
    private final TokenIssuer issuer;
    private final boolean loopbackRead;
    private final RecentPasswords recent;
    /** Comparisons that wait or run. The same password sent twice at once counts as one guess. */
    private final Map<String, CompletableFuture<Answer>> comparing = new ConcurrentHashMap<>();
    private final ThreadPoolExecutor passwords = new ThreadPoolExecutor(PASSWORD_THREADS, PASSWORD_THREADS, 10,
        TimeUnit.SECONDS, new ArrayBlockingQueue<>(PASSWORD_QUEUE),
        task -> Thread.ofPlatform().name("hawser-passwords").daemon().unstarted(task));
    /** The hash for names that do not exist. Password threads only. */
    private volatile String dummyHash;

    /**
     * Limits and times.
     *
     * @param maxFailures failures of a peer in a minute; four times as many for a name.
     * @param loginIdle a login ends after this time without use.
     * @param loginLife a login ends after this time in any case.
     * @param loopbackRead whether reading over the loopback interface needs no identity.
     */
    public record Limits(int maxFailures, Duration loginIdle, Duration loginLife, boolean loopbackRead) {}

    /** Connects the parts; the clock counts nanoseconds. */
    public Access(AdminToken adminToken, UsersFile users, TokenIssuer issuer, Limits limits, LongSupplier nowNs) {
        this.adminToken = adminToken;
        this.users = users;
        this.issuer = issuer;
        loopbackRead = limits.loopbackRead();
        logins = new Logins(limits.loginIdle(), limits.loginLife(), nowNs);
        attempts = new AttemptLimits(limits.maxFailures(), ATTEMPT_WINDOW, nowNs);
        recent = new RecentPasswords(nowNs);
        passwords.allowCoreThreadTimeOut(true);
    }

    /** Identifies the sender of a request. The stage does not fail. */
    public CompletionStage<Answer> identify(Credentials given) {
        String authorization = given.authorization();
        if (authorization != null && hasScheme(authorization, BEARER)) {
            return bearer(authorization);
        }
        if (authorization != null && hasScheme(authorization, BASIC)) {
            return basic(authorization.substring(BASIC.length()).strip(), given.peer());
        }
        if (authorization != null) {
            return refused(401, WHO);
        }
        if (given.cookie() != null && given.cookie().length() <= MAX_COOKIE_CHARACTERS) {
            Optional<Answer> login = byCookie(given);
            if (login.isPresent()) {
                return CompletableFuture.completedFuture(login.get());
            }
        }
        if (loopbackRead && given.isRead() && given.local()) {
            return CompletableFuture.completedFuture(new Answer.Known(Identity.LOOPBACK, () -> true));
        }
        return refused(401, WHO);
    }

    private CompletionStage<Answer> bearer(String authorization) {
        if (adminToken.matches(authorization)) {
            return CompletableFuture.completedFuture(new Answer.Known(
                new Identity(Identity.ADMIN_TOKEN, Role.ADMIN, Identity.Via.TOKEN), () -> true));
        }
        CompletionStage<Answer> answer = authorization.length() > MAX_BEARER_CHARACTERS ? null
            : issuer.identify(authorization.substring(BEARER.length()).strip());
        return answer == null ? refused(401, WHO) : answer;
    }

    private CompletionStage<Answer> basic(String encoded, String peer) {
        if (encoded.length() > MAX_BASIC_CHARACTERS) {
            return refused(401, WHO);
        }
        String pair;
        try {
            pair = new String(Base64.getDecoder().decode(encoded), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) {
            return refused(401, WHO);
        }
        int colon = pair.indexOf(':');
        if (colon < 0) {
            return refused(401, WHO);
        }
        String name = pair.substring(0, colon);
        char[] password = pair.substring(colon + 1).toCharArray();
        // Checked before the recent passwords: they would reveal the right guess to a peer that must wait.
        long wait = attempts.lockedSeconds(peer, countedName(name));
        if (wait > 0) {
            return CompletableFuture.completedFuture(tooMany(wait, printable(name)));
        }
        Optional<UsersFile.User> user = UsersFile.isName(name) ? users.find(name) : Optional.empty();
        String digest = recent.digest(peer, name, user.map(UsersFile.User::hash).orElse(""), password);
        if (user.isPresent() && recent.has(digest)) {
            return CompletableFuture.completedFuture(byPassword(user.get()));
        }
        CompletableFuture<Answer> mine = new CompletableFuture<>();
        CompletableFuture<Answer> running = comparing.putIfAbsent(digest, mine);
        if (running != null) {
            return running;
        }
        compare(name, password, peer, found -> {
            recent.add(recent.digest(peer, name, found.hash(), password));
            return byPassword(found);
        }).whenComplete((answer, failure) -> {
            comparing.remove(digest);
            if (failure == null) {
                mine.complete(answer);
            } else {
                mine.completeExceptionally(failure);
            }
        });
        return mine;
    }

    private Answer byPassword(UsersFile.User user) {
        return new Answer.Known(new Identity(user.name(), user.role(), Identity.Via.PASSWORD),
            () -> users.find(user.name()).filter(user::equals).isPresent());
    }

    private Optional<Answer> byCookie(Credentials given) {
        String cookie = given.cookie();
        Optional<Identity> identity = loggedIn(cookie);
        if (identity.isEmpty()) {
            return Optional.empty();
        }
        if (!given.isRead() && !given.marked()) {
            return Optional.of(new Answer.Refused(403, "a change by a login must carry the header X-Hawser-Request: 1",
                0, identity.get().name()));
        }
        return Optional.of(new Answer.Known(identity.get(), () -> loggedIn(cookie).filter(identity.get()::equals)
            .isPresent()));
    }

    private Optional<Identity> loggedIn(String cookie) {
        Optional<Logins.Login> login = logins.use(cookie);
        if (login.isEmpty()) {
            return Optional.empty();
        }
        String name = login.get().name();
        if (login.get().hash().isEmpty()) {
            return Optional.of(new Identity(name, login.get().role(), Identity.Via.COOKIE));
        }
        // The user's present role counts. A login ends when the user's password changes.
        Optional<UsersFile.User> user = users.find(name).filter(u -> u.hash().equals(login.get().hash()));
        if (user.isEmpty()) {
            logins.end(cookie);
        }
        return user.map(u -> new Identity(u.name(), u.role(), Identity.Via.COOKIE));
    }

    /**
     * The result of a login attempt.
     *
     * @param cookie null when the attempt was rejected.
     */
    public record LoginResult(Answer answer, String cookie) {}

    /** Logs in by name and password; the stage does not fail. */
    public CompletionStage<LoginResult> login(String name, char[] password, String peer) {
        CompletableFuture<String> cookie = new CompletableFuture<>();
        return compare(name, password, peer, user -> {
            cookie.complete(logins.make(user.name(), user.role(), user.hash()));
            return new Answer.Known(new Identity(user.name(), user.role(), Identity.Via.COOKIE), () -> true);
        }).thenApply(answer -> new LoginResult(answer, cookie.getNow(null)));
    }

    /** Logs in with the admin token. */
    public LoginResult login(String token, String peer) {
        AttemptLimits.Attempt attempt = attempts.begin(peer, "");
        if (attempt.waitSeconds() > 0) {
            return new LoginResult(tooMany(attempt.waitSeconds(), Identity.ADMIN_TOKEN), null);
        }
        boolean right = adminToken.matches(BEARER + token);
        attempt.end(right);
        if (!right) {
            return new LoginResult(new Answer.Refused(401, "this is not the admin token", 0, Identity.ADMIN_TOKEN),
                null);
        }
        Identity identity = new Identity(Identity.ADMIN_TOKEN, Role.ADMIN, Identity.Via.COOKIE);
        return new LoginResult(new Answer.Known(identity, () -> true),
            logins.make(Identity.ADMIN_TOKEN, Role.ADMIN, ""));
    }

    /** Ends a login; returns whether there was one. */
    public boolean logout(String cookie) {
        return cookie != null && cookie.length() <= MAX_COOKIE_CHARACTERS && logins.end(cookie);
    }

    private interface OnMatch {
        Answer answer(UsersFile.User user);
    }

    private CompletionStage<Answer> compare(String name, char[] password, String peer, OnMatch onMatch) {
        AttemptLimits.Attempt attempt = attempts.begin(peer, countedName(name));
        if (attempt.waitSeconds() > 0) {
            return CompletableFuture.completedFuture(tooMany(attempt.waitSeconds(), printable(name)));
        }
        try {
            return CompletableFuture.supplyAsync(() -> {
                Optional<UsersFile.User> user = Optional.empty();
                boolean right = false;
                try {
                    user = UsersFile.isName(name) ? users.find(name) : user;
                    right = Passwords.matches(user.map(UsersFile.User::hash).orElseGet(this::dummyHash), password)
                        && user.isPresent();
                } finally {
                    attempt.end(right);
                }
                Answer answer = right ? onMatch.answer(user.get())
                    : new Answer.Refused(401, "name or password is wrong", 0, printable(name));
                Arrays.fill(password, '\0');
                return answer;
            }, passwords);
        } catch (RejectedExecutionException e) {
            attempt.withdraw();
            return CompletableFuture.completedFuture(tooMany(1, printable(name)));
        }
    }

    /** The name that the attempt counts for. A text that cannot be a name gives "": then only its peer counts. */
    private static String countedName(String name) {
        return UsersFile.isName(name) ? name : "";
    }

    private String dummyHash() {
        if (dummyHash == null) {
            dummyHash = Passwords.store(Base64.getEncoder().encodeToString(Secrets.random(32)).toCharArray());
        }
        return dummyHash;
    }

    /** The audit log records a claimed name only if it is valid: people type passwords into name fields. */
    private static String printable(String name) {
        return UsersFile.isName(name) ? name : "?";
    }

    private static Answer tooMany(long waitSeconds, String name) {
        return new Answer.Refused(429, "too many failed attempts: wait " + waitSeconds + " s", waitSeconds, name);
    }

    private static CompletionStage<Answer> refused(int status, String detail) {
        return CompletableFuture.completedFuture(new Answer.Refused(status, detail, 0, ""));
    }

    private static boolean hasScheme(String header, String scheme) {
        return header.regionMatches(true, 0, scheme, 0, scheme.length());
    }

    @Override
    public void close() {
        passwords.shutdownNow();
    }
}

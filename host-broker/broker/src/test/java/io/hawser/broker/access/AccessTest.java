package io.hawser.broker.access;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.token.AdminToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AccessTest {
    private static final String PEER = "192.0.2.7";
    private static final String PASSWORD = "correct horse";
    private static final String HASH = Passwords.store(PASSWORD.toCharArray());

    @TempDir
    Path folder;
    private final AtomicLong nowNs = new AtomicLong();
    private Access access;
    private String token;

    @BeforeEach
    void open() throws IOException {
        UsersFile.change(users(), "ann", new UsersFile.User("ann", Role.OPERATOR, HASH));
        access = make(false);
        token = Files.readString(folder.resolve("admin.token")).strip();
    }

    private Access make(boolean loopbackRead) throws IOException {
        return new Access(new AdminToken(folder.resolve("admin.token")), new UsersFile(users()), TokenIssuer.NONE,
            new Access.Limits(3, Duration.ofMinutes(30), Duration.ofHours(12), loopbackRead), nowNs::get);
    }

    @AfterEach
    void close() {
        access.close();
    }

    private Path users() {
        return folder.resolve("users");
    }

    private void pass(long seconds) {
        nowNs.addAndGet(TimeUnit.SECONDS.toNanos(seconds));
    }

    private Answer ask(String method, String authorization, String cookie, boolean marked) {
        return access.identify(new Credentials(method, authorization, cookie, marked, PEER, true))
            .toCompletableFuture().join();
    }

    private Answer basic(String name, String password) {
        return ask("GET", "Basic " + Base64.getEncoder().encodeToString((name + ":" + password)
            .getBytes(StandardCharsets.UTF_8)), null, false);
    }

    private Access.LoginResult login(String name, String password) {
        return access.login(name, password.toCharArray(), PEER).toCompletableFuture().join();
    }

    private static Identity known(Answer answer) {
        return assertInstanceOf(Answer.Known.class, answer).identity();
    }

    private static int refused(Answer answer) {
        return assertInstanceOf(Answer.Refused.class, answer).status();
    }

    @Test
    void shouldKnowTheAdminToken() {
        assertEquals(new Identity(Identity.ADMIN_TOKEN, Role.ADMIN, Identity.Via.TOKEN),
            known(ask("DELETE", "Bearer " + token, null, false)));
        assertEquals(401, refused(ask("GET", "Bearer " + token + "x", null, false)));
        assertEquals(401, refused(ask("GET", "Bearer ", null, false)));
        assertEquals(401, refused(ask("GET", null, null, false)));
        assertEquals(401, refused(ask("GET", "Digest x", null, false)));
    }

    @Test
    void shouldKnowUsersByTheirPassword() throws IOException {
        Identity ann = new Identity("ann", Role.OPERATOR, Identity.Via.PASSWORD);
        assertEquals(ann, known(basic("ann", PASSWORD)));
        assertEquals(ann, known(basic("ann", PASSWORD)), "the cache of recent passwords must accept the password");
        assertEquals(401, refused(basic("ann", PASSWORD + "x")));
        assertEquals(401, refused(basic("bob", PASSWORD)));
        UsersFile.change(users(), "ann", new UsersFile.User("ann", Role.VIEWER,
            Passwords.store("another one".toCharArray())));
        assertEquals(401, refused(basic("ann", PASSWORD)), "the cache must forget a changed password");
        assertEquals(401, refused(ask("GET", "Basic %%%", null, false)));
        assertEquals(401, refused(ask("GET", "Basic " + "A".repeat(10_000), null, false)));
    }

    @Test
    void shouldMakePeersWaitThatFailTooOften() {
        for (int i = 0; i < 3; i++) {
            assertEquals(401, refused(login("ann", "wrong password").answer()));
        }
        Access.LoginResult waits = login("ann", PASSWORD);
        assertEquals(429, refused(waits.answer()), "the right password must wait, too");
        assertNull(waits.cookie());
        assertEquals(60, assertInstanceOf(Answer.Refused.class, waits.answer()).waitSeconds(), 1);
        assertEquals(429, refused(access.login(token, PEER).answer()));
        assertNotNull(access.login("ann", PASSWORD.toCharArray(), "192.0.2.8").toCompletableFuture().join().cookie(),
            "other peers must not wait");
        pass(61);
        assertNotNull(login("ann", PASSWORD).cookie());
    }

    @Test
    void shouldDemandTheHeaderForChangesByCookie() {
        String cookie = login("ann", PASSWORD).cookie();
        assertEquals(new Identity("ann", Role.OPERATOR, Identity.Via.COOKIE), known(ask("GET", null, cookie, false)));
        assertEquals(403, refused(ask("POST", null, cookie, false)));
        assertEquals(403, refused(ask("DELETE", null, cookie, false)));
        assertEquals("ann", known(ask("DELETE", null, cookie, true)).name());
        assertTrue(access.logout(cookie));
        assertEquals(401, refused(ask("GET", null, cookie, false)));
        assertEquals(401, refused(ask("GET", null, "x".repeat(10_000), false)));
    }

    @Test
    void shouldEndLoginsAfterIdleAndAbsoluteTime() {
        String cookie = login("ann", PASSWORD).cookie();
        pass(29 * 60);
        known(ask("GET", null, cookie, false));
        pass(29 * 60);
        known(ask("GET", null, cookie, false));
        pass(31 * 60);
        assertEquals(401, refused(ask("GET", null, cookie, false)), "the login must end after the idle time");
        String used = access.login(token, PEER).cookie();
        for (int i = 0; i < 12 * 4; i++) {
            known(ask("GET", null, used, false));
            pass(15 * 60);
        }
        pass(1);
        assertEquals(401, refused(ask("GET", null, used, false)), "the login must end after the absolute time");
    }

    @Test
    void shouldEndLoginsWhoseUserIsGoneOrHasAnotherPassword() throws IOException {
        String cookie = login("ann", PASSWORD).cookie();
        Answer.Known known = assertInstanceOf(Answer.Known.class, ask("GET", null, cookie, false));
        assertTrue(known.holds().getAsBoolean());
        UsersFile.change(users(), "ann", new UsersFile.User("ann", Role.VIEWER, HASH));
        assertEquals(Role.VIEWER, known(ask("GET", null, cookie, false)).role(),
            "the login must have the user's present role");
        assertFalse(known.holds().getAsBoolean());
        UsersFile.change(users(), "ann", null);
        assertEquals(401, refused(ask("GET", null, cookie, false)));
        UsersFile.change(users(), "ann", new UsersFile.User("ann", Role.OPERATOR, HASH));
        assertEquals(401, refused(ask("GET", null, cookie, false)), "the login must not come back with the user");
        String second = login("ann", PASSWORD).cookie();
        known(ask("GET", null, second, false));
        UsersFile.change(users(), "ann", new UsersFile.User("ann", Role.OPERATOR,
            Passwords.store("another one".toCharArray())));
        assertEquals(401, refused(ask("GET", null, second, false)),
            "the login must end with the password that it used");
        Answer.Known byPassword = assertInstanceOf(Answer.Known.class, basic("ann", "another one"));
        assertTrue(byPassword.holds().getAsBoolean());
        UsersFile.change(users(), "ann", new UsersFile.User("ann", Role.VIEWER,
            Passwords.store("another one".toCharArray())));
        assertFalse(byPassword.holds().getAsBoolean(), "a stream that the password opened must end");
    }

    @Test
    void shouldLetLoopbackReadOnlyWhereSettingsSay() throws IOException {
        Access open = make(true);
        Credentials read = new Credentials("GET", null, null, false, "127.0.0.1", true);
        assertEquals(401, refused(access.identify(read).toCompletableFuture().join()));
        assertEquals(Identity.LOOPBACK, known(open.identify(read).toCompletableFuture().join()));
        assertEquals(401, refused(open.identify(new Credentials("GET", null, null, false, "192.0.2.7", false))
            .toCompletableFuture().join()));
        assertEquals(401, refused(open.identify(new Credentials("DELETE", null, null, true, "127.0.0.1", true))
            .toCompletableFuture().join()));
        open.close();
    }

    @Test
    void shouldNotLetTheSuccessOfOneAccountForgetTheFailuresOfAnother() throws IOException {
        UsersFile.change(users(), "eve", new UsersFile.User("eve", Role.VIEWER, HASH));
        int compared = 0;
        for (int i = 0; i < 10; i++) {
            compared += refused(login("ann", "wrong password").answer()) == 401 ? 1 : 0;
            login("eve", PASSWORD);
        }
        assertEquals(3, compared);
        assertEquals(429, refused(basic("ann", "wrong password")), "the limit must also count basic authentication");
    }

    @Test
    void shouldCountAttemptsBeforeTheyWaitForTheirComparison() {
        List<CompletableFuture<Access.LoginResult>> all = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            all.add(access.login("ann", ("wrong password " + i).toCharArray(), PEER).toCompletableFuture());
        }
        List<Integer> answers = all.stream().map(one -> refused(one.join().answer())).toList();
        assertEquals(3, answers.stream().filter(status -> status == 401).count(), answers::toString);
        assertEquals(27, answers.stream().filter(status -> status == 429).count(), answers::toString);
    }

    @Test
    void shouldCompareTheSamePasswordOnceWhenManyRequestsBringItAtOnce() {
        String header = "Basic " + Base64.getEncoder().encodeToString(("ann:" + PASSWORD)
            .getBytes(StandardCharsets.UTF_8));
        List<CompletableFuture<Answer>> all = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            all.add(access.identify(new Credentials("GET", header, null, false, PEER, true)).toCompletableFuture());
        }
        all.forEach(one -> assertEquals("ann", known(one.join()).name()));
    }

    /** The cache of recent passwords must not reveal the right guess among refused guesses. */
    @Test
    void shouldNotTellAPeerThatMustWaitWhichGuessIsRight() {
        assertEquals("ann", known(basic("ann", PASSWORD)).name());
        for (int i = 0; i < 3; i++) {
            assertEquals(401, refused(basic("ann", "wrong password " + i)));
        }
        assertEquals(429, refused(basic("ann", PASSWORD)));
        String header = "Basic " + Base64.getEncoder().encodeToString(("ann:" + PASSWORD)
            .getBytes(StandardCharsets.UTF_8));
        for (int i = 0; i < 3; i++) {
            assertEquals(401, refused(access.login("bob", "wrong password".toCharArray(), "192.0.2.8")
                .toCompletableFuture().join().answer()));
        }
        assertEquals(429, refused(access.identify(new Credentials("GET", header, null, false, "192.0.2.8", true))
            .toCompletableFuture().join()), "the right password must wait at another peer, too");
    }

    @Test
    void shouldKeepLoginsBounded() {
        Logins logins = new Logins(Duration.ofHours(1), Duration.ofHours(1), nowNs::get);
        String first = logins.make("ann", Role.VIEWER, HASH);
        for (int i = 0; i < 1000; i++) {
            logins.make("ann", Role.VIEWER, HASH);
        }
        assertEquals(1000, logins.size());
        assertTrue(logins.use(first).isEmpty(), "the oldest login must go");
    }
}

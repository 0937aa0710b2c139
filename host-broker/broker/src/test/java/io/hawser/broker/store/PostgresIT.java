package io.hawser.broker.store;

import static io.hawser.broker.TestBroker.done;
import static io.hawser.broker.TestBroker.draft;
import static io.hawser.broker.TestBroker.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.admin.VgpuService;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.StartException;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.TokenKeys;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

/** A broker whose vGPUs and tokens are in PostgreSQL. */
class PostgresIT {
    @TempDir
    Path stateDir;
    private TestPostgres server;

    @BeforeEach
    void start() throws Exception {
        Optional<Path> programs = TestPostgres.programs();
        assumeTrue(programs.isPresent(), "SKIPPED: PostgreSQL is not installed (Debian's package postgresql)");
        server = TestPostgres.start(programs.get());
    }

    @AfterEach
    void stop() throws Exception {
        if (server != null) {
            server.close();
        }
    }

    private TestBroker broker() {
        TestBroker broker = TestBroker.start(stateDir, "normal", server.settings());
        TestBroker.await("the GPU", () -> !broker.broker().vgpus().gpus().isEmpty());
        return broker;
    }

    private static void assertLetsIn(TestBroker broker, TokenService.Made token) throws Exception {
        try (TestGuest guest = new TestGuest(broker.broker())) {
            guest.handshake(token.token().keyId(), token.secret());
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
        }
    }

    @Test
    void shouldKeepVgpusAndTokensOverARestart() throws Exception {
        List<VgpuView> before;
        TokenService.Made token;
        try (TestBroker broker = broker()) {
            assertEquals(Database.Kind.POSTGRESQL, broker.broker().database().kind());
            broker.vgpu("one", 1000, "any");
            broker.vgpu("two", 2000, "0");
            done(broker.broker().vgpuService().change("one", draft(3000L, null)));
            done(broker.broker().vgpuService().delete("two", false));
            token = broker.token("one");
            assertLetsIn(broker, token);
            TestBroker.await("the session's end", () -> broker.broker().sessions().list().isEmpty());
            before = broker.broker().vgpus().list();
        }
        assertFalse(Files.exists(stateDir.resolve("broker.mv.db")), "the broker must not create an H2 database");
        try (TestBroker broker = broker()) {
            assertEquals(before, broker.broker().vgpus().list());
            assertTrue(broker.broker().tokenService().list("one").getFirst().lastUsed() != null);
            assertLetsIn(broker, token);
            done(broker.broker().tokenService().revoke("one", token.token().keyId()));
            assertTrue(broker.broker().tokenService().list("one").isEmpty());
        }
    }

    @Test
    void shouldGiveTokensOfAnOlderBrokerVerifiersAndDropTheirDigests() throws Exception {
        String secret = "c2VjcmV0IG9mIGFuIG9sZCB0b2tlbiwgMzIgYnl0ZXM";
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl(server.settings().get("hawser.database.url"));
        source.setUser(server.settings().get("hawser.database.username"));
        source.setPassword(server.settings().get("hawser.database.password"));
        OldDatabase.fill(source, "old", secret);
        try (TestBroker broker = broker(); TestGuest old = new TestGuest(broker.broker());
            TestGuest now = new TestGuest(broker.broker())) {
            old.oldHandshake(HandshakeProof.Purpose.STATUS, "old", TokenKeys.ofSecret(secret).digest());
            assertEquals(RecordLayout.CONTROL_STATUS, old.receive().opcode());
            now.send(now.proof(HandshakeProof.Purpose.STATUS, now.challenge("old"), secret));
            assertEquals(RecordLayout.CONTROL_STATUS, now.receive().opcode());
            assertTrue(broker.broker().tokenService().list("old").getFirst().acceptsOldProof());
        }
        Map<String, String> settings = new HashMap<>(server.settings());
        settings.put("hawser.tokens.old-proofs", "false");
        try (TestBroker broker = TestBroker.start(stateDir, "normal", settings);
            TestGuest now = new TestGuest(broker.broker())) {
            now.send(now.proof(HandshakeProof.Purpose.STATUS, now.challenge("old"), secret));
            assertEquals(RecordLayout.CONTROL_STATUS, now.receive().opcode());
        }
        try (Connection connection = source.getConnection(); Statement statement = connection.createStatement();
            ResultSet row = statement.executeQuery("select count(*) from token where digest is not null")) {
            assertTrue(row.next());
            assertEquals(0, row.getInt(1));
        }
    }

    @Test
    void shouldServeGuestsWhileTheServerIsAwayAndGoOnWhenItIsBack() throws Exception {
        try (TestBroker broker = broker()) {
            VgpuService service = broker.broker().vgpuService();
            broker.vgpu("one", 0, "any");
            TokenService.Made token = broker.token("one");
            assertLetsIn(broker, token); // the vGPU is in use now; PoolIT has the others
            server.kill();
            assertLetsIn(broker, token);
            assertEquals(VgpuException.Kind.UNAVAILABLE, refused(service.create("two", draft(0L, "any"))).kind());
            assertEquals(VgpuException.Kind.UNAVAILABLE, refused(service.change("one", draft(5L, null))).kind());
            assertEquals(VgpuException.Kind.UNAVAILABLE, refused(service.delete("one", true)).kind());
            assertTrue(broker.broker().vgpus().find("two").isEmpty());
            assertEquals(0, broker.broker().vgpus().find("one").orElseThrow().vgpu().memoryBytes());
            server.startServer();
            // The last guest's worker holds memory until it ends.
            TestBroker.await("the session's end", () -> broker.broker().sessions().list().isEmpty());
            done(service.change("one", draft(5L, null)));
            broker.vgpu("two", 0, "any");
            done(service.delete("one", true));
        }
    }

    @Test
    void shouldActAlthoughAFrozenBrokerHasThePoolsLock() throws Exception {
        try (TestBroker broker = broker()) {
            CountDownLatch held = new CountDownLatch(1);
            CountDownLatch thaw = new CountDownLatch(1);
            CompletableFuture<SQLException> frozen = CompletableFuture.supplyAsync(() -> assertThrows(
                SQLException.class, () -> broker.broker().database().transact(connection -> {
                    PeerStore.lock(connection);
                    held.countDown();
                    try {
                        return thaw.await(60, TimeUnit.SECONDS);
                    } catch (InterruptedException e) {
                        throw new SQLException(e);
                    }
                })));
            assertTrue(held.await(30, TimeUnit.SECONDS));
            broker.vgpu("one", 0, "any");
            assertFalse(frozen.isDone(), "the frozen transaction must have had the lock until the server ended it");
            thaw.countDown();
            frozen.get(30, TimeUnit.SECONDS);
        }
    }

    @Test
    void shouldNotStartWithoutTheServerNorTellThePassword() throws Exception {
        server.kill();
        StartException failure = assertThrows(StartException.class, this::broker);
        assertTrue(failure.getMessage().contains("the database cannot be used: hawser.database.url=jdbc:postgresql:"),
            failure.getMessage());
        assertFalse(failure.getMessage().contains("a secret"), failure.getMessage());
        server.startServer();
    }
}

package io.hawser.broker.admin;

import static io.hawser.broker.TestBroker.await;
import static io.hawser.broker.TestBroker.done;
import static io.hawser.broker.TestBroker.draft;
import static io.hawser.broker.TestBroker.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.StartException;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.store.PeerStore;
import io.hawser.broker.store.TestPostgres;
import io.hawser.shm.wire.RecordLayout;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Several brokers with one PostgreSQL. Each has one GPU of 1 GiB. */
class PoolIT {
    private static final long GPU_BYTES = 1L << 30;
    private static final long QUARTER = GPU_BYTES / 4;

    @TempDir
    Path folder;
    private TestPostgres server;
    private final Map<String, TestBroker> brokers = new HashMap<>();

    @BeforeEach
    void startServer() throws Exception {
        Optional<Path> programs = TestPostgres.programs();
        assumeTrue(programs.isPresent(), "SKIPPED: PostgreSQL is not installed (Debian's package postgresql)");
        server = TestPostgres.start(programs.get());
    }

    @AfterEach
    void stopAll() throws Exception {
        brokers.values().forEach(TestBroker::close);
        if (server != null) {
            server.close();
        }
    }

    private TestBroker start(String name) {
        return start(name, Map.of());
    }

    private TestBroker start(String name, Map<String, String> more) {
        Map<String, String> settings = new HashMap<>(server.settings());
        settings.put("hawser.broker.name", name);
        settings.putAll(more);
        TestBroker broker = TestBroker.start(folder.resolve(name), "normal", settings);
        brokers.put(name, broker);
        await("the GPU of " + name, () -> !broker.broker().vgpus().gpus().isEmpty());
        return broker;
    }

    private void stop(String name) {
        brokers.remove(name).close();
    }

    private static BrokerPool pool(TestBroker broker) {
        return broker.broker().membership().orElseThrow().pool();
    }

    /** Waits until a broker knows this number of brokers with a GPU. */
    private static void awaitGpus(TestBroker broker, int count) {
        await("the GPUs of " + count + " brokers", () -> pool(broker).brokers().stream()
            .filter(one -> !one.gpus().isEmpty()).count() == count);
    }

    private static boolean has(TestBroker broker, String vgpu) {
        return broker.broker().vgpus().find(vgpu).filter(view -> view.state() == VgpuState.READY).isPresent();
    }

    private static int opcode(TestBroker broker, TokenService.Made token) throws Exception {
        try (TestGuest guest = new TestGuest(broker.broker())) {
            guest.handshake(token.token().keyId(), token.secret());
            return guest.receive().opcode();
        }
    }

    private void execute(String sql) throws SQLException {
        try (Connection connection = server.connect(); Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private long number(String sql) throws SQLException {
        try (Connection connection = server.connect(); Statement statement = connection.createStatement();
            ResultSet row = statement.executeQuery(sql)) {
            assertTrue(row.next());
            return row.getLong(1);
        }
    }

    @Test
    void shouldPlaceVgpusOverAllBrokers() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right");
        awaitGpus(left, 2);
        left.vgpu("one", QUARTER, "any");
        left.vgpu("two", QUARTER, "any");
        assertNotEquals(has(left, "one"), has(right, "one"));
        assertNotEquals(has(left, "one"), has(left, "two"), "the least loaded GPU is that of the other broker");
        assertEquals(Set.of("default", "one", "two"), names(left));
        assertEquals(names(left), names(right), "an answer comes when all brokers know of it");
        assertEquals("right", pool(left).brokerName(has(right, "one") ? "one" : "two"));
        VgpuView named = done(left.broker().vgpuService().create("named", draft(1L, "any"), "right"));
        assertEquals(VgpuState.READY, named.state());
        assertTrue(has(right, "named"), "a request can name the broker");
        assertEquals(VgpuException.Kind.INVALID, refused(left.broker().vgpuService().create("nowhere",
            draft(1L, "any"), "middle")).kind());
        assertEquals(VgpuException.Kind.CONFLICT, refused(right.broker().vgpuService().create("one",
            draft(1L, "any"))).kind());
    }

    private static Set<String> names(TestBroker broker) {
        Set<String> names = new HashSet<>();
        broker.broker().vgpus().list().forEach(view -> names.add(view.vgpu().name()));
        pool(broker).elsewhere(Set.copyOf(names)).forEach(view -> assertTrue(names.add(view.vgpu().name())));
        return names;
    }

    @Test
    void shouldNeverReserveMoreThanTheGpusHave() throws Exception {
        List<TestBroker> all = List.of(start("a"), start("b"), start("c"));
        all.forEach(broker -> awaitGpus(broker, 3));
        List<CompletableFuture<VgpuView>> creates = new ArrayList<>();
        for (int i = 0; i < 30; i++) { // of which twelve fit
            creates.add(all.get(i % 3).broker().vgpuService().create("v" + i, draft(QUARTER, "any")));
        }
        int made = 0;
        for (CompletableFuture<VgpuView> create : creates) {
            made += create.handle((view, failure) -> failure == null ? 1 : 0).join();
        }
        assertEquals(12, made);
        assertEquals(0, number("select count(*) from (select broker from vgpu where memory_bytes > 0 group by broker "
            + "having sum(memory_bytes) > " + GPU_BYTES + ") over_reserved"));
        for (TestBroker broker : all) {
            assertEquals(4, broker.broker().vgpus().list().stream()
                .filter(view -> view.vgpu().reserves() && view.state() == VgpuState.READY).count());
        }
    }

    @Test
    void shouldPassActsToTheBrokerThatHasTheVgpu() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right");
        awaitGpus(left, 2);
        done(left.broker().vgpuService().create("far", draft(QUARTER, "any"), "right"));
        VgpuView changed = done(left.broker().vgpuService().change("far", draft(2 * QUARTER, null)));
        assertEquals(2 * QUARTER, changed.vgpu().memoryBytes());
        assertEquals(2 * QUARTER, right.broker().vgpus().find("far").orElseThrow().vgpu().memoryBytes());
        assertEquals(VgpuException.Kind.CONFLICT, refused(left.broker().vgpuService().change("far",
            draft(2 * GPU_BYTES, null))).kind());
        TokenService.Made token = left.token("far");
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(right, token));
        done(left.broker().tokenService().revoke("far", token.token().keyId()));
        assertEquals(RecordLayout.CONTROL_REFUSED, opcode(right, token));
        done(left.broker().vgpuService().delete("far", true));
        assertTrue(right.broker().vgpus().find("far").isEmpty());
        assertFalse(names(left).contains("far"));
        assertEquals(0, number("select count(*) from act"));
    }

    @Test
    void shouldTellWhereAVgpuIs() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right", Map.of("hawser.broker.address", "gpu-host.example"));
        awaitGpus(left, 2);
        done(left.broker().vgpuService().create("far", draft(QUARTER, "any"), "right"));
        String endpoint = right.broker().door().endpoint();
        assertEquals("gpu-host.example" + endpoint.substring(endpoint.lastIndexOf(':')),
            pool(left).addressOf("far", false));
        assertNull(pool(left).addressOf("far", true), "the broker has no port for TLS");
        assertNull(pool(right).addressOf("far", false));
        assertNull(pool(left).addressOf("nothing", false));
    }

    @Test
    void shouldReadTheDatabaseBeforeItSendsAGuestAway() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right");
        awaitGpus(left, 2);
        awaitGpus(right, 2);
        done(left.broker().vgpuService().create("moving", draft(QUARTER, "any"), "left"));
        TokenService.Made token = left.token("moving");
        right.broker().membership().orElseThrow().close(); // it reads no changes by itself from here on
        execute("update vgpu set broker = (select id from broker where name = 'right') where name = 'moving'; "
            + "insert into pool_log (revision, stamp, kind, name) select max(revision) + 1, 1, 'VGPU', 'moving' "
            + "from pool_log; notify " + PeerStore.CHANNEL);
        assertTrue(pool(right).notMine("moving").isPresent());
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(right, token));
        assertTrue(has(right, "moving"));
    }

    @Test
    void shouldSendAGuestAwayByItsTablesWhileTheDatabaseIsAway() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right");
        awaitGpus(left, 2);
        awaitGpus(right, 2);
        done(left.broker().vgpuService().create("far", draft(QUARTER, "any"), "left"));
        TokenService.Made token = left.token("far");
        server.kill();
        try (TestGuest guest = new TestGuest(right.broker())) {
            guest.handshake(token.token().keyId(), token.secret());
            assertEquals(RecordLayout.REFUSED_MOVED, guest.receive().refusedCode());
        }
    }

    @Test
    void shouldTakeWhatASilentBrokerHasAndDoesNotUse() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right", Map.of("hawser.vgpus.fixed.memory-bytes", "1M"));
        awaitGpus(left, 2);
        done(left.broker().vgpuService().create("idle", draft(QUARTER, "any"), "right"));
        done(left.broker().vgpuService().create("used", draft(QUARTER, "any"), "right"));
        done(left.broker().vgpuService().create("listed", draft(QUARTER, "0"), "right"));
        TokenService.Made used = left.token("used");
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(right, used));
        assertEquals(1, number("select count(*) from vgpu where in_use"));
        right.broker().membership().orElseThrow().close(); // it lives on and is silent
        await("the vGPU at the other broker", () -> has(left, "idle"));
        for (String name : List.of("used", "listed", "fixed")) {
            VgpuView view = pool(left).elsewhere(name).orElseThrow();
            assertEquals(VgpuState.UNPLACED, view.state(), name);
            assertTrue(view.problem().contains("its broker is silent: broker=right"), view.problem());
        }
        assertTrue(pool(right).problem().contains("has not reached the pool's database"), pool(right).problem());
        assertEquals(RecordLayout.CONTROL_REFUSED, opcode(right, used), "nobody knows whether it still has it");
        // Its next act shows it what has happened.
        done(right.broker().vgpuService().create("new", draft(1L, "0")));
        await("the loss of the vGPU", () -> right.broker().vgpus().find("idle").isEmpty());
        assertTrue(has(right, "used"));
    }

    @Test
    void shouldTakeWhatFitsAlthoughManyOthersDoNot() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right");
        awaitGpus(left, 2);
        long largeBytes = GPU_BYTES / 128;
        List<CompletableFuture<VgpuView>> made = new ArrayList<>();
        for (int i = 0; i < 70; i++) { // more than a transaction takes, and before the small one by name
            made.add(left.broker().vgpuService().create("large" + i, draft(largeBytes, "any"), "right"));
        }
        made.forEach(TestBroker::done);
        done(left.broker().vgpuService().create("small", draft(1L, "any"), "right"));
        done(left.broker().vgpuService().create("full", draft(GPU_BYTES - largeBytes + 1, "any"), "left"));
        right.broker().membership().orElseThrow().close(); // it lives on and is silent
        await("the vGPU that fits", () -> has(left, "small"));
        assertEquals(70, number("select count(*) from vgpu v, broker b where v.broker = b.id and b.name = 'right' and "
            + "v.name like 'large%'"));
        long before = number("select max(revision) from pool_log");
        done(left.broker().vgpuService().delete("full", false));
        await("the vGPUs that fit now", () -> has(left, "large69"));
        assertTrue(number("select max(revision) from pool_log") > before + 70);
    }

    @Test
    void shouldWriteItsPictureOnlyWhenItChanges() throws Exception {
        TestBroker left = start("left");
        BrokerPool pool = pool(left);
        pool.setPicture(() -> "one");
        await("the picture", () -> isPicture("one"));
        execute("update broker set picture = 'of the test'");
        String beat = "select cast(extract(epoch from heartbeat) * 1000000 as bigint) from broker";
        long first = number(beat);
        await("two heartbeats", () -> numberNow(beat) > first + 3_000_000);
        assertTrue(isPicture("of the test"), "an equal picture is not written again");
        pool.setPicture(() -> "two");
        await("the next picture", () -> isPicture("two"));
        execute("update broker set picture = 'of a backup', epoch = 0");
        await("the picture in the older database", () -> isPicture("two"));
    }

    private boolean isPicture(String text) {
        return numberNow("select count(*) from broker where picture = '" + text + "'") == 1;
    }

    private long numberNow(String sql) {
        try {
            return number(sql);
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void shouldLeaveItsVgpusToOthersAtItsEndAndDeleteWhatExpires() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right");
        awaitGpus(left, 2);
        done(left.broker().vgpuService().create("used", draft(QUARTER, "any"), "right"));
        done(left.broker().vgpuService().create("job", draft(QUARTER, "0").expiring(Instant.now().plusSeconds(20)),
            "right"));
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(right, left.token("used")));
        assertEquals(1, number("select count(*) from vgpu where in_use"));
        stop("right");
        assertEquals(0, number("select count(*) from vgpu where in_use"));
        await("the vGPU at the other broker", () -> has(left, "used"));
        await("the end of what has expired", () -> !names(left).contains("job"));
        assertEquals(0, number("select count(*) from vgpu where name = 'job'"));
    }

    @Test
    void shouldGiveWhatARemovedBrokerHadToOthersAndEndItsMembership() throws Exception {
        TestBroker left = start("left");
        TestBroker right = start("right");
        awaitGpus(left, 2);
        done(left.broker().vgpuService().create("used", draft(QUARTER, "any"), "right"));
        TokenService.Made token = left.token("used");
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(right, token));
        PoolPlaces places = left.broker().membership().orElseThrow().places();
        assertEquals(VgpuException.Kind.CONFLICT, refused(places.remove("right")).kind(), "it answers");
        assertEquals(VgpuException.Kind.MISSING, refused(places.remove("middle")).kind());
        right.broker().membership().orElseThrow().close();
        await("the silence", () -> pool(left).brokers().stream().anyMatch(one -> one.isSilent()));
        done(places.remove("right"));
        await("the vGPU at the other broker", () -> has(left, "used"));
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(left, token));
        assertEquals(VgpuException.Kind.UNAVAILABLE, refused(right.broker().vgpuService().create("new",
            draft(1L, "0"))).kind());
        await("the end of its vGPUs", () -> right.broker().vgpus().list().isEmpty());
        assertTrue(pool(right).problem().contains("it has been removed"), pool(right).problem());
        stop("right");
        start("right"); // registers again
        awaitGpus(left, 2);
    }

    @Test
    void shouldEndTheMembershipOfAProcessWithAnEarlierEpoch() throws Exception {
        TestBroker left = start("left");
        left.vgpu("one", QUARTER, "any");
        TokenService.Made token = left.token("one");
        execute("update broker set epoch = epoch + 1 where name = 'left'"); // as another process would
        await("the end of its vGPUs", () -> left.broker().vgpus().list().isEmpty());
        assertEquals(RecordLayout.CONTROL_REFUSED, opcode(left, token));
        assertTrue(pool(left).problem().contains("a later process has its identity"), pool(left).problem());
        assertEquals(VgpuException.Kind.UNAVAILABLE, refused(left.broker().vgpuService().delete("two", true)
            .thenCompose(now -> left.broker().vgpuService().create("two", draft(1L, "any")))
            .exceptionallyCompose(f -> left.broker().vgpuService().create("two", draft(1L, "any")))).kind());
        assertEquals(1, number("select count(*) from vgpu where name = 'one'"), "it has written nothing");
    }

    @Test
    void shouldAdmitOnlyToMarkedVgpusWhileTheDatabaseIsAwayAndSoonNobody() throws Exception {
        TestBroker left = start("left");
        left.vgpu("used", QUARTER, "any");
        left.vgpu("unused", QUARTER, "any");
        TokenService.Made used = left.token("used");
        TokenService.Made unused = left.token("unused");
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(left, used));
        server.kill();
        await("the broker to notice", () -> pool(left).problem().contains("only to vGPUs that are in use"));
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(left, used));
        assertEquals(RecordLayout.CONTROL_REFUSED, opcode(left, unused));
        await("ten seconds", () -> pool(left).problem().contains("admits no guests"));
        assertEquals(RecordLayout.CONTROL_REFUSED, opcode(left, used));
        server.startServer();
        await("the database", () -> pool(left).problem().isEmpty());
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(left, used));
        assertEquals(RecordLayout.CONTROL_WELCOME, opcode(left, unused));
    }

    @Test
    void shouldReadEverythingWhenTheDatabaseFallsBack() throws Exception {
        TestBroker left = start("left");
        left.vgpu("kept", QUARTER, "any");
        left.vgpu("lost", QUARTER, "any");
        TokenService.Made token = left.token("kept");
        try (TestGuest guest = new TestGuest(left.broker())) {
            guest.handshake(token.token().keyId(), token.secret());
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            fallBack(left);
            awaitNumber(1, "select count(*) from vgpu where in_use and name = 'kept'");
            assertEquals(1, left.broker().sessions().list().size());
        }
    }

    private void awaitNumber(long expected, String sql) {
        await(sql, () -> {
            try {
                return number(sql) == expected;
            } catch (SQLException e) {
                throw new AssertionError(e);
            }
        });
    }

    private void fallBack(TestBroker left) throws SQLException {
        // A backup from before the last vGPU: its row and the end of the log are gone, and revisions begin again.
        execute("delete from vgpu where name = 'lost'; update vgpu set in_use = false; "
            + "delete from pool_log where revision > (select max(revision) - 3 from pool_log); "
            + "insert into pool_log select max(revision) + 1, 7, 'VGPU', 'other' from pool_log; "
            + "update broker set epoch = epoch - 1");
        await("the loss", () -> left.broker().vgpus().find("lost").isEmpty());
        assertTrue(has(left, "kept"));
        await("a new registration", () -> pool(left).problem().isEmpty() && pool(left).me().epoch() > 1);
        left.vgpu("again", QUARTER, "any");
    }

    @Test
    void shouldNotStartWithTheNameOfAnotherBroker() {
        start("left");
        Map<String, String> settings = new HashMap<>(server.settings());
        settings.put("hawser.broker.name", "left");
        StartException refused = assertThrows(StartException.class,
            () -> TestBroker.start(folder.resolve("other"), "normal", settings));
        assertTrue(refused.getMessage().contains("a broker's name must be its own in the pool"), refused.getMessage());
    }
}

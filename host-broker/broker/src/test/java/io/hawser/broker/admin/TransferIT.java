package io.hawser.broker.admin;

import static io.hawser.broker.TestBroker.await;
import static io.hawser.broker.TestBroker.done;
import static io.hawser.broker.TestBroker.draft;
import static io.hawser.broker.TestBroker.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.TestCertificates;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.PeerGpu;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.store.TestPostgres;
import io.hawser.broker.token.Secrets;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** vGPUs that move with their sessions between two brokers of a pool. Each has two GPUs of 1000 bytes. */
class TransferIT {
    private static final long MEMORY_BYTES = 100;

    @TempDir
    Path folder;
    private TestPostgres server;
    private TestBroker left;
    private TestBroker right;
    private TokenService.Made token;

    @BeforeEach
    void startServer() throws Exception {
        Optional<Path> programs = TestPostgres.programs();
        assumeTrue(programs.isPresent(), "SKIPPED: PostgreSQL is not installed (Debian's package postgresql)");
        server = TestPostgres.start(programs.get());
    }

    @AfterEach
    void stopAll() throws Exception {
        for (TestBroker broker : Arrays.asList(left, right)) {
            if (broker != null) {
                broker.close();
            }
        }
        if (server != null) {
            server.close();
        }
    }

    private TestBroker start(String name, String mode, Map<String, String> more) {
        Map<String, String> settings = new HashMap<>(server.settings());
        settings.put("hawser.broker.name", name);
        settings.putAll(more);
        TestBroker broker = TestBroker.start(folder.resolve(name), mode, settings);
        await("the GPUs of " + name, () -> !broker.broker().vgpus().gpus().isEmpty());
        return broker;
    }

    /** Starts both brokers, and a vGPU with a token at the left one. */
    private void start(String leftMode, String rightMode) {
        start(leftMode, rightMode, Map.of(), Map.of());
    }

    private void start(String leftMode, String rightMode, Map<String, String> ofLeft, Map<String, String> ofRight) {
        left = start("left", leftMode, ofLeft);
        right = start("right", rightMode, ofRight);
        for (TestBroker broker : List.of(left, right)) {
            await("the GPUs of both", () -> pool(broker).brokers().stream().filter(one -> !one.gpus().isEmpty())
                .count() == 2);
        }
        done(left.broker().vgpuService().create("v", draft(MEMORY_BYTES, "any"), "left"));
        token = left.token("v");
    }

    private static BrokerPool pool(TestBroker broker) {
        return broker.broker().membership().orElseThrow().pool();
    }

    private long number(String sql) throws SQLException {
        try (Connection connection = server.connect(); Statement statement = connection.createStatement();
            ResultSet row = statement.executeQuery(sql)) {
            assertTrue(row.next());
            return row.getLong(1);
        }
    }

    /** Changes rows; returns their number. */
    private int execute(String sql) {
        try (Connection connection = server.connect(); Statement statement = connection.createStatement()) {
            return statement.executeUpdate(sql);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private TestGuest guest() throws IOException {
        TestGuest guest = new TestGuest(left.broker());
        guest.handshake(token.token().keyId(), token.secret());
        assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
        return guest;
    }

    /** Sends bytes, which the worker counts and returns. */
    private static void work(TestGuest guest, int bytes) throws IOException {
        guest.send(new byte[bytes]);
        guest.bytes(bytes);
    }

    private static void assertTotal(TestGuest guest, int bytes) throws IOException {
        guest.send("total".getBytes(StandardCharsets.US_ASCII));
        String expected = "total=" + bytes + " ";
        assertEquals(expected, new String(guest.bytes(expected.length()), StandardCharsets.US_ASCII));
        byte last;
        do {
            last = guest.bytes(1)[0]; // to the end of the line
        } while (last != '\n');
    }

    private SessionView session(TestBroker broker) {
        List<SessionView> all = broker.broker().sessions().list();
        assertEquals(1, all.size(), all::toString);
        return all.getFirst();
    }

    private CompletableFuture<MoveOutcome> move(TestBroker asked, String broker) {
        return asked.broker().moveService().move("v", new MoveService.Wish(null, broker));
    }

    /** Resumes a session at the right broker, as soon as that expects it. */
    private TestGuest resume(long session, CompletableFuture<?> moving) throws IOException {
        while (!moving.isDone()) {
            TestGuest guest = new TestGuest(right.broker());
            TestGuest.Answer answer = tryResume(guest, session, TestGuest.NONCE);
            if (answer.opcode() == RecordLayout.CONTROL_PARKED) {
                return guest;
            }
            assertTrue(answer.refusedMessage().startsWith("no session with this number is on its way here"),
                answer.refusedMessage());
            guest.close();
        }
        throw new IOException("the move is over: " + moving);
    }

    private TestGuest.Answer tryResume(TestGuest guest, long session, byte[] nonce) throws IOException {
        guest.send(guest.resume(guest.challenge(token.token().keyId()), token.secret(), session, nonce));
        return guest.receive();
    }

    private void assertNothingIsLeft() throws SQLException {
        await("no row", () -> {
            try {
                return number("select count(*) from arrival") == 0;
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        });
        assertEquals(0, done(left.broker().moveService().running()));
        assertEquals(0, done(right.broker().moveService().running()));
    }

    /** Asserts what the vGPU's sessions have used, as both brokers tell it. */
    private void assertUse(int sessions, int calls) {
        await("the calls", () -> right.broker().sessions().usage("v").totals().calls() == calls);
        assertEquals(sessions, right.broker().sessions().usage("v").sessions());
        assertEquals(right.broker().sessions().usage("v"),
            done(new PoolView(left.broker().membership()).usage("v").orElseThrow()));
        assertEquals(0, left.broker().sessions().usage("v").sessions());
    }

    private void assertAtLeft(TestGuest guest, int bytes) throws Exception {
        assertTotal(guest, bytes);
        assertEquals(SessionState.RUNNING, session(left).state());
        assertEquals(VgpuState.READY, left.broker().vgpus().find("v").orElseThrow().state());
        await("nothing at the right broker", () -> right.broker().vgpus().find("v").isEmpty());
        assertEquals(List.of(), right.broker().sessions().list());
        assertNothingIsLeft();
        assertEquals(1, number("select count(*) from vgpu v, broker b where v.name = 'v' and v.broker = b.id and "
            + "b.name = 'left'"));
        try (TestGuest second = guest()) { // the vGPU takes guests again
            work(second, 1);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldMoveARunningSession(boolean asksTheOther) throws Exception {
        start("moves", "moves");
        try (TestGuest guest = guest()) {
            work(guest, 70);
            SessionView before = session(left);
            CompletableFuture<MoveOutcome> moving = move(asksTheOther ? right : left, "right");
            try (TestGuest resumed = resume(before.id(), moving)) {
                MoveOutcome outcome = done(moving);
                assertEquals(MoveOutcome.Result.MOVED, outcome.result());
                assertEquals(1, outcome.sessions());
                assertTrue(guest.closed());
                work(resumed, 7);
                assertTotal(resumed, 77);
                SessionView after = session(right);
                assertEquals(before.id(), after.id());
                assertEquals(before.guest(), after.guest());
                assertEquals(List.of(outcome.to()), after.gpus());
                assertEquals(SessionState.RUNNING, after.state());
                await("the end at the left broker", () -> left.broker().sessions().list().isEmpty()
                    && left.broker().vgpus().find("v").isEmpty());
                assertEquals(1, number("select count(*) from vgpu v, broker b where v.name = 'v' and v.in_use and "
                    + "v.broker = b.id and b.name = 'right'"));
                assertEquals("right", pool(left).brokerName("v"));
                assertNothingIsLeft();
                assertUse(1, 15 + 10); // of the worker at the left broker, and of that at the right one
                try (TestGuest second = new TestGuest(right.broker())) {
                    second.handshake(token.token().keyId(), token.secret());
                    assertEquals(RecordLayout.CONTROL_WELCOME, second.receive().opcode());
                }
                done(right.broker().sessions().end(after.id(), "of the test"));
                assertTrue(resumed.closed());
            }
        }
        await("the end of all", () -> right.broker().vgpus().find("v").orElseThrow().sessions() == 0);
    }

    /** The left broker learns of the end of the drain with a heartbeat, some seconds later. */
    @Test
    void shouldMoveToABrokerRightAfterItsDrain() throws Exception {
        start("moves", "moves");
        done(right.broker().moveService().drainBroker("right"));
        await("the drain", () -> pool(left).brokers().stream().filter(one -> one.name().equals("right"))
            .allMatch(one -> one.gpus().stream().allMatch(PeerGpu::drained)));
        assertTrue(refused(move(left, "right")).getMessage().contains("drained"));
        done(right.broker().moveService().undrainBroker("right"));
        assertEquals(MoveOutcome.Result.MOVED, done(move(left, "right")).result());
        assertEquals("right", pool(left).brokerName("v"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"moves", "moves-refuse-target"})
    void shouldLetGuestsWaitForTheEndOfTheMove(String mode) throws Exception {
        start("moves", mode);
        TestBroker owner = mode.equals("moves") ? right : left;
        TestBroker other = mode.equals("moves") ? left : right;
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            await("the arrival", () -> done(right.broker().moveService().running()) == 1);
            try (TestGuest atOwner = new TestGuest(owner.broker()); TestGuest atOther = new TestGuest(other.broker())) {
                atOwner.handshake(token.token().keyId(), token.secret());
                atOther.handshake(token.token().keyId(), token.secret());
                try (TestGuest resumed = resume(session(left).id(), moving)) {
                    assertEquals(RecordLayout.CONTROL_WELCOME, atOwner.receive().opcode());
                    TestGuest.Answer sent = atOther.receive();
                    assertEquals(RecordLayout.REFUSED_MOVED, sent.refusedCode(), sent.refusedMessage());
                    assertEquals(pool(left).brokers().stream().filter(one -> one.name().equals(owner == left ? "left"
                        : "right")).findFirst().orElseThrow().guest(), sent.refusedMessage());
                    assertTotal(owner == right ? resumed : guest, 70);
                }
            }
        }
    }

    @Test
    void shouldMoveOverTls() throws Exception {
        TestCertificates certificates = new TestCertificates(folder.resolve("certificates"));
        Path certificate = certificates.certificate("server", "IP:127.0.0.1", 30);
        start("moves", "moves", Map.of("hawser.tls.authorities", certificates.authority().toString()),
            Map.of("hawser.listen.tls-port", "0", "hawser.tls.certificate", certificate.toString(), "hawser.tls.key",
                certificates.key("server").toString(), "hawser.broker.address", "127.0.0.1"));
        await("the address for TLS", () -> pool(left).brokers().stream().anyMatch(one -> !one.guestTls().isEmpty()));
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            try (TestGuest resumed = resume(session(left).id(), moving)) {
                assertEquals(MoveOutcome.Result.MOVED, done(moving).result());
                assertTotal(resumed, 70);
            }
        }
    }

    @Test
    void shouldSendNoSessionToABrokerWithoutAValidCertificate() throws Exception {
        TestCertificates certificates = new TestCertificates(folder.resolve("certificates"));
        Path certificate = certificates.certificate("server", "DNS:other.example", 30);
        start("moves", "moves", Map.of("hawser.tls.authorities", certificates.authority().toString()),
            Map.of("hawser.listen.tls-port", "0", "hawser.tls.certificate", certificate.toString(), "hawser.tls.key",
                certificates.key("server").toString(), "hawser.broker.address", "127.0.0.1"));
        await("the address for TLS", () -> pool(left).brokers().stream().anyMatch(one -> !one.guestTls().isEmpty()));
        try (TestGuest guest = guest()) {
            work(guest, 70);
            VgpuException refused = refused(move(left, "right"));
            assertTrue(refused.getMessage().contains("the other broker cannot be reached"), refused.getMessage());
            assertAtLeft(guest, 70);
        }
    }

    @Test
    void shouldMoveAVgpuWithoutSessions() throws Exception {
        start("moves", "moves");
        MoveOutcome outcome = done(move(left, "right"));
        assertEquals(0, outcome.sessions());
        await("the vGPU", () -> right.broker().vgpus().find("v").filter(view -> view.state() == VgpuState.READY)
            .isPresent() && left.broker().vgpus().find("v").isEmpty());
        assertEquals(0, number("select count(*) from vgpu where in_use"));
        assertNothingIsLeft();
        assertEquals(VgpuException.Kind.CONFLICT, refused(right.broker().moveService().move("v",
            new MoveService.Wish(outcome.to(), "right"))).kind(), "it is there already");
    }

    @ParameterizedTest
    @ValueSource(strings = {"moves-die-target", "moves-refuse-target"})
    void shouldStayWhenTheOtherBrokerCannotTakeIt(String mode) throws Exception {
        start("moves", mode);
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            try (TestGuest resumed = resume(session(left).id(), moving)) {
                assertEquals(VgpuException.Kind.CONFLICT, refused(moving).kind());
                assertTrue(resumed.closed());
            }
            assertAtLeft(guest, 70);
        }
    }

    @Test
    void shouldStayWhenTheSessionCannotLeave() throws Exception {
        start("moves-refuse-source", "moves");
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            String problem = refused(moving).getMessage();
            assertTrue(problem.contains("it uses a graph"), problem);
            assertAtLeft(guest, 70);
        }
    }

    @Test
    void shouldStayWhenTheOtherBrokerHasGivenUp() throws Exception {
        start("moves", "moves");
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            await("the row", () -> execute("delete from arrival") == 1);
            try (TestGuest resumed = resume(session(left).id(), moving)) {
                String problem = refused(moving).getMessage();
                assertTrue(problem.contains("has given up"), problem);
                assertTotal(guest, 70);
            }
        }
    }

    @Test
    void shouldEndTheMoveWithTheLostSession() throws Exception {
        start("moves-die-source", "moves");
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            assertTrue(refused(moving).getMessage().contains("has ended with its worker"));
            assertTrue(guest.closed());
        }
        await("nothing at the right broker", () -> right.broker().vgpus().find("v").isEmpty());
        assertNothingIsLeft();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldDrainABroker(boolean asksTheOther) throws Exception {
        start("moves", "moves");
        done(left.broker().vgpuService().create("bound", draft(MEMORY_BYTES, "0"), "left"));
        MoveService asked = (asksTheOther ? right : left).broker().moveService();
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveService.Drained> draining = asked.drainBroker("left");
            try (TestGuest resumed = resume(session(left).id(), draining)) {
                MoveService.Drained drained = done(draining);
                assertEquals(List.of("default", "v"), drained.moved().stream().map(MoveOutcome::vgpu).toList());
                assertEquals(List.of("bound"), drained.stayed().stream().map(MoveService.Stayed::vgpu).toList());
                assertTotal(resumed, 70);
            }
        }
        refused(left.broker().vgpuService().create("late", draft(MEMORY_BYTES, "any"), "left"));
        done(asked.undrainBroker("left"));
        done(left.broker().vgpuService().create("late", draft(MEMORY_BYTES, "any"), "left"));
        assertEquals(VgpuException.Kind.INVALID, refused(asked.drainBroker("middle")).kind());
    }

    @Test
    void shouldRebalanceThePool() throws Exception {
        start("moves", "moves");
        for (String name : List.of("w", "x")) {
            done(left.broker().vgpuService().create(name, draft(MEMORY_BYTES, "any"), "left"));
        }
        try (TestGuest guest = guest()) { // v is in use, and default, w and x are not
            work(guest, 70);
            MoveService asked = right.broker().moveService();
            await("the vGPUs", () -> done(asked.rebalance(true, 100)).steps().size() == 2);
            assertEquals(1, done(asked.rebalance(true, 1)).steps().size());
            assertEquals(List.of(), right.broker().vgpus().list());
            MoveService.Rebalanced done = done(asked.rebalance(false, 100));
            assertEquals(2, done.steps().size());
            for (MoveService.RebalanceStep step : done.steps()) {
                assertTrue(step.outcome().isPresent(), step::toString);
                assertTrue(!step.step().vgpu().equals("v"), step::toString);
                assertEquals("left", step.step().from().broker());
                assertEquals("right", step.step().to().broker());
            }
            await("one vGPU on each GPU", () -> Stream.of(left, right).allMatch(broker -> broker.broker().vgpus()
                .list().stream().map(VgpuView::placedGpus).distinct().count() == 2));
            assertEquals(List.of(), done(asked.rebalance(false, 100)).steps());
            assertTotal(guest, 70);
        }
    }

    @Test
    void shouldEndASessionAtTheBrokerWhereItIs() throws Exception {
        start("moves", "moves");
        PoolView view = new PoolView(left.broker().membership());
        try (TestGuest guest = guest()) {
            work(guest, 70);
            long id = session(left).id();
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            try (TestGuest resumed = resume(id, moving)) {
                done(moving);
                done(view.endSession(id, Optional.of("right")).orElseThrow());
                assertTrue(resumed.closed());
                assertEquals(VgpuException.Kind.MISSING, refused(view.endSession(id, Optional.of("right"))
                    .orElseThrow()).kind());
            }
        }
    }

    @Test
    void shouldNotWaitForABrokerThatHasEnded() throws Exception {
        start("moves", "moves");
        try (TestGuest guest = guest()) {
            work(guest, 70);
            CompletableFuture<MoveOutcome> moving = move(right, "right"); // its guest resumes nowhere
            await("the arrival", () -> done(right.broker().moveService().running()) == 1);
            execute("update broker set epoch = epoch + 1 where name = 'left'"); // as its next process does
            VgpuException refused = refused(moving);
            assertEquals(VgpuException.Kind.UNAVAILABLE, refused.kind());
            assertTrue(refused.getMessage().contains("before its end"), refused.getMessage());
        }
    }

    @Test
    void shouldRefuseWhatCannotMove() throws Exception {
        start("moves", "moves");
        assertEquals(VgpuException.Kind.INVALID, refused(move(left, "middle")).kind());
        assertEquals(VgpuException.Kind.MISSING, refused(left.broker().moveService().move("nothing",
            new MoveService.Wish(null, "right"))).kind());
        done(right.broker().vgpuService().create("full0", draft(950L, "0"), "right"));
        done(right.broker().vgpuService().create("full1", draft(950L, "1"), "right"));
        assertEquals(VgpuException.Kind.CONFLICT, refused(move(left, "right")).kind());
        try (TestGuest guest = guest()) { // it takes guests again
            work(guest, 1);
        }
        assertNothingIsLeft();
    }

    @Test
    void shouldTakeNoStranger() throws Exception {
        start("moves", "moves");
        try (TestGuest guest = guest()) {
            work(guest, 70);
            long id = session(left).id();
            try (TestGuest early = new TestGuest(right.broker())) {
                assertEquals(RecordLayout.CONTROL_REFUSED, tryResume(early, id, TestGuest.NONCE).opcode());
            }
            CompletableFuture<MoveOutcome> moving = move(left, "right");
            await("the arrival", () -> done(right.broker().moveService().running()) == 1);
            try (TestGuest other = new TestGuest(right.broker())) {
                byte[] nonce = TestGuest.NONCE.clone();
                nonce[0]++;
                TestGuest.Answer answer = tryResume(other, id, nonce);
                assertTrue(answer.refusedMessage().startsWith("a session must be expected"), answer.refusedMessage());
            }
            try (TestGuest stranger = new TestGuest(right.broker())) {
                RecordWriter out = new RecordWriter(256);
                byte[] ticket = Secrets.random(RecordLayout.TICKET_BYTES);
                out.begin(RecordLayout.CONTROL_DELIVER, 1, 0, 0, 0).fixed(RecordLayout.DELIVER_FIXED_BYTES);
                out.struct(RecordLayout.DELIVER_TICKET_OFFSET, MemorySegment.ofArray(ticket), 0, ticket.length);
                out.i64(RecordLayout.DELIVER_SESSION_ID_OFFSET, id);
                int length = out.end();
                stranger.send(Arrays.copyOf(out.array(), length));
                assertEquals("no session is expected with this ticket", stranger.receive().refusedMessage());
            }
            try (TestGuest resumed = resume(id, moving); TestGuest second = new TestGuest(right.broker())) {
                done(moving);
                assertEquals(RecordLayout.CONTROL_REFUSED, tryResume(second, id, TestGuest.NONCE).opcode());
                assertTotal(resumed, 70);
            }
        }
    }
}

package io.hawser.broker.move;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.MoveService;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.vgpu.GpuLoad;
import io.hawser.broker.vgpu.Rebalancing;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Moves of running sessions between two GPUs, with fake workers that speak the messages over real sockets. A fake
 * session's state is the number of bytes that its guest has sent.
 */
class MoveIT {
    @TempDir
    Path folder;
    private TestBroker test;
    private Broker.Parts broker;
    private String keyId;
    private String secret;

    private void start(String mode, Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(Map.of("hawser.move.answer-timeout", "120s"));
        all.putAll(settings);
        test = TestBroker.start(folder, mode, all);
        broker = test.broker();
        TestBroker.await("the GPUs", () -> broker.vgpus().gpus().size() == 2);
        if (broker.vgpus().find(Vgpu.DEFAULT_NAME).isPresent()) { // counts on one of the GPUs
            TestBroker.done(broker.vgpuService().delete(Vgpu.DEFAULT_NAME, false));
        }
    }

    private void startWithVgpu(String mode, Map<String, String> settings) {
        startWithVgpu(mode, settings, 400);
    }

    private void startWithVgpu(String mode, Map<String, String> settings, long memoryBytes) {
        start(mode, settings);
        test.vgpu("v", memoryBytes, "any");
        var made = test.token("v");
        keyId = made.token().keyId();
        secret = made.secret();
    }

    @AfterEach
    void stop() {
        if (test != null) {
            test.close();
        }
    }

    private TestGuest guest() throws IOException {
        TestGuest guest = new TestGuest(broker);
        guest.handshake(keyId, secret);
        assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
        return guest;
    }

    private static void say(TestGuest guest, String text) throws IOException {
        guest.send(text.getBytes(StandardCharsets.US_ASCII));
        assertEquals(text, new String(guest.bytes(text.length()), StandardCharsets.US_ASCII));
    }

    /** Asserts that the guest's session has served so many bytes, and on which GPU its worker is. */
    private static void assertServed(TestGuest guest, long bytes, String gpu) throws IOException {
        String expected = "total=" + bytes + " gpus=" + gpu + "\n";
        guest.send("total".getBytes(StandardCharsets.US_ASCII));
        assertEquals(expected, new String(guest.bytes(expected.length()), StandardCharsets.US_ASCII));
    }

    private String gpu() {
        return broker.vgpus().find("v").orElseThrow().placedGpus().getFirst();
    }

    private String otherGpu() {
        String here = gpu();
        return broker.vgpus().gpus().stream().map(load -> load.device().uuid()).filter(uuid -> !uuid.equals(here))
            .findFirst().orElseThrow();
    }

    private MoveOutcome move(String gpu) {
        return TestBroker.done(broker.moveService().move("v", gpu));
    }

    private VgpuException failure(String gpu) {
        return TestBroker.refused(broker.moveService().move("v", gpu));
    }

    private List<SessionView> sessions() {
        return broker.sessions().list();
    }

    private GpuLoad load(String gpu) {
        return broker.vgpus().gpus().stream().filter(load -> load.device().uuid().equals(gpu)).findFirst()
            .orElseThrow();
    }

    /** Waits until only the sessions have workers, and only the vGPU's GPU counts. */
    private void awaitClear(int count) {
        String other = otherGpu();
        TestBroker.await("the end of the workers of the move", () -> broker.pools().state().assigned() == count);
        TestBroker.await("the end of the memory of the move", () -> broker.ledgers().usedBytes("v", other) == 0
            && broker.ledgers().usedBytes("v") == 400L * count);
        assertEquals(count, sessions().size());
        assertEquals(0, load(other).vgpus(), "the reservation must end");
        assertEquals(1, load(gpu()).vgpus());
        assertEquals(count, broker.vgpus().find("v").orElseThrow().sessions());
    }

    private static long descriptors() {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void shouldMoveARunningSession() throws Exception {
        startWithVgpu("moves", Map.of());
        String from = gpu();
        String to = otherGpu();
        try (TestGuest guest = guest()) {
            say(guest, "hello");
            assertServed(guest, 5, from);
            SessionView before = sessions().getFirst();
            TestBroker.await("the statistics", () -> sessions().getFirst().statistics().calls() == 10);
            MoveOutcome outcome = move(to);
            assertEquals(new MoveOutcome("v", MoveOutcome.Result.MOVED, from, to, 1, outcome.ms(), ""), outcome);
            SessionView after = sessions().getFirst();
            assertEquals(before.id(), after.id());
            assertEquals(SessionState.RUNNING, after.state());
            assertEquals(List.of(to), after.gpus());
            assertNotEquals(before.workerPid(), after.workerPid());
            assertEquals(to, gpu());
            assertServed(guest, 5, to);
            say(guest, "again");
            assertServed(guest, 10, to);
            TestBroker.await("the sum of both workers' statistics, with the source's last ones", () -> sessions()
                .getFirst().statistics().calls() == 25);
            awaitClear(1);
            assertEquals(to, broker.ledgers().usedBytes("v", to) == 400 ? to : "no memory is counted there");
            try (TestGuest second = guest()) {
                assertServed(second, 0, to);
            }
        }
        TestBroker.await("the end of all sessions", () -> sessions().isEmpty());
        awaitClear(0);
        test.close();
        start("moves", Map.of());
        assertEquals(to, gpu(), "the database must have the new place");
    }

    @Test
    void shouldGiveASessionAnotherWorkerOnItsGpu() throws Exception {
        startWithVgpu("moves", Map.of());
        String here = gpu();
        try (TestGuest guest = guest()) {
            say(guest, "hello");
            SessionView before = sessions().getFirst();
            MoveOutcome outcome = move("same");
            assertEquals(new MoveOutcome("v", MoveOutcome.Result.MOVED, here, here, 1, outcome.ms(), ""), outcome);
            assertNotEquals(before.workerPid(), sessions().getFirst().workerPid());
            assertServed(guest, 5, here);
            awaitClear(1);
            assertEquals(400, load(here).reservedBytes());
        }
    }

    @Test
    void shouldMoveAllSessionsOfAVgpuAndKeepNothingOfAMove() throws Exception {
        startWithVgpu("moves", Map.of(), 800); // room for both sessions' claims
        try (TestGuest one = guest(); TestGuest two = guest()) {
            say(one, "one");
            say(two, "three");
            for (int i = 0; i < 2; i++) { // each GPU's workers are then there
                assertEquals(2, move(otherGpu()).sessions());
            }
            awaitClear(2);
            TestBroker.await("the pools' workers", () -> broker.pools().state().starting() == 0);
            long before = descriptors();
            for (int i = 0; i < 4; i++) {
                assertEquals(2, move(otherGpu()).sessions());
                assertServed(one, 3, gpu());
                assertServed(two, 5, gpu());
            }
            awaitClear(2);
            TestBroker.await("the end of each descriptor", () -> descriptors() <= before);
        }
    }

    @ParameterizedTest
    @CsvSource({"die-source,has ended with its worker", "refuse-source,cannot move: it uses a graph",
        "no-socket,has not passed its guest's socket", "silent-source,a worker has not answered in time",
        "die-mover,the mover has ended", "refuse-target,cannot be restated: an address differs",
        "die-target,has ended", "silent-target,a worker has not answered in time"})
    void shouldLeaveTheSessionWithItsSourceAfterAFailure(String mode, String reason) throws Exception {
        startWithVgpu("moves-" + mode, mode.startsWith("silent") ? Map.of("hawser.move.answer-timeout", "8s")
            : Map.of());
        String from = gpu();
        String to = otherGpu();
        boolean isLost = mode.equals("die-source");
        try (TestGuest guest = guest()) {
            say(guest, "hello");
            VgpuException failure = failure(to);
            assertEquals(VgpuException.Kind.CONFLICT, failure.kind());
            assertTrue(failure.getMessage().contains(reason), failure.getMessage());
            assertEquals(from, gpu());
            if (isLost) {
                assertTrue(guest.closed());
                TestBroker.await("the session's end", () -> sessions().isEmpty());
            } else {
                assertServed(guest, 5, from);
                say(guest, "again");
            }
            awaitClear(isLost ? 0 : 1);
            try (TestGuest second = guest()) {
                assertServed(second, 0, from);
            }
            TestBroker.await("the second session's end", () -> sessions().size() == (isLost ? 0 : 1));
            if (!isLost) { // a late answer is no answer to the next move
                awaitClear(1);
                long before = descriptors();
                assertTrue(failure(to).getMessage().contains(reason));
                assertServed(guest, 10, from);
                awaitClear(1);
                TestBroker.await("the end of each descriptor", () -> descriptors() <= before);
            }
        }
    }

    @Test
    void shouldAwaitTheAnswersOfTheOtherSessionsWhenOneCannotMove() throws Exception {
        Path answers = folder.resolve("answers");
        startWithVgpu("moves-refuse-one=" + answers, Map.of(), 800);
        String from = gpu();
        String to = otherGpu();
        try (TestGuest one = guest(); TestGuest slow = guest()) {
            say(one, "odd");
            say(slow, "even");
            assertTrue(failure(to).getMessage().contains("session 1 cannot move: it uses a graph"));
            assertEquals(from, gpu());
            assertServed(one, 3, from);
            String early = failure(to).getMessage();
            assertTrue(early.contains("has not answered the last order to move yet: sessionId=2"), early);
            Files.createFile(answers);
            assertServed(slow, 4, from);
            String late = failure(to).getMessage();
            assertTrue(late.contains("session 1 cannot move: it uses a graph"), late);
            assertServed(slow, 4, from);
            awaitClear(2);
        }
    }

    /** The target ends about when the session becomes its own: the session stays, or ends with its worker. */
    @Test
    void shouldHaveOneOwnerOrNoneWhenTheTargetEndsAtTheCommit() throws Exception {
        startWithVgpu("moves-die-late", Map.of());
        String from = gpu();
        String to = otherGpu();
        try (TestGuest guest = guest()) {
            say(guest, "hello");
            try {
                broker.moveService().move("v", to).get(180, TimeUnit.SECONDS);
                assertTrue(guest.closed(), "the session must end with its owner");
                assertEquals(to, gpu());
                TestBroker.await("the session's end", () -> sessions().isEmpty());
                awaitClear(0);
            } catch (ExecutionException e) {
                assertServed(guest, 5, from);
                assertEquals(from, gpu());
                awaitClear(1);
            }
        }
        TestBroker.await("the session's end", () -> sessions().isEmpty());
        String placed = gpu();
        test.close();
        start("moves", Map.of());
        assertEquals(placed, gpu(), "the database must have the place");
    }

    @Test
    void shouldGoOnWithoutASessionThatEndsAndLetFurtherOnesWait() throws Exception {
        startWithVgpu("moves-silent-target", Map.of());
        String to = otherGpu();
        try (TestGuest guest = guest()) {
            say(guest, "hello");
            CompletableFuture<MoveOutcome> moving = broker.moveService().move("v", to);
            TestBroker.await("the memory of the target", () -> broker.ledgers().usedBytes("v", to) == 400);
            assertEquals(1, load(to).vgpus(), "a moving vGPU counts on both GPUs");
            TestGuest second = new TestGuest(broker);
            second.handshake(keyId, secret);
            assertTrue(failure(to).getMessage().contains("the vGPU is being moved"));
            VgpuException change = TestBroker.refused(broker.vgpuService().change("v", TestBroker.draft(500L, null)));
            assertTrue(change.getMessage().contains("the vGPU is being moved"), change.getMessage());
            assertFalse(moving.isDone());
            assertTrue(TestBroker.done(broker.sessions().end(sessions().getFirst().id(), "the test ends it")));
            MoveOutcome outcome = TestBroker.done(moving);
            assertEquals(0, outcome.sessions());
            assertEquals(to, gpu());
            assertTrue(guest.closed());
            try (second) {
                assertEquals(RecordLayout.CONTROL_WELCOME, second.receive().opcode());
                assertServed(second, 0, to);
            }
            TestBroker.await("the session's end", () -> sessions().isEmpty());
            awaitClear(0);
        }
    }

    @Test
    void shouldRefuseWhatCannotMove() throws Exception {
        startWithVgpu("moves", Map.of());
        String to = otherGpu();
        assertRefused(VgpuException.Kind.CONFLICT, "the vGPU is on this GPU already", "v", gpu());
        assertRefused(VgpuException.Kind.MISSING, "there is no such vGPU: vgpu=none", "none", to);
        assertRefused(VgpuException.Kind.MISSING, "there is no such GPU: gpu=7", "v", "7");
        assertRefused(VgpuException.Kind.INVALID, "one GPU must be named", "v", "any");
        assertRefused(VgpuException.Kind.INVALID, "one GPU must be named", "v", null);
        test.vgpu("both", 100, "all");
        assertRefused(VgpuException.Kind.CONFLICT, "a vGPU that moves must have one GPU: vgpu=both", "both", to);
        TestBroker.done(broker.vgpuService().delete("both", false));
        test.vgpu("big", 900, to);
        assertRefused(VgpuException.Kind.CONFLICT, "the GPU's memory is all reserved", "v", to);
        assertEquals(1, load(to).vgpus(), "a refused move reserves nothing");
    }

    private void assertRefused(VgpuException.Kind kind, String reason, String vgpu, String gpu) {
        VgpuException refused = TestBroker.refused(broker.moveService().move(vgpu, gpu));
        assertTrue(refused.getMessage().contains(reason), refused.getMessage());
        assertEquals(kind, refused.kind());
    }

    @ParameterizedTest
    @ValueSource(strings = {"any", "0"})
    void shouldMoveAVgpuWithoutSessions(String gpus) {
        start("moves", Map.of());
        test.vgpu("v", 400, gpus);
        String to = otherGpu();
        assertEquals(0, move(to).sessions());
        assertEquals(to, gpu());
        assertEquals(gpus.equals("any") ? "any" : to, broker.vgpus().find("v").orElseThrow().vgpu().gpus().toString(),
            "a vGPU that names its GPU names the new one");
        test.close();
        start("moves", Map.of());
        assertEquals(to, gpu());
    }

    @Test
    void shouldDrainAGpu() throws Exception {
        startWithVgpu("moves", Map.of());
        String drained = gpu();
        String other = otherGpu();
        test.vgpu("named", 100, drained);
        try (TestGuest guest = guest()) {
            say(guest, "hello");
            var report = TestBroker.done(broker.moveService().drain(drained));
            assertEquals(drained, report.gpu());
            assertEquals(List.of("v"), report.moved().stream().map(MoveOutcome::vgpu).toList());
            assertEquals(List.of("named"), report.stayed().stream().map(one -> one.vgpu()).toList());
            assertTrue(report.stayed().getFirst().reason().contains("the vGPU names its GPU"));
            assertServed(guest, 5, other);
            assertEquals(List.of(other), test.vgpu("next", 300, "any").placedGpus());
            VgpuException full = TestBroker.refused(broker.vgpuService().create("last", TestBroker.draft(400L, "any")));
            assertTrue(full.getMessage().contains("a GPU that is drained gets no vGPU: gpu=" + drained),
                full.getMessage());
            assertTrue(failure(drained).getMessage().contains("a GPU that is drained gets no vGPU"));
            assertEquals(drained, TestBroker.done(broker.moveService().undrain(drained)));
            assertEquals(List.of(drained), test.vgpu("last", 400, "any").placedGpus());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"moves", "moves-refuse-source"})
    void shouldRebalanceItsGpus(String mode) throws Exception {
        startWithVgpu(mode, Map.of());
        String full = gpu();
        String other = otherGpu();
        test.vgpu("named", 100, full);
        test.vgpu("also-named", 100, full);
        try (TestGuest guest = guest()) {
            say(guest, "hello");
            MoveService.RebalanceStep step = TestBroker.done(broker.moveService().rebalance(false, 100)).steps()
                .getLast();
            assertEquals(new Rebalancing.Step("v", new Rebalancing.Spot("", full), new Rebalancing.Spot("", other)),
                step.step());
            boolean hasMoved = mode.equals("moves");
            assertEquals(hasMoved, step.outcome().isPresent());
            assertEquals(!hasMoved, step.reason().contains("it uses a graph"), step.reason());
            assertServed(guest, 5, hasMoved ? other : full);
            assertEquals(!hasMoved, TestBroker.done(broker.moveService().rebalance(true, 100)).steps().stream()
                .anyMatch(again -> again.step().vgpu().equals("v")));
        }
    }
}

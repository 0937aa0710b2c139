package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.StartException;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Misbehaving workers, each a process of its own. */
class WorkerPoolIT {
    @TempDir
    Path stateDir;

    /** Whether the broker let the worker of the first session warm up. */
    private static boolean warmsUp(TestBroker broker) throws IOException {
        long pid = broker.broker().sessions().list().getFirst().workerPid();
        return !Files.readString(Path.of("/proc", Long.toString(pid), "environ")).contains("HAWSER_WARM_UP=off");
    }

    private String failureOf(String mode, Map<String, String> settings) {
        try (TestBroker broker = TestBroker.start(stateDir, mode, settings)) {
            TestBroker.await("a failure", () -> broker.broker().pools().state().failures() > 0);
            assertFalse(broker.broker().pools().state().usable());
            return broker.broker().pools().state().lastFailure();
        }
    }

    @Test
    void shouldTellWhyWorkersCrashAndRefuseGuestsMeanwhile() throws Exception {
        try (TestBroker broker = TestBroker.start(stateDir, "crash", Map.of("hawser.worker.min-back-off", "10ms",
            "hawser.worker.max-back-off", "60s"))) {
            TestBroker.await("two failures", () -> broker.broker().pools().state().failures() >= 2);
            assertTrue(broker.broker().pools().state().lastFailure()
                .endsWith("exit code 3, last words: fake worker crashes as told"),
                broker.broker().pools().state().lastFailure());
            try (TestGuest guest = new TestGuest(broker.broker())) {
                guest.handshake("default", TestGuest.secret(stateDir));
                TestGuest.Answer answer = guest.receive();
                assertEquals(Refusal.CAPACITY.code(), answer.refusedCode());
                assertTrue(answer.refusedMessage().contains("no worker can be started"), answer.refusedMessage());
            }
            TestBroker.await("the end of the session", () -> broker.broker().sessions().list().isEmpty());
        }
    }

    @Test
    void shouldKillAWorkerThatBreaksTheControlProtocol() {
        String malformed = failureOf("malformed", Map.of());
        assertTrue(malformed.contains("it broke the control protocol: devices must be"), malformed);
        String oversized = failureOf("oversized", Map.of());
        assertTrue(oversized.contains("it broke the control protocol: a frame must be at most 65536"), oversized);
    }

    @Test
    void shouldKillAWorkerThatIsNeverReady() {
        String failure = failureOf("silent", Map.of("hawser.worker.start-timeout", "300ms"));
        assertTrue(failure.contains("it was not ready in time: timeoutMs=300"), failure);
    }

    @Test
    void shouldEndTheSessionOfAWorkerThatFloods() throws Exception {
        try (TestBroker broker = TestBroker.start(stateDir, "flood", Map.of());
            TestGuest guest = new TestGuest(broker.broker())) {
            guest.handshake("default", TestGuest.secret(stateDir));
            guest.receive();
            assertTrue(guest.closed());
            TestBroker.await("the end of the session", () -> broker.broker().sessions().list().isEmpty());
        }
    }

    @Test
    void shouldKillAWorkerThatDoesNotEndWhenTold() throws Exception {
        try (TestBroker broker = TestBroker.start(stateDir, "stubborn", Map.of("hawser.sessions.end-timeout", "200ms"));
            TestGuest guest = new TestGuest(broker.broker())) {
            guest.handshake("default", TestGuest.secret(stateDir));
            guest.receive();
            assertTrue(warmsUp(broker), "a worker of the pool must warm up");
            long worker = broker.broker().sessions().list().getFirst().workerPid();
            assertTrue(broker.broker().sessions().end(1, "test").get(60, TimeUnit.SECONDS));
            assertFalse(ProcessHandle.of(worker).map(ProcessHandle::isAlive).orElse(false));
            assertTrue(guest.closed());
        }
    }

    @Test
    void shouldStartWorkersOnDemandWithoutAPool() throws Exception {
        try (TestBroker broker = TestBroker.start(stateDir, "normal", Map.of("hawser.worker.pool-size", "0",
            "hawser.vgpus.default.memory-bytes", "1000000000", "hawser.listen.max-per-peer", "2"))) {
            TestBroker.await("the report of the GPU", () -> !broker.broker().pools().state().devices().isEmpty());
            TestBroker.await("the end of the probing worker", () -> broker.broker().pools().state().ready() == 0);
            try (TestGuest guest = new TestGuest(broker.broker());
                TestGuest second = new TestGuest(broker.broker());
                TestGuest third = new TestGuest(broker.broker())) {
                guest.handshake("default", TestGuest.secret(stateDir));
                guest.receive();
                assertEquals(1000000000, broker.broker().sessions().list().getFirst().memoryBytes());
                assertFalse(warmsUp(broker), "a worker must not warm up while its guest waits");
                second.handshake("default", TestGuest.secret(stateDir));
                assertEquals(RecordLayout.CONTROL_WELCOME, second.receive().opcode(),
                    "both sessions must share one quota");
                assertTrue(third.receive().refusedMessage().contains("connections of one peer must be at most 2"));
            }
        }
    }

    @Test
    void shouldLeaveNoProcessWhenItStops() throws Exception {
        TestBroker broker = TestBroker.start(stateDir, "stubborn", Map.of("hawser.sessions.end-timeout", "200ms"));
        TestGuest guest = new TestGuest(broker.broker());
        guest.handshake("default", TestGuest.secret(stateDir));
        guest.receive();
        long worker = broker.broker().sessions().list().getFirst().workerPid();
        broker.broker().stateDir().writeEndpoints("", "", "http://127.0.0.1:1");
        assertTrue(Files.exists(stateDir.resolve("endpoints.json")));
        broker.close();
        assertFalse(ProcessHandle.of(worker).map(ProcessHandle::isAlive).orElse(false));
        assertTrue(guest.closed());
        assertFalse(Files.exists(stateDir.resolve("endpoints.json")));
        guest.close();
    }

    @Test
    void shouldSayWhyItCannotStart() throws IOException {
        assertStartFails("the worker's program is missing or not executable: program=/no/such",
            Map.of("hawser.worker.command", "/no/such worker"));
        Files.createDirectories(stateDir);
        Files.writeString(stateDir.resolve("broker.mv.db"), "rubbish\n".repeat(10_000));
        assertStartFails("the database cannot be used: hawser.database.url=jdbc:h2:file:" + stateDir, Map.of());
        Files.delete(stateDir.resolve("broker.mv.db"));
        assertStartFails("the database must be H2 or PostgreSQL", Map.of("hawser.database.url", "jdbc:mysql://x/y"));
        assertStartFails("hawser.placement must be one of least-loaded, packed, spread", Map.of("hawser.placement",
            "any"));
        assertStartFails("hawser.overcommit must be 1.0..16.0", Map.of("hawser.overcommit", "0.5"));
        try (TestBroker broker = TestBroker.start(stateDir, "silent", Map.of())) {
            assertStartFails("another broker uses the state folder", Map.of());
            String port = broker.broker().door().endpoint().split(":")[1];
            assertStartFails("hawser.listen.port=" + port, Map.of("hawser.listen.port", port, "hawser.state-dir",
                stateDir.resolve("other").toString()));
        }
    }

    private void assertStartFails(String reason, Map<String, String> settings) {
        StartException failure = assertThrows(StartException.class,
            () -> Broker.start(TestBroker.config(stateDir, "silent", settings), System.getenv(), TestBroker.NO_LISTENER,
                0));
        assertTrue(failure.getMessage().contains(reason), failure.getMessage());
    }
}

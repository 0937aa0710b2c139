package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.broker.access.Passwords;
import io.hawser.broker.access.Role;
import io.hawser.broker.access.UsersFile;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.nvml.FakeNvml;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.wire.RecordLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The packaged broker, started by its launcher. */
class LauncherIT {
    @TempDir
    Path folder;

    private static String health(RealProcess broker, String kind) {
        return broker.request("/q/health/" + kind, null, request -> request).body();
    }

    private static void awaitHealth(RealProcess broker, String kind, String text) {
        TestBroker.await(kind + ": " + text, () -> health(broker, kind).contains(text));
    }

    private static List<ProcessHandle> children(long pid) {
        return ProcessHandle.of(pid).map(p -> p.descendants().toList()).orElse(List.of());
    }

    @Test
    void shouldExplainItself() throws Exception {
        Process help = new ProcessBuilder(RealProcess.launcher().toString(), "--help").start();
        assertTrue(new String(help.getInputStream().readAllBytes()).contains("hawser.listen.port"));
        assertEquals(0, help.waitFor());
        assertEquals(2, new ProcessBuilder(RealProcess.launcher().toString(), "--what").start().waitFor());
    }

    @Test
    void shouldWriteUsersWithoutShowingTheirPassword() throws Exception {
        Path stateDir = Files.createDirectory(folder.resolve("users-state"));
        Process set = new ProcessBuilder(RealProcess.launcher().toString(), "--set-password", "ann", "operator",
            "-Dhawser.state-dir=" + stateDir).redirectErrorStream(true).start();
        try (var input = set.outputWriter()) {
            input.write("correct horse\n");
        }
        String said = new String(set.getInputStream().readAllBytes());
        assertEquals(0, set.waitFor(), said);
        UsersFile.User user = new UsersFile(stateDir.resolve("users")).find("ann").orElseThrow();
        assertEquals(Role.OPERATOR, user.role());
        assertTrue(Passwords.matches(user.hash(), "correct horse".toCharArray()));
        assertFalse(said.contains("correct horse") || said.contains(user.hash()), said);
        assertEquals(0, new ProcessBuilder(RealProcess.launcher().toString(), "--remove-user", "ann",
            "-Dhawser.state-dir=" + stateDir).start().waitFor());
        assertTrue(new UsersFile(stateDir.resolve("users")).find("ann").isEmpty());
        assertEquals(2, new ProcessBuilder(RealProcess.launcher().toString(), "--set-password", "ann").start()
            .waitFor());
    }

    @Test
    void shouldStartServeAndEnd() throws Exception {
        Path stateDir = folder.resolve("state");
        String command = "-Dhawser.worker.command=" + TestBroker.workerCommand("normal");
        try (RealProcess broker = new RealProcess(folder, "first", stateDir, command)) {
            JsonNode endpoints = broker.awaitEndpoints();
            try (RealProcess second = new RealProcess(folder, "second", stateDir, command)) {
                assertEquals(1, second.awaitExit());
                assertTrue(second.output().contains("hawser-broker: another broker uses the state folder"),
                    second.output());
                assertFalse(second.output().contains("\tat "),
                    "the error must be one line without a stack trace: " + second.output());
            }
            awaitHealth(broker, "ready", "\"UP\"");
            TestGuest guest = new TestGuest(endpoints.get("guest").asText());
            guest.handshake("default", TestGuest.secret(stateDir), Description.HASH);
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            List<ProcessHandle> workers = children(broker.pid());
            assertFalse(workers.isEmpty());
            broker.terminate();
            assertTrue(guest.closed(), "the session must end with the broker");
            // Java exits with 128 + SIGTERM (15).
            assertEquals(143, broker.awaitExit());
            assertTrue(workers.stream().noneMatch(ProcessHandle::isAlive), "no worker may outlive the broker");
            assertFalse(Files.exists(stateDir.resolve("endpoints.json")));
            assertTrue(broker.output().contains("Hawser broker is ready: guests=" + endpoints.get("guest").asText()),
                broker.output());
            assertFalse(broker.output().contains(TestGuest.secret(stateDir)),
                "the log must not contain the token's secret");
            guest.close();
        }
    }

    @Test
    void shouldRefuseToStartWithALimitOfHttpOutOfBounds() throws Exception {
        Path stateDir = folder.resolve("limits-state");
        try (RealProcess broker = new RealProcess(folder, "limits", stateDir, "-Dhawser.http.max-per-peer=0")) {
            assertEquals(1, broker.awaitExit());
            assertTrue(broker.output().contains("hawser-broker: hawser.http.max-per-peer must be between 1 and "
                + "2147483647: value=0"), broker.output());
            assertFalse(broker.output().contains("\tat "),
                "the error must be one line without a stack trace: " + broker.output());
            assertFalse(Files.exists(stateDir.resolve("broker.mv.db")), "the broker must not have created a database");
        }
    }

    @Test
    void shouldServeWithTheRealWorker() throws Exception {
        Path workers = Path.of("../worker/target/app");
        assumeTrue(Files.isDirectory(workers), "skipped: the worker is not built: " + workers);
        Path stateDir = folder.resolve("state");
        try (RealProcess broker = new RealProcess(folder, "real", stateDir, "-Dhawser.worker.pool-size=1",
            "-Dhawser.gpu.backend=software")) {
            JsonNode endpoints = broker.awaitEndpoints();
            try (TestGuest guest = new TestGuest(endpoints.get("guest").asText())) {
                guest.handshake("default", TestGuest.secret(stateDir), Description.HASH);
                TestGuest.Answer welcome = guest.receive();
                assertEquals(RecordLayout.CONTROL_WELCOME, welcome.opcode());
                assertEquals(1, welcome.words().getLong(RecordLayout.WELCOME_SESSION_ID_OFFSET));
                assertEquals(Description.HASH,
                    welcome.words().getLong(RecordLayout.WELCOME_DESCRIPTION_HASH_OFFSET));
            }
            broker.terminate();
            assertEquals(143, broker.awaitExit());
        }
    }

    @Test
    void shouldNotBeReadyWhenItsGpusFallOffTheBus() throws Exception {
        Path stateDir = folder.resolve("state");
        FakeNvml nvml = new FakeNvml(folder);
        try (RealProcess broker = new RealProcess(folder, "lost", stateDir, Map.of("LD_LIBRARY_PATH",
            folder.toString()), "-Dhawser.worker.command=" + TestBroker.workerCommand("nvidia"))) {
            awaitHealth(broker, "ready", "\"UP\"");
            nvml.tell("lost0");
            awaitHealth(broker, "ready", "GPU " + FakeNvml.GPU_0 + ": it fell off the bus");
            assertTrue(health(broker, "ready").contains("\"UP\""), "guests can use the other GPU");
            nvml.tell("lost0 xid=79");
            awaitHealth(broker, "ready", "no GPU can be used");
            assertTrue(health(broker, "ready").contains("\"DOWN\""));
            assertTrue(health(broker, "live").contains("\"UP\""), "a restart would not repair the GPU");
            broker.terminate();
            broker.awaitExit();
        }
    }
}

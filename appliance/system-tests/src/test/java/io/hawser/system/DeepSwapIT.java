package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Two vGPUs of 60 % of one GPU each. The one that is out leaves wholly after a second. */
@LongTests
class DeepSwapIT {
    private static final int MEBIBYTES = 32; // that a program uses
    private static final long LEAST_BYTES = (long) MEBIBYTES << 20;
    private static final List<String> VGPUS = List.of("left", "right");

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;

    @BeforeAll
    static void createVgpus() throws Exception {
        startBroker();
        long total = broker.gpus().get(0).path("totalBytes").asLong();
        for (String vgpu : VGPUS) {
            broker.create("/api/v1/vgpus", JsonNodeFactory.instance.objectNode().put("name", vgpu)
                .put("memoryBytes", total / 10 * 6 >> 21 << 21).put("swappable", true));
            Files.writeString(token(vgpu), broker.create("/api/v1/vgpus/" + vgpu + "/tokens",
                JsonNodeFactory.instance.objectNode()).path("token").asText());
        }
    }

    private static void startBroker() throws IOException {
        broker = BrokerProcess.start("deep-swap", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(Map.of(
            "hawser.overcommit", "2", "hawser.swap.memory", "1300M", "hawser.swap.stay", "0.2s",
            "hawser.swap.idle", "0.2s", "hawser.swap.turn", "1s", "hawser.swap.deep", "1s",
            "quarkus.log.category.\"io.hawser.broker.swap\".level", "DEBUG")));
    }

    private static Path token(String vgpu) {
        return stateDir.resolve(vgpu + ".token");
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    /** Not a byte is left in a ledger, or with the keeper. */
    @AfterEach
    void nothingIsLeft() throws Exception {
        Await.until("the end of all sessions", Await.LIMIT, broker::logEnd,
            () -> broker.sessions().isEmpty() ? "" : broker.sessions().toString());
        for (String vgpu : VGPUS) {
            assertEquals(0, broker.vgpu(vgpu).path("usedBytes").asLong(-1), vgpu);
            assertEquals(0, swap(vgpu).path("swappedBytes").asLong(-1), vgpu);
            assertEquals(0, swap(vgpu).path("deepSessions").asLong(-1), vgpu);
        }
    }

    private static JsonNode swap(String vgpu) throws IOException, InterruptedException {
        return broker.vgpu(vgpu).path("swap");
    }

    private static GuestProgram start(String vgpu, String... options) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(options));
        arguments.addAll(List.of("--mib", Integer.toString(MEBIBYTES)));
        return GuestProgram.start(Map.of("HAWSER_CARRIER", "tcp", "HAWSER_BROKER", broker.guest(), "HAWSER_TOKEN_FILE",
            token(vgpu).toString()), "drv_idle_rounds", arguments.toArray(new String[0]));
    }

    /** A program of the vGPU that has done its first round and is idle. */
    private static GuestProgram startIdle(String vgpu) throws Exception {
        GuestProgram program = start(vgpu, "--wait", "1");
        program.awaitLine("READY");
        return program;
    }

    private static void awaitDeep(String vgpu) {
        Await.until("vGPU " + vgpu + " to be deep", () -> {
            JsonNode swap = swap(vgpu);
            return swap.path("deepSessions").asInt() == 1 && swap.path("swappedBytes").asLong() >= LEAST_BYTES ? ""
                : swap.toString();
        });
    }

    private static void awaitSessions(int count) {
        Await.until(count + " sessions", () -> broker.sessions().size() == count ? ""
            : broker.sessions().toString());
    }

    private static long workerOf(GuestProgram program) throws IOException, InterruptedException {
        for (JsonNode session : broker.sessions()) {
            if (session.path("guestPid").asLong() == program.pid()) {
                return session.path("workerPid").asLong();
            }
        }
        throw new AssertionError("no session of process " + program.pid());
    }

    /** The process that the broker's log names last. */
    private static long named(String text) {
        return broker.logLines(text).map(line -> line.replaceAll(".* pid=(\\d+).*", "$1")).mapToLong(Long::parseLong)
            .reduce((before, last) -> last).orElseThrow();
    }

    private static long helper() {
        return named("moves the whole GPU state of sessions");
    }

    private static long keeper() {
        return named("keeps the memory of swapped sessions");
    }

    private static void assertWorks() throws Exception {
        Await.until("a keeper", () -> ProcessHandle.of(keeper()).isPresent() ? "" : "the last one was " + keeper());
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitDeep("left");
            left.release();
            left.await().assertPassed();
            right.release();
            right.await().assertPassed();
        }
    }

    @Test
    void shouldBringAProgramBackThatHasLeftWholly() throws Exception {
        long before = swap("left").path("deepSwaps").asLong();
        assertWorks();
        assertTrue(swap("left").path("deepSwaps").asLong() > before);
        assertEquals("", swap("left").path("deepStays").asText());
    }

    @Test
    void shouldMoveProgramsThatPauseForLongAgainAndAgain() throws Exception {
        try (GuestProgram left = start("left", "--rounds", "3", "--pause-ms", "2500");
            GuestProgram right = start("right", "--rounds", "3", "--pause-ms", "2500")) {
            left.await().assertPassed();
            right.await().assertPassed();
        }
    }

    /** The process that dies. */
    private enum Victim { GUEST, WORKER, OTHER_WORKER, KEEPER, HELPER }

    private static void kill(Victim victim, GuestProgram left, GuestProgram right) throws Exception {
        switch (victim) {
            case GUEST -> left.kill();
            case WORKER -> Signals.send("KILL", workerOf(left));
            case OTHER_WORKER -> Signals.send("KILL", workerOf(right));
            case KEEPER -> Signals.send("KILL", keeper());
            case HELPER -> Signals.send("KILL", helper());
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldLeaveNothingOfWhatIsKilledWhileDeep(Victim victim) throws Exception {
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitDeep("left");
            kill(victim, left, right);
            if (victim != Victim.HELPER) { // another helper brings it back
                awaitSessions(1);
            }
            end(left, right, victim == Victim.HELPER || victim == Victim.OTHER_WORKER, victim != Victim.OTHER_WORKER,
                victim);
        }
        assertWorks();
    }

    /** The helper stands still, so the victim dies while the helper has the left session to move to the host. */
    @ParameterizedTest
    @EnumSource
    void shouldLeaveNothingOfWhatIsKilledDuringTheMoveOut(Victim victim) throws Exception {
        assertWorks(); // a helper runs
        try (GuestProgram left = startIdle("left")) {
            long before = orders();
            GuestProgram right;
            try (StoppedProcess stopped = new StoppedProcess(helper())) {
                right = startIdle("right");
                Await.until("the order to the helper", () -> orders() > before ? "" : swap("left").toString());
                kill(victim, left, right);
                if (victim != Victim.OTHER_WORKER) {
                    awaitSessions(1);
                }
            }
            end(left, right, victim == Victim.OTHER_WORKER, victim != Victim.OTHER_WORKER, victim);
            right.close();
        }
        assertWorks();
    }

    /** The helper stands still, so the victim dies while the helper has the left session to move back. */
    @ParameterizedTest
    @EnumSource
    void shouldLeaveNothingOfWhatIsKilledDuringTheMoveBack(Victim victim) throws Exception {
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitDeep("left");
            try (StoppedProcess stopped = new StoppedProcess(helper())) {
                left.release();
                Await.until("vGPU left to be on its way back", () -> {
                    JsonNode swap = swap("left");
                    return swap.path("resident").asBoolean() && swap.path("deepSessions").asInt() == 0
                        && swap.path("swappedBytes").asLong() >= LEAST_BYTES ? "" : swap.toString();
                });
                kill(victim, left, right);
                if (victim != Victim.OTHER_WORKER) {
                    awaitSessions(1);
                }
            }
            // Without the keeper the right one, whose memory it has, cannot go on either.
            end(left, right, victim == Victim.OTHER_WORKER, victim != Victim.OTHER_WORKER && victim != Victim.KEEPER,
                victim);
        }
        assertWorks();
    }

    /** Orders that the helper has got to move the left session to the host. */
    private static long orders() {
        return broker.logLines("vGPU left: makes no calls: stays=").filter(line -> line.strip().endsWith("stays="))
            .count();
    }

    /** A helper that stands still for 30 s is killed, and costs the session that it moves. */
    @Test
    void shouldEndTheSessionWhoseMoveHangs() throws Exception {
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitDeep("left");
            try (StoppedProcess stopped = new StoppedProcess(helper())) {
                left.release();
                awaitSessions(1);
            }
            end(left, right, false, true, Victim.HELPER);
        }
        assertWorks();
    }

    private static void end(GuestProgram left, GuestProgram right, boolean leftGoesOn, boolean rightGoesOn,
        Victim victim) throws Exception {
        if (victim != Victim.GUEST) {
            left.release();
            assertEquals(leftGoesOn, left.await().exit() == 0, "left");
        }
        right.release();
        assertEquals(rightGoesOn, right.await().exit() == 0, "right");
    }

    @Test
    void shouldEndAllProcessesOfAKilledBroker() throws Exception {
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitDeep("left");
            List<ProcessHandle> processes = ProcessHandle.of(broker.pid()).orElseThrow().descendants().toList();
            assertTrue(processes.stream().anyMatch(process -> process.pid() == helper()), processes.toString());
            broker.kill();
            Await.until("the end of all processes of the broker", () -> {
                List<ProcessHandle> alive = processes.stream().filter(ProcessHandle::isAlive).toList();
                return alive.isEmpty() ? "" : alive.toString();
            });
            for (GuestProgram program : List.of(left, right)) {
                program.release();
                assertTrue(program.await().exit() != 0);
            }
        }
        stopBroker();
        startBroker();
        assertWorks();
    }
}

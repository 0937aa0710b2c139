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

/** Two vGPUs of 60 % of one GPU each: one of them is always out. */
@LongTests
class SwapIT {
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
        broker = BrokerProcess.start("swap", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(Map.of(
            "hawser.overcommit", "2", "hawser.swap.memory", "1300M", "hawser.swap.stay", "0.2s",
            "hawser.swap.idle", "0.2s", "hawser.swap.turn", "1s")));
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
        }
    }

    private static JsonNode swap(String vgpu) throws IOException, InterruptedException {
        return broker.vgpu(vgpu).path("swap");
    }

    private static long swaps(String vgpu) throws IOException, InterruptedException {
        return swap(vgpu).path("swaps").asLong(-1);
    }

    private static GuestProgram start(String vgpu, String... options) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(options));
        arguments.addAll(List.of("--mib", Integer.toString(MEBIBYTES))); // the program takes the first of an option
        return GuestProgram.start(Map.of("HAWSER_CARRIER", "tcp", "HAWSER_BROKER", broker.guest(), "HAWSER_TOKEN_FILE",
            token(vgpu).toString()), "drv_idle_rounds", arguments.toArray(new String[0]));
    }

    /** A program of the vGPU that has done its first round and is idle. */
    private static GuestProgram startIdle(String vgpu, String... options) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(options));
        arguments.addAll(List.of("--wait", "1"));
        GuestProgram program = start(vgpu, arguments.toArray(new String[0]));
        program.awaitLine("READY");
        return program;
    }

    private static void awaitOut(String vgpu) {
        Await.until("vGPU " + vgpu + " to be out", () -> {
            JsonNode swap = swap(vgpu);
            return !swap.path("resident").asBoolean() && swap.path("swappedBytes").asLong() >= LEAST_BYTES ? ""
                : swap.toString();
        });
    }

    private static JsonNode session(GuestProgram program) throws IOException, InterruptedException {
        for (JsonNode session : broker.sessions()) {
            if (session.path("guestPid").asLong() == program.pid()) {
                return session;
            }
        }
        throw new AssertionError("no session of process " + program.pid());
    }

    @Test
    void shouldShareAGpuThatIsTooSmallForBoth() throws Exception {
        long before = swaps("left") + swaps("right");
        try (GuestProgram left = start("left", "--rounds", "6", "--pause-ms", "900");
            GuestProgram right = start("right", "--rounds", "6", "--pause-ms", "900")) {
            left.await().assertPassed();
            right.await().assertPassed();
        }
        assertTrue(swaps("left") + swaps("right") >= before + 2, () -> "swaps=" + before);
    }

    /** The host's memory holds one of both and a little more, so each moves as far as the other one has moved. */
    @Test
    void shouldExchangeMoreThanTheHostHasRoomFor() throws Exception {
        long before = swaps("right");
        try (GuestProgram left = startIdle("left", "--mib", "700", "--blocks", "1")) {
            try (GuestProgram right = startIdle("right", "--mib", "700", "--blocks", "1")) {
                left.release();
                left.await().assertPassed();
                assertTrue(swaps("right") > before, "the right one has left for the left one");
                right.release();
                right.await().assertPassed();
            }
        }
    }

    @Test
    void shouldBringAnIdleProgramBackWhenItGoesOn() throws Exception {
        try (GuestProgram left = startIdle("left")) {
            try (GuestProgram right = startIdle("right")) {
                awaitOut("left");
                left.release();
                left.await().assertPassed();
                right.release();
                right.await().assertPassed();
            }
        }
        assertTrue(swap("left").path("waitedMs").asLong() > 0);
    }

    /** The process that dies while the program of the left vGPU is out. */
    private enum Victim {
        GUEST, WORKER, KEEPER, OTHER_WORKER
    }

    @ParameterizedTest
    @EnumSource
    void shouldLeaveNothingOfWhatIsKilledWhileOut(Victim victim) throws Exception {
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitOut("left");
            GuestProgram dead = victim == Victim.OTHER_WORKER ? right : left;
            kill(victim, left, right);
            Await.until("the end of the session", () -> broker.sessions().size() == 1 ? ""
                : broker.sessions().toString());
            GuestProgram alive = dead == left ? right : left;
            alive.release();
            alive.await().assertPassed();
            if (victim != Victim.GUEST) {
                dead.release();
                assertTrue(dead.await().exit() != 0);
            }
        }
        assertWorks();
    }

    /** The keeper stands still, so the victim dies while the keeper has the copy of a slab to make. */
    @ParameterizedTest
    @EnumSource
    void shouldLeaveNothingOfWhatIsKilledOnTheWayOut(Victim victim) throws Exception {
        try (GuestProgram left = startIdle("left")) {
            GuestProgram right;
            try (StoppedProcess stopped = new StoppedProcess(keeper())) {
                right = start("right", "--rounds", "2");
                Await.until("vGPU left to be on its way out", () -> {
                    JsonNode swap = swap("left");
                    return !swap.path("resident").asBoolean() && swap.path("swappedBytes").asLong() == 0 ? ""
                        : swap.toString();
                });
                kill(victim, left, right);
            }
            // Without a keeper nothing has left the GPU, so all go on. The right vGPU then comes after the left.
            if (victim != Victim.GUEST) {
                left.release();
                assertEquals(victim != Victim.WORKER, left.await().exit() == 0);
            }
            assertEquals(victim != Victim.OTHER_WORKER, right.await().exit() == 0);
        }
        assertWorks();
    }

    /** The keeper stands still, so the victim dies while the left vGPU has the way back before it. */
    @ParameterizedTest
    @EnumSource
    void shouldLeaveNothingOfWhatIsKilledOnTheWayBack(Victim victim) throws Exception {
        try (GuestProgram left = startIdle("left")) {
            try (GuestProgram right = start("right", "--rounds", "2")) {
                awaitOut("left");
                right.await().assertPassed();
            }
            GuestProgram right;
            try (StoppedProcess stopped = new StoppedProcess(keeper())) {
                left.release();
                Await.until("vGPU left to be on its way back", () -> {
                    JsonNode swap = swap("left");
                    return swap.path("resident").asBoolean() && swap.path("swappedBytes").asLong() >= LEAST_BYTES ? ""
                        : swap.toString();
                });
                right = start("right", "--rounds", "2");
                Await.until("two sessions with workers", () -> {
                    List<JsonNode> ready = broker.sessions().findParents("workerPid").stream()
                        .filter(session -> session.path("workerPid").asLong() > 0).toList();
                    return ready.size() == 2 ? "" : ready.toString();
                });
                kill(victim, left, right);
            }
            assertEquals(victim == Victim.OTHER_WORKER, left.await().exit() == 0);
            assertEquals(victim != Victim.OTHER_WORKER, right.await().exit() == 0);
        }
        assertWorks();
    }

    private static void kill(Victim victim, GuestProgram left, GuestProgram right) throws Exception {
        switch (victim) {
            case GUEST -> left.kill();
            case KEEPER -> Signals.send("KILL", keeper());
            case WORKER -> Signals.send("KILL", session(left).path("workerPid").asLong());
            case OTHER_WORKER -> Signals.send("KILL", session(right).path("workerPid").asLong());
        }
    }

    /** A program of each vGPU, one of which must leave. */
    private static void assertWorks() throws Exception {
        Await.until("a keeper", () -> ProcessHandle.of(keeper()).isPresent() ? "" : "the last one was " + keeper());
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitOut("left");
            left.release();
            left.await().assertPassed();
            right.release();
            right.await().assertPassed();
        }
    }

    @Test
    void shouldEndTheKeeperOfAKilledBroker() throws Exception {
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitOut("left");
            List<ProcessHandle> processes = ProcessHandle.of(broker.pid()).orElseThrow().descendants().toList();
            assertTrue(processes.stream().anyMatch(process -> process.pid() == keeper()), processes.toString());
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

    /** The process that the broker's log names as the keeper. */
    private static long keeper() {
        return broker.logLines("keeps the memory of swapped sessions").map(line -> line.replaceAll(".* pid=(\\d+).*",
            "$1")).mapToLong(Long::parseLong).reduce((before, last) -> last).orElseThrow();
    }
}

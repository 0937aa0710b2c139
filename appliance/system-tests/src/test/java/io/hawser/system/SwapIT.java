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
class SwapIT {
    private static final int MEBIBYTES = 32; // that a program uses
    private static final long LEAST_BYTES = (long) MEBIBYTES << 20;
    private static final List<String> VGPUS = List.of("left", "right");

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;

    @BeforeAll
    static void startBroker() throws Exception {
        broker = BrokerProcess.start("swap", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(Map.of(
            "hawser.overcommit", "2", "hawser.swap.memory", "512M", "hawser.swap.stay", "0.2s",
            "hawser.swap.idle", "0.2s", "hawser.swap.turn", "1s")));
        long total = broker.gpus().get(0).path("totalBytes").asLong();
        for (String vgpu : VGPUS) {
            broker.create("/api/v1/vgpus", JsonNodeFactory.instance.objectNode().put("name", vgpu)
                .put("memoryBytes", total / 10 * 6 >> 21 << 21).put("swappable", true));
            Files.writeString(token(vgpu), broker.create("/api/v1/vgpus/" + vgpu + "/tokens",
                JsonNodeFactory.instance.objectNode()).path("token").asText());
        }
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
        List<String> arguments = new ArrayList<>(List.of("--mib", Integer.toString(MEBIBYTES)));
        arguments.addAll(List.of(options));
        return GuestProgram.start(Map.of("HAWSER_CARRIER", "tcp", "HAWSER_BROKER", broker.guest(), "HAWSER_TOKEN_FILE",
            token(vgpu).toString()), "drv_idle_rounds", arguments.toArray(new String[0]));
    }

    /** A program of the vGPU that has done its first round and is idle. */
    private static GuestProgram startIdle(String vgpu) throws Exception {
        GuestProgram program = start(vgpu, "--wait", "1");
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
            switch (victim) {
                case GUEST -> left.kill();
                case KEEPER -> kill(keeper());
                default -> kill(session(dead).path("workerPid").asLong());
            }
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
        try (GuestProgram left = startIdle("left"); GuestProgram right = startIdle("right")) {
            awaitOut("left");
            left.release();
            left.await().assertPassed();
            right.release();
            right.await().assertPassed();
        }
    }

    private static void kill(long pid) {
        assertTrue(ProcessHandle.of(pid).orElseThrow().destroyForcibly(), "process " + pid);
    }

    /** The process that the broker's log names as the keeper. */
    private static long keeper() {
        return broker.logLines("keeps the memory of swapped sessions").map(line -> line.replaceAll(".* pid=(\\d+).*",
            "$1")).mapToLong(Long::parseLong).reduce((before, last) -> last).orElseThrow();
    }
}

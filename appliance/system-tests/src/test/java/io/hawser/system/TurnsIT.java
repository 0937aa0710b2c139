package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * vGPUs that want the software GPU at the same time. What is compared is the GPU time that sessions have had, over
 * seconds, and loosely: the exact proportions are tested with a clock that is simulated.
 */
class TurnsIT {
    private static final long ENOUGH_MS = 4000;

    @TempDir
    private Path stateDir;
    private final RegionFile large = RegionFile.unused(64, 2);
    private final RegionFile small = RegionFile.unused(64, 2);
    private BrokerProcess broker;

    @BeforeEach
    void startBroker() throws IOException {
        Map<String, String> settings = new HashMap<>(large.settings("large"));
        settings.putAll(small.settings("small"));
        settings.putAll(Map.of("hawser.regions.large.vgpu", "large", "hawser.regions.small.vgpu", "small",
            "hawser.vgpus.large.compute-share", "80", "hawser.vgpus.small.compute-share", "20",
            // Long turns: what a loaded machine takes to wake a process up must not count for much. And a long grace:
            // where two run beside each other, the time of both counts whole in their statistics.
            "hawser.turns.quantum", "200ms", "hawser.turns.grace", "2s"));
        broker = BrokerProcess.start("turns", stateDir.resolve("broker"), settings);
    }

    @AfterEach
    void stopBroker() {
        broker.close();
        large.delete();
        small.delete();
    }

    /** A program that launches kernels far longer than a call as fast as they are done, until it is killed. */
    private static GuestProgram flood(RegionFile region, String... arguments) throws IOException {
        GuestProgram program = GuestProgram.start(
            Map.of("HAWSER_CARRIER", "shm", "HAWSER_REGION", region.path().toString()), "tenant",
            arguments.length > 0 ? arguments
                : new String[] {"--blocks", "2", "--bodies", "8192", "--depth", "32", "--seconds", "600"});
        program.awaitLine("READY");
        program.release();
        return program;
    }

    private JsonNode session(String vgpu) throws IOException, InterruptedException {
        for (JsonNode session : broker.sessions()) {
            if (session.path("vgpu").asText().equals(vgpu)) {
                return session;
            }
        }
        throw new IOException("no session of vGPU " + vgpu + ": " + broker.sessions());
    }

    private long statistic(String vgpu, String name) throws IOException, InterruptedException {
        return session(vgpu).path("statistics").path(name).asLong();
    }

    private void awaitMore(String vgpu, String name, long more) throws IOException, InterruptedException {
        long before = statistic(vgpu, name);
        Await.until("more " + name + " of " + vgpu, () -> {
            long now = statistic(vgpu, name);
            return now - before >= more ? "" : "from " + before + " to " + now;
        });
    }

    private static void signal(String signal, long pid) throws IOException, InterruptedException {
        assertEquals(0, new ProcessBuilder("kill", "-" + signal, Long.toString(pid)).inheritIO().start().waitFor());
    }

    @Test
    void shouldGiveTimeByWeight() throws Exception {
        try (GuestProgram one = flood(large); GuestProgram other = flood(small)) {
            awaitMore("large", "waitedMs", 500); // both are under way
            awaitMore("small", "waitedMs", 500);
            long largeBefore = statistic("large", "gpuTimeMs");
            long smallBefore = statistic("small", "gpuTimeMs");
            awaitMore("large", "gpuTimeMs", ENOUGH_MS);
            double ratio = (double) (statistic("large", "gpuTimeMs") - largeBefore)
                / (statistic("small", "gpuTimeMs") - smallBefore);
            assertTrue(ratio > 1.8 && ratio < 8, "4 to 1 is due: " + ratio);
            one.kill();
            other.kill();
        }
        broker.awaitIdle();
    }

    @Test
    void shouldGoOnWithoutAWorkerThatIsKilledOrStopped() throws Exception {
        try (GuestProgram lost = flood(large); GuestProgram left = flood(small)) {
            awaitMore("large", "waitedMs", 200);
            awaitMore("small", "waitedMs", 200);
            long worker = session("large").path("workerPid").asLong();
            signal("STOP", worker);
            awaitMore("small", "kernels", 20);
            signal("KILL", worker);
            Await.until("the end of the killed session", () -> broker.sessions().size() == 1 ? ""
                : broker.sessions().toString());
            long waited = statistic("small", "waitedMs");
            awaitMore("small", "kernels", 20);
            assertTrue(statistic("small", "waitedMs") - waited < 1000, "alone, it waits for nobody");
            left.kill();
            lost.kill();
        }
        broker.awaitIdle();
    }

    @Test
    void shouldLetOthersWorkBesideKernelsOfSeconds() throws Exception {
        try (GuestProgram greedy = flood(large, "--blocks", "1", "--bodies", "4000000", "--depth", "8", "--seconds",
                "600")) {
            Await.until("its long kernels", () -> statistic("large", "gpuTimeMs") > 1000 ? "" : "none yet");
            for (String name : List.of("drv_vector_add", "drv_graphs", "drv_callbacks")) {
                try (GuestProgram program = GuestProgram.start(Map.of("HAWSER_CARRIER", "shm", "HAWSER_REGION",
                        small.path().toString()), name)) {
                    program.await().assertPassed();
                }
            }
            greedy.kill();
        }
        broker.awaitIdle();
    }
}

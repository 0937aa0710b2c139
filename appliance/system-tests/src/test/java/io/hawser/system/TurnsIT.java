package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * vGPUs that want the software GPU at the same time. What is compared is the GPU time that sessions have had, over
 * seconds, and loosely: the exact proportions are tested with a clock that is simulated. What a worker says of itself
 * is half a second old, and older where the machine does much else.
 */
class TurnsIT {
    private static final long ENOUGH_MS = 4000;
    /** Where two run beside each other, the time of both counts whole in their statistics. */
    private static final String LONG_GRACE = "2s";

    /** What two sessions have had of the GPU, of one look. */
    private record GpuTime(long largeMs, long smallMs) { }

    @TempDir
    private Path stateDir;
    private final RegionFile large = RegionFile.unused(64, 2);
    private final RegionFile small = RegionFile.unused(64, 2);
    private BrokerProcess broker;

    private void startBroker(String grace) throws IOException {
        Map<String, String> settings = new HashMap<>(large.settings("large"));
        settings.putAll(small.settings("small"));
        settings.putAll(Map.of("hawser.regions.large.vgpu", "large", "hawser.regions.small.vgpu", "small",
            "hawser.vgpus.large.compute-share", "80", "hawser.vgpus.small.compute-share", "20",
            // Long turns: what a loaded machine takes to wake a process up must not count for much.
            "hawser.turns.quantum", "200ms", "hawser.turns.grace", grace));
        broker = BrokerProcess.start("turns", stateDir.resolve("broker"), settings);
    }

    @AfterEach
    void stopBroker() {
        if (broker != null) {
            broker.close();
        }
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

    private static JsonNode session(JsonNode sessions, String vgpu) throws IOException {
        for (JsonNode session : sessions) {
            if (session.path("vgpu").asText().equals(vgpu)) {
                return session;
            }
        }
        throw new IOException("no session of vGPU " + vgpu + ": " + sessions);
    }

    private static long statistic(JsonNode sessions, String vgpu, String name) throws IOException {
        return session(sessions, vgpu).path("statistics").path(name).asLong();
    }

    private long statistic(String vgpu, String name) throws IOException, InterruptedException {
        return statistic(broker.sessions(), vgpu, name);
    }

    private GpuTime gpuTime() throws IOException, InterruptedException {
        JsonNode sessions = broker.sessions();
        return new GpuTime(statistic(sessions, "large", "gpuTimeMs"), statistic(sessions, "small", "gpuTimeMs"));
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
        startBroker(LONG_GRACE);
        try (GuestProgram one = flood(large); GuestProgram other = flood(small)) {
            awaitMore("large", "waitedMs", 500); // both are under way
            awaitMore("small", "waitedMs", 500);
            GpuTime before = gpuTime();
            // The longer it takes the less a turn more or less counts, and how old the figures are.
            Await.until("GPU time of about 4 to 1", () -> {
                GpuTime now = gpuTime();
                long largeMs = now.largeMs() - before.largeMs();
                long smallMs = now.smallMs() - before.smallMs();
                return largeMs >= ENOUGH_MS && largeMs > 2 * smallMs && largeMs < 8 * smallMs ? ""
                    : largeMs + " to " + smallMs + " ms";
            });
            one.kill();
            other.kill();
        }
        broker.awaitIdle();
    }

    @Test
    void shouldGoOnWithoutAWorkerThatIsKilledOrStopped() throws Exception {
        startBroker(LONG_GRACE);
        try (GuestProgram lost = flood(large); GuestProgram left = flood(small)) {
            awaitMore("large", "waitedMs", 200);
            awaitMore("small", "waitedMs", 200);
            long worker = session(broker.sessions(), "large").path("workerPid").asLong();
            signal("STOP", worker);
            awaitMore("small", "kernels", 20);
            signal("KILL", worker);
            Await.until("the end of the killed session", () -> broker.sessions().size() == 1 ? ""
                : broker.sessions().toString());
            // What its worker has said last may be of the time before.
            Await.until("work that waits for nobody", () -> {
                long waited = statistic("small", "waitedMs");
                awaitMore("small", "kernels", 20);
                long more = statistic("small", "waitedMs") - waited;
                return more == 0 ? "" : "alone, it has waited for " + more + " ms";
            });
            left.kill();
            lost.kill();
        }
        broker.awaitIdle();
    }

    @Test
    void shouldLetOthersWorkBesideKernelsOfSeconds() throws Exception {
        startBroker("100ms"); // of which each launch beside such a kernel takes one
        try (GuestProgram greedy = flood(large, "--blocks", "1", "--bodies", "2000000", "--depth", "8", "--seconds",
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

package io.hawser.system;

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
 * vGPUs that use the software GPU at the same time. The tests compare the sessions' GPU time over seconds, with wide
 * margins; other tests check the exact proportions with a simulated clock. A worker's statistics are half a second old,
 * and older on a busy machine.
 */
class TurnsIT {
    private static final long ENOUGH_MS = 4000;
    /** While two kernels run side by side, the statistics count the full time of both. */
    private static final String LONG_GRACE = "2s";

    /** The GPU time of two sessions at one moment. */
    private record GpuTime(long largeMs, long smallMs) {}

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
            // Long turns, so that a loaded machine's wake-up time hardly counts.
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

    /** A program that launches long kernels, one after the other, until it is killed. */
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

    @Test
    void shouldGiveTimeByWeight() throws Exception {
        startBroker(LONG_GRACE);
        try (GuestProgram one = flood(large); GuestProgram other = flood(small)) {
            awaitMore("large", "waitedMs", 500); // both sessions are running
            awaitMore("small", "waitedMs", 500);
            GpuTime before = gpuTime();
            // The longer the measurement, the less a single turn and the age of the figures count.
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
    void shouldContinueAfterAWorkerIsKilledOrStopped() throws Exception {
        startBroker(LONG_GRACE);
        try (GuestProgram lost = flood(large); GuestProgram left = flood(small)) {
            awaitMore("large", "waitedMs", 200);
            awaitMore("small", "waitedMs", 200);
            long worker = session(broker.sessions(), "large").path("workerPid").asLong();
            Signals.send("STOP", worker);
            awaitMore("small", "kernels", 20);
            Signals.send("KILL", worker);
            Await.until("the end of the killed session", () -> broker.sessions().size() == 1 ? ""
                : broker.sessions().toString());
            // The worker's last statistics may still describe the time before.
            Await.until("work without waiting", () -> {
                long waited = statistic("small", "waitedMs");
                awaitMore("small", "kernels", 20);
                long more = statistic("small", "waitedMs") - waited;
                return more == 0 ? "" : "without a competitor it has waited for " + more + " ms";
            });
            left.kill();
            lost.kill();
        }
        broker.awaitIdle();
    }

    @Test
    void shouldLetOthersWorkBesideKernelsOfSeconds() throws Exception {
        startBroker("100ms"); // each launch beside such a kernel waits this long
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

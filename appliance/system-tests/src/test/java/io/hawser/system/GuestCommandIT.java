package io.hawser.system;

import static io.hawser.system.GuestCommand.run;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.system.GuestCommand.Ended;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The guest's `hawser` command, over each carrier. */
class GuestCommandIT {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long QUOTA = 64L << 20;

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;

    @BeforeAll
    static void startBroker() throws Exception {
        broker = BrokerProcess.start("guest-command", stateDir.resolve("broker"), Map.of(
            "hawser.vgpus.default.memory-bytes", Long.toString(QUOTA), "hawser.vgpus.default.swappable", "true"));
        // A region shows the GPU periodically, and at first before the broker knows it.
        for (Carrier carrier : Carrier.values()) {
            Await.until("the GPU to be shown over " + carrier, () -> {
                Ended shown = run(carrier.environment(broker), "smi", "--json");
                return shown.exit() == 0 && JSON.readTree(shown.out()).path("gpus").path(0).path("totalBytes").asLong()
                    == QUOTA ? "" : shown.toString();
            });
        }
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldShowTheVgpuAndItsSessions(Carrier carrier) throws Exception {
        Map<String, String> environment = carrier.environment(broker);
        try (GuestProgram program = GuestProgram.start(broker, carrier, "hold")) {
            program.awaitLine("READY");
            Await.until("the session to be shown", () -> {
                Ended ended = run(environment, "smi", "--json");
                assertEquals(0, ended.exit(), ended::toString);
                JsonNode shown = JSON.readTree(ended.out());
                assertEquals("default", shown.path("vgpu").asText());
                assertEquals(QUOTA, shown.path("memoryBytes").asLong());
                assertEquals(QUOTA, shown.path("gpus").path(0).path("totalBytes").asLong());
                assertTrue(shown.path("swappedBytes").isNumber(), ended::toString);
                JsonNode session = shown.path("sessions").path(0);
                return session.path("pid").asLong() == program.pid() && session.path("state").asText().equals("running")
                    && session.path("carrier").asText().equals(carrier.inStatistics()) ? "" : shown.toString();
            });
            Ended screen = run(environment, "smi");
            assertEquals(0, screen.exit(), screen::toString);
            assertTrue(screen.out().contains("| vGPU default") && screen.out().contains("hold"), screen::toString);
            assertTrue(screen.out().contains("| memory on the broker's host "), screen::toString);
            assertTrue(run(environment, "smi", "-L").out().matches("GPU 0: .* \\(UUID: GPU-[0-9a-f-]+\\)\n"));
            program.release();
            program.await();
        }
        broker.awaitIdle();
    }

    @ParameterizedTest
    @EnumSource
    void shouldRunProgramsAndFindNothingWrong(Carrier carrier) throws Exception {
        Map<String, String> environment = carrier.environment(broker);
        String program = Chain.PROGRAMS.resolve("drv_vector_add").toString();
        Ended healthy = run(environment, "doctor", program);
        assertEquals(0, healthy.exit(), healthy::toString);
        assertTrue(healthy.out().endsWith("Nothing stands in the way.\n"), healthy::toString);
        Ended ran = run(environment, "run", program);
        assertEquals(0, ran.exit(), ran::toString);
        assertTrue(ran.out().contains("PASS drv_vector_add"), ran::toString);
        broker.awaitIdle();
    }

    @ParameterizedTest
    @EnumSource
    void shouldRunProgramWithArgumentsAndNameItsLibraries(Carrier carrier) throws Exception {
        Map<String, String> environment = carrier.environment(broker);
        String program = Chain.PROGRAMS.resolve("drv_vector_add").toString();
        Ended ran = run(environment, "doctor", program, "--an-option");
        assertEquals(0, ran.exit(), ran::toString);
        int running = ran.out().indexOf("note running " + program + "\nPASS drv_vector_add");
        assertTrue(running > 0 && ran.out().indexOf("ok   libcuda.so.1: ours\n", running) > 0, ran::toString);
        Ended mathematical = run(environment, "doctor", Chain.PROGRAMS.resolve("drv_curand").toString(), "--an-option");
        assertTrue(mathematical.out().contains("ok   libcurand.so.10: ours"), mathematical::toString);
        assertFalse(mathematical.out().contains("does not serve this library"), mathematical::toString);
        Ended failed = run(environment, "doctor", "sh", "-c", "exit 3");
        assertEquals(1, failed.exit(), failed::toString);
        assertTrue(failed.out().contains("FAIL sh: ended with exit code 3\n"), failed::toString);
        broker.awaitIdle();
    }

    @Test
    void shouldReportEachProblem() throws Exception {
        Map<String, String> wrong = new HashMap<>(Carrier.TCP.environment(broker));
        wrong.remove("HAWSER_TOKEN_FILE");
        wrong.put("HAWSER_TOKEN", "default.wrong");
        Ended refused = run(wrong, "doctor");
        assertEquals(1, refused.exit(), refused::toString);
        assertTrue(refused.out().contains("FAIL TCP: ") && refused.out().contains("token"), refused::toString);
        assertEquals(1, run(wrong, "smi").exit());
        if (Chain.cudaPrograms().contains("vector_add")) {
            Ended stripped = run(Carrier.SHM.environment(broker), "doctor",
                Chain.PROGRAMS.resolve("static_stripped").toString());
            assertEquals(1, stripped.exit(), stripped::toString);
            assertTrue(stripped.out().contains("link it with nvcc -cudart shared, or ask the vendor"),
                stripped::toString);
            Ended redirected = run(Carrier.SHM.environment(broker), "doctor",
                Chain.STATIC_PROGRAMS.resolve("vector_add").toString());
            assertEquals(0, redirected.exit(), redirected::toString);
            assertTrue(redirected.out().contains("a CUDA 13 runtime is linked into it statically, with symbols"),
                redirected::toString);
            Ended shared = run(Carrier.SHM.environment(broker), "doctor",
                Chain.PROGRAMS.resolve("vector_add").toString());
            assertEquals(0, shared.exit(), shared::toString);
        }
    }
}

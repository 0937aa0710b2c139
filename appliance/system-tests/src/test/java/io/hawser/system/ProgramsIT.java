package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** Every test program, alone and several at once, over one broker. */
class ProgramsIT {
    private static final int UNSUPPORTED = 77;
    /** Programs that ask for what is refused, which the guest library names once on stderr. */
    private static final Set<String> REFUSED_IN_PART = Set.of("drv_errors", "managed_memory", "pointer_attributes");

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;

    @BeforeAll
    static void startBroker() throws Exception {
        broker = BrokerProcess.start("programs", stateDir.resolve("broker"), Map.of());
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    @AfterEach
    void nothingIsLeft() {
        broker.awaitIdle();
    }

    @TestFactory
    Stream<DynamicTest> shouldRunDriverPrograms() {
        List<String> names = Chain.driverPrograms();
        assertFalse(names.isEmpty(), "no driver program in " + Chain.PROGRAMS);
        return names.stream().map(name -> DynamicTest.dynamicTest(name, () -> run(name)));
    }

    @TestFactory
    Stream<DynamicTest> shouldRunCudaPrograms() {
        List<String> names = Chain.cudaPrograms();
        if (names.isEmpty()) {
            return Stream.of(DynamicTest.dynamicTest("programs built by nvcc",
                () -> assumeFalse(true, "nvcc not found: the .cu programs were not built, so none was run")));
        }
        return names.stream().map(name -> DynamicTest.dynamicTest(name, () -> run(name)));
    }

    private static void run(String name) throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, name)) {
            GuestProgram.Result result = program.await();
            assumeTrue(result.exit() != UNSUPPORTED, result.out());
            result.assertPassed();
            assertEquals(!REFUSED_IN_PART.contains(name), result.hawserLines().isEmpty(), result::toString);
            List<JsonNode> counters = result.counters();
            assertFalse(counters.isEmpty(), "HAWSER_STATS wrote nothing");
            assertEquals("tcp", counters.getFirst().path("carrier").asText());
            assertTrue(counters.stream().anyMatch(c -> c.path("calls").asLong() > 0), counters::toString);
            broker.awaitIdle();
        }
    }

    @Test
    void shouldServeSeveralGuestsAtOnce() throws Exception {
        List<String> names = List.of("drv_matrix_mul", "drv_many_calls", "drv_threads", "drv_large_copies",
            "drv_vector_add", "drv_callbacks");
        List<GuestProgram> programs = new ArrayList<>();
        try {
            for (String name : names) {
                programs.add(GuestProgram.start(broker, name));
            }
            for (GuestProgram program : programs) {
                program.await().assertPassed();
            }
        } finally {
            programs.forEach(GuestProgram::close);
        }
    }

    @Test
    void shouldSayHowToRelinkAStaticRuntime() throws Exception {
        assumeTrue(Files.exists(Chain.PROGRAMS.resolve("static_cudart")),
            "nvcc not found: static_cudart was not built");
        try (GuestProgram program = GuestProgram.start(broker, "static_cudart")) {
            GuestProgram.Result result = program.await();
            assertEquals(1, result.exit(), result::toString);
            assertTrue(result.hawserLines().stream().anyMatch(line -> line.contains("-cudart shared")),
                result::toString);
        }
    }
}

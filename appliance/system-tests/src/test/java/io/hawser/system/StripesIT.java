package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Programs whose long copies use several connections. This machine may have too few processors for that by default. */
class StripesIT {
    private static final String THREADS = "HAWSER_COPY_THREADS";

    @TempDir
    private static Path folder;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        broker = OWN.keep(BrokerProcess.start("stripes", folder, BrokerProcess.withQuickWorkers(Map.of())));
    }

    /** Runs a program, and returns the number of its stripes. */
    static int run(Map<String, String> way, String threads, String name, String... arguments) throws Exception {
        Map<String, String> environment = new HashMap<>(way);
        environment.put(THREADS, threads);
        try (GuestProgram guest = GuestProgram.start(environment, name, arguments)) {
            List<JsonNode> counters = guest.await().assertPassed().counters();
            assertEquals(1, counters.size());
            return counters.getFirst().path("stripes").asInt(-1);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"drv_large_copies", "drv_pageable_copies", "drv_arrays"})
    void shouldRunProgramsOfLongCopies(String name) throws Exception {
        int stripes = run(Carrier.TCP.environment(broker), "4", name);
        assertTrue(stripes > 0, "the copies must be long enough: stripes=" + stripes);
    }

    @ParameterizedTest
    @ValueSource(strings = {"drv_copies_2d_3d", "drv_registered_order", "drv_fault"})
    void shouldRunOtherPrograms(String name) throws Exception {
        run(Carrier.TCP.environment(broker), "4", name);
    }

    /** At most 4 stripes for the program's synchronous copies, and always 4 for the asynchronous ones. */
    @Test
    void shouldRunAsynchronousReads() throws Exception {
        int stripes = run(Carrier.TCP.environment(broker), "4", "drv_asynchronous_reads", "--size", "64");
        assertTrue(stripes >= 4 && stripes <= 8, "stripes=" + stripes);
    }

    @Test
    void shouldShareLongCopiesAmongConnections() throws Exception {
        int stripes = run(Carrier.TCP.environment(broker), "3", "drv_large_copies", "--size", "200");
        assertTrue(stripes > 0 && stripes <= 3, "stripes=" + stripes);
    }

    @Test
    void shouldKeepToOneConnectionWhereThatIsAsked() throws Exception {
        assertEquals(0, run(Carrier.TCP.environment(broker), "1", "drv_large_copies"));
        assertEquals(0, run(Carrier.SHM.environment(broker), "4", "drv_large_copies"));
        assertEquals(0, run(Carrier.TCP.environment(broker), "1", "drv_asynchronous_reads", "--size", "16"));
        assertEquals(0, run(Carrier.SHM.environment(broker), "4", "drv_asynchronous_reads", "--size", "16"));
    }
}

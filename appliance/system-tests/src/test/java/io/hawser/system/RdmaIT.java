package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Programs over RDMA, by the device of libibverbs for tests: both ends are processes of this machine. */
class RdmaIT {
    private static final long PINNED_BYTES = 5_000_001; // the longest copy of drv_pinned_order, which it makes often

    private static final String GPU_DIRECT = "the RDMA device uses the memory of the GPU";

    @TempDir
    private static Path folder;
    @TempDir
    private static Path fabric;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        // The distribution has the library beside the worker's jars, and so has a worker of the source tree here.
        Files.copy(Chain.RDMA, Chain.WORKER.resolve(Chain.RDMA.getFileName()), StandardCopyOption.REPLACE_EXISTING);
        Map<String, String> settings = new HashMap<>(BrokerProcess.withRdma(fabric));
        settings.put("hawser.vgpus.default.rdma", "true");
        broker = OWN.keep(BrokerProcess.start("rdma", folder, settings));
    }

    private static Map<String, String> guest(BrokerProcess broker, String carrier) {
        Map<String, String> environment = new HashMap<>(Carrier.TCP.environment(broker));
        environment.putAll(BrokerProcess.verbs(fabric));
        environment.put("HAWSER_CARRIER", carrier);
        return environment;
    }

    private static GuestProgram hold(String... arguments) throws Exception {
        GuestProgram program = GuestProgram.start(guest(broker, "rdma"), "hold", arguments);
        program.awaitLine("READY");
        return program;
    }

    private static void assertOverRdma(GuestProgram.Result result) throws Exception {
        List<JsonNode> counters = result.assertPassed().counters();
        assertEquals(1, counters.size());
        JsonNode sent = counters.getFirst();
        assertEquals("rdma", sent.path("carrier").asText(), result::toString);
        // Each call is a message. Chunks and pinned memory are further ones, which travel beside the records.
        assertTrue(sent.path("rdma_messages").asLong() > sent.path("calls").asLong(), result::toString);
        assertTrue(sent.path("rdma_bytes").asLong() >= sent.path("bytes_out").asLong(), result::toString);
    }

    private static JsonNode onlySession() throws Exception {
        JsonNode sessions = broker.sessions();
        assertEquals(1, sessions.size(), sessions::toString);
        return sessions.get(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"drv_vector_add", "drv_pageable_copies", "drv_copies_2d_3d", "drv_arrays", "drv_many_calls",
        "drv_callbacks", "drv_graphs", "drv_streams_events", "drv_large_copies", "drv_registered_order", "drv_fault",
        "pinned_concurrent"})
    void shouldRunPrograms(String name) throws Exception {
        try (GuestProgram program = GuestProgram.start(guest(broker, "rdma"), name)) {
            assertOverRdma(program.await());
        }
    }

    /** The adapters carry the bytes. Records carry only those of short copies. */
    @Test
    void shouldCarryPinnedMemoryWithoutRecords() throws Exception {
        try (GuestProgram program = GuestProgram.start(guest(broker, "rdma"), "drv_pinned_order")) {
            GuestProgram.Result result = program.await();
            assertOverRdma(result);
            JsonNode counters = result.counters().getFirst();
            assertTrue(counters.path("bytes_out").asLong() < PINNED_BYTES / 4, result::toString);
            assertTrue(counters.path("bytes_in").asLong() < PINNED_BYTES / 4, result::toString);
            assertTrue(counters.path("rdma_bytes").asLong() > PINNED_BYTES, result::toString);
        }
    }

    /**
     * The slabs of the software GPU are files, which the device for tests takes as dma-bufs. This device has no place
     * in PCIe, so it is near to no GPU and serves none by itself.
     */
    @Test
    void shouldCarryPinnedMemoryToTheGpuItself(@TempDir Path other) throws Exception {
        Map<String, String> settings = new HashMap<>(BrokerProcess.withRdma(fabric));
        settings.put("hawser.vgpus.default.rdma", "true");
        settings.put("hawser.rdma.gpu-direct", "on");
        try (BrokerProcess direct = BrokerProcess.start("rdma-gpu-direct", other, settings)) {
            for (String name : List.of("drv_pinned_order", "drv_large_copies", "drv_registered_order")) {
                try (GuestProgram program = GuestProgram.start(guest(direct, "rdma"), name)) {
                    assertOverRdma(program.await());
                }
            }
            direct.awaitIdle();
            assertEquals(3, direct.logLines(GPU_DIRECT + " by dma-buf").count());
        }
        assertEquals(0, broker.logLines(GPU_DIRECT).count());
    }

    @Test
    void shouldChooseRdmaWhereBothEndsHaveIt() throws Exception {
        try (GuestProgram program = GuestProgram.start(guest(broker, "auto"), "drv_vector_add")) {
            assertOverRdma(program.await());
        }
    }

    @Test
    void shouldShowTheCarrierAndFreeEverythingOfAKilledGuest() throws Exception {
        try (GuestProgram program = hold("--memory", "32")) {
            assertEquals("rdma", onlySession().path("carrier").asText());
            program.kill();
            broker.awaitIdle();
        }
    }

    @Test
    void shouldLoseTheDeviceWhenTheWorkerIsKilled() throws Exception {
        try (GuestProgram program = hold()) {
            long worker = onlySession().path("workerPid").asLong();
            assertTrue(ProcessHandle.of(worker).orElseThrow().destroyForcibly(), "worker " + worker);
            GuestProgram.Result result = program.await();
            assertEquals(3, result.exit(), result::toString); // lost: its calls answer with the error of a lost device
        }
    }

    private static GuestCommand.Ended doctor(BrokerProcess broker, Path fabric, Path sysfs) throws Exception {
        Map<String, String> environment = new HashMap<>(guest(broker, "auto"));
        environment.putAll(BrokerProcess.verbs(fabric));
        environment.put("HAWSER_SYSFS", sysfs.toString()); // without a device of shared memory
        return GuestCommand.run(environment, "doctor");
    }

    @Test
    void shouldReportTheAnswerOfTheBrokerOverRdma(@TempDir Path sysfs) throws Exception {
        GuestCommand.Ended ended = doctor(broker, fabric, sysfs);
        assertEquals(0, ended.exit(), ended::toString);
        assertTrue(ended.out().matches("(?s).*\nok   RDMA: the broker at \\S+ answers over hawser_test0 port 1, "
            + "GID \\d+ \\(\\S+\\), in \\d+ us\n.*"), ended::toString);
        broker.awaitIdle();
    }

    /** The guest's device lies in another fabric, so that no packet arrives. */
    @Test
    void shouldReportAFabricThatDoesNotAnswer(@TempDir Path sysfs, @TempDir Path elsewhere) throws Exception {
        GuestCommand.Ended ended = doctor(broker, elsewhere, sysfs);
        assertEquals(1, ended.exit(), ended::toString);
        assertTrue(ended.out().matches("(?s).*\nFAIL RDMA: the broker at \\S+ does not answer over hawser_test0 .*"
            + "transport retry counter exceeded; .*UDP port 4791.*\n1 problem\\.\n"), ended::toString);
        broker.awaitIdle();
    }

    @Test
    void shouldTakeNoSessionFromAVgpuWhoseSessionsAreAllInUse(@TempDir Path other, @TempDir Path sysfs)
        throws Exception {
        Map<String, String> settings = new HashMap<>(BrokerProcess.withRdma(fabric));
        settings.put("hawser.vgpus.default.rdma", "true");
        settings.put("hawser.vgpus.default.max-sessions", "1");
        try (BrokerProcess single = BrokerProcess.start("rdma-single", other, settings);
            GuestProgram program = GuestProgram.start(guest(single, "rdma"), "hold")) {
            program.awaitLine("READY");
            GuestCommand.Ended ended = doctor(single, fabric, sysfs);
            assertEquals(0, ended.exit(), ended::toString);
            assertTrue(
                ended.out().contains("note RDMA: the broker was not asked, because the vGPU's sessions are all in "
                    + "use (1)"),
                ended::toString);
        }
    }

    /** The vGPU does not allow it: only `rdma` fails, and `auto` goes on over TCP. */
    @Test
    void shouldKeepToTcpWhereTheVgpuDoesNotAllowRdma(@TempDir Path other, @TempDir Path sysfs) throws Exception {
        try (BrokerProcess without = BrokerProcess.start("rdma-off", other, BrokerProcess.withRdma(fabric))) {
            try (GuestProgram program = GuestProgram.start(guest(without, "rdma"), "drv_vector_add")) {
                GuestProgram.Result result = program.await();
                assertEquals(1, result.exit(), result::toString);
                assertTrue(result.err().contains("no RDMA: the vGPU does not allow RDMA"), result::toString);
            }
            try (GuestProgram program = GuestProgram.start(guest(without, "auto"), "drv_vector_add")) {
                GuestProgram.Result result = program.await().assertPassed();
                assertEquals("tcp", result.counters().getFirst().path("carrier").asText(), result::toString);
                assertEquals(0, result.counters().getFirst().path("rdma_messages").asLong(), result::toString);
                assertEquals(1, result.hawserLines().size(), result::toString);
            }
            GuestCommand.Ended ended = doctor(without, fabric, sysfs);
            assertEquals(0, ended.exit(), ended::toString);
            assertTrue(ended.out().contains("no RDMA: the vGPU does not allow RDMA"), ended::toString);
            without.awaitIdle();
        }
    }
}

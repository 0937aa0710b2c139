package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Memory that processes of one vGPU share, and that no other vGPU reaches. */
class SharingIT {
    private static final long MEBIBYTE = 1L << 20;
    private static final long QUOTA_MEBIBYTES = 128;
    /** drv_share_killed imports one piece, and opens one block that has a slab of its own. */
    private static final long SHARED_BYTES = 2 * 6 * MEBIBYTE;
    private static final int INVALID_VALUE = 1;

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    private static final RegionFile OTHER = RegionFile.unused(64, 2);

    @BeforeAll
    static void startBroker() throws Exception {
        Map<String, String> settings = new HashMap<>(OTHER.settings("other"));
        settings.put("hawser.regions.other.vgpu", "other");
        settings.put("hawser.vgpus.other.memory-bytes", Long.toString(QUOTA_MEBIBYTES * MEBIBYTE));
        settings.put("hawser.vgpus.default.memory-bytes", Long.toString(QUOTA_MEBIBYTES * MEBIBYTE));
        broker = BrokerProcess.start("sharing", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(settings));
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
        OTHER.delete();
    }

    /** A guest that finds the whole quota free proves that the ledger is zero to the byte. */
    @AfterEach
    void nothingIsLeft() throws Exception {
        broker.awaitIdle();
        for (String vgpu : Set.of("default", "other")) {
            assertEquals(0, usedBytes(vgpu), vgpu);
        }
        try (GuestProgram program = GuestProgram.start(broker, Carrier.TCP, "drv_fill_memory", "--total",
            Long.toString(QUOTA_MEBIBYTES), "--empty", "1")) {
            program.await().assertPassed();
        }
    }

    private static long usedBytes(String vgpu) throws IOException, InterruptedException {
        return broker.vgpu(vgpu).path("usedBytes").asLong(-1);
    }

    private static JsonNode exporter(long importer) throws IOException, InterruptedException {
        for (JsonNode session : broker.sessions()) {
            if (session.path("guestPid").asLong() != importer) {
                return session;
            }
        }
        throw new AssertionError("the exporter has no session");
    }

    private static long heldBytes(long pid) throws IOException, InterruptedException {
        long held = 0;
        for (JsonNode session : broker.sessions()) {
            held += session.path("guestPid").asLong() == pid ? session.path("statistics").path("deviceBytes").asLong()
                : 0;
        }
        return held;
    }

    /** How the exporting process, or its session, ends. */
    private enum End {
        PROCESS, WORKER, SESSION;

        void of(JsonNode session) throws Exception {
            switch (this) {
                case PROCESS -> kill(session.path("guestPid").asLong());
                case WORKER -> kill(session.path("workerPid").asLong());
                case SESSION -> broker.end(session.path("id").asText());
            }
        }

        private static void kill(long pid) {
            assertTrue(ProcessHandle.of(pid).orElseThrow().destroyForcibly(), "process " + pid);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldKeepAndCountMemoryWhoseOwnerIsKilled(End end) throws Exception {
        Carrier carrier = end == End.WORKER ? Carrier.SHM : Carrier.TCP;
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_share_killed", "--wait", "1")) {
            program.awaitLine("READY");
            end.of(exporter(program.pid()));
            Await.until("the end of the exporter's session",
                () -> broker.sessions().size() == 1 ? "" : broker.sessions().toString());
            assertEquals(SHARED_BYTES, usedBytes("default") - heldBytes(program.pid()), "as the importer uses it");
            program.release();
            GuestProgram.Result result = program.await().assertPassed().assertOver(carrier);
            assertTrue(result.out().contains("# here: opened memory after the end of its process: intact"),
                result::toString);
            assertTrue(result.out().contains("# here: a descriptor after the end of its process: refused"),
                result::toString);
            assertTrue(result.out().contains("# here: a handle after the end of its process: refused"),
                result::toString);
            assertTrue(result.err().contains("the process that exported the memory has ended"), result::toString);
        }
    }

    /** The stranger's environment: a token or a region of the other vGPU. */
    private static Set<String> strangerEnvironment(Carrier carrier) throws Exception {
        if (carrier == Carrier.SHM) {
            return Set.of("HAWSER_REGION=" + OTHER.path());
        }
        Path token = stateDir.resolve("other.token");
        if (Files.notExists(token)) {
            Files.writeString(token, broker.create("/api/v1/vgpus/other/tokens", JsonNodeFactory.instance.objectNode())
                .path("token").asText());
        }
        return Set.of("HAWSER_TOKEN_FILE=" + token);
    }

    @ParameterizedTest
    @EnumSource
    void shouldRefuseMemoryOfAnotherVgpu(Carrier carrier) throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, carrier, "stranger",
            new TreeSet<>(strangerEnvironment(carrier)).toArray(String[]::new))) {
            GuestProgram.Result result = program.await().assertPassed().assertOver(carrier);
            assertTrue(result.out().contains("STRANGER " + INVALID_VALUE + " " + INVALID_VALUE), result::toString);
        }
    }
}

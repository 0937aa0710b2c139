package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Sessions of real programs that move between two GPUs of a broker while the programs run. */
class MovingIT {
    private static final String VGPU = "/api/v1/vgpus/default";
    private static final int MOVES = 4;

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        broker = OWN.keep(BrokerProcess.start("moving", stateDir.resolve("broker"),
            BrokerProcess.withQuickWorkers(Map.of("hawser.gpu.software.devices", "2"))));
    }

    /** Each move has left nothing where the session was. */
    @AfterEach
    void nothingIsLeft() throws Exception {
        Await.until("the end of all sessions", Await.LIMIT, broker::logEnd,
            () -> broker.sessions().isEmpty() ? "" : broker.sessions().toString());
        assertEquals(0, broker.vgpu("default").path("usedBytes").asLong(-1));
    }

    private static JsonNode move(int gpu) throws IOException, InterruptedException {
        return broker.post(VGPU + "/move", JsonNodeFactory.instance.objectNode().put("gpu", Integer.toString(gpu)),
            200);
    }

    private static String uuid(int gpu) throws IOException, InterruptedException {
        return broker.gpus().get(gpu).path("uuid").asText();
    }

    private static JsonNode session() throws IOException, InterruptedException {
        JsonNode sessions = broker.sessions();
        assertEquals(1, sessions.size(), sessions::toString);
        return sessions.get(0);
    }

    /** The number of the GPU on which the vGPU is not. */
    private static int other() throws IOException, InterruptedException {
        return broker.vgpu("default").path("placedGpus").get(0).asText().equals(uuid(0)) ? 1 : 0;
    }

    @ParameterizedTest
    @EnumSource
    void shouldKeepResultsWhileTheProgramWorks(Carrier carrier) throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_idle_rounds", "--rounds", "400",
            "--pause-ms", "20", "--mib", "8")) {
            Await.until("the session", () -> broker.sessions().size() == 1
                && session().path("statistics").path("kernels").asLong() > 0 ? "" : "not there");
            Set<Long> workers = new HashSet<>();
            for (int i = 0; i < MOVES; i++) {
                int to = other();
                long kernels = session().path("statistics").path("kernels").asLong();
                JsonNode moved = move(to);
                assertEquals(uuid(to), moved.path("to").asText(), moved::toString);
                assertEquals(1, moved.path("sessions").asInt(), moved::toString);
                assertEquals(List.of(uuid(to)), texts(session().path("gpus")));
                assertTrue(workers.add(session().path("workerPid").asLong()), "another worker has the session");
                Await.until("further kernels", () -> session().path("statistics").path("kernels").asLong() > kernels
                    ? "" : session().toString());
            }
            program.await().assertPassed().assertOver(carrier);
        }
    }

    @Test
    void shouldMoveFurtherConnectionsOfLongCopies() throws Exception {
        Map<String, String> variables = new HashMap<>(Carrier.TCP.environment(broker));
        variables.put("HAWSER_COPY_THREADS", "3");
        try (GuestProgram program = GuestProgram.start(variables, "drv_large_copies", "--size", "24", "--rounds", "80",
            "--pause-ms", "20")) {
            Await.until("copies", () -> broker.sessions().size() == 1
                && session().path("statistics").path("bytesIn").asLong() > 200 << 20 ? "" : "not there");
            for (int i = 0; i < 2; i++) {
                long bytes = session().path("statistics").path("bytesIn").asLong();
                move(other());
                Await.until("further copies", () -> session().path("statistics").path("bytesIn").asLong()
                    > bytes + (50 << 20) ? "" : session().toString());
            }
            GuestProgram.Result result = program.await();
            result.assertPassed();
            assertTrue(result.counters().getFirst().path("stripes").asInt() >= 3, result::toString);
        }
    }

    @Test
    void shouldGiveSessionsOtherWorkersOnTheirGpu() throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, Carrier.SHM, "drv_idle_rounds", "--rounds", "200",
            "--pause-ms", "20", "--mib", "8")) {
            Await.until("the session", () -> broker.sessions().size() == 1
                && session().path("statistics").path("kernels").asLong() > 0 ? "" : "not there");
            List<String> gpus = texts(session().path("gpus"));
            long worker = session().path("workerPid").asLong();
            JsonNode moved = broker.post(VGPU + "/move", JsonNodeFactory.instance.objectNode().put("gpu", "same"), 200);
            assertEquals(moved.path("from").asText(), moved.path("to").asText(), moved::toString);
            assertEquals(gpus, texts(session().path("gpus")));
            assertNotEquals(worker, session().path("workerPid").asLong());
            program.await().assertPassed();
        }
    }

    private static List<String> texts(JsonNode array) {
        return StreamSupport.stream(array.spliterator(), false).map(JsonNode::asText).toList();
    }

    @Test
    void shouldRefuseWhatIsNoMove() throws Exception {
        int here = 1 - other();
        IOException refused = assertThrows(IOException.class, () -> move(here));
        assertTrue(refused.getMessage().contains("409"), refused::getMessage);
        refused = assertThrows(IOException.class, () -> move(7));
        assertFalse(refused.getMessage().contains("answered 5"), refused::getMessage);
    }
}

package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The effects of faults over either carrier: the error of a lost device, one line on stderr, no effect on other
 * sessions.
 */
class FaultsIT {
    private static final int EXIT_LOST = 3;

    @TempDir
    private static Path folder;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws IOException {
        broker = OWN.keep(BrokerProcess.start("faults", folder.resolve("faults"), BrokerProcess.AWAITED_WORKERS));
    }

    private static GuestProgram hold(Carrier carrier, String... arguments) throws IOException {
        return hold(broker, carrier, arguments);
    }

    private static GuestProgram hold(BrokerProcess broker, Carrier carrier, String... arguments) throws IOException {
        GuestProgram program = GuestProgram.start(broker, carrier, "hold", arguments);
        program.awaitLine("READY");
        return program;
    }

    /** The program received and reported an error of CUDA, and the library printed one line with the reason. */
    private static void assertLost(GuestProgram.Result result) {
        assertEquals(EXIT_LOST, result.exit(), result::toString);
        assertTrue(result.out().lines().anyMatch(line -> line.startsWith("ERROR ")), result::toString);
        assertEquals(1, result.hawserLines().size(), result::toString);
    }

    private static void assertRefused(GuestProgram.Result result) {
        assertEquals(1, result.exit(), result::toString);
        assertTrue(result.out().contains("got 100 CUDA_ERROR_NO_DEVICE"), result::toString);
        assertEquals(1, result.hawserLines().size(), result::toString);
    }

    private static void assertWell(Carrier carrier) throws Exception {
        assertWell(broker, carrier);
    }

    private static void assertWell(BrokerProcess broker, Carrier carrier) throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_vector_add")) {
            program.await().assertPassed().assertOver(carrier);
        }
        broker.awaitIdle();
    }

    private static JsonNode onlySession() throws Exception {
        JsonNode sessions = broker.sessions();
        assertEquals(1, sessions.size(), sessions::toString);
        return sessions.get(0);
    }

    @Test
    void shouldAnswerNoDeviceWithoutBroker() throws Exception {
        int free;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            free = socket.getLocalPort();
        }
        try (GuestProgram program = GuestProgram.start(Map.of("HAWSER_BROKER", "127.0.0.1:" + free,
            "HAWSER_TOKEN_FILE", broker.tokenFile().toString(), "HAWSER_CONNECT_TIMEOUT_MS", "500"),
            "drv_vector_add")) {
            assertRefused(program.await());
        }
        try (GuestProgram program = GuestProgram.start(Map.of("HAWSER_CARRIER", "shm", "HAWSER_REGION",
            folder.resolve("no-region").toString()), "drv_vector_add")) {
            assertRefused(program.await());
        }
    }

    @Test
    void shouldAnswerNoDeviceWhenTheBrokerIsSilent() throws Exception {
        // A port that accepts and never answers: HAWSER_CONNECT_TIMEOUT_MS limits the wait.
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
            GuestProgram program = GuestProgram.start(Map.of("HAWSER_BROKER", "127.0.0.1:" + silent.getLocalPort(),
                "HAWSER_TOKEN_FILE", broker.tokenFile().toString(), "HAWSER_CONNECT_TIMEOUT_MS", "500"),
                "drv_vector_add")) {
            assertRefused(program.await());
        }
    }

    @Test
    void shouldAnswerNoDeviceForWrongToken() throws Exception {
        String token = Files.readString(broker.tokenFile()).strip();
        String keyId = token.substring(0, token.indexOf('.'));
        for (String wrong : new String[] {keyId + ".wrong-secret", "nobody.wrong-secret"}) {
            try (GuestProgram program = GuestProgram.start(Map.of("HAWSER_BROKER", broker.guest(), "HAWSER_TOKEN",
                wrong), "drv_vector_add")) {
                GuestProgram.Result result = program.await();
                assertRefused(result);
                assertTrue(!result.err().contains("wrong-secret"), "no line shows a secret: " + result);
            }
        }
        assertWell(Carrier.TCP);
    }

    @Test
    void shouldAnswerNoDeviceForARegionThatNobodyServes() throws Exception {
        // A device looks like this before a broker has formatted it.
        Path zeros = Files.write(folder.resolve("zeros"), new byte[1 << 20]);
        try (GuestProgram program = GuestProgram.start(Map.of("HAWSER_CARRIER", "shm", "HAWSER_REGION",
            zeros.toString(), "HAWSER_CONNECT_TIMEOUT_MS", "500"), "drv_vector_add")) {
            assertRefused(program.await());
        }
    }

    @Test
    void shouldLoseTheDeviceWhenTheBrokerIsKilledAndFindItAgain() throws Exception {
        Path state = folder.resolve("killed");
        RegionFile region = RegionFile.unused(64, 8);
        int port;
        try (BrokerProcess killed = BrokerProcess.start("killed", state, region, Map.of());
            GuestProgram busy = hold(killed, Carrier.TCP); GuestProgram idle = hold(killed, Carrier.TCP, "--idle", "1");
            GuestProgram busyShm = hold(killed, Carrier.SHM);
            GuestProgram idleShm = hold(killed, Carrier.SHM, "--idle", "1")) {
            port = killed.guestPort();
            killed.kill();
            for (GuestProgram program : List.of(busy, busyShm)) {
                assertLost(program.await());
            }
            // The region still exists, but no broker serves it.
            try (GuestProgram program = GuestProgram.start(killed, Carrier.SHM, "drv_vector_add")) {
                assertRefused(program.await());
            }
            for (GuestProgram program : List.of(idle, idleShm)) {
                program.release();
                assertLost(program.await());
            }
            // The file stays for the next broker, as if an administrator had made it.
            try (BrokerProcess again = BrokerProcess.start("restarted", state, region,
                Map.of("hawser.listen.port", Integer.toString(port)))) {
                assertEquals(port, again.guestPort());
                assertWell(again, Carrier.TCP);
                assertWell(again, Carrier.SHM);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Carrier.class)
    void shouldLoseTheDeviceWhenTheWorkerIsKilled(Carrier carrier) throws Exception {
        try (GuestProgram program = hold(carrier)) {
            long worker = onlySession().path("workerPid").asLong();
            assertTrue(ProcessHandle.of(worker).orElseThrow().destroyForcibly(), "worker " + worker);
            assertLost(program.await());
            broker.awaitIdle();
        }
        assertWell(carrier);
    }

    @ParameterizedTest
    @EnumSource(Carrier.class)
    void shouldFreeEverythingOfAKilledGuest(Carrier carrier) throws Exception {
        try (GuestProgram busy = hold(carrier, "--memory", "64");
            GuestProgram idle = hold(carrier, "--memory", "32", "--idle", "1")) {
            Await.until("both sessions' memory in the metrics", () -> {
                double used = broker.metric("hawser_device_memory_bytes{kind=\"used\"}");
                return used >= 96 << 20 ? "" : "used " + used;
            });
            busy.kill();
            idle.kill();
            broker.awaitIdle();
        }
        assertWell(carrier);
    }

    @ParameterizedTest
    @EnumSource(Carrier.class)
    void shouldKeepAFaultingKernelToItsSession(Carrier carrier) throws Exception {
        try (GuestProgram same = hold(carrier); GuestProgram other = hold(carrier.other());
            GuestProgram fault = GuestProgram.start(broker, carrier, "drv_fault")) {
            fault.await().assertPassed().assertOver(carrier);
            for (GuestProgram program : List.of(same, other)) {
                program.release();
                program.await().assertPassed();
            }
        }
        broker.awaitIdle();
    }

    @ParameterizedTest
    @EnumSource(Carrier.class)
    void shouldEndASessionOverRest(Carrier carrier) throws Exception {
        try (GuestProgram kept = hold(carrier)) {
            String keptId = onlySession().path("id").asText();
            try (GuestProgram ended = hold(carrier)) {
                JsonNode sessions = broker.sessions();
                assertEquals(2, sessions.size(), sessions::toString);
                for (JsonNode session : sessions) {
                    assertEquals("hold", session.path("program").asText(), session::toString);
                    assertEquals(carrier.inStatistics(), session.path("carrier").asText(), session::toString);
                    if (!session.path("id").asText().equals(keptId)) {
                        assertEquals(ended.pid(), session.path("guestPid").asLong(), session::toString);
                        broker.end(session.path("id").asText());
                    }
                }
                assertLost(ended.await());
            }
            kept.release();
            kept.await().assertPassed();
        }
        broker.awaitIdle();
    }

    @Test
    void shouldSurviveGarbageAtTheFrontDoor() throws Exception {
        Random random = new Random(4711);
        try (GuestProgram other = hold(Carrier.TCP)) {
            for (int i = 0; i < 20; i++) {
                byte[] garbage = new byte[1 + random.nextInt(5000)];
                random.nextBytes(garbage);
                try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), broker.guestPort())) {
                    socket.setSoTimeout((int) Await.LIMIT.toMillis());
                    socket.getOutputStream().write(garbage);
                    socket.shutdownOutput();
                    socket.getInputStream().readAllBytes();
                } catch (SocketException e) {
                    assertTrue(e.getMessage().contains("reset") || e.getMessage().contains("pipe"), e::toString);
                }
            }
            other.release();
            other.await().assertPassed();
        }
        assertWell(Carrier.TCP);
    }

    @ParameterizedTest
    @EnumSource(Carrier.class)
    void shouldCountCallsAndRoundTrips(Carrier carrier) throws Exception {
        double calls = broker.metric("hawser_calls_total");
        double roundTrips = broker.metric("hawser_synchronous_round_trips_total");
        double kernels = broker.metric("hawser_kernels_total");
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_many_calls")) {
            GuestProgram.Result result = program.await().assertPassed().assertOver(carrier);
            JsonNode counters = result.counters().getFirst();
            assertTrue(counters.path("calls").asLong() >= 12000, counters::toString);
            // 12,000 launches and copies that need no answer: the program waits only for its set-up and its end.
            assertTrue(counters.path("round_trips").asLong() < 60, counters::toString);
        }
        broker.awaitIdle();
        assertTrue(broker.metric("hawser_calls_total") >= calls + 12000);
        assertTrue(broker.metric("hawser_synchronous_round_trips_total") > roundTrips);
        assertEquals(kernels + 8000, broker.metric("hawser_kernels_total"));
        assertEquals(0, broker.metric("hawser_refused_records_total"));
    }

    @Test
    void shouldShowTheSoftwareGpu() throws Exception {
        assertTrue(broker.gpus().toString().contains("Hawser software GPU"), () -> "no software GPU");
    }

    @Test
    void shouldStartAWorkerWhenThereIsNoPool() throws Exception {
        try (BrokerProcess noPool = BrokerProcess.start("no-pool", folder.resolve("no-pool"),
            Map.of("hawser.worker.pool-size", "0"))) {
            assertWell(noPool, Carrier.TCP);
            assertWell(noPool, Carrier.SHM);
        }
    }
}

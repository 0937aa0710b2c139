package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Three brokers with one PostgreSQL, and real guests. The last tests take brokers away. */
@EnabledIf(value = "hasPostgres", disabledReason = "PostgreSQL is not installed (Debian's package postgresql)")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class PoolIT {
    private static final List<String> NAMES = List.of("left", "middle", "right");
    private static final Executor VIRTUAL = task -> Thread.ofVirtual().start(task);
    private static final int LAST = Order.DEFAULT + 1;
    private static final JsonNode NOTHING = JsonNodeFactory.instance.objectNode();

    @TempDir
    private static Path folder;
    private static Postgres database;
    private static Certificates certificates;
    private static final Map<String, BrokerProcess> BROKERS = new LinkedHashMap<>();

    static boolean hasPostgres() throws IOException {
        return Postgres.programs().isPresent();
    }

    @BeforeAll
    static void start() throws Exception {
        certificates = new Certificates(folder.resolve("certificates"));
        database = Postgres.start(Postgres.programs().orElseThrow());
        for (String name : NAMES) {
            BROKERS.put(name, start(name));
        }
        for (BrokerProcess broker : BROKERS.values()) {
            Await.until("the GPUs of all brokers", () -> broker.get("/api/v1/brokers").findValues("gpus").stream()
                .mapToInt(JsonNode::asInt).sum() == NAMES.size() ? "" : broker.get("/api/v1/brokers").toString());
        }
    }

    private static BrokerProcess start(String name) throws Exception {
        Map<String, String> settings = new HashMap<>(database.settings());
        // The region that each test's broker serves needs a vGPU of its own: there is one default for the pool.
        settings.putAll(Map.of("hawser.broker.name", name, "hawser.vgpus.own-" + name + ".memory-bytes", "0",
            "hawser.regions.tests.vgpu", "own-" + name, "hawser.listen.tls-port", "0", "hawser.tls.certificate",
            certificates.certificate(name, "IP:127.0.0.1", 30).toString(), "hawser.tls.key",
            certificates.key(name).toString(), "hawser.tls.authorities", certificates.authority().toString()));
        return BrokerProcess.start("pool-" + name, folder.resolve(name), BrokerProcess.withQuickWorkers(settings),
            certificates);
    }

    @AfterAll
    static void stop() throws Exception {
        BROKERS.values().forEach(BrokerProcess::close);
        if (database != null) {
            database.close();
        }
    }

    private static BrokerProcess broker(String name) {
        return BROKERS.get(name);
    }

    /** Makes a vGPU at a broker by another one, and returns its token's file. */
    private static Path vgpu(String asked, String vgpu, String broker) throws Exception {
        ObjectNode wanted = JsonNodeFactory.instance.objectNode().put("name", vgpu).put("memoryBytes", 512 << 20);
        JsonNode made = broker(asked).create("/api/v1/vgpus", broker == null ? wanted : wanted.put("broker", broker));
        assertEquals("ready", made.path("state").asText(), made::toString);
        JsonNode token = broker(asked).create("/api/v1/vgpus/" + vgpu + "/tokens",
            JsonNodeFactory.instance.objectNode());
        Path file = Files.createFile(folder.resolve(vgpu + ".token"),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        return Files.writeString(file, token.path("token").asText() + "\n");
    }

    private static Map<String, String> environment(String brokers, Path token) {
        return Map.of("HAWSER_CARRIER", "tcp", "HAWSER_BROKER", brokers, "HAWSER_TOKEN_FILE", token.toString(),
            "HAWSER_CA_FILE", certificates.authority().toString());
    }

    private static GuestProgram.Result run(Map<String, String> environment, String program) throws Exception {
        try (GuestProgram guest = GuestProgram.start(environment, program)) {
            return guest.await();
        }
    }

    private static List<String> of(JsonNode list, String field) {
        List<String> values = new ArrayList<>();
        list.forEach(one -> values.add(one.path(field).asText()));
        return values;
    }

    @Test
    void shouldAnswerForThePool() throws Exception {
        vgpu("left", "answer", "right");
        for (BrokerProcess broker : BROKERS.values()) {
            Await.until("the vGPU of all brokers", () -> {
                List<String> names = of(broker.get("/api/v1/vgpus"), "name");
                return names.containsAll(List.of("answer", "own-left", "own-middle", "own-right")) ? ""
                    : names.toString();
            });
            assertEquals("right", broker.vgpu("answer").path("broker").asText());
            Await.until("the GPUs of all brokers", () -> {
                Set<String> owners = new HashSet<>(of(broker.gpus(), "broker"));
                return owners.equals(Set.copyOf(NAMES)) ? "" : owners.toString();
            });
            assertEquals(List.of("right"), of(broker.get("/api/v1/gpus?broker=right"), "broker"));
            assertEquals(NAMES, of(broker.get("/api/v1/brokers"), "name"));
        }
    }

    @Test
    void shouldSendGuestsToTheBrokerOfTheirVgpu() throws Exception {
        Path token = vgpu("middle", "far", "right");
        for (String asked : NAMES) {
            run(environment(broker(asked).guest(), token), "drv_vector_add").assertPassed();
            run(environment("tls://" + broker(asked).guestTls(), token), "drv_vector_add").assertPassed();
        }
        int closed;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            closed = free.getLocalPort();
        }
        run(environment("127.0.0.1:" + closed + "," + broker("left").guest(), token), "drv_large_copies")
            .assertPassed();
    }

    @Test
    void shouldShowAndEndSessionsOfAnotherBroker() throws Exception {
        Path token = vgpu("left", "watched", "middle");
        try (GuestProgram guest = GuestProgram.start(environment(broker("left").guest(), token), "tenant", "--rounds",
            "1")) {
            guest.awaitLine("READY");
            String[] id = new String[1];
            Await.until("the session at another broker", () -> {
                JsonNode sessions = broker("right").get("/api/v1/sessions?broker=middle");
                sessions.forEach(one -> id[0] = one.path("vgpu").asText().equals("watched")
                    ? one.path("id").asText() : id[0]);
                return id[0] != null ? "" : sessions.toString();
            });
            broker("right").end(id[0]);
            guest.release();
            assertNotEquals(0, guest.await().exit());
        }
        broker("middle").awaitIdle();
    }

    private static JsonNode session(String vgpu, String broker) throws Exception {
        JsonNode sessions = broker("middle").get("/api/v1/sessions?broker=" + broker);
        for (JsonNode one : sessions) {
            if (one.path("vgpu").asText().equals(vgpu)) {
                return one;
            }
        }
        return JsonNodeFactory.instance.missingNode();
    }

    /** Waits until a vGPU's only session has done more than so much at a broker. */
    private static long awaitMore(String vgpu, String broker, String counter, long before) throws Exception {
        long[] found = {0};
        Await.until("work at broker " + broker, () -> {
            JsonNode session = session(vgpu, broker);
            found[0] = session.path("statistics").path(counter).asLong();
            return found[0] > before ? "" : "only " + found[0] + ": " + session;
        });
        return found[0];
    }

    /** Moves a vGPU; repeats the request while its guest is busy, which on a slow machine a call may keep it. */
    private static JsonNode move(String asked, String vgpu, String to) throws Exception {
        JsonNode[] moved = {null};
        Await.until("the move of " + vgpu, () -> {
            try {
                moved[0] = broker(asked).post("/api/v1/vgpus/" + vgpu + "/move", JsonNodeFactory.instance.objectNode()
                    .put("broker", to), 200);
                return "";
            } catch (IOException e) {
                if (e.getMessage().contains("the guest is not quiet after 1000 ms")) {
                    return e.getMessage();
                }
                throw e;
            }
        });
        return moved[0];
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldMoveARunningProgramToOtherBrokers(boolean tls) throws Exception {
        String name = tls ? "roaming-tls" : "roaming";
        int rounds = 300;
        Path token = vgpu("left", name, "left");
        String brokers = tls ? "tls://" + broker("left").guestTls() : broker("left").guest();
        try (GuestProgram guest = GuestProgram.start(environment(brokers, token), "drv_idle_rounds", "--rounds",
            Integer.toString(rounds), "--pause-ms", "20", "--mib", "20")) {
            awaitMore(name, "left", "kernels", 0);
            for (String to : List.of("right", "middle", "left")) {
                JsonNode moved = move("middle", name, to);
                assertEquals(1, moved.path("sessions").asInt(), moved::toString);
                awaitMore(name, to, "kernels", 0);
                assertEquals(to, broker("middle").vgpu(name).path("broker").asText());
            }
            guest.await().assertPassed();
        }
        Await.until("no session", () -> session(name, "left").isMissingNode() ? "" : "it is there");
        JsonNode used = broker("right").get("/api/v1/vgpus/" + name + "/statistics");
        assertTrue(used.path("kernels").asLong() >= rounds, "of all brokers: " + used);
        assertEquals(1, used.path("sessions").asInt(), used::toString);
        run(environment(brokers, token), "drv_vector_add").assertPassed();
    }

    @Test
    void shouldOpenFurtherConnectionsAtTheOtherBroker() throws Exception {
        Path token = vgpu("left", "copying", "left");
        Map<String, String> variables = new HashMap<>(environment(broker("left").guest(), token));
        variables.put("HAWSER_COPY_THREADS", "3");
        variables.put("HAWSER_STATS", "1");
        try (GuestProgram guest = GuestProgram.start(variables, "drv_large_copies", "--size", "24", "--rounds", "100",
            "--pause-ms", "20")) {
            awaitMore("copying", "left", "bytesIn", 300 << 20); // with further connections
            move("left", "copying", "right");
            awaitMore("copying", "right", "bytesIn", 100 << 20);
            GuestProgram.Result result = guest.await().assertPassed();
            assertTrue(result.counters().getFirst().path("stripes").asInt() >= 4, result::toString); // 2 at each
        }
    }

    /** The others learn of the end of the drain a moment later, so this is one of the last tests. */
    @Test
    @Order(LAST)
    void shouldDrainABroker() throws Exception {
        Path token = vgpu("left", "drained", "middle");
        try (GuestProgram guest = GuestProgram.start(environment(broker("left").guest(), token), "drv_idle_rounds",
            "--rounds", "150", "--pause-ms", "20", "--mib", "8")) {
            awaitMore("drained", "middle", "kernels", 0);
            JsonNode drained = broker("left").post("/api/v1/brokers/middle/drain", NOTHING, 200);
            assertTrue(of(drained.path("moved"), "vgpu").contains("drained"), drained::toString);
            assertTrue(of(drained.path("stayed"), "vgpu").contains("own-middle"), drained::toString);
            String now = broker("left").vgpu("drained").path("broker").asText();
            assertNotEquals("middle", now);
            awaitMore("drained", now, "kernels", 0);
            guest.await().assertPassed();
        } finally {
            broker("left").post("/api/v1/brokers/middle/undrain", NOTHING, 200);
        }
    }

    /** Afterwards only the vGPU of its settings is at the middle broker. */
    @Test
    @Order(LAST + 1)
    void shouldRebalance() throws Exception {
        Path token = vgpu("left", "balanced", "left");
        try (GuestProgram guest = GuestProgram.start(environment(broker("left").guest(), token), "drv_idle_rounds",
            "--rounds", "300", "--pause-ms", "20", "--mib", "8")) {
            awaitMore("balanced", "left", "kernels", 0);
            ObjectNode plan = JsonNodeFactory.instance.objectNode().put("dryRun", true);
            Await.until("moves that are worth while", () -> {
                JsonNode planned = broker("right").post("/api/v1/rebalance", plan, 200);
                return of(planned.path("steps"), "toBroker").contains("middle") ? "" : planned.toString();
            });
            JsonNode done = broker("right").post("/api/v1/rebalance", NOTHING, 200);
            assertEquals(Set.of("moved"), Set.copyOf(of(done.path("steps"), "state")), done::toString);
            guest.await().assertPassed();
        }
        assertEquals(List.of(), of(broker("left").post("/api/v1/rebalance", NOTHING, 200).path("steps"), "vgpu"));
    }

    /** The name of the new vGPU; empty when no GPU has room. */
    private static String createOrRefused(BrokerProcess asked, String name, long bytes) {
        try {
            asked.create("/api/v1/vgpus", JsonNodeFactory.instance.objectNode().put("name", name)
                .put("memoryBytes", bytes));
            return name;
        } catch (IOException e) {
            assertTrue(e.getMessage().contains("answered 409"), e.getMessage());
            return "";
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void shouldPlaceManyVgpusAtOnceWithoutReservingTooMuch() throws Exception {
        long total = broker("left").gpus().path(0).path("totalBytes").asLong();
        List<CompletableFuture<String>> answers = new ArrayList<>();
        for (int i = 0; i < 24; i++) {
            String name = "crowd-" + i;
            BrokerProcess asked = broker(NAMES.get(i % 3));
            answers.add(CompletableFuture.supplyAsync(() -> createOrRefused(asked, name, total / 4), VIRTUAL));
        }
        List<String> made = answers.stream().map(CompletableFuture::join).filter(name -> !name.isEmpty()).toList();
        assertTrue(made.size() >= 6, made::toString);
        for (BrokerProcess broker : BROKERS.values()) {
            for (JsonNode gpu : broker.gpus()) {
                assertTrue(gpu.path("reservedBytes").asLong() <= gpu.path("totalBytes").asLong(), gpu::toString);
            }
        }
        for (String name : made) {
            broker("left").delete("/api/v1/vgpus/" + name + "?force=true");
        }
        assertTrue(of(broker("left").get("/api/v1/vgpus"), "name").stream().noneMatch(n -> n.startsWith("crowd-")));
    }

    @Test
    @Order(LAST + 2)
    void shouldServeTheVgpusOfAKilledBrokerElsewhereAndTakeItBackAsAMember() throws Exception {
        Path idle = vgpu("left", "idle", "right");
        Path used = vgpu("left", "used", "right");
        run(environment(broker("left").guest(), used), "drv_vector_add").assertPassed();
        broker("right").kill();
        BROKERS.remove("right").close();
        Await.until("another broker of the idle vGPU", () -> {
            JsonNode vgpu = broker("left").vgpu("idle");
            return vgpu.path("state").asText().equals("ready") && !vgpu.path("broker").asText().equals("right") ? ""
                : vgpu.toString();
        });
        String brokers = Stream.of("left", "middle").map(name -> broker(name).guest()).reduce((a, b) -> a + "," + b)
            .orElseThrow();
        run(environment(brokers, idle), "drv_vector_add").assertPassed();
        // The broker that has taken the idle vGPU may have seen the silence before this one does.
        Await.until("the silence at the broker that is asked", () -> {
            JsonNode lost = broker("left").vgpu("used");
            return lost.path("state").asText().equals("unplaced")
                && lost.path("problem").asText().contains("its broker is silent: broker=right") ? "" : lost.toString();
        });
        assertEquals(1, run(environment(brokers, used), "drv_vector_add").exit());
        BROKERS.put("right", start("right"));
        Await.until("the vGPU at its broker", () -> {
            JsonNode vgpu = broker("left").vgpu("used");
            return vgpu.path("state").asText().equals("ready") ? "" : vgpu.toString();
        });
        for (String name : List.of("left", "middle")) { // its new address comes with its GPUs
            Await.until("the GPUs of all brokers at " + name, () -> {
                JsonNode all = broker(name).get("/api/v1/brokers");
                return all.findValues("gpus").stream().mapToInt(JsonNode::asInt).sum() == NAMES.size() ? ""
                    : all.toString();
            });
        }
        run(environment(brokers, used), "drv_vector_add").assertPassed();
        assertNotEquals("right", broker("right").vgpu("idle").path("broker").asText());
    }

    @Test
    @Order(LAST + 3)
    void shouldKeepSessionsWhileTheDatabaseIsAway() throws Exception {
        Path token = vgpu("left", "steady", "left");
        try (GuestProgram guest = GuestProgram.start(environment(broker("middle").guest(), token), "tenant", "--rounds",
            "1")) {
            guest.awaitLine("READY");
            database.kill();
            Await.until("the reason in the health", () -> broker("left").get("/api/v1/broker").path("poolProblem")
                .asText().contains("admits no guests") ? "" : broker("left").get("/api/v1/broker").toString());
            assertEquals(1, run(environment(broker("left").guest(), token), "drv_vector_add").exit());
            guest.release();
            GuestProgram.Result result = guest.await();
            assertEquals(0, result.exit(), result::toString);
        }
        database.begin();
        for (BrokerProcess broker : BROKERS.values()) {
            Await.until("a member in good standing", () -> broker.get("/api/v1/broker").path("poolProblem").asText());
        }
        run(environment(broker("right").guest(), token), "drv_vector_add").assertPassed();
    }
}

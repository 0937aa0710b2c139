package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.wire.RecordLayout;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** vGPUs on two GPUs, with real workers of the software GPU, and the loss of one GPU. */
class PlacementIT {
    @TempDir
    Path folder;

    private JsonNode request(JsonNode endpoints, int status, String method, String path, String body) throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            HttpResponse<String> answer = client.send(HttpRequest.newBuilder(URI.create(
                endpoints.get("http").asText() + path)).header("Authorization", "Bearer "
                    + Files.readString(folder.resolve("state/admin.token")).strip())
                .header("Content-Type",
                    "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body)).build(),
                HttpResponse.BodyHandlers.ofString());
            assertEquals(status, answer.statusCode(), answer.body());
            return new ObjectMapper().readTree(answer.body());
        }
    }

    /** Makes a token of a vGPU, and returns the number of GPUs that the worker reports to a guest with this token. */
    private int devices(JsonNode endpoints, String vgpu) throws Exception {
        String[] token = request(endpoints, 201, "POST", "/api/v1/vgpus/" + vgpu + "/tokens", "{}").get("token")
            .asText().split("\\.", 2);
        try (TestGuest guest = new TestGuest(endpoints.get("guest").asText())) {
            guest.handshake(token[0], token[1], Description.HASH);
            TestGuest.Answer welcome = guest.receive();
            assertEquals(RecordLayout.CONTROL_WELCOME, welcome.opcode());
            return welcome.words().getInt(RecordLayout.WELCOME_DEVICE_COUNT_OFFSET);
        }
    }

    @Test
    void shouldServeVgpusOnTheirGpusWithRealWorkers() throws Exception {
        Path workers = Path.of("../worker/target/app");
        assumeTrue(Files.isDirectory(workers), "SKIPPED: the worker is not built: " + workers);
        try (RealProcess broker = new RealProcess(folder, "two", folder.resolve("state"), "-Dhawser.worker.pool-size=0",
            "-Dhawser.gpu.backend=software", "-Dhawser.gpu.software.devices=2")) {
            JsonNode endpoints = broker.awaitEndpoints();
            TestBroker.await("the GPUs", () -> {
                try {
                    return request(endpoints, 200, "GET", "/api/v1/gpus", "").size() == 2;
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
            JsonNode one = request(endpoints, 201, "POST", "/api/v1/vgpus",
                "{\"name\":\"one\",\"memoryBytes\":1000000}");
            JsonNode two = request(endpoints, 201, "POST", "/api/v1/vgpus",
                "{\"name\":\"two\",\"memoryBytes\":1000000}");
            assertNotEquals(one.get("placedGpus"), two.get("placedGpus"));
            assertEquals(1, one.get("placedGpus").size());
            assertEquals(2, request(endpoints, 201, "POST", "/api/v1/vgpus", "{\"name\":\"both\",\"gpus\":\"1,0\"}")
                .get("placedGpus").size());
            String stands = request(endpoints, 409, "POST", "/api/v1/vgpus",
                "{\"name\":\"alone\",\"mode\":\"exclusive\"}").get("detail").asText();
            assertTrue(stands.contains("a GPU for exclusive use must have no other vGPU"), stands);
            assertEquals(1, devices(endpoints, "one"));
            assertEquals(1, devices(endpoints, "two"));
            assertEquals(2, devices(endpoints, "both"));
            JsonNode gpus = request(endpoints, 200, "GET", "/api/v1/gpus", "");
            assertEquals(2000000, gpus.get(0).get("reservedBytes").asLong()
                + gpus.get(1).get("reservedBytes").asLong());
            broker.terminate();
            broker.awaitExit();
        }
    }

    @Test
    void shouldEndTheSessionsOfALostGpuAndMoveWhatMayMove() throws Exception {
        try (TestBroker test = TestBroker.start(folder, "gpus", Map.of())) {
            Broker.Parts broker = test.broker();
            TestBroker.await("the GPUs", () -> broker.vgpus().gpus().size() == 2);
            List<Device> both = broker.pools().state().devices();
            VgpuView fixed = test.vgpu("fixed", 400, "1");
            VgpuView any = test.vgpu("any", 400, "any");
            VgpuView other = test.vgpu("other", 400, "any");
            assertNotEquals(any.placedGpus(), other.placedGpus());
            String lost = fixed.placedGpus().getFirst();
            String moved = any.placedGpus().getFirst().equals(lost) ? "any" : "other";
            TokenService.Made token = test.token(moved);
            TokenService.Made stuck = test.token("fixed");
            try (TestGuest guest = guest(broker, token)) {
                assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
                List<Device> left = both.stream().filter(d -> !d.uuid().equals(lost)).toList();
                test.onLoop(() -> broker.gpuWatch().setDevices(left));
                assertTrue(guest.closed(), "the session must end with its GPU");
            }
            TestBroker.await("the end of its session", () -> broker.sessions().list().isEmpty());
            assertEquals(VgpuState.UNPLACED, broker.vgpus().find("fixed").orElseThrow().state());
            assertEquals(List.of(both.getFirst().uuid()), broker.vgpus().find(moved).orElseThrow().placedGpus());
            try (TestGuest guest = guest(broker, token); TestGuest none = guest(broker, stuck)) {
                assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode(),
                    "the vGPU must have moved to the other GPU");
                assertTrue(none.receive().refusedMessage().contains("must be there: vgpu=fixed gpu=" + lost));
                test.onLoop(() -> broker.gpuWatch().setDevices(both));
                assertEquals(fixed.placedGpus(), broker.vgpus().find("fixed").orElseThrow().placedGpus());
                assertEquals(1, broker.sessions().list().size(), "the session of the moved vGPU must continue");
            }
        }
    }

    private static TestGuest guest(Broker.Parts broker, TokenService.Made token) throws Exception {
        TestGuest guest = new TestGuest(broker);
        guest.handshake(token.token().keyId(), token.secret());
        return guest;
    }
}

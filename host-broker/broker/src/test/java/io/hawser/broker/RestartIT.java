package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.door.TestGuest;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The database of a packaged broker that SIGKILL ends at any moment. */
class RestartIT {
    private static final int ROUNDS = 3;

    @TempDir
    Path folder;

    private final HttpClient client = HttpClient.newHttpClient();

    private Path stateDir() {
        return folder.resolve("state");
    }

    private RealProcess start(int round) throws IOException {
        // The killed broker of the last round has left its file behind.
        Files.deleteIfExists(stateDir().resolve("endpoints.json"));
        return new RealProcess(folder, "broker" + round, stateDir(), "-Dhawser.worker.pool-size=1",
            "-Dhawser.worker.command=" + TestBroker.workerCommand("normal"));
    }

    private HttpResponse<String> request(JsonNode endpoints, String method, String path, String body)
        throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(endpoints.get("http").asText() + path))
            .header("Authorization", "Bearer " + Files.readString(stateDir().resolve("admin.token")).strip())
            .header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body));
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private Set<String> names(JsonNode endpoints) throws Exception {
        Set<String> names = new TreeSet<>();
        HttpResponse<String> answer = request(endpoints, "GET", "/api/v1/vgpus", "");
        assertEquals(200, answer.statusCode(), answer.body());
        new ObjectMapper().readTree(answer.body()).forEach(vgpu -> names.add(vgpu.get("name").asText()));
        return names;
    }

    private void awaitGpu(JsonNode endpoints) {
        TestBroker.await("the GPU", () -> {
            try {
                return request(endpoints, "GET", "/api/v1/vgpus/default", "").body().contains("\"ready\"");
            } catch (IOException | InterruptedException e) {
                throw new AssertionError(e);
            }
        });
    }

    /** Makes vGPUs until the broker is gone. Adds a name to begun before the request and to made after the answer. */
    private Thread maker(JsonNode endpoints, int round, Set<String> begun, Set<String> made) {
        return Thread.ofPlatform().start(() -> {
            for (int i = 0;; i++) {
                String name = "r" + round + "-" + i;
                begun.add(name);
                try {
                    if (request(endpoints, "POST", "/api/v1/vgpus", "{\"name\":\"" + name + "\"}").statusCode()
                        == 201) {
                        made.add(name);
                    }
                } catch (IOException | InterruptedException e) {
                    return; // killed
                }
            }
        });
    }

    @Test
    void shouldHaveAfterAKillWhatItHasAnswered() throws Exception {
        Set<String> begun = new ConcurrentSkipListSet<>(Set.of("default"));
        Set<String> made = new ConcurrentSkipListSet<>(Set.of("default"));
        String token = "";
        for (int round = 0; round < ROUNDS; round++) {
            try (RealProcess broker = start(round)) {
                JsonNode endpoints = broker.awaitEndpoints();
                awaitGpu(endpoints);
                Set<String> there = names(endpoints);
                assertTrue(there.containsAll(made),
                    () -> "each confirmed vGPU must exist: made=" + made + " there=" + there);
                assertTrue(begun.containsAll(there), () -> "each vGPU must have been requested: " + there);
                if (round > 0) {
                    assertLetsIn(endpoints, token);
                    assertEquals(204, request(endpoints, "DELETE", "/api/v1/vgpus/r" + (round - 1) + "-0?force=true",
                        "").statusCode());
                    made.remove("r" + (round - 1) + "-0");
                    begun.remove("r" + (round - 1) + "-0");
                }
                int before = made.size();
                Thread maker = maker(endpoints, round, begun, made);
                TestBroker.await("five new vGPUs", () -> made.size() >= before + 5);
                HttpResponse<String> answer = request(endpoints, "POST", "/api/v1/vgpus/r" + round + "-1/tokens", "{}");
                assertEquals(201, answer.statusCode(), answer.body());
                token = new ObjectMapper().readTree(answer.body()).get("token").asText();
                broker.close(); // SIGKILL, during a request of the maker
                maker.join();
                broker.awaitExit();
            }
        }
        assertTrue(made.size() > ROUNDS * 4);
    }

    private static void assertLetsIn(JsonNode endpoints, String token) throws Exception {
        String[] parts = token.split("\\.", 2);
        try (TestGuest guest = new TestGuest(endpoints.get("guest").asText())) {
            guest.handshake(parts[0], parts[1], Description.HASH);
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
        }
    }
}

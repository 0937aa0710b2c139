package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.RefusedException;
import io.hawser.broker.session.Session;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.cuda.generated.Description;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Measures the cost of 1,000 vGPUs: REST, admission, start and memory of the broker. Only
 * {@code appliance/benchmark-vgpus} runs this class, which is no test.
 */
class VgpuBenchmark {
    private static final int VGPUS = 1000;
    private static final int REQUESTS = 500;
    private static final int ADMISSIONS = 200_000;
    private static final int HANDSHAKES = 2000;

    @TempDir
    Path folder;

    private final HttpClient client = HttpClient.newHttpClient();

    private RealProcess start(String name) throws Exception {
        Files.deleteIfExists(folder.resolve("state/endpoints.json"));
        return new RealProcess(folder, name, folder.resolve("state"), "-Dhawser.worker.pool-size=1",
            "-Dhawser.worker.command=" + TestBroker.workerCommand("normal"), "-Dhawser.listen.max-per-peer=100000");
    }

    private String request(JsonNode endpoints, int status, String method, String path, String body) throws Exception {
        HttpResponse<String> answer = client.send(HttpRequest.newBuilder(URI.create(endpoints.get("http").asText()
            + path)).header("Authorization", "Bearer " + Files.readString(folder.resolve("state/admin.token")).strip())
            .header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.ofString(body))
            .build(), HttpResponse.BodyHandlers.ofString());
        assertEquals(status, answer.statusCode(), answer.body());
        return answer.body();
    }

    private static void print(String format, Object... values) {
        System.out.println(String.format(Locale.ROOT, format, values));
    }

    /** Repeats an action, and prints the median and the 99th percentile of its duration. */
    private static void measure(String what, int times, Callable<?> action) throws Exception {
        double[] ms = new double[times];
        for (int i = 0; i < times; i++) {
            long beganNs = System.nanoTime();
            action.call();
            ms[i] = (System.nanoTime() - beganNs) / 1e6;
        }
        Arrays.sort(ms);
        print("REST %s: median %.2f ms, 99 %% within %.2f ms", what, ms[times / 2], ms[times * 99 / 100]);
    }

    private static void memory(String when, long pid) throws Exception {
        String rss = Files.readAllLines(Path.of("/proc/" + pid + "/status")).stream()
            .filter(line -> line.startsWith("VmRSS")).findFirst().orElseThrow().replaceAll("\\D", "");
        print("memory %s: %d MiB resident", when, Long.parseLong(rss) / 1024);
    }

    private void awaitGpu(JsonNode endpoints) {
        TestBroker.await("the GPU", () -> {
            try {
                return request(endpoints, 200, "GET", "/api/v1/vgpus/default", "").contains("\"ready\"");
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    @Test
    void restOfAPackagedBroker() throws Exception {
        long beganNs = System.nanoTime();
        try (RealProcess broker = start("first")) {
            JsonNode endpoints = broker.awaitEndpoints();
            print("start: %.2f s to the endpoints, with a new database", (System.nanoTime() - beganNs) / 1e9);
            awaitGpu(endpoints);
            memory("after the start", broker.pid());
            int[] next = {0};
            beganNs = System.nanoTime();
            measure("create, on disk", VGPUS, () -> request(endpoints, 201, "POST", "/api/v1/vgpus", "{\"name\":\"v"
                + next[0]++ + "\",\"memoryBytes\":1000}"));
            print("REST create: %.0f a second by one client", VGPUS / ((System.nanoTime() - beganNs) / 1e9));
            measure("get one of 1,000", REQUESTS, () -> request(endpoints, 200, "GET", "/api/v1/vgpus/v500", ""));
            measure("list 1,000", REQUESTS / 5, () -> request(endpoints, 200, "GET", "/api/v1/vgpus", ""));
            measure("change, on disk", REQUESTS, () -> request(endpoints, 200, "PATCH", "/api/v1/vgpus/v500",
                "{\"computeShare\":" + (1 + next[0]++ % 100) + "}"));
            measure("make a token, on disk", REQUESTS, () -> request(endpoints, 201, "POST",
                "/api/v1/vgpus/v500/tokens", "{}"));
            String[] token = new ObjectMapper().readTree(request(endpoints, 201, "POST", "/api/v1/vgpus/v499/tokens",
                "{}")).get("token").asText().split("\\.", 2);
            request(endpoints, 200, "PATCH", "/api/v1/vgpus/v499", "{\"carriers\":[\"shm\"]}");
            handshakes(endpoints, token);
            memory("with 1,000 vGPUs and 500 tokens", broker.pid());
            print("database: %d KiB", Files.size(folder.resolve("state/broker.mv.db")) / 1024);
            broker.terminate();
            broker.awaitExit();
        }
        beganNs = System.nanoTime();
        try (RealProcess broker = start("second")) {
            JsonNode endpoints = broker.awaitEndpoints();
            print("start: %.2f s to the endpoints, with 1,000 vGPUs in the database",
                (System.nanoTime() - beganNs) / 1e9);
            awaitGpu(endpoints);
            memory("after that start", broker.pid());
            broker.terminate();
            broker.awaitExit();
        }
    }

    /** Connects guests with a valid token, which admission refuses for their vGPU, so that no worker takes part. */
    private static void handshakes(JsonNode endpoints, String[] token) throws Exception {
        long beganNs = System.nanoTime();
        for (int i = 0; i < HANDSHAKES; i++) {
            try (TestGuest guest = new TestGuest(endpoints.get("guest").asText())) {
                guest.handshake(token[0], token[1], Description.HASH);
                guest.receive().refusedMessage();
            }
        }
        print("admission over TCP: %.0f handshakes a second by one client, each refused by its vGPU",
            HANDSHAKES / ((System.nanoTime() - beganNs) / 1e9));
    }

    @Test
    void admission() throws Exception {
        try (TestBroker test = TestBroker.start(folder.resolve("state"), "normal", Map.of())) {
            Broker.Parts broker = test.broker();
            TestBroker.await("the GPU", () -> !broker.vgpus().gpus().isEmpty());
            for (int i = 0; i < VGPUS; i++) {
                test.vgpu("v" + i, 1000, "any");
            }
            for (String costs : new String[] {"unknown", "known"}) {
                long[] ns = {0};
                test.onLoop(() -> ns[0] = admissions(broker.sessions()));
                print("admission itself: %.0f a second with 1,000 vGPUs, cost of contexts %s",
                    ADMISSIONS / (ns[0] / 1e9), costs);
                test.onLoop(() -> broker.vgpus().setContextBytes("u-1", 1));
            }
        }
    }

    private static long admissions(SessionRegistry sessions) {
        Guest[] guests = new Guest[VGPUS];
        for (int i = 0; i < VGPUS; i++) {
            guests[i] = new Guest("key", "v" + i, Carrier.TCP, "127.0.0.1:1", 1, "program", "host");
        }
        long beganNs = System.nanoTime();
        try {
            for (int i = 0; i < ADMISSIONS; i++) {
                Session session = sessions.admit(guests[i % VGPUS], () -> {});
                sessions.abandon(session);
            }
        } catch (RefusedException e) {
            throw new AssertionError(e);
        }
        return System.nanoTime() - beganNs;
    }
}

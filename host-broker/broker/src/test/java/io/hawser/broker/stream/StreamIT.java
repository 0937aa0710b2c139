package io.hawser.broker.stream;

import static io.restassured.RestAssured.given;
import static org.hamcrest.Matchers.containsString;
import static org.hamcrest.Matchers.equalTo;
import static org.hamcrest.Matchers.greaterThanOrEqualTo;
import static org.hamcrest.Matchers.hasItem;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.TestBroker;
import io.hawser.broker.app.RunningBroker;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.rest.FakeWorkers;
import io.hawser.broker.rest.HttpEndpoint;
import io.hawser.cuda.generated.Description;
import io.quarkus.test.common.QuarkusTestResource;
import io.quarkus.test.junit.QuarkusTest;
import io.restassured.specification.RequestSpecification;
import jakarta.inject.Inject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Events, history and the stream as a client sees them, with fake workers. */
@QuarkusTest
@QuarkusTestResource(FakeWorkers.class)
class StreamIT {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LIMIT_MS = 60_000;

    @Inject
    RunningBroker running;
    @Inject
    HttpEndpoint http;
    @Inject
    BrokerConfig config;
    @Inject
    Watch watch;

    /** A client that reads the stream. */
    private final class Watcher implements AutoCloseable {
        private final HttpURLConnection connection;
        private final BufferedReader lines;
        private final List<JsonNode> seen = new ArrayList<>();

        Watcher() throws IOException {
            connection = (HttpURLConnection) URI.create(http.url() + "/api/v1/stream").toURL()
                .openConnection();
            connection.setRequestProperty("Authorization", "Bearer " + adminToken());
            connection.setReadTimeout(LIMIT_MS);
            assertEquals(200, connection.getResponseCode());
            assertTrue(connection.getContentType().startsWith("text/event-stream"), connection.getContentType());
            assertEquals("no-store", connection.getHeaderField("Cache-Control"));
            lines = new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.UTF_8));
        }

        /** The next event, with its name in {@code is} and its data in {@code of}; null for a comment. */
        JsonNode next() throws IOException {
            String name = "";
            StringBuilder data = new StringBuilder();
            String line;
            while (!(line = lines.readLine()).isEmpty()) {
                if (line.startsWith("event:")) {
                    name = line.substring(6).strip();
                } else if (line.startsWith("data:")) {
                    data.append(line.substring(5));
                }
            }
            if (name.isEmpty()) {
                return null;
            }
            return JSON.createObjectNode().put("is", name).set("of", JSON.readTree(data.toString()));
        }

        /** The first fitting event, received or still to come, since a change and its notice arrive in any order. */
        JsonNode any(String name, Predicate<JsonNode> fits) throws IOException {
            long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT_MS);
            for (int i = 0; i < seen.size() || System.nanoTime() < deadlineNs; i++) {
                if (i == seen.size()) {
                    seen.add(next());
                }
                JsonNode frame = seen.get(i);
                if (frame != null && frame.get("is").asText().equals(name) && fits.test(frame.get("of"))) {
                    return frame.get("of");
                }
            }
            throw new AssertionError("the event must come: " + name + " among " + seen);
        }

        @Override
        public void close() {
            connection.disconnect();
        }
    }

    private static boolean any(JsonNode list, Predicate<JsonNode> fits) {
        return StreamSupport.stream(list.spliterator(), false).anyMatch(fits);
    }

    @BeforeEach
    void awaitWorker() {
        FakeWorkers.awaitIdle(running.parts());
    }

    private String adminToken() throws IOException {
        return Files.readString(config.stateDir().resolve("admin.token")).strip();
    }

    private RequestSpecification admin() throws IOException {
        return given().auth().oauth2(adminToken());
    }

    private TestGuest guest() throws IOException {
        TestGuest guest = new TestGuest(running.parts().door().endpoint());
        guest.handshake("default", TestGuest.secret(config.stateDir()), Description.HASH);
        guest.receive();
        return guest;
    }

    @Test
    void shouldPushAPictureThenChangesAndEvents() throws Exception {
        try (Watcher watcher = new Watcher()) {
            JsonNode picture = watcher.next();
            assertEquals("picture", picture.get("is").asText());
            assertEquals("Fake GPU", picture.get("of").get("gpus").get(0).get("name").asText());
            assertEquals(running.parts().door().endpoint(), picture.at("/of/broker/guestEndpoint").asText());
            long id;
            try (TestGuest guest = guest()) {
                JsonNode event = watcher.any("event", e -> e.get("text").asText().contains("started: vector?add"));
                id = event.get("sessionId").asLong();
                assertEquals("session", event.get("kind").asText());
                watcher.any("change", c -> any(c.get("sessions"), s -> s.get("id").asLong() == id
                    && s.at("/statistics/calls").asLong() == 10));
                admin().delete("/api/v1/sessions/" + id).then().statusCode(204);
                assertTrue(guest.closed());
            }
            watcher.any("event", e -> e.get("sessionId").asLong() == id && e.get("text").asText().contains(
                "the administrator ended the session"));
            watcher.any("change", c -> any(c.get("removedSessions"), removed -> removed.asLong() == id));
        }
        TestBroker.await("the end of the client", () -> watch.clients() == 0);
    }

    @Test
    void shouldTellWhyGuestsWereRefused() throws Exception {
        try (TestGuest guest = new TestGuest(running.parts().door().endpoint())) {
            guest.challenge("nobody", Description.HASH);
            guest.send(TestGuest.proof(new byte[32]));
            guest.receive();
        }
        TestBroker.await("the event", () -> watch.events().latest(1000).stream().anyMatch(
            e -> e.kind().equals("refused") && e.text().contains("the token is not known to this broker")));
        admin().get("/api/v1/events?limit=1000").then().statusCode(200).body("text",
            hasItem(containsString("the token is not known to this broker")))
            .body("find {it.kind == 'refused'}.severity", equalTo("warning"));
        admin().get("/api/v1/events?limit=1").then().body("size()", equalTo(1));
    }

    @Test
    void shouldKeepHistory() throws Exception {
        try (TestGuest guest = guest()) {
            TestBroker.await("statistics", () -> running.parts().sessions().totals().calls() >= 10);
            for (String of : new String[] {"", "&vgpu=default", "&gpu="
                + running.parts().pools().state().devices().getFirst().uuid()}) {
                TestBroker.await("a point with a session" + of, () -> {
                    try {
                        return admin().get("/api/v1/history?seconds=600" + of).then().statusCode(200)
                            .body("stepSeconds", equalTo(1)).body("callsPerSecond.size()", greaterThanOrEqualTo(1))
                            .extract().jsonPath().getList("sessions", Double.class).contains(1.0);
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                });
            }
        }
    }

    @Test
    void shouldRefuseWhatIsNone() throws IOException {
        for (String path : new String[] {"events?limit=0", "events?limit=1001", "events?limit=x", "history?seconds=9",
            "history?seconds=86401", "history?seconds=-", "history?gpu=a&vgpu=b"}) {
            admin().get("/api/v1/" + path).then().statusCode(400).contentType("application/problem+json");
        }
        admin().get("/api/v1/history?gpu=none").then().statusCode(404);
        admin().get("/api/v1/history?vgpu=none").then().statusCode(404);
        for (String path : new String[] {"stream", "events", "history"}) {
            given().get("/api/v1/" + path).then().statusCode(401);
        }
    }

    @Test
    void shouldEndWithTheLoginOfWhoWatches() throws Exception {
        String cookie = given().contentType("application/json").body(JSON.createObjectNode().put("token", adminToken())
            .toString()).post("/api/v1/login").then().statusCode(200).extract().cookie("hawser_session");
        HttpURLConnection connection = (HttpURLConnection) URI.create(http.url() + "/api/v1/stream")
            .toURL().openConnection();
        connection.setRequestProperty("Cookie", "hawser_session=" + cookie);
        connection.setReadTimeout(LIMIT_MS);
        assertEquals(200, connection.getResponseCode());
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(connection.getInputStream(),
            StandardCharsets.UTF_8))) {
            assertTrue(lines.readLine().startsWith("event:"));
            given().cookie("hawser_session", cookie).header("X-Hawser-Request", "1").delete("/api/v1/login").then()
                .statusCode(204);
            // The broker checks the login each 15 s. A stream that continues would exceed the limit of heartbeats.
            int heartbeats = 0;
            String line;
            while ((line = lines.readLine()) != null) {
                heartbeats += line.startsWith(":") ? 1 : 0;
                assertTrue(heartbeats < 3, "the stream must end with the login");
            }
        }
        TestBroker.await("the end of the client", () -> watch.clients() == 0);
        given().cookie("hawser_session", cookie).get("/api/v1/stream").then().statusCode(401);
    }

    @Test
    void shouldServeNoMoreThanSettingsAllow() throws Exception {
        List<Watcher> watchers = new ArrayList<>();
        try {
            for (int i = 0; i < config.stream().maxClients(); i++) {
                watchers.add(new Watcher());
            }
            TestBroker.await("all clients", () -> watch.clients() == config.stream().maxClients());
            admin().get("/api/v1/stream").then().statusCode(503).contentType("application/problem+json")
                .body("detail", containsString("hawser.stream.max-clients"));
        } finally {
            watchers.forEach(Watcher::close);
        }
        TestBroker.await("the end of the clients", () -> watch.clients() == 0);
    }
}

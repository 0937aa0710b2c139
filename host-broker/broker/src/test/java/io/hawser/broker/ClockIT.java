package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.door.TestGuest;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The packaged broker while its wall clock jumps forward and back by a day. */
class ClockIT {
    private static final Duration DAY = Duration.ofDays(1);
    /** A deadline on the wall clock would expire within this time: the broker checks at least once a second. */
    private static final int LOOKS_MS = 2000;

    @TempDir
    Path folder;

    private JumpingClock clock;
    private RealProcess broker;

    private void start(String handshakeTimeout) throws Exception {
        clock = new JumpingClock(folder);
        broker = new RealProcess(folder, "broker", folder.resolve("state"), clock.environment(),
            "-Dhawser.worker.pool-size=1", "-Dhawser.listen.handshake-timeout=" + handshakeTimeout,
            "-Dhawser.worker.command=" + TestBroker.workerCommand("normal"));
        broker.awaitEndpoints();
        broker.awaitReady();
    }

    @AfterEach
    void stop() {
        if (broker != null) {
            broker.close();
        }
    }

    /** Sets the broker's wall clock ahead of the test's clock, and checks that the broker follows. */
    private void jump(Duration ahead) throws IOException {
        clock.set(ahead);
        String name = "made-" + Math.abs(ahead.toDays()) + (ahead.isNegative() ? "-ago" : "-ahead");
        JsonNode made = json(broker.request("POST", "/api/v1/vgpus", "{\"name\":\"" + name + "\"}"), 201);
        Duration seen = Duration.between(Instant.now(), Instant.parse(made.get("created").asText()));
        assertTrue(seen.minus(ahead).abs().compareTo(Duration.ofHours(1)) < 0,
            "the broker's clock must have jumped: " + seen);
    }

    private static JsonNode json(HttpResponse<String> answer, int status) throws IOException {
        assertEquals(status, answer.statusCode(), answer.body());
        return new ObjectMapper().readTree(answer.body());
    }

    private String token(Instant expires) throws IOException {
        return json(broker.request("POST", "/api/v1/vgpus/default/tokens", expires == null ? "{}"
            : "{\"expires\":\"" + expires + "\"}"), 201).get("token").asText();
    }

    private String login() {
        HttpResponse<String> made = broker.request("/api/v1/login", null, request -> {
            try {
                return request.header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(
                    "{\"token\":\"" + Files.readString(folder.resolve("state/admin.token")).strip()
                        + "\"}"));
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        });
        assertEquals(200, made.statusCode(), made.body());
        return made.headers().firstValue("Set-Cookie").orElseThrow().replaceFirst(";.*", "");
    }

    private static void assertGoesOn(TestGuest session, String what) throws IOException {
        byte[] sent = what.getBytes(StandardCharsets.UTF_8);
        session.send(sent);
        assertArrayEquals(sent, session.bytes(sent.length));
    }

    @Test
    void shouldKeepSessionsLoginsAndHistoryWhenTheClockJumps() throws Exception {
        start(TestBroker.HANDSHAKE_TIMEOUT);
        String forEver = token(null);
        String forAnHour = token(Instant.now().plus(Duration.ofHours(1)));
        String cookie = login();
        long beganNs = System.nanoTime();
        try (TestGuest session = broker.session(forEver); TestGuest other = broker.session(forAnHour);
            TestGuest halfOpen = new TestGuest(broker.awaitEndpoints().get("guest").asText())) {
            for (Duration ahead : List.of(DAY, DAY.negated(), Duration.ZERO)) {
                jump(ahead);
                // By then, a session, a login or a half-open connection with a wall-clock deadline would have ended.
                halfOpen.socket().setSoTimeout(LOOKS_MS);
                assertThrows(SocketTimeoutException.class, () -> halfOpen.socket().getInputStream().read(), "closed");
                assertGoesOn(session, "session " + ahead);
                assertGoesOn(other, "its token may be over, it is not: " + ahead);
                assertEquals(2, json(broker.request("GET", "/api/v1/sessions", ""), 200).size());
                assertEquals("admin", json(broker.request("/api/v1/me", null, request -> request.header("Cookie",
                    cookie)), 200).get("role").asText());
                assertEquals("UP", json(broker.request("GET", "/q/health/ready", ""), 200).get("status").asText());
                broker.session(forEver).close();
                assertTokenEndsByTheWallClock(forAnHour, ahead);
                assertHistory(beganNs, ahead);
                TestBroker.await("the end of the new sessions", () -> {
                    try {
                        return json(broker.request("GET", "/api/v1/sessions", ""), 200).size() == 2;
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                });
            }
        }
    }

    private void assertTokenEndsByTheWallClock(String forAnHour, Duration ahead) throws IOException {
        try (TestGuest guest = broker.guest(forAnHour)) {
            TestGuest.Answer answer = guest.receive();
            if (ahead.equals(DAY)) {
                assertEquals(RecordLayout.CONTROL_REFUSED, answer.opcode());
                assertTrue(answer.refusedMessage().contains("expired"), answer.refusedMessage());
            } else {
                assertEquals(RecordLayout.CONTROL_WELCOME, answer.opcode());
            }
        }
    }

    /** The history has a point for each second that the broker has run, and none for the skipped day. */
    private void assertHistory(long beganNs, Duration ahead) throws IOException {
        long ranSeconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - beganNs);
        JsonNode history = json(broker.request("GET", "/api/v1/history?seconds=600", ""), 200);
        int points = history.get("sessions").size();
        assertTrue(points >= Math.min(ranSeconds - 5, 590) && points <= 600, "points=" + points + " s=" + ranSeconds);
        JsonNode last = history.get("sessions").get(points - 2);
        assertTrue(last.isNumber() && last.asDouble() >= 1,
            "the history must show the running sessions: " + history.get("sessions"));
        Instant end = Instant.parse(history.get("from").asText()).plusSeconds((long) points
            * history.get("stepSeconds").asInt());
        assertTrue(Duration.between(Instant.now(), end).minus(ahead).abs().compareTo(Duration.ofMinutes(5)) < 0,
            "the history must end at the time of the broker's clock: " + end);
    }

    @Test
    void shouldEndSlowHandshakesThoughTheClockGoesBack() throws Exception {
        start("4s");
        try (TestGuest halfOpen = new TestGuest(broker.awaitEndpoints().get("guest").asText())) {
            jump(DAY.negated());
            TestGuest.Answer answer = halfOpen.receive();
            assertEquals(RecordLayout.CONTROL_REFUSED, answer.opcode());
            assertTrue(answer.refusedMessage().contains("timeoutMs=4000"), answer.refusedMessage());
        }
    }
}

package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.posix.Posix;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Hostile clients at the REST interface of the packaged broker, with its small heap. */
class WebDoorIT {
    private static final String ADMIN = "127.0.0.1";
    private static final String ATTACKER = "127.0.0.2";
    private static final String HEAD = "GET /q/health/live HTTP/1.1\r\nHost: broker\r\n";
    private static final String REQUEST = HEAD + "\r\n";
    private static final String POST = "POST /api/v1/login HTTP/1.1\r\nHost: broker\r\n"
        + "Content-Type: application/json\r\n";

    @TempDir
    private static Path sharedFolder;
    private static RealProcess shared;

    @TempDir
    private Path ownFolder;
    private Path folder;
    private RealProcess broker;
    private URI http;
    private final Map<String, Long> refusedBefore = new HashMap<>();

    /** Starts a broker of the test's own. */
    private void start(String... settings) throws IOException {
        folder = ownFolder;
        broker = startIn(ownFolder, settings);
        http = URI.create(broker.awaitEndpoints().get("http").asText());
    }

    /** Uses the class's broker with default settings, for tests that leave no connection and change no state. */
    private void share() throws IOException {
        if (shared == null) {
            shared = startIn(sharedFolder);
        }
        folder = sharedFolder;
        broker = shared;
        http = URI.create(broker.awaitEndpoints().get("http").asText());
        for (String reason : List.of("malformed", "pipelined")) {
            refusedBefore.put(reason, refused(reason));
        }
    }

    private static RealProcess startIn(Path folder, String... settings) throws IOException {
        List<String> all = new ArrayList<>(List.of(settings));
        all.add("-Dhawser.worker.command=" + TestBroker.workerCommand("normal"));
        all.add("-Dhawser.worker.pool-size=1");
        RealProcess started = new RealProcess(folder, "broker", folder.resolve("state"), all.toArray(String[]::new));
        started.awaitReady();
        return started;
    }

    @AfterEach
    void stop() {
        if (broker != null && broker != shared) {
            broker.close();
        }
    }

    @AfterAll
    static void stopShared() {
        if (shared != null) {
            shared.close();
        }
    }

    private TestClient client(String source) throws IOException {
        return new TestClient(http, source);
    }

    private int status(String source, String request) throws IOException {
        try (TestClient client = client(source)) {
            return client.send(request).status();
        }
    }

    /** Sends an administrator's request over a connection of its own and returns the status. */
    private int admin(String method, String path, String body) throws IOException {
        String token = Files.readString(folder.resolve("state").resolve("admin.token")).strip();
        return status(ADMIN, method + " " + path + " HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer " + token
            + "\r\nContent-Type: application/json\r\nContent-Length: " + body.length() + "\r\n\r\n" + body);
    }

    /** Number of connections that the broker has refused for a reason since the test began. */
    private long refused(String reason) {
        String name = "hawser_http_refused_connections_total{reason=\"" + reason + "\"} ";
        return broker.request("GET", "/q/metrics", "", "*/*").body().lines()
            .filter(line -> line.startsWith(name)).mapToLong(line -> (long) Double.parseDouble(
                line.substring(name.length())))
            .findFirst().orElseThrow() - refusedBefore.getOrDefault(reason, 0L);
    }

    private static void close(List<TestClient> clients) throws IOException {
        for (TestClient client : clients) {
            client.close();
        }
    }

    @Test
    void shouldSurviveThousandsOfUnfinishedHeadsWhileAnAdministratorWorks() throws Exception {
        start();
        String head = HEAD + "a:b\r\n".repeat(4096); // 20 KiB, which Vert.x keeps as 4,096 objects
        String upgrade = "GET / HTTP/1.1\r\nHost: broker\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
            + "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n" + "a:b\r\n".repeat(4000);
        List<TestClient> attack = new ArrayList<>();
        for (int batch = 0; batch < 20; batch++) {
            for (int i = 0; i < 100; i++) {
                attack.add(client(ATTACKER).sendWhileOpen(i % 2 == 0 ? head : upgrade));
            }
            String name = "vgpu" + batch;
            assertEquals(201, admin("POST", "/api/v1/vgpus", "{\"name\":\"" + name + "\"}"));
            assertEquals(204, admin("DELETE", "/api/v1/vgpus/" + name, ""));
            assertEquals(200, status(ADMIN, REQUEST), "a health probe must succeed");
        }
        assertTrue(refused("head") > 0);
        close(attack);
    }

    @Test
    void shouldHoldAllHeadsThatItsLimitsAllow() throws Exception {
        start("-Dhawser.http.request-timeout=300s");
        // Unfinished heads below each limit. The broker accepts 64 connections of each peer.
        String head = HEAD + ("a:" + "b".repeat(180) + "\r\n").repeat(95);
        List<TestClient> attack = new ArrayList<>();
        for (String peer : List.of("127.0.0.2", "127.0.0.3", "127.0.0.4")) {
            for (int i = 0; i < 100; i++) {
                attack.add(client(peer).sendWhileOpen(head));
            }
        }
        TestBroker.await("the acceptance or refusal of all connections", () -> refused("peer") == 3 * 36);
        assertEquals(0, refused("head"));
        assertEquals(200, admin("GET", "/api/v1/vgpus", ""));
        close(attack);
    }

    @Test
    void shouldCloseAllButSoManyConnectionsOfOnePeerAtOnce() throws Exception {
        start("-Dhawser.http.max-per-peer=5", "-Dhawser.http.request-timeout=300s");
        List<TestClient> idle = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            idle.add(client(ATTACKER));
        }
        try (TestClient sixth = client(ATTACKER)) {
            assertTrue(sixth.isRefused());
        }
        assertEquals(1, refused("peer"));
        assertTrue(broker.output().contains("REST connection refused: peer=127.0.0.2:"), broker.output());
        assertEquals(200, admin("GET", "/api/v1/me", ""));
        idle.removeFirst().close();
        TestBroker.await("a free place for the peer", () -> {
            try {
                return status(ATTACKER, REQUEST) == 200;
            } catch (IOException e) {
                return false; // the broker has not noticed the end of the first connection yet
            }
        });
        close(idle);
    }

    @Test
    void shouldLimitTheHead() throws Exception {
        start("-Dhawser.http.max-head-fields=10", "-Dhawser.http.max-head-size=2K");
        assertEquals(200, status(ATTACKER, HEAD + "a:b\r\n".repeat(9) + "\r\n"));
        assertEquals(431, status(ATTACKER, HEAD + "a:b\r\n".repeat(10)),
            "the broker must refuse before the head is complete");
        assertEquals(200, status(ATTACKER, HEAD + "a:" + "b".repeat(1900) + "\r\n\r\n"));
        assertEquals(431, status(ATTACKER, HEAD + "a:" + "b".repeat(2100)),
            "the broker must refuse before the line is complete");
        assertEquals(431, status(ATTACKER, HEAD + ("a:" + "b".repeat(600) + "\r\n").repeat(4)));
        assertEquals(414, status(ATTACKER, "GET /" + "a".repeat(5000)));
        assertEquals(4, refused("head"));
        try (TestClient client = client(ATTACKER)) {
            client.sendWhileOpen(POST + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + "a:b\r\n".repeat(11));
            client.rest();
        }
        assertEquals(5, refused("head"), "the limit must include a trailer's fields");
    }

    @Test
    void shouldGiveARequestOnlySoMuchTime() throws Exception {
        start("-Dhawser.http.request-timeout=3s");
        List<TestClient> unfinished = new ArrayList<>();
        for (String part : List.of("G", HEAD, REQUEST + HEAD, POST + "Content-Length: 100\r\n\r\n{",
            POST + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")) {
            unfinished.add(client(ATTACKER).send(part));
        }
        for (TestClient client : unfinished) {
            client.rest();
        }
        assertEquals(unfinished.size(), refused("timeout"));
        close(unfinished);
        try (TestClient trickling = client(ATTACKER)) {
            trickling.send(HEAD + "a:");
            assertThrows(IOException.class, () -> {
                while (true) { // each byte would restart a timeout that measures silence
                    trickling.send("b");
                    TimeUnit.MILLISECONDS.sleep(20);
                }
            });
        }
        assertEquals(unfinished.size() + 1, refused("timeout"));
        assertEquals(0, refused("head"), "the timeout must end the head, not the limit on its size");
        try (TestClient silent = client(ATTACKER)) {
            assertTrue(silent.isRefused());
        }
        assertEquals(200, admin("GET", "/api/v1/me", ""));
    }

    @Test
    void shouldQueueFewRequestsOfAConnection() throws Exception {
        share();
        try (TestClient client = client(ATTACKER)) {
            client.send(REQUEST + REQUEST);
            assertEquals(200, client.status());
            assertEquals(200, client.status());
            client.send(REQUEST);
            assertEquals(200, client.status());
        }
        try (TestClient client = client(ATTACKER)) {
            client.sendWhileOpen(REQUEST.repeat(200));
            int answers = client.rest().split("HTTP/1.1 200", -1).length - 1;
            assertTrue(answers <= 2, "answers=" + answers);
        }
        assertEquals(1, refused("pipelined"));
    }

    @Test
    void shouldQueueNothingForAPeerThatDoesNotRead() throws Exception {
        share();
        // Each answer has 50 KiB or more, so that the sockets' buffers fill before the broker's memory does.
        String request = "GET /q/openapi HTTP/1.1\r\nHost: broker\r\n\r\n";
        try (TestClient deaf = client(ATTACKER)) {
            TestBroker.await("the end of the connection", () -> {
                deaf.sendWhileOpen(request);
                return refused("pipelined") > 0;
            });
        }
    }

    @Test
    void shouldRefuseARequestWhoseLengthHasTwoMeanings() throws Exception {
        share();
        String smuggled = "GET /q/health/live HTTP/1.1\r\nHost: broker\r\n\r\n";
        List<String> ambiguous = List.of("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
            "Content-Length: 4\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: xchunked\r\n", "Content-Length: 4\r\nContent-Length: 5\r\n",
            "Content-Length: +4\r\n", "Content-Length : 4\r\n");
        for (String fields : ambiguous) {
            try (TestClient client = client(ATTACKER)) {
                client.send(POST + fields + "\r\n0\r\n\r\n" + smuggled);
                String answer = client.rest();
                assertTrue(answer.startsWith("HTTP/1.1 400 "), fields + answer);
                assertEquals(0, answer.indexOf("HTTP/1.1", 1) + 1, fields + answer);
            }
        }
        assertEquals(400, status(ATTACKER, POST.replace("HTTP/1.1", "HTTP/1.0")
            + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
        assertEquals(ambiguous.size() + 1, refused("malformed"));
        try (TestClient client = client(ATTACKER)) {
            assertEquals(400, client.send(POST + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n").status());
            assertEquals(200, client.send(REQUEST).status(),
                "the connection must survive a chunked body without a length");
        }
    }

    @Test
    void shouldNotSpeakHttp2() throws Exception {
        share();
        try (TestClient client = client(ATTACKER)) {
            client.send(HEAD + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
                + "AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n");
            assertEquals(200, client.status(), "the broker must not upgrade to HTTP/2");
        }
        try (TestClient client = client(ATTACKER)) {
            String answer = client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").rest();
            assertTrue(answer.contains(" 400 "), answer);
        }
        assertEquals(1, refused("malformed"));
        assertFalse(broker.output().contains("ERROR"), broker.output());
    }

    /** Each local user can use all loopback addresses, so the door must distinguish local users by their user ids. */
    @Test
    void shouldKeepPlacesFromOtherUsersOfThisMachine() throws Exception {
        assumeTrue(Posix.userId() == 0, "skipped: only root can be another user");
        start("-Dhawser.http.max-per-peer=5", "-Dhawser.http.request-timeout=300s");
        Process other = new ProcessBuilder("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c",
            "for i in 1 2 3 4 5; do exec {fd}<>/dev/tcp/127.0.0.1/" + http.getPort() + "; done; echo all; "
                + "exec {fd}<>/dev/tcp/127.0.0.1/" + http.getPort() + "; cat <&$fd; echo closed; cat")
            .start();
        try {
            assertEquals("all", other.inputReader().readLine());
            assertEquals("closed", other.inputReader().readLine(), "the broker must close the sixth connection");
            assertEquals(1, refused("peer"));
            assertEquals(200, admin("GET", "/api/v1/me", ""));
        } finally {
            other.destroy();
        }
    }
}

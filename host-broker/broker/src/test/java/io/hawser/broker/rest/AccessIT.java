package io.hawser.broker.rest;

import static io.restassured.RestAssured.given;
import static org.hamcrest.Matchers.containsString;
import static org.hamcrest.Matchers.equalTo;
import static org.hamcrest.Matchers.hasSize;
import static org.hamcrest.Matchers.lessThan;
import static org.hamcrest.Matchers.not;
import static org.hamcrest.Matchers.notNullValue;
import static org.hamcrest.Matchers.nullValue;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.access.Passwords;
import io.hawser.broker.access.Role;
import io.hawser.broker.access.UsersFile;
import io.hawser.broker.app.RunningBroker;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.web.WebDoor;
import io.quarkus.test.common.QuarkusTestResource;
import io.quarkus.test.junit.QuarkusTest;
import io.restassured.RestAssured;
import io.restassured.http.ContentType;
import io.restassured.http.Cookie;
import io.restassured.response.Response;
import jakarta.inject.Inject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The permissions of each role, as a client sees them. */
@QuarkusTest
@QuarkusTestResource(FakeWorkers.class)
class AccessIT {
    private static final String PASSWORD = "correct horse";
    private final TestIssuer issuer = FakeWorkers.issuer();

    @Inject
    RunningBroker running;
    @Inject
    BrokerConfig config;
    @Inject
    WebDoor door;

    @BeforeEach
    void awaitGpu() {
        TestBroker.await("the report of the GPU", () -> !running.parts().vgpus().gpus().isEmpty());
    }

    @BeforeEach
    void users() throws IOException {
        for (Role role : Role.values()) {
            UsersFile.change(config.stateDir().resolve("users"), role.label() + "-user", new UsersFile.User(
                role.label() + "-user", role, Passwords.store(PASSWORD.toCharArray())));
        }
    }

    private static String login(String name, String password) {
        return "{\"name\":\"" + name + "\",\"password\":\"" + password + "\"}";
    }

    private static Response login(String body) {
        return given().contentType(ContentType.JSON).body(body).post("/api/v1/login");
    }

    @Test
    void shouldTellWhoAsks() throws IOException {
        given().get("/api/v1/me").then().statusCode(401);
        String token = Files.readString(config.stateDir().resolve("admin.token")).strip();
        given().auth().oauth2(token).get("/api/v1/me").then().statusCode(200).body("name", equalTo("admin.token"))
            .body("role", equalTo("admin")).body("via", equalTo("token"));
        given().auth().preemptive().basic("viewer-user", PASSWORD).get("/api/v1/me").then().statusCode(200)
            .body("name", equalTo("viewer-user")).body("role", equalTo("viewer")).body("via", equalTo("password"));
    }

    @Test
    void shouldRefuseChangesToViewers() {
        for (int i = 0; i < 2; i++) {
            given().auth().preemptive().basic("viewer-user", PASSWORD).get("/api/v1/sessions").then().statusCode(200);
            given().auth().preemptive().basic("viewer-user", PASSWORD).delete("/api/v1/sessions/999").then()
                .statusCode(403).contentType("application/problem+json")
                .body("detail", containsString("this needs the role operator"));
            given().auth().preemptive().basic("operator-user", PASSWORD).delete("/api/v1/sessions/999").then()
                .statusCode(404);
        }
        given().auth().preemptive().basic("viewer-user", "wrong password").get("/api/v1/me").then().statusCode(401);
    }

    @Test
    void shouldLogInAndOut() {
        Response made = login(login("operator-user", PASSWORD));
        made.then().statusCode(200).body("name", equalTo("operator-user")).body("via", equalTo("cookie"))
            .header("Cache-Control", equalTo("no-store"));
        Cookie cookie = made.getDetailedCookie("hawser_session");
        assertTrue(cookie.isHttpOnly() && "Strict".equalsIgnoreCase(cookie.getSameSite())
            && "/".equals(cookie.getPath()) && !cookie.isSecured() && cookie.getValue().length() >= 40, "" + cookie);
        given().cookie(cookie).get("/api/v1/me").then().statusCode(200).body("role", equalTo("operator"))
            .body("via", equalTo("cookie"));
        given().cookie(cookie).delete("/api/v1/sessions/999").then().statusCode(403)
            .body("detail", containsString("X-Hawser-Request"));
        given().cookie(cookie).header("X-Hawser-Request", "1").delete("/api/v1/sessions/999").then().statusCode(404);
        given().cookie(cookie).delete("/api/v1/login").then().statusCode(403);
        given().cookie(cookie).header("X-Hawser-Request", "1").delete("/api/v1/login").then().statusCode(204)
            .cookie("hawser_session", equalTo(""));
        given().cookie(cookie).get("/api/v1/me").then().statusCode(401);
        given().delete("/api/v1/login").then().statusCode(204);
    }

    @Test
    void shouldLogInByTheAdminTokenAndRefuseWhatIsNeither() throws IOException {
        String token = Files.readString(config.stateDir().resolve("admin.token")).strip();
        login("{\"token\":\"" + token + "\"}").then().statusCode(200).body("role", equalTo("admin"))
            .cookie("hawser_session", notNullValue());
        login("{\"token\":\"" + token + "x\"}").then().statusCode(401).header("Set-Cookie", nullValue());
        login(login("operator-user", "wrong password")).then().statusCode(401)
            .contentType("application/problem+json").body("detail", equalTo("name or password is wrong"));
        for (String bad : new String[] {"{}", "{\"name\":\"a\"}", "{\"token\":\"a\",\"name\":\"b\",\"password\":\"c\"}",
            "[", "{\"token\":\"" + "a".repeat(300) + "\"}"}) {
            login(bad).then().statusCode(400);
        }
        given().contentType("text/plain").body(login("operator-user", PASSWORD)).post("/api/v1/login").then()
            .statusCode(415);
        given().contentType(ContentType.JSON).body(login("a", "b".repeat(70_000))).post("/api/v1/login").then()
            .statusCode(413);
    }

    /** Sends a request from a loopback address of its own and returns the status. */
    private static int statusFrom(String source, String request) throws IOException {
        try (Socket socket = new Socket()) {
            socket.bind(new InetSocketAddress(InetAddress.ofLiteral(source), 0));
            socket.connect(new InetSocketAddress("127.0.0.1", RestAssured.port));
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            String status = new BufferedReader(new InputStreamReader(socket.getInputStream(),
                StandardCharsets.ISO_8859_1)).readLine();
            return Integer.parseInt(status.split(" ")[1]);
        }
    }

    @Test
    void shouldTellTheDoorWhoLoggedIn() throws IOException {
        String token = Files.readString(config.stateDir().resolve("admin.token")).strip();
        String bearer = "GET /api/v1/me HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer ";
        assertEquals(401, statusFrom("127.0.0.5", bearer + "wrong\r\n\r\n"));
        assertFalse(door.isKnown("127.0.0.5"));
        assertEquals(200, statusFrom("127.0.0.5", bearer + token + "\r\n\r\n"));
        assertTrue(door.isKnown("127.0.0.5"));
        String login = "POST /api/v1/login HTTP/1.1\r\nHost: broker\r\nContent-Type: application/json\r\n"
            + "Content-Length: ";
        String wrong = login("operator-user", "wrong password");
        assertEquals(401, statusFrom("127.0.0.6", login + wrong.length() + "\r\n\r\n" + wrong));
        assertFalse(door.isKnown("127.0.0.6"));
        String right = login("operator-user", PASSWORD);
        assertEquals(200, statusFrom("127.0.0.6", login + right.length() + "\r\n\r\n" + right));
        assertTrue(door.isKnown("127.0.0.6"));
    }

    @Test
    void shouldMapRolesOfTheIssuersTokens() {
        given().auth().oauth2(issuer.token("ann", "hawser-viewer", "other")).get("/api/v1/me").then().statusCode(200)
            .body("name", equalTo("ann")).body("role", equalTo("viewer")).body("via", equalTo("oidc"));
        given().auth().oauth2(issuer.token("bob", "hawser-viewer", "hawser-admin")).get("/api/v1/me").then()
            .statusCode(200).body("role", equalTo("admin"));
        given().auth().oauth2(issuer.token("ann", "hawser-viewer")).delete("/api/v1/sessions/999").then()
            .statusCode(403);
        given().auth().oauth2(issuer.token("ann", "hawser-operator")).delete("/api/v1/sessions/999").then()
            .statusCode(404);
        given().auth().oauth2(issuer.token("eve", "admin")).get("/api/v1/me").then().statusCode(403)
            .body("detail", containsString("none of the roles"));
    }

    private static String eve(String url, String audience, long seconds) {
        return TestIssuer.claims(url, audience, seconds, "eve", "hawser-admin");
    }

    @Test
    void shouldRefuseTokensThatTheIssuerHasNotMadeForUs() {
        String good = eve(issuer.url(), "hawser", TestIssuer.GOOD_FOR_S);
        String[] bad = {
            TestIssuer.sign(TestIssuer.newKeys(), "RS256", good), TestIssuer.sign(issuer.keys(), "none", good),
            TestIssuer.sign(issuer.keys(), "RS256", eve(issuer.url(), "other", TestIssuer.GOOD_FOR_S)),
            TestIssuer.sign(issuer.keys(), "RS256", eve("http://other", "hawser", TestIssuer.GOOD_FOR_S)),
            TestIssuer.sign(issuer.keys(), "RS256", eve(issuer.url(), "hawser", -600)),
            "a.b.c", "opaque"};
        for (String token : bad) {
            given().auth().oauth2(token).get("/api/v1/me").then().statusCode(401)
                .contentType("application/problem+json");
        }
    }

    @Test
    void shouldKeepMetricsForThoseWhoMayReadAndHealthForAll() {
        given().get("/q/metrics").then().statusCode(401).body(not(containsString("hawser_")));
        given().get("/q//metrics").then().statusCode(not(equalTo(200)));
        given().auth().preemptive().basic("viewer-user", PASSWORD).get("/q/metrics").then().statusCode(200)
            .body(containsString("hawser_sessions"));
        given().get("/q/health/live").then().statusCode(200);
        given().get("/q/openapi").then().statusCode(200);
    }

    @Test
    void shouldSendSecurityHeadersWithEverything() {
        for (String path : new String[] {"/", "/js/main.js", "/api/v1/me", "/q/health/live"}) {
            String policy = given().get(path).then().header("X-Content-Type-Options", equalTo("nosniff"))
                .header("X-Frame-Options", equalTo("DENY")).extract().header("Content-Security-Policy");
            assertTrue(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), policy);
            assertFalse(policy.contains("unsafe") || policy.contains("*"), policy);
        }
    }

    @Test
    void shouldWriteActsAttemptsAndLoginsIntoTheAuditLogWithoutSecrets() throws IOException {
        String token = Files.readString(config.stateDir().resolve("admin.token")).strip();
        login(login("operator-user", "not this password")).then().statusCode(401);
        login(login("operator-user", PASSWORD)).then().statusCode(200);
        given().auth().preemptive().basic("viewer-user", PASSWORD).delete("/api/v1/sessions/777001").then()
            .statusCode(403);
        given().auth().preemptive().basic("operator-user", PASSWORD).delete("/api/v1/sessions/777002").then()
            .statusCode(404);
        given().auth().preemptive().basic("operator-user", PASSWORD).contentType(ContentType.JSON)
            .body("{\"name\":\"audited\"}").post("/api/v1/vgpus").then().statusCode(201);
        String secret = given().auth().oauth2(token).contentType(ContentType.JSON).body("{}")
            .post("/api/v1/vgpus/audited/tokens").then().statusCode(201).extract().path("token");
        given().auth().oauth2(token).delete("/api/v1/vgpus/audited").then().statusCode(204);
        TestBroker.await("the last act in the log", () -> audit(token).contains("deleteVgpu|name=audited|done|"));
        String log = audit(token);
        for (String expected : new String[] {"operator-user||127.0.0.1|login||refused|name or password is wrong",
            "operator-user|operator|127.0.0.1|login||done|",
            "viewer-user|viewer|127.0.0.1|endSession|id=777001|refused|this needs the role operator: role=viewer",
            "operator-user|operator|127.0.0.1|endSession|id=777002|refused|there is no such session: id=777002",
            "operator-user|operator|127.0.0.1|createVgpu|name=audited", "admin.token|admin|127.0.0.1|createToken|",
            "admin.token|admin|127.0.0.1|deleteVgpu|name=audited|done|"}) {
            assertTrue(log.contains(expected), () -> expected + " not in\n" + log);
        }
        assertFalse(log.contains(PASSWORD) || log.contains("not this password") || log.contains(token)
            || log.contains(secret.substring(secret.indexOf('.') + 1)), log);
        given().auth().preemptive().basic("operator-user", PASSWORD).get("/api/v1/audit").then().statusCode(403);
        given().auth().oauth2(token).get("/api/v1/audit?limit=0").then().statusCode(400);
        given().auth().oauth2(token).get("/api/v1/audit?limit=1001").then().statusCode(400);
        long newest = given().auth().oauth2(token).get("/api/v1/audit?limit=1").then().body("", hasSize(1))
            .extract().jsonPath().getLong("[0].seq");
        given().auth().oauth2(token).get("/api/v1/audit?limit=1&before=" + newest).then()
            .body("[0].seq", lessThan((int) newest));
    }

    private static String audit(String token) {
        return given().auth().oauth2(token).get("/api/v1/audit?limit=1000").then().statusCode(200).extract()
            .jsonPath().getList("", Map.class).stream().map(e -> e.get("name") + "|" + e.get("role") + "|"
                + e.get("peer") + "|" + e.get("action") + "|" + e.get("target") + "|" + e.get("outcome") + "|"
                + e.get("detail"))
            .collect(Collectors.joining("\n"));
    }
}

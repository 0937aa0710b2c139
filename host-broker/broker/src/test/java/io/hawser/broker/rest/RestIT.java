package io.hawser.broker.rest;

import static io.restassured.RestAssured.given;
import static org.hamcrest.Matchers.allOf;
import static org.hamcrest.Matchers.containsString;
import static org.hamcrest.Matchers.equalTo;
import static org.hamcrest.Matchers.greaterThan;
import static org.hamcrest.Matchers.hasKey;
import static org.hamcrest.Matchers.hasSize;
import static org.hamcrest.Matchers.nullValue;
import static org.hamcrest.Matchers.startsWith;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import io.hawser.broker.TestBroker;
import io.hawser.broker.app.RunningBroker;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.TestGuest;
import io.hawser.cuda.generated.Description;
import io.quarkus.test.common.QuarkusTestResource;
import io.quarkus.test.junit.QuarkusTest;
import io.restassured.http.ContentType;
import io.restassured.specification.RequestSpecification;
import jakarta.inject.Inject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The REST interface as a client sees it, with fake workers. */
@QuarkusTest
@QuarkusTestResource(FakeWorkers.class)
class RestIT {
    @Inject
    RunningBroker running;
    @Inject
    BrokerConfig config;

    @BeforeEach
    void awaitWorker() {
        FakeWorkers.awaitIdle(running.parts());
    }

    private RequestSpecification admin() throws IOException {
        return given().auth().oauth2(Files.readString(config.stateDir().resolve("admin.token")).strip());
    }

    private TestGuest guest() throws IOException {
        TestGuest guest = new TestGuest(running.parts().door().endpoint());
        guest.handshake("default", TestGuest.secret(config.stateDir()), Description.HASH);
        guest.receive();
        return guest;
    }

    @Test
    void shouldDemandTheAdminToken() {
        for (String path : new String[] {"/api/v1/broker", "/api/v1/sessions", "/api/v1/gpus",
            "/api/v1/regions", "/api/v1/no-such-path"}) {
            given().get(path).then().statusCode(401).contentType("application/problem+json")
                .header("WWW-Authenticate", startsWith("Bearer")).body("status", equalTo(401));
        }
        given().auth().oauth2("wrong").delete("/api/v1/sessions/1").then().statusCode(401);
    }

    @Test
    void shouldTellOfTheBrokerAndItsGpus() throws IOException {
        admin().get("/api/v1/broker").then().statusCode(200).body("guestEndpoint",
            equalTo(running.parts().door().endpoint())).body("httpEndpoint", startsWith("http://127.0.0.1:"))
            .body("backend", equalTo("fake")).body("pool.size", equalTo(1)).body("pool.ready", equalTo(1));
        admin().get("/api/v1/gpus").then().statusCode(200).body("", hasSize(1)).body("[0].name", equalTo("Fake GPU"))
            .body("[0].totalBytes", equalTo(1073741824)).body("[0].health", equalTo("ok"))
            .body("[0].index", equalTo(0));
        TestBroker.await("the GPU's reading",
            () -> running.parts().gpuMonitor().reading("u-1").memoryUsedBytes() != null);
        admin().get("/api/v1/gpus").then().body("[0].memoryUsedBytes", equalTo(0))
            .body("[0].utilizationPercent", equalTo(0)).body("[0]", hasKey("powerWatts"))
            .body("[0].powerWatts", nullValue());
    }

    @Test
    void shouldListAndEndSessions() throws Exception {
        try (TestGuest guest = guest()) {
            int id = admin().get("/api/v1/sessions").then().statusCode(200).body("", hasSize(1))
                .body("[0].state", equalTo("running")).body("[0].carrier", equalTo("tcp"))
                .body("[0].vgpu", equalTo("default"))
                .body("[0].program", equalTo("vector?add")).body("[0].workerPid", greaterThan(0))
                .extract().path("[0].id");
            TestBroker.await("the session's statistics",
                () -> running.parts().sessions().find(id).orElseThrow().statistics()
                    .calls() > 0);
            admin().get("/api/v1/sessions/" + id).then().statusCode(200).body("statistics.calls", equalTo(10));
            admin().delete("/api/v1/sessions/" + id).then().statusCode(204);
            assertTrue(guest.closed());
            admin().get("/api/v1/sessions/" + id).then().statusCode(404).contentType("application/problem+json")
                .body("detail", equalTo("there is no such session: id=" + id));
            admin().delete("/api/v1/sessions/" + id).then().statusCode(404);
        }
        admin().get("/api/v1/sessions").then().body("", hasSize(0));
        admin().get("/q/metrics").then().statusCode(200).body(containsString("hawser_calls_total "))
            .body(containsString("hawser_synchronous_round_trips_total "))
            .body(containsString("hawser_refused_records_total "))
            .body(containsString("hawser_bytes_total{direction=\"in\"}"))
            .body(containsString("hawser_sessions{carrier=\"tcp\",state=\"running\"} 0.0"))
            .body(containsString("hawser_sessions_started_total "))
            .body(containsString("hawser_workers{state=\"ready\"}"))
            .body(containsString("hawser_worker_start_seconds_count"))
            .body(containsString("hawser_session_start_seconds_bucket"))
            .body(containsString("hawser_refused_connections_total{carrier=\"tcp\",reason=\"token\"} "))
            .body(containsString("hawser_device_memory_bytes{kind=\"total\"} 1.073741824E9"));
        assertTrue(running.parts().sessions().totals().calls() >= 10, "the totals must include the ended session");
    }

    @Test
    void shouldServeListAndDeleteRegions() throws IOException {
        Path file = Path.of("/dev/shm/hawser-broker-rest-" + ProcessHandle.current().pid());
        String request = "{\"name\":\"one\",\"path\":\"" + file + "\",\"sizeBytes\":16777216,\"slots\":2}";
        admin().contentType(ContentType.JSON).body(request).post("/api/v1/regions").then().statusCode(201)
            .body("name", equalTo("one")).body("path", equalTo(file.toString())).body("doorbellSocket", equalTo(""))
            .body("vgpu", equalTo("default")).body("slots", equalTo(2)).body("state", equalTo("serving"))
            .body("guestTimeoutMs", equalTo(30000)).body("sizeBytes", equalTo(16777216));
        assertEquals(16777216, Files.size(file));
        admin().contentType(ContentType.JSON).body(request).post("/api/v1/regions").then().statusCode(409)
            .contentType("application/problem+json")
            .body("detail", containsString("a region with this name already exists"));
        admin().contentType(ContentType.JSON).body(request.replace("one", "two")).post("/api/v1/regions").then()
            .statusCode(409).body("detail", containsString("another broker already serves it"));
        admin().get("/api/v1/regions").then().statusCode(200).body("", hasSize(1)).body("[0].name", equalTo("one"));
        admin().get("/q/metrics").then().body(containsString("hawser_regions{state=\"serving\"} 1.0"));
        admin().get("/api/v1/regions/one").then().statusCode(200).body("slotsInUse", equalTo(0));
        admin().delete("/api/v1/regions/one").then().statusCode(204);
        assertTrue(Files.notExists(file), "the broker must remove the file that it made");
        admin().delete("/api/v1/regions/one").then().statusCode(404).contentType("application/problem+json");
        admin().get("/api/v1/regions/one").then().statusCode(404);
        admin().get("/api/v1/regions").then().body("", hasSize(0));
    }

    @Test
    void shouldRefuseRegionsThatCannotBe() throws IOException {
        for (String request : new String[] {"{}", "{\"name\":\"a/b\",\"path\":\"/dev/shm/x\"}", "{\"name\":\"a\"}",
            "{\"name\":\"a\",\"path\":\"relative\"}", "{\"name\":\"a\",\"path\":\"/dev/shm/hawser-none\"}",
            "{\"name\":\"a\",\"path\":\"/dev/shm/hawser-none\",\"sizeBytes\":1000}",
            "{\"name\":\"a\",\"path\":\"/dev/shm/hawser-none\",\"sizeBytes\":67108864,\"slots\":65}",
            "{\"name\":\"a\",\"path\":\"/dev/shm/hawser-none\",\"sizeBytes\":67108864,\"vgpu\":\"none\"}", "["}) {
            admin().contentType(ContentType.JSON).body(request).post("/api/v1/regions").then().statusCode(400);
        }
        assertTrue(Files.notExists(Path.of("/dev/shm/hawser-none")));
        Path disk = Files.writeString(Files.createTempFile(Path.of("target"), "precious", ""), "precious")
            .toAbsolutePath();
        Path missing = disk.resolveSibling("missing");
        for (String place : new String[] {"path", "doorbellSocket"}) {
            for (Path outside : new Path[] {disk, missing, Path.of("/dev/null"), Path.of("/sys/kernel/uevent_seqnum"),
                Path.of("/sys/bus/pci/devices/0000:00:00.0/resource2")}) {
                admin().contentType(ContentType.JSON).body("{\"name\":\"a\",\"" + place + "\":\"" + outside
                    + "\",\"sizeBytes\":67108864}").post("/api/v1/regions").then().statusCode(400)
                    .body("detail", containsString("from REST must be below a folder of hawser."));
            }
        }
        assertEquals("precious", Files.readString(disk));
        assertTrue(Files.notExists(missing));
        assertTrue(Files.exists(Path.of("/dev/null")), "the broker must keep a device node");
    }

    @Test
    void shouldAnswerProblemsToBadRequests() throws IOException {
        admin().get("/api/v1/sessions/abc").then().statusCode(404).contentType("application/problem+json");
        admin().get("/api/v1/none").then().statusCode(404).contentType("application/problem+json");
        admin().post("/api/v1/sessions").then().statusCode(405).contentType("application/problem+json");
    }

    @Test
    void shouldBeHealthyWithAWorkerReady() {
        given().get("/q/health/live").then().statusCode(200).body("status", equalTo("UP"));
        given().get("/q/health/ready").then().statusCode(200).body("status", equalTo("UP"))
            .body("checks[0].data.gpus", equalTo(1));
    }

    @Test
    void shouldServeThePageWithNothingFromElsewhere() {
        String page = given().get("/").then().statusCode(200).contentType(ContentType.HTML)
            .header("Content-Security-Policy", allOf(startsWith("default-src 'none'"), containsString(
                "script-src 'self';"), containsString("style-src 'self';"), containsString("frame-ancestors 'none'")))
            .header("X-Content-Type-Options", equalTo("nosniff")).extract().asString();
        assertTrue(page.contains("src=\"js/main.js\"") && !page.contains("://"),
            "the page must load no external resource");
        assertFalse(page.contains("<style") || page.contains("style=") || Pattern.compile("<script(?![^>]* src=)")
            .matcher(page).find(), "the policy forbids inline scripts and styles");
        for (String part : new String[] {"js/main.js", "js/views/overview.js", "css/base.css", "icon.svg"}) {
            given().get("/" + part).then().statusCode(200);
        }
    }

    @Test
    void shouldServeTheContractAsItIsWritten() throws IOException {
        JsonNode written = new YAMLMapper().readTree(Path.of("src/main/openapi/openapi.yml").toFile());
        JsonNode served = new ObjectMapper().readTree(
            given().accept("application/json").get("/q/openapi?format=json").then().statusCode(200).extract()
                .asString());
        assertEquals(written.get("paths"), served.get("paths"));
        assertEquals(written.get("components"), served.get("components"));
        assertEquals(written.get("security"), served.get("security"));
    }

    @Test
    void shouldWriteItsEndpoints() {
        TestBroker.await("endpoints.json", () -> Files.exists(config.stateDir().resolve("endpoints.json")));
        JsonNode endpoints;
        try {
            endpoints = new ObjectMapper().readTree(config.stateDir().resolve("endpoints.json").toFile());
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        assertEquals(running.parts().door().endpoint(), endpoints.get("guest").asText());
        given().baseUri(endpoints.get("http").asText()).get("/q/health/live").then().statusCode(200);
    }
}

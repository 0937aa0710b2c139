package io.hawser.broker.rest;

import static io.restassured.RestAssured.given;
import static org.hamcrest.Matchers.containsString;
import static org.hamcrest.Matchers.equalTo;
import static org.hamcrest.Matchers.hasItem;
import static org.hamcrest.Matchers.hasItems;
import static org.hamcrest.Matchers.hasSize;
import static org.hamcrest.Matchers.notNullValue;
import static org.hamcrest.Matchers.nullValue;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.app.RunningBroker;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.TestGuest;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.wire.RecordLayout;
import io.quarkus.test.common.QuarkusTestResource;
import io.quarkus.test.junit.QuarkusTest;
import io.restassured.http.ContentType;
import io.restassured.response.ValidatableResponse;
import io.restassured.specification.RequestSpecification;
import jakarta.inject.Inject;
import java.io.IOException;
import java.nio.file.Files;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** vGPUs and tokens as a client sees them, with fake workers and a GPU of 1 GiB. */
@QuarkusTest
@QuarkusTestResource(FakeWorkers.class)
class VgpuRestIT {
    private static final String VGPUS = "/api/v1/vgpus";

    @Inject
    RunningBroker running;
    @Inject
    BrokerConfig config;

    @BeforeEach
    void awaitGpu() {
        TestBroker.await("the GPU", () -> !running.parts().vgpus().gpus().isEmpty());
    }

    private RequestSpecification admin() throws IOException {
        return given().auth().oauth2(Files.readString(config.stateDir().resolve("admin.token")).strip())
            .contentType(ContentType.JSON);
    }

    private void assertProblem(ValidatableResponse response, int status, String detail) {
        response.statusCode(status).contentType("application/problem+json").body("detail", containsString(detail));
    }

    private TestGuest guest(String token) throws IOException {
        String[] parts = token.split("\\.", 2);
        TestGuest guest = new TestGuest(running.parts().door().endpoint());
        guest.handshake(parts[0], parts[1], Description.HASH);
        return guest;
    }

    @Test
    void shouldMakeChangeAndDeleteAVgpu() throws IOException {
        String request = "{\"name\":\"one\",\"owner\":{\"kind\":\"domain\",\"id\":\"d-1\"},\"memoryBytes\":1000,"
            + "\"computeShare\":40,\"carriers\":[\"tcp\"],\"maxSessions\":3}";
        admin().body(request).post(VGPUS).then().statusCode(201).body("name", equalTo("one"))
            .body("owner.kind", equalTo("domain")).body("owner.id", equalTo("d-1")).body("memoryBytes", equalTo(1000))
            .body("computeShare", equalTo(40)).body("mode", equalTo("shared")).body("gpus", equalTo("any"))
            .body("carriers", equalTo(java.util.List.of("tcp"))).body("maxSessions", equalTo(3))
            .body("origin", equalTo("rest")).body("state", equalTo("ready")).body("problem", equalTo(""))
            .body("placedGpus", equalTo(java.util.List.of("u-1"))).body("sessions", equalTo(0))
            .body("swappable", equalTo(false)).body("swap", nullValue()).body("rdma", equalTo(false))
            .body("usedBytes", equalTo(0)).body("tokens", equalTo(0)).body("created", containsString("T"));
        assertProblem(admin().body(request).post(VGPUS).then(), 409, "a vGPU with this name already exists: vgpu=one");
        admin().get(VGPUS).then().statusCode(200).body("name", hasItem("default")).body("name", hasItem("one"));
        admin().body("{\"computeShare\":50}").patch(VGPUS + "/one").then().statusCode(200)
            .body("computeShare", equalTo(50)).body("memoryBytes", equalTo(1000)).body("owner.id", equalTo("d-1"));
        admin().get(VGPUS + "/one").then().statusCode(200).body("computeShare", equalTo(50));
        assertProblem(admin().body("{\"memoryBytes\":2000000000}").patch(VGPUS + "/one").then(), 409,
            "wantedBytes=2000000000");
        admin().delete(VGPUS + "/one").then().statusCode(204);
        assertProblem(admin().get(VGPUS + "/one").then(), 404, "there is no such vGPU: vgpu=one");
        assertProblem(admin().delete(VGPUS + "/one").then(), 404, "vgpu=one");
        assertProblem(admin().body("{}").patch(VGPUS + "/one").then(), 404, "vgpu=one");
        assertProblem(admin().get(VGPUS + "/one/tokens").then(), 404, "vgpu=one");
    }

    @Test
    void shouldMakeAndChangeVgpusThatMayUseRdma() throws IOException {
        admin().body("{\"name\":\"remote\",\"rdma\":true}").post(VGPUS).then().statusCode(201)
            .body("rdma", equalTo(true));
        admin().body("{\"computeShare\":7}").patch(VGPUS + "/remote").then().statusCode(200)
            .body("rdma", equalTo(true));
        admin().body("{\"rdma\":false}").patch(VGPUS + "/remote").then().statusCode(200).body("rdma", equalTo(false));
        admin().get(VGPUS + "/remote").then().statusCode(200).body("rdma", equalTo(false));
        admin().delete(VGPUS + "/remote").then().statusCode(204);
    }

    @Test
    void shouldFindVgpusByTheirLabels() throws IOException {
        String request = "{\"name\":\"job-1\",\"expires\":\"2100-01-01T00:00:00Z\",\"labels\":{\"slurm.job\":\"1\","
            + "\"user\":\"ann b=c\"}}";
        admin().body(request).post(VGPUS).then().statusCode(201).body("expires", equalTo("2100-01-01T00:00:00Z"))
            .body("labels.user", equalTo("ann b=c")).body("labels.'slurm.job'", equalTo("1"));
        admin().body("{\"name\":\"job-2\",\"labels\":{\"slurm.job\":\"2\",\"user\":\"ann b=c\"}}").post(VGPUS).then()
            .statusCode(201).body("expires", nullValue());
        admin().queryParam("label", "user=ann b=c").get(VGPUS).then().statusCode(200)
            .body("name", equalTo(java.util.List.of("job-1", "job-2")));
        admin().queryParam("label", "user=ann b=c", "slurm.job=2").get(VGPUS).then().statusCode(200)
            .body("name", equalTo(java.util.List.of("job-2")));
        admin().queryParam("label", "slurm.job=3").get(VGPUS).then().statusCode(200).body("", hasSize(0));
        assertProblem(admin().queryParam("label", "user").get(VGPUS).then(), 400, "a label must be KEY=VALUE");
        admin().body("{\"expires\":\"\"}").patch(VGPUS + "/job-1").then().statusCode(200)
            .body("expires", nullValue()).body("labels.user", equalTo("ann b=c"));
        admin().body("{\"labels\":{}}").patch(VGPUS + "/job-1").then().statusCode(200)
            .body("labels", equalTo(java.util.Map.of()));
        assertProblem(admin().body("{\"expires\":\"soon\"}").patch(VGPUS + "/job-1").then(), 400, "expires=soon");
        admin().delete(VGPUS + "/job-1").then().statusCode(204);
        admin().delete(VGPUS + "/job-2").then().statusCode(204);
    }

    @Test
    void shouldAnswerARepeatedCreationWithTheExistingVgpu() throws IOException {
        String request = "{\"name\":\"again\",\"memoryBytes\":1000,\"labels\":{\"job\":\"1\"}}";
        String id = admin().body(request).post(VGPUS + "?idempotent=true").then().statusCode(201).extract().path("id");
        admin().body(request).post(VGPUS + "?idempotent=true").then().statusCode(200).body("id", equalTo(id));
        assertProblem(admin().body(request).post(VGPUS).then(), 409, "already exists: vgpu=again");
        assertProblem(admin().body("{\"name\":\"again\",\"memoryBytes\":1}").post(VGPUS + "?idempotent=true").then(),
            409, "with other properties or labels: vgpu=again");
        String first = admin().body("{\"note\":\"n\"}").post(VGPUS + "/again/tokens?replace=true").then()
            .statusCode(201).extract().path("keyId");
        String second = admin().body("{\"note\":\"n\"}").post(VGPUS + "/again/tokens?replace=true").then()
            .statusCode(201).extract().path("keyId");
        admin().get(VGPUS + "/again/tokens").then().body("keyId", equalTo(java.util.List.of(second)));
        assertFalse(first.equals(second));
        assertProblem(admin().body("{}").post(VGPUS + "/again/tokens?replace=true").then(), 400, "their note");
        admin().delete(VGPUS + "/again").then().statusCode(204);
    }

    @Test
    void shouldKeepTheTotalsOfEndedSessionsAndAuditAnExpiry() throws IOException {
        admin().body("{\"name\":\"counted\"}").post(VGPUS).then().statusCode(201);
        admin().get(VGPUS + "/counted/statistics").then().statusCode(200).body("sessions", equalTo(0))
            .body("gpuTimeMs", equalTo(0)).body("bytesIn", equalTo(0)).body("peakBytes", equalTo(0));
        String token = admin().body("{}").post(VGPUS + "/counted/tokens").then().statusCode(201).extract()
            .path("token");
        try (TestGuest guest = guest(token)) {
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            admin().get(VGPUS + "/counted/statistics").then().body("sessions", equalTo(1));
        }
        TestBroker.await("the session's end", () -> running.parts().sessions().list().stream()
            .noneMatch(session -> session.guest().vgpu().equals("counted")));
        admin().get(VGPUS + "/counted/statistics").then().body("sessions", equalTo(1));
        admin().body("{\"expires\":\"" + java.time.Instant.now().plusMillis(300) + "\"}").patch(VGPUS + "/counted")
            .then().statusCode(200);
        TestBroker.await("the deletion", () -> running.parts().vgpus().find("counted").isEmpty());
        TestBroker.await("the entry of the audit log", () -> {
            try {
                return "done".equals(admin().get("/api/v1/audit?limit=20").then().statusCode(200).extract()
                    .path("find { it.action == 'expireVgpu' && it.target == 'name=counted' }.outcome"));
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        });
        assertProblem(admin().get(VGPUS + "/counted/statistics").then(), 404, "vgpu=counted");
        admin().body("{\"name\":\"counted\"}").post(VGPUS).then().statusCode(201);
        admin().get(VGPUS + "/counted/statistics").then().body("sessions", equalTo(0));
        admin().delete(VGPUS + "/counted").then().statusCode(204);
    }

    @Test
    void shouldMakeAndChangeSwappableVgpus() throws IOException {
        admin().body("{\"name\":\"swaps\",\"memoryBytes\":1000,\"swappable\":true}").post(VGPUS).then()
            .statusCode(201).body("swappable", equalTo(true)).body("swap.resident", equalTo(true))
            .body("swap.swappedBytes", equalTo(0)).body("swap.swaps", equalTo(0))
            .body("swap.stays", equalTo("hawser.swap.memory is 0"));
        admin().body("{\"memoryBytes\":2000}").patch(VGPUS + "/swaps").then().statusCode(200)
            .body("swappable", equalTo(true));
        assertProblem(admin().body("{\"gpus\":\"all\"}").patch(VGPUS + "/swaps").then(), 400,
            "a swappable vGPU must have one GPU: gpus=all vgpu=swaps");
        admin().body("{\"swappable\":false,\"gpus\":\"all\"}").patch(VGPUS + "/swaps").then().statusCode(200)
            .body("swappable", equalTo(false));
        admin().get(VGPUS + "/swaps").then().statusCode(200).body("swappable", equalTo(false))
            .body("swap", nullValue());
        admin().delete(VGPUS + "/swaps").then().statusCode(204);
    }

    @Test
    void shouldChangeAndDeleteOnlyWhatTheExpectedOwnerHas() throws IOException {
        admin().body("{\"name\":\"owned\",\"owner\":{\"kind\":\"domain\",\"id\":\"d@a+b\"}}").post(VGPUS).then()
            .statusCode(201);
        String take = "{\"owner\":{\"kind\":\"domain\",\"id\":\"d@a\"},\"expectedOwner\":\"d@a+b\"}";
        admin().body(take).patch(VGPUS + "/owned").then().statusCode(200).body("owner.id", equalTo("d@a"));
        assertProblem(admin().body(take).patch(VGPUS + "/owned").then(), 412, "owner=d@a expectedOwner=d@a+b");
        assertProblem(admin().body("{\"computeShare\":7,\"expectedOwner\":\"\"}").patch(VGPUS + "/owned").then(), 412,
            "owner=d@a");
        assertProblem(admin().queryParam("expectedOwner", "d@a+b").delete(VGPUS + "/owned?force=true").then(), 412,
            "owner=d@a expectedOwner=d@a+b");
        admin().get(VGPUS + "/owned").then().statusCode(200).body("owner.id", equalTo("d@a"))
            .body("computeShare", equalTo(100));
        admin().queryParam("expectedOwner", "d@a").delete(VGPUS + "/owned").then().statusCode(204);
        admin().get(VGPUS + "/owned").then().statusCode(404);
    }

    @Test
    void shouldRefuseRequestsThatCannotBe() throws IOException {
        for (String request : new String[] {"{}", "{\"name\":\"a/b\"}", "{\"name\":\"a\",\"computeShare\":0}",
            "{\"name\":\"a\",\"memoryBytes\":-1}", "{\"name\":\"a\",\"mode\":\"x\"}",
            "{\"name\":\"a\",\"gpus\":\"x y\"}",
            "{\"name\":\"a\",\"swappable\":true}", "{\"name\":\"a\",\"swappable\":\"x\"}",
            "{\"name\":\"a\",\"rdma\":\"x\"}", "{\"name\":\"a\",\"carriers\":[\"rdma\"]}",
            "{\"name\":\"a\",\"carriers\":[]}",
            "{\"name\":\"a\",\"labels\":{\"K\":\"v\"}}", "{\"name\":\"a\",\"expires\":\"2000-01-01T00:00:00Z\"}",
            "{\"name\":\"a\",\"carriers\":[null]}",
            "{\"name\":\"a\",\"owner\":{\"kind\":\"domain\"}}",
            "{\"name\":\"a\",\"owner\":{\"kind\":\"x\",\"id\":\"y\"}}",
            "{\"name\":\"a\",\"memoryBytes\":\"much\"}", "null", "["}) {
            admin().body(request).post(VGPUS).then().statusCode(400);
        }
        admin().get(VGPUS + "/a").then().statusCode(404);
        given().get(VGPUS).then().statusCode(401);
        given().contentType(ContentType.JSON).body("{\"name\":\"a\"}").post(VGPUS).then().statusCode(401);
    }

    @Test
    void shouldTellATokensSecretOnceAndRevokeIt() throws IOException {
        admin().body("{\"name\":\"two\"}").post(VGPUS).then().statusCode(201);
        String token = admin().body("{\"note\":\"for me\",\"expires\":\"2100-01-01T00:00:00Z\"}")
            .post(VGPUS + "/two/tokens").then().statusCode(201).body("keyId", notNullValue())
            .body("expires", equalTo("2100-01-01T00:00:00Z")).extract().path("token");
        String keyId = token.split("\\.")[0];
        String secret = token.split("\\.", 2)[1];
        String listed = admin().get(VGPUS + "/two/tokens").then().statusCode(200).body("", hasSize(1))
            .body("[0].keyId", equalTo(keyId)).body("[0].vgpu", equalTo("two")).body("[0].note", equalTo("for me"))
            .body("[0].expires", equalTo("2100-01-01T00:00:00Z")).body("[0].lastUsed", nullValue())
            .body("[0].acceptsOldProof", equalTo(false)).body("[0].oldProofUsed", nullValue()).extract()
            .asString();
        assertFalse(listed.contains(secret));
        admin().get("/api/v1/tokens").then().statusCode(200).body("vgpu", hasItems("default", "two"))
            .body("find { it.keyId == '" + keyId + "' }.note", equalTo("for me"));
        admin().get("/api/v1/tokens?acceptsOldProof=false").then().body("keyId", hasItems("default", keyId));
        admin().get("/api/v1/tokens?acceptsOldProof=true").then().statusCode(200).body("", hasSize(0));
        try (TestGuest guest = guest(token)) {
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            admin().get(VGPUS + "/two").then().body("sessions", equalTo(1)).body("tokens", equalTo(1));
            admin().get(VGPUS + "/two/tokens").then().body("[0].lastUsed", notNullValue());
            assertProblem(admin().delete(VGPUS + "/two").then(), 409, "vgpu=two sessions=1");
            admin().delete(VGPUS + "/two/tokens/" + keyId).then().statusCode(204);
            assertTrue(guest.closed());
        }
        admin().get(VGPUS + "/two/tokens").then().body("", hasSize(0));
        assertProblem(admin().delete(VGPUS + "/two/tokens/" + keyId).then(), 404, "the vGPU does not have the token");
        assertProblem(admin().delete(VGPUS + "/two/tokens/default").then(), 404, "the vGPU does not have the token");
        assertProblem(admin().body("{\"expires\":\"2000-01-01T00:00:00Z\"}").post(VGPUS + "/two/tokens").then(), 400,
            "in the future");
        String another = admin().body("{}").post(VGPUS + "/two/tokens").then().statusCode(201)
            .body("expires", nullValue()).extract().path("token");
        try (TestGuest guest = guest(another)) {
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            admin().delete(VGPUS + "/two?force=true").then().statusCode(204);
            assertTrue(guest.closed());
        }
        assertProblem(admin().get(VGPUS + "/two").then(), 404, "vgpu=two");
    }
}

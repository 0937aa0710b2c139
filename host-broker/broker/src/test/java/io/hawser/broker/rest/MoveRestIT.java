package io.hawser.broker.rest;

import static io.restassured.RestAssured.given;
import static org.hamcrest.Matchers.containsString;
import static org.hamcrest.Matchers.equalTo;
import static org.hamcrest.Matchers.hasItem;
import static org.hamcrest.Matchers.hasSize;

import io.hawser.broker.TestBroker;
import io.hawser.broker.app.RunningBroker;
import io.hawser.broker.config.BrokerConfig;
import io.quarkus.test.common.QuarkusTestResource;
import io.quarkus.test.junit.QuarkusTest;
import io.restassured.http.ContentType;
import io.restassured.response.ValidatableResponse;
import io.restassured.specification.RequestSpecification;
import jakarta.inject.Inject;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Moves and drains as a client sees them, with one GPU, so that nothing can move; {@code MoveIT} has two. */
@QuarkusTest
@QuarkusTestResource(FakeWorkers.class)
class MoveRestIT {
    private static final String TO_THE_GPU = "{\"gpu\":\"0\"}";

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

    @Test
    void shouldExplainWhyAMoveIsRefused() throws IOException {
        assertProblem(admin().body(TO_THE_GPU).post("/api/v1/vgpus/default/move").then(), 409,
            "the vGPU is on this GPU already: vgpu=default gpu=u-1");
        assertProblem(admin().body("{\"gpu\":\"1\"}").post("/api/v1/vgpus/default/move").then(), 404,
            "there is no such GPU: gpu=1");
        assertProblem(admin().body("{}").post("/api/v1/vgpus/default/move").then(), 400, "one GPU must be named");
        assertProblem(admin().post("/api/v1/vgpus/default/move").then(), 400, "one GPU must be named");
        assertProblem(admin().body(TO_THE_GPU).post("/api/v1/vgpus/none/move").then(), 404,
            "there is no such vGPU: vgpu=none");
        assertProblem(admin().body(TO_THE_GPU).post("/api/v1/sessions/4711/move").then(), 404,
            "there is no such session: id=4711");
        given().contentType(ContentType.JSON).body(TO_THE_GPU).post("/api/v1/vgpus/default/move").then()
            .statusCode(401);
        admin().get("/q/metrics").then().body(containsString("hawser_moves_total{result=\"refused\"}"));
        admin().queryParam("action", "moveVgpu").get("/api/v1/audit").then().statusCode(200)
            .body("action", hasItem("moveVgpu"));
    }

    @Test
    void shouldRebalance() throws IOException {
        admin().body("{\"dryRun\":true}").post("/api/v1/rebalance").then().statusCode(200).body("dryRun", equalTo(true))
            .body("steps", hasSize(0));
        admin().post("/api/v1/rebalance").then().statusCode(200).body("dryRun", equalTo(false)).body("steps",
            hasSize(0));
        for (String limit : List.of("0", "1001")) {
            assertProblem(admin().body("{\"limit\":" + limit + "}").post("/api/v1/rebalance").then(), 400,
                "limit must be 1..1000: limit=" + limit);
        }
    }

    @Test
    void shouldDrainAGpuAndNoLonger() throws IOException {
        try {
            admin().post("/api/v1/gpus/0/drain").then().statusCode(200).body("gpu", equalTo("u-1"))
                .body("drained", equalTo(true)).body("moved", hasSize(0)).body("stayed.vgpu", hasItem("default"))
                .body("stayed.reason", hasItem("the broker has no other GPU: vgpu=default"));
            admin().get("/api/v1/gpus").then().body("[0].drained", equalTo(true));
            assertProblem(admin().body("{\"name\":\"late\"}").post("/api/v1/vgpus").then(), 409,
                "a GPU that is drained gets no vGPU: gpu=u-1");
        } finally {
            admin().post("/api/v1/gpus/0/undrain").then().statusCode(200).body("gpu", equalTo("u-1"))
                .body("drained", equalTo(false));
        }
        admin().get("/api/v1/gpus").then().body("[0].drained", equalTo(false));
        admin().body("{\"name\":\"late\"}").post("/api/v1/vgpus").then().statusCode(201);
        admin().delete("/api/v1/vgpus/late").then().statusCode(204);
        assertProblem(admin().post("/api/v1/gpus/7/drain").then(), 404, "there is no such GPU: gpu=7");
    }
}

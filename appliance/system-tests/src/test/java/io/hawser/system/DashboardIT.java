package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The page in a real browser, with a real broker and programs that run on the software GPU. */
@EnabledIf(value = "hasBrowser", disabledReason = "Chromium, Node.js or the driver is missing: "
    + "apt-get install chromium nodejs npm && npm ci --prefix appliance/system-tests/browser")
class DashboardIT {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String VIEWER_PASSWORD = "only-looks-at-it";

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    /** Condition of the class: an assumption in {@link #startBroker} would report no test at all. */
    static boolean hasBrowser() {
        return Browser.missing().isEmpty();
    }

    @BeforeAll
    static void startBroker() throws Exception {
        broker = OWN.keep(BrokerProcess.start("dashboard", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(
            Map.of("hawser.gpu.software.devices", "2"))));
        makeViewer();
    }

    private static void makeViewer() throws IOException, InterruptedException {
        Process process = new ProcessBuilder(Chain.LAUNCHER.toString(), "--set-password", "looker", "viewer",
            "-Dhawser.state-dir=" + stateDir.resolve("broker")).redirectErrorStream(true)
            .redirectOutput(Chain.OUTPUT.resolve("browser-user.log").toFile()).start();
        process.getOutputStream().write((VIEWER_PASSWORD + "\n").getBytes());
        process.getOutputStream().close();
        assertTrue(process.waitFor(Await.LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertEquals(0, process.exitValue(), () -> "see browser-user.log");
    }

    private static ObjectNode given() throws IOException {
        ObjectNode given = Browser.given(broker);
        given.putObject("viewer").put("name", "looker").put("password", VIEWER_PASSWORD);
        return given;
    }

    private static GuestProgram hold(Carrier carrier, String... arguments) throws IOException {
        GuestProgram program = GuestProgram.start(broker, carrier, "hold", arguments);
        program.awaitLine("READY");
        return program;
    }

    @ParameterizedTest
    @ValueSource(strings = {"login", "vgpus", "keyboard", "dark"})
    void shouldDoWithoutGuests(String test) throws Exception {
        Browser.run(test, given());
    }

    @ParameterizedTest
    @ValueSource(strings = {"live", "phone", "accessibility", "viewer", "reconnect"})
    void shouldShowARunningProgram(String test) throws Exception {
        try (GuestProgram program = hold(Carrier.SHM)) {
            Browser.run(test, given());
            program.release();
            assertEquals(0, program.await().exit());
        }
    }

    @Test
    void shouldEndASessionThatSomebodyConfirmed() throws Exception {
        try (GuestProgram program = hold(Carrier.TCP)) {
            Browser.run("end", given());
            GuestProgram.Result result = program.await();
            assertEquals(3, result.exit(), result::toString);
        }
    }

    @Test
    void shouldShowRefusedGuestsWithReasons() throws Exception {
        Path wrong = Files.writeString(stateDir.resolve("wrong.token"), "nobody.c2VjcmV0LXRoYXQtbm9ib2R5LWtub3dz");
        Map<String, String> environment = new HashMap<>(Carrier.TCP.environment(broker));
        environment.put("HAWSER_TOKEN_FILE", wrong.toString());
        try (GuestProgram program = GuestProgram.start(environment, "hold")) {
            assertTrue(program.await().exit() != 0);
        }
        Browser.run("refusals", given());
    }

    /** Runs only on request: {@code -Dhawser.pictures=FOLDER} takes the pictures of how-to/monitoring.md. */
    @Test
    void shouldTakePicturesWhenAsked() throws Exception {
        String folder = System.getProperty("hawser.pictures", "");
        assumeTrue(!folder.isEmpty(), "no -Dhawser.pictures");
        try (GuestProgram one = tenant("training", 384, 60, "--memory", "250");
            GuestProgram two = tenant("inference", 256, 30, "--memory", "140");
            GuestProgram three = tenant("notebook-anna", 128, 10, "--memory", "48", "--idle", "1");
            GuestProgram four = hold(Carrier.SHM, "--memory", "96", "--idle", "1")) {
            Browser.run("pictures", given().put("pictures", folder).put("pictureSeconds", 30)
                .put("pictureVgpu", "training"));
            for (GuestProgram program : List.of(one, two, three, four)) {
                program.release();
                program.await();
            }
        }
    }

    /** A vGPU with a token, and a program that runs on it. */
    private static GuestProgram tenant(String name, long mebibytes, int share, String... arguments) throws Exception {
        broker.create("/api/v1/vgpus", JSON.createObjectNode().put("name", name).put("memoryBytes", mebibytes << 20)
            .put("computeShare", share));
        Path token = stateDir.resolve(name + ".token");
        Files.writeString(token, broker.create("/api/v1/vgpus/" + name + "/tokens", JSON.createObjectNode())
            .path("token").asText());
        Map<String, String> environment = new HashMap<>(Carrier.TCP.environment(broker));
        environment.put("HAWSER_TOKEN_FILE", token.toString());
        GuestProgram program = GuestProgram.start(environment, "hold", arguments);
        program.awaitLine("READY");
        return program;
    }
}

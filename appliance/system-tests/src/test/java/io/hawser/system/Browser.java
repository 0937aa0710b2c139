package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** The tests of {@code appliance/system-tests/browser}, each a process with a headless Chromium of its own. */
final class Browser {
    private static final Path FOLDER = Chain.ROOT.resolve("appliance/system-tests/browser");
    /** The limit of a whole test; each step has its own limit. */
    private static final long LIMIT_S = 1200;
    private static final ObjectMapper JSON = new ObjectMapper();

    private Browser() {
    }

    /** The missing parts for these tests; empty if there are none. */
    static String missing() {
        if (chromium().isEmpty()) {
            return "chromium is not installed (apt-get install chromium)";
        }
        if (onPath("node").isEmpty()) {
            return "node is not installed (apt-get install nodejs npm)";
        }
        if (!Files.isDirectory(FOLDER.resolve("node_modules/playwright-core"))) {
            return "the browser's driver is not installed (npm ci --prefix appliance/system-tests/browser)";
        }
        return "";
    }

    /** The parameters of every test. */
    static ObjectNode given(BrokerProcess broker) throws IOException {
        return JSON.createObjectNode().put("http", broker.http()).put("adminToken", broker.adminToken())
            .put("chromium", chromium().orElseThrow().toString());
    }

    /** Runs a test of dashboard.mjs; fails with its output. */
    static void run(String test, ObjectNode given) throws IOException, InterruptedException {
        Files.createDirectories(Chain.OUTPUT);
        Path output = Chain.OUTPUT.resolve("browser-" + test + ".log");
        ProcessBuilder builder = new ProcessBuilder(onPath("node").orElseThrow().toString(), "dashboard.mjs", test)
            .directory(FOLDER.toFile()).redirectErrorStream(true).redirectOutput(output.toFile());
        builder.environment().put("HAWSER_BROWSER_TEST", JSON.writeValueAsString(given));
        Process process = builder.start();
        try {
            if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
                throw new AssertionError(test + " did not end\n" + Files.readString(output));
            }
        } finally {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        String said = Files.readString(output);
        assertEquals(0, process.exitValue(), () -> test + ":\n" + said);
        assertEquals("PASS " + test, said.lines().reduce("", (before, line) -> line), said);
    }

    private static Optional<Path> chromium() {
        return Stream.of("chromium", "chromium-browser", "google-chrome").flatMap(name -> onPath(name).stream())
            .findFirst();
    }

    private static Optional<Path> onPath(String name) {
        return List.of(System.getenv("PATH").split(":")).stream().map(folder -> Path.of(folder, name))
            .filter(Files::isExecutable).findFirst();
    }
}

package io.hawser.broker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A broker started by its launcher, as a user starts it. */
final class RealProcess implements AutoCloseable {
    private final Path stateDir;
    private final Path log;
    private final Process process;

    RealProcess(Path folder, String name, Path stateDir, String... settings) throws IOException {
        this(folder, name, stateDir, Map.of(), settings);
    }

    RealProcess(Path folder, String name, Path stateDir, Map<String, String> environment, String... settings)
        throws IOException {
        this.stateDir = stateDir;
        log = folder.resolve(name + ".log");
        List<String> command = new ArrayList<>(List.of(launcher().toString(), "-Dhawser.state-dir=" + stateDir,
            "-Dhawser.listen.port=0", "-Dhawser.http.port=0"));
        command.addAll(List.of(settings));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().putAll(environment);
        process = builder.start();
    }

    static Path launcher() {
        return Path.of("src/main/sh/hawser-broker").toAbsolutePath();
    }

    JsonNode awaitEndpoints() throws IOException {
        Path file = stateDir.resolve("endpoints.json");
        TestBroker.await("endpoints.json", () -> Files.exists(file) || !process.isAlive());
        if (!process.isAlive()) {
            throw new AssertionError("the broker has ended: " + output());
        }
        return new ObjectMapper().readTree(file.toFile());
    }

    int awaitExit() throws InterruptedException {
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            throw new AssertionError("the broker does not end");
        }
        return process.exitValue();
    }

    /** SIGTERM. */
    void terminate() {
        process.destroy();
    }

    long pid() {
        return process.pid();
    }

    String output() throws IOException {
        return Files.readString(log);
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}

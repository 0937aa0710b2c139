package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The administrator's command as a process, started by its launcher in the source tree. */
final class Hawserctl {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path LAUNCHER = Chain.ROOT.resolve("appliance/hawserctl/src/main/sh/hawserctl");
    private static final long LIMIT_S = 300;
    private static final String JAVA_OPTIONS = "HAWSERCTL_JAVA_OPTS";

    private final Path home;
    private final Map<String, String> environment;

    /** The result of a command. */
    record Ended(List<String> command, int exitCode, String out, String err) {
        /** Checks that the command succeeded. */
        Ended assertDone() {
            return assertExit(0);
        }

        /** Checks the exit code. A failure prints one line on stderr and nothing on stdout. */
        Ended assertExit(int expected) {
            assertEquals(expected, exitCode, this::toString);
            if (expected != 0) {
                assertTrue(err.lines().allMatch(line -> line.startsWith("hawserctl: ")) && !err.isBlank(),
                    this::toString);
            }
            return this;
        }

        /** Checks that stderr contains the text. */
        Ended assertSays(String text) {
            assertTrue(err.contains(text), this::toString);
            return this;
        }

        /** Its output, parsed as JSON. */
        JsonNode json() throws IOException {
            return JSON.readTree(out);
        }

        /** The cells of the row that begins with these; two blanks or more separate the columns. */
        List<String> row(String... beginning) {
            return out.lines().map(line -> List.of(line.strip().split("\\s{2,}")))
                .filter(cells -> cells.size() >= beginning.length
                    && cells.subList(0, beginning.length).equals(List.of(beginning)))
                .findFirst().orElseThrow(() -> new AssertionError("no row " + List.of(beginning) + ": " + this));
        }
    }

    /** @param environment of the command, in addition to every program's variables. */
    Hawserctl(Path home, Map<String, String> environment) {
        this.home = home;
        this.environment = environment;
    }

    /**
     * Returns the same user with commands that start from a cache of classes, in two thirds of the processor time. A
     * command that the broker answers makes the cache.
     */
    Hawserctl withClassCache(Path cache) throws IOException, InterruptedException {
        Map<String, String> all = new HashMap<>(environment);
        all.put(JAVA_OPTIONS, "-XX:AOTCacheOutput=" + cache);
        with(all).run("gpus").assertDone();
        assertTrue(Files.exists(cache), "the JVM made no cache of classes");
        all.put(JAVA_OPTIONS, "-XX:AOTCache=" + cache);
        return with(all);
    }

    /** Starts the command with its output in files. */
    Process start(Path out, Path err, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(LAUNCHER.toString()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().clear();
        builder.environment().putAll(Map.of("PATH", "/usr/bin:/bin", "HOME", home.toString(), "JAVA_HOME",
            System.getProperty("java.home")));
        builder.environment().putAll(environment);
        return builder.redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
            .redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    }

    /** Runs the command; the string is split at blanks, further arguments are not. */
    Ended run(String line, String... more) throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(List.of(line.split(" ")));
        arguments.addAll(List.of(more));
        Path out = Files.createTempFile(home, "out", "");
        Path err = Files.createTempFile(home, "err", "");
        Process process = start(out, err, arguments.toArray(String[]::new));
        if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError(arguments + " did not end: " + Files.readString(out) + Files.readString(err));
        }
        return new Ended(arguments, process.exitValue(), Files.readString(out), Files.readString(err));
    }

    /** The same user with other variables; the cache of classes stays in use. */
    Hawserctl with(Map<String, String> other) {
        Map<String, String> all = new HashMap<>(other);
        if (environment.containsKey(JAVA_OPTIONS)) {
            all.putIfAbsent(JAVA_OPTIONS, environment.get(JAVA_OPTIONS));
        }
        return new Hawserctl(home, all);
    }
}

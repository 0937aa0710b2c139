package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A CUDA program as a guest process. Its output goes to files of {@link Chain#OUTPUT}. */
final class GuestProgram implements AutoCloseable {
    /** The limit of a program: a hanging program ends the test, not the build. */
    private static final Duration LIMIT = Duration.ofSeconds(600);
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String name;
    private final Path out;
    private final Path err;
    private final Path statistics;
    private final Process process;

    private GuestProgram(String name, Path base, Process process) {
        this.name = name;
        this.out = base.resolveSibling(base.getFileName() + ".out");
        this.err = base.resolveSibling(base.getFileName() + ".err");
        this.statistics = base.resolveSibling(base.getFileName() + ".stats");
        this.process = process;
    }

    /** The result of a program. */
    record Result(String name, int exit, String out, String err, Path statistics) {
        /** Checks that the program exited with 0 and printed a PASS line. */
        Result assertPassed() {
            assertEquals(0, exit, this::toString);
            assertTrue(out.lines().anyMatch(line -> line.startsWith("PASS " + name + ": ")), this::toString);
            return this;
        }

        /** The lines of the guest libraries on stderr. */
        List<String> hawserLines() {
            return err.lines().filter(line -> line.startsWith("hawser: ")).toList();
        }

        /** The counters of the program's connections. */
        List<JsonNode> counters() throws IOException {
            List<JsonNode> counters = new ArrayList<>();
            if (Files.exists(statistics)) {
                for (String line : Files.readAllLines(statistics)) {
                    counters.add(JSON.readTree(line));
                }
            }
            return counters;
        }

        /** Checks that the program had a session, and that all its sessions used this carrier. */
        Result assertOver(Carrier carrier) throws IOException {
            List<JsonNode> counters = counters();
            assertFalse(counters.isEmpty(), "HAWSER_STATS wrote nothing");
            for (JsonNode connection : counters) {
                assertEquals(carrier.inStatistics(), connection.path("carrier").asText(), counters::toString);
            }
            return this;
        }

        @Override
        public String toString() {
            return name + " ended with " + exit + "\n" + out + err;
        }
    }

    /** Starts a program with this broker over this carrier. */
    static GuestProgram start(BrokerProcess broker, Carrier carrier, String name, String... arguments)
        throws IOException {
        return start(carrier.environment(broker), name, arguments);
    }

    /** Starts a program with these variables and no others that concern Hawser or the loader. */
    static GuestProgram start(Map<String, String> variables, String name, String... arguments) throws IOException {
        Map<String, String> environment = new HashMap<>(variables);
        environment.put("LD_LIBRARY_PATH", Chain.LIBRARIES.toString());
        List<String> command = new ArrayList<>(List.of(Chain.PROGRAMS.resolve(name).toString()));
        command.addAll(List.of(arguments));
        return start(environment, Path.of(name).getFileName().toString(), command);
    }

    /** Starts a program by {@code hawser run}. */
    static GuestProgram startByCommand(BrokerProcess broker, Carrier carrier, Path program) throws IOException {
        return startByCommand(carrier.environment(broker), program.getFileName().toString(), program.toString());
    }

    /**
     * Starts a program by {@code hawser run}, with these variables and no others that concern Hawser or the loader.
     */
    static GuestProgram startByCommand(Map<String, String> variables, String name, String... program)
        throws IOException {
        List<String> command = new ArrayList<>(List.of(Chain.COMMAND.toString(), "run"));
        command.addAll(List.of(program));
        return start(variables, name, command);
    }

    private static GuestProgram start(Map<String, String> variables, String name, List<String> command)
        throws IOException {
        Files.createDirectories(Chain.OUTPUT);
        Path base = Chain.OUTPUT.resolve("%03d-%s".formatted(COUNT.incrementAndGet(), name));
        ProcessBuilder builder = new ProcessBuilder(command);
        Map<String, String> environment = new HashMap<>(variables);
        environment.put("PATH", "/usr/bin:/bin");
        // A loaded machine may take long to start a worker; tests with a silent broker set their own limit.
        environment.putIfAbsent("HAWSER_CONNECT_TIMEOUT_MS", "60000");
        // The machine's configuration must not take part.
        environment.putIfAbsent("HAWSER_CONFIG", "/dev/null");
        Path statistics = base.resolveSibling(base.getFileName() + ".stats");
        Files.deleteIfExists(statistics); // from an earlier run, to which a guest would append
        environment.put("HAWSER_STATS", statistics.toString());
        builder.environment().clear();
        builder.environment().putAll(environment);
        builder.redirectOutput(base.resolveSibling(base.getFileName() + ".out").toFile());
        builder.redirectError(base.resolveSibling(base.getFileName() + ".err").toFile());
        return new GuestProgram(name, base, builder.start());
    }

    /** Waits for the program's end; kills it after the limit, which is a failure. */
    Result await() throws IOException, InterruptedException {
        if (!process.waitFor(LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly().waitFor();
            throw new AssertionError(name + " did not end within " + LIMIT + "\n" + Files.readString(out)
                + Files.readString(err));
        }
        return new Result(name, process.exitValue(), Files.readString(out), Files.readString(err), statistics);
    }

    /** Waits for a line of its output that begins with the word. */
    void awaitLine(String word) {
        Await.until(name + " to print " + word, Await.LIMIT, this::text, () -> {
            if (Files.readString(out).lines().anyMatch(line -> line.startsWith(word))) {
                return "";
            }
            return process.isAlive() ? "no such line yet" : "it ended with " + process.exitValue();
        });
    }

    /** Lets a {@code hold} program end. */
    void release() throws IOException {
        process.getOutputStream().close();
    }

    /** Kills it by SIGKILL and waits for its end: until then it holds its locks and its slot of a region. */
    void kill() {
        process.destroyForcibly();
        Await.until("the end of the killed " + name, () -> process.isAlive() ? "it still runs" : "");
    }

    long pid() {
        return process.pid();
    }

    private String text() {
        try {
            return "\n" + Files.readString(out) + Files.readString(err);
        } catch (IOException e) {
            return "\n" + e;
        }
    }

    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }
}

package io.hawser.broker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.door.TestGuest;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/** A broker process, started through its launcher as a user starts it. */
final class RealProcess implements AutoCloseable {
    private static final Duration HTTP_LIMIT = Duration.ofSeconds(120);
    private static final long END_LIMIT_S = 180;
    private static final long DUMP_LIMIT_NS = TimeUnit.SECONDS.toNanos(10);
    private static final String DUMP_END = "JNI global refs"; // the last lines of OpenJDK's thread dump begin with this
    private static final Set<RealProcess> RUNNING = ConcurrentHashMap.newKeySet();

    private final HttpClient client = HttpClient.newHttpClient();
    private final Path stateDir;
    private final Path log;
    private final Process process;

    RealProcess(Path folder, String name, Path stateDir, String... settings) throws IOException {
        this(folder, name, stateDir, Map.of(), settings);
    }

    RealProcess(Path folder, String name, Path stateDir, Map<String, String> environment, String... settings)
        throws IOException {
        this(folder, name, List.of(), stateDir, stateDir, environment, settings);
    }

    /** Starts a broker whose state folder is on the given disk. */
    RealProcess(Path folder, String name, SmallDisk disk, String... settings) throws IOException {
        this(folder, name, disk.prefix(), disk.folder(), disk.fromOutside(), Map.of(), settings);
    }

    private RealProcess(Path folder, String name, List<String> prefix, Path stateDirInside, Path stateDir,
        Map<String, String> environment, String... settings) throws IOException {
        this.stateDir = stateDir;
        log = folder.resolve(name + ".log");
        List<String> command = new ArrayList<>(prefix);
        command.addAll(List.of(launcher().toString(), "-Dhawser.state-dir=" + stateDirInside,
            "-Dhawser.listen.port=0", "-Dhawser.http.port=0", "-Dhawser.listen.handshake-timeout="
                + TestBroker.HANDSHAKE_TIMEOUT));
        command.addAll(List.of(settings)); // of two settings with the same name, Java takes the last
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().putAll(environment);
        process = builder.start();
        RUNNING.add(this);
    }

    /** Thread dumps of all running brokers, for the message of an expired wait. Empty when no broker runs. */
    static String threadDumps() {
        return RUNNING.stream().filter(broker -> broker.process.isAlive()).map(RealProcess::threadDump)
            .collect(Collectors.joining());
    }

    /** Requests a thread dump by a signal, which works while the JVM's threads hang. Omits virtual threads. */
    private String threadDump() {
        try {
            String before = output();
            new ProcessBuilder("kill", "-QUIT", Long.toString(pid())).start().waitFor();
            long deadlineNs = System.nanoTime() + DUMP_LIMIT_NS;
            String after = before;
            while (!after.substring(before.length()).contains(DUMP_END) && System.nanoTime() < deadlineNs) {
                TimeUnit.MILLISECONDS.sleep(20);
                after = output();
            }
            return "\nthe broker with pid=" + pid() + " has said:\n" + after;
        } catch (IOException e) {
            return "\nno thread dump of pid=" + pid() + ": " + e;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "\ninterrupted while dumping the threads of pid=" + pid();
        }
    }

    /** Sends a request with the admin token. A timeout fails the test with the broker's thread dump. */
    HttpResponse<String> request(String method, String path, String body) {
        return request(method, path, body, "application/json");
    }

    /** Sends a request with the admin token and accepts an answer of the given media type. */
    HttpResponse<String> request(String method, String path, String body, String accepted) {
        try {
            return request(path, "Bearer " + Files.readString(stateDir.resolve("admin.token")).strip(),
                request -> request.header("Content-Type", "application/json").header("Accept", accepted)
                    .method(method, HttpRequest.BodyPublishers.ofString(body)));
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /**
     * Sends a request.
     *
     * @param authorization the Authorization header; null for a request without one.
     * @param more adds the method, the body and other headers.
     */
    HttpResponse<String> request(String path, String authorization, UnaryOperator<HttpRequest.Builder> more) {
        try {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(awaitEndpoints().get("http").asText()
                + path)).timeout(HTTP_LIMIT);
            if (authorization != null) {
                request.header("Authorization", authorization);
            }
            return client.send(more.apply(request).build(), HttpResponse.BodyHandlers.ofString());
        } catch (HttpTimeoutException e) {
            throw new AssertionError("the broker has not answered in time: " + path + threadDumps(), e);
        } catch (IOException e) {
            throw new AssertionError(path, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(path, e);
        }
    }

    /** Connects a guest and sends its handshake up to the proof, without waiting for the answer. */
    TestGuest guest(String token) throws IOException {
        String[] parts = token.split("\\.", 2);
        TestGuest guest = new TestGuest(awaitEndpoints().get("guest").asText());
        guest.handshake(parts[0], parts[1], Description.HASH);
        return guest;
    }

    /** Connects a guest and waits until it has a session. */
    TestGuest session(String token) throws IOException {
        TestGuest guest = guest(token);
        int opcode = guest.receive().opcode();
        if (opcode != RecordLayout.CONTROL_WELCOME) {
            guest.close();
            throw new AssertionError("the broker must answer WELCOME: opcode=" + opcode);
        }
        return guest;
    }

    /** Waits until the broker has placed the vGPU {@code default} on a GPU. */
    void awaitReady() throws IOException {
        awaitEndpoints();
        TestBroker.await("the placement of the vGPU default",
            () -> request("GET", "/api/v1/vgpus/default", "").body().contains("\"ready\""));
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
        if (!process.waitFor(END_LIMIT_S, TimeUnit.SECONDS)) {
            throw new AssertionError("the broker does not end" + threadDumps());
        }
        return process.exitValue();
    }

    /** Sends SIGTERM. */
    void terminate() {
        process.destroy();
    }

    long pid() {
        return process.pid();
    }

    String output() throws IOException {
        return Files.readString(log);
    }

    /** Sends SIGKILL and waits for the end, so that the next broker can open the same files. */
    @Override
    public void close() {
        RUNNING.remove(this);
        try {
            if (!process.destroyForcibly().waitFor(END_LIMIT_S, TimeUnit.SECONDS)) {
                throw new AssertionError("the broker does not end by SIGKILL: pid=" + pid());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

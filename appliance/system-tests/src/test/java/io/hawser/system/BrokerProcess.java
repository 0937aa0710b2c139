package io.hawser.system;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A broker as a process, with the software GPU, its own state folder and ports that the kernel chooses. Closing it ends
 * the broker and its workers.
 */
final class BrokerProcess implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration HTTP_LIMIT = Duration.ofSeconds(60);
    private static final Duration DUMP_LIMIT = Duration.ofSeconds(10);
    private static final Duration START_LIMIT = Duration.ofSeconds(300);
    private static final String DUMP_END = "JNI global refs"; // begins the last lines of an OpenJDK dump
    private static final long REGION_MEBIBYTES = 256;
    private static final int REGION_SLOTS = 16;
    // The worker's text for a session that a defect ended; the texts of Netty and Quarkus for unhandled exceptions.
    private static final Pattern DEFECT = Pattern.compile(
        "internal error|a task raised an exception|an exception was thrown by|failed, error id",
        Pattern.CASE_INSENSITIVE);
    private static final String POOL_SIZE = "hawser.worker.pool-size";
    private static final String WORKER_ENVIRONMENT = "hawser.worker.environment";
    private static final String WARM_UP = "HAWSER_WARM_UP"; // read by workers
    private static final String JVM_OPTIONS = "JDK_JAVA_OPTIONS"; // read by the java command
    /**
     * Settings with which each worker starts as if a guest were waiting: it is ready sooner, and its first calls are
     * slower. For classes with many sessions; other classes use workers as the pool keeps them.
     */
    static final Map<String, String> AWAITED_WORKERS =
        Map.of(WORKER_ENVIRONMENT, "PATH,TMPDIR," + WARM_UP, POOL_SIZE, "2");

    private final HttpClient client;
    private final Path stateDir;
    private final Path log;
    private final Process process;
    private final RegionFile region;
    private final long logBegin; // earlier brokers of this name wrote to the same file
    private boolean isDefectExpected;
    private boolean dumped;
    private String guest;
    private String guestTls;
    private String http;

    private BrokerProcess(Path stateDir, Path log, long logBegin, Process process, RegionFile region,
        Certificates trusted) {
        HttpClient.Builder builder = HttpClient.newBuilder().connectTimeout(HTTP_LIMIT);
        client = (trusted == null ? builder : builder.sslContext(trusted.trusting())).build();
        this.stateDir = stateDir;
        this.log = log;
        this.process = process;
        this.region = region;
        this.logBegin = logBegin;
    }

    /**
     * The settings with workers whose start takes half the processor time: as {@link #AWAITED_WORKERS}, and without C2.
     * For classes that test another part than the worker.
     */
    static Map<String, String> withQuickWorkers(Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(settings);
        all.put(WORKER_ENVIRONMENT, "PATH,TMPDIR," + WARM_UP + "," + JVM_OPTIONS);
        return all;
    }

    /**
     * The settings of a broker with RDMA, by the device of libibverbs for tests. Names in capitals are variables of the
     * broker.
     *
     * @param fabric folder of the devices that reach each other.
     */
    static Map<String, String> withRdma(Path fabric) {
        Map<String, String> all = new HashMap<>(verbs(fabric));
        all.put("hawser.rdma.enabled", "true");
        all.put(WORKER_ENVIRONMENT, "PATH,TMPDIR," + WARM_UP + "," + JVM_OPTIONS + "," + String.join(",",
            verbs(fabric).keySet()));
        return all;
    }

    /** The variables by which a process uses the device for tests. */
    static Map<String, String> verbs(Path fabric) {
        return Map.of("HAWSER_VERBS_LIBRARY", Chain.VERBS.toString(), "HAWSER_TEST_FABRIC", fabric.toString());
    }

    /**
     * Starts a broker with its own region. Waits until a worker is ready or, without a pool, until the broker answers.
     */
    static BrokerProcess start(String name, Path stateDir, Map<String, String> settings) throws IOException {
        return start(name, stateDir, RegionFile.unused(REGION_MEBIBYTES, REGION_SLOTS), settings);
    }

    /** Starts the broker of an unpacked archive by its launcher. */
    static BrokerProcess startInstalled(Path launcher, String name, Path stateDir, Map<String, String> settings)
        throws IOException {
        return start(launcher, name, stateDir, RegionFile.unused(REGION_MEBIBYTES, REGION_SLOTS), settings, null);
    }

    /** Starts a broker that also serves the given region. */
    static BrokerProcess start(String name, Path stateDir, RegionFile region, Map<String, String> settings)
        throws IOException {
        return start(name, stateDir, region, settings, null);
    }

    /** Starts a broker whose REST interface uses a certificate of this authority. */
    static BrokerProcess start(String name, Path stateDir, Map<String, String> settings, Certificates trusted)
        throws IOException {
        return start(name, stateDir, RegionFile.unused(REGION_MEBIBYTES, REGION_SLOTS), settings, trusted);
    }

    /**
     * Starts a broker whose REST interface is unusable, because its certificate is invalid. It may have no worker yet.
     */
    static BrokerProcess startUnasked(String name, Path stateDir, Map<String, String> settings) throws IOException {
        return start(name, stateDir, RegionFile.unused(REGION_MEBIBYTES, REGION_SLOTS), settings, null);
    }

    private static BrokerProcess start(String name, Path stateDir, RegionFile region, Map<String, String> settings,
        Certificates trusted) throws IOException {
        return start(Chain.LAUNCHER, name, stateDir, region, settings, trusted);
    }

    private static BrokerProcess start(Path launcher, String name, Path stateDir, RegionFile region,
        Map<String, String> settings, Certificates trusted) throws IOException {
        Files.createDirectories(Chain.OUTPUT);
        Path log = Chain.OUTPUT.resolve("broker-" + name + ".log");
        List<String> command = new ArrayList<>();
        command.addAll(List.of(launcher.toString(), "-Dhawser.listen.port=0", "-Dhawser.http.port=0",
            "-Dhawser.state-dir=" + stateDir, "-Dhawser.gpu.backend=software",
            // A long limit: on a busy machine a slow start is not a failure.
            "-Dhawser.worker.start-timeout=240s", "-Dhawser.listen.handshake-timeout=60s"));
        region.settings("tests").forEach((key, value) -> command.add("-D" + key + "=" + value));
        Map<String, String> all = new HashMap<>(settings);
        all.putIfAbsent(POOL_SIZE, "1"); // few tests need more, and each worker costs a second of processor time
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()));
        all.forEach((key, value) -> {
            if (Character.isUpperCase(key.charAt(0))) {
                builder.environment().put(key, value);
            } else {
                command.add("-D" + key + "=" + value);
            }
        });
        // Workers inherit these only with AWAITED_WORKERS and withQuickWorkers; the broker runs with C1 anyway.
        builder.environment().put(WARM_UP, "off");
        builder.environment().put(JVM_OPTIONS, "-XX:TieredStopAtLevel=1");
        long logBegin = Files.exists(log) ? Files.size(log) : 0;
        Process process = builder.start();
        BrokerProcess broker = new BrokerProcess(stateDir, log, logBegin, process, region, trusted);
        try {
            boolean asked = trusted != null || !settings.containsKey("hawser.tls.certificate");
            boolean hasPool = asked && !"0".equals(all.get(POOL_SIZE));
            broker.awaitStart(hasPool);
        } catch (AssertionError e) {
            broker.expectDefect(); // reports the first failure only
            broker.close();
            throw e;
        }
        return broker;
    }

    private void awaitStart(boolean withPool) {
        Path endpoints = stateDir.resolve("endpoints.json");
        Await.until("the start of the broker", START_LIMIT, this::logEnd, () -> {
            if (!process.isAlive()) {
                return "the broker ended with " + process.exitValue();
            }
            if (!Files.exists(endpoints)) {
                return "no endpoints.json";
            }
            JsonNode node = JSON.readTree(endpoints.toFile());
            guest = node.path("guest").asText();
            guestTls = node.path("guestTls").asText();
            http = node.path("http").asText();
            if (withPool && metric("hawser_workers{state=\"ready\"}") < 1) {
                return "no worker is ready";
            }
            return "";
        });
    }

    /** The broker's process id. */
    long pid() {
        return process.pid();
    }

    /** {@code host:port} for guests. */
    String guest() {
        return guest;
    }

    /** {@code http://host:port} of the REST interface and the page. */
    String http() {
        return http;
    }

    /** The administrator's token. */
    String adminToken() throws IOException {
        return Files.readString(stateDir.resolve("admin.token")).strip();
    }

    /** {@code host:port} for guests by TLS; empty where there is none. */
    String guestTls() {
        return guestTls;
    }

    /** The port for guests. */
    int guestPort() {
        return Integer.parseInt(guest.substring(guest.lastIndexOf(':') + 1));
    }

    /** The file with the token of the vGPU {@code default}. */
    Path tokenFile() {
        return stateDir.resolve("default.token");
    }

    /** The broker's state folder. */
    Path stateDir() {
        return stateDir;
    }

    /** The region that the broker serves. */
    RegionFile region() {
        return region;
    }

    /** The broker's properties in the REST interface. */
    JsonNode info() throws IOException, InterruptedException {
        return get("/api/v1/broker");
    }

    /** The sessions in the REST interface. */
    JsonNode sessions() throws IOException, InterruptedException {
        return get("/api/v1/sessions");
    }

    /** The GPUs in the REST interface. */
    JsonNode gpus() throws IOException, InterruptedException {
        return get("/api/v1/gpus");
    }

    /** A vGPU in the REST interface. */
    JsonNode vgpu(String name) throws IOException, InterruptedException {
        return get("/api/v1/vgpus/" + name);
    }

    /** Reads from the REST interface. */
    JsonNode get(String path) throws IOException, InterruptedException {
        return JSON.readTree(call("GET", path, 200));
    }

    /** Deletes an object by the REST interface. */
    void delete(String path) throws IOException, InterruptedException {
        call("DELETE", path, 204);
    }

    /** Ends a session by its id. */
    void end(String session) throws IOException, InterruptedException {
        delete("/api/v1/sessions/" + session);
    }

    /** The sum of the metrics whose line begins with the name; 0 if there are none. */
    double metric(String name) throws IOException, InterruptedException {
        return call("GET", "/q/metrics", 200).lines()
            .filter(line -> line.startsWith(name) && !line.startsWith("#"))
            .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1))).sum();
    }

    /** Creates an object by the REST interface, and returns it. */
    JsonNode create(String path, JsonNode wanted) throws IOException, InterruptedException {
        return JSON.readTree(call("POST", path, wanted.toString(), 201));
    }

    /** Posts a body to the REST interface, and returns the answer, which must have a status. */
    JsonNode post(String path, JsonNode body, int expected) throws IOException, InterruptedException {
        return JSON.readTree(call("POST", path, body.toString(), expected));
    }

    private String call(String method, String path, int expected) throws IOException, InterruptedException {
        return call(method, path, "", expected);
    }

    private String call(String method, String path, String body, int expected)
        throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(http + path)).timeout(HTTP_LIMIT)
            .header("Authorization", "Bearer " + adminToken()).header("Content-Type", "application/json")
            .method(method, body.isEmpty() ? HttpRequest.BodyPublishers.noBody()
                : HttpRequest.BodyPublishers.ofString(body))
            .build();
        HttpResponse<String> response;
        try {
            response = client.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (HttpTimeoutException e) {
            throw new IOException(method + " " + path + " was not answered in time" + threadDump(), e);
        }
        if (response.statusCode() != expected) {
            throw new IOException(method + " " + path + " answered " + response.statusCode() + ": " + response.body());
        }
        return response.body();
    }

    /**
     * The stack traces of the broker's threads, once. A signal requests them, which works even with hanging threads.
     * Does not include virtual threads.
     */
    private String threadDump() throws IOException, InterruptedException {
        if (dumped) {
            return ", again";
        }
        dumped = true;
        long before = Files.size(log);
        new ProcessBuilder("kill", "-QUIT", Long.toString(pid())).start().waitFor();
        long end = System.nanoTime() + DUMP_LIMIT.toNanos();
        String said = "";
        while (!said.contains(DUMP_END) && System.nanoTime() < end) {
            TimeUnit.MILLISECONDS.sleep(20);
            byte[] all = Files.readAllBytes(log);
            said = new String(all, (int) before, all.length - (int) before, StandardCharsets.UTF_8);
        }
        return "; threads of the broker:\n" + said;
    }

    /** Waits until there is no session and no assigned worker: then nothing of a guest is left. */
    void awaitIdle() {
        Await.until("the end of all sessions", Await.LIMIT, this::logEnd, () -> {
            JsonNode sessions = sessions();
            double assigned = metric("hawser_workers{state=\"assigned\"}");
            double used = metric("hawser_device_memory_bytes{kind=\"used\"}");
            return sessions.isEmpty() && assigned == 0 && used == 0 ? ""
                : "sessions " + sessions + ", assigned workers " + assigned + ", device memory " + used;
        });
    }

    /** Waits until a worker is ready. */
    void awaitReadyWorker() {
        Await.until("a ready worker", Await.LIMIT, this::logEnd,
            () -> metric("hawser_workers{state=\"ready\"}") >= 1 ? "" : "none is ready");
    }

    /** The test provokes a defect of the broker or a worker on purpose, so the log may report one. */
    void expectDefect() {
        isDefectExpected = true;
    }

    /**
     * The lines of the log that report a defect of the broker or of a worker, such as a session that ended by an
     * internal error.
     */
    private List<String> defects() {
        return logLines(DEFECT.asPredicate());
    }

    /** The lines of the log with a text. */
    Stream<String> logLines(String text) {
        return logLines(line -> line.contains(text)).stream();
    }

    private List<String> logLines(Predicate<String> which) {
        try (InputStream from = Files.newInputStream(log)) {
            from.skipNBytes(logBegin);
            return new BufferedReader(new InputStreamReader(from, StandardCharsets.UTF_8)).lines().filter(which)
                .toList();
        } catch (IOException e) {
            throw new AssertionError("the broker's log must be readable: " + log, e);
        }
    }

    /** Kills the broker by SIGKILL. */
    void kill() {
        process.toHandle().destroyForcibly();
        Await.until("the end of the killed broker", () -> process.isAlive() ? "it still runs" : "");
    }

    /** The end of the broker's log. */
    String logEnd() {
        try {
            List<String> lines = Files.readAllLines(log);
            return "\nlast lines of " + log + ":\n" + lines.stream().skip(Math.max(0, lines.size() - 30))
                .collect(Collectors.joining("\n"));
        } catch (IOException e) {
            return "\nno log: " + e;
        }
    }

    @Override
    public void close() {
        List<ProcessHandle> workers = process.descendants().toList();
        process.destroy();
        try {
            if (!process.waitFor(30, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        Await.until("the end of the broker's workers", () -> {
            List<Long> left = workers.stream().filter(ProcessHandle::isAlive).map(ProcessHandle::pid).toList();
            return left.isEmpty() ? "" : "left are " + left;
        });
        region.delete();
        List<String> defects = isDefectExpected ? List.of() : defects();
        if (!defects.isEmpty()) {
            throw new AssertionError("the broker's log reports defects: " + log + ":\n"
                + String.join("\n", defects));
        }
    }
}

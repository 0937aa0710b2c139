package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

/** A broker that hawser-check has started, on ports that the kernel chooses, with a temporary state folder. */
final class BrokerChild implements AutoCloseable {
    private static final Duration START_LIMIT = Duration.ofSeconds(300);
    /** A session ends with its guest process, and at the latest when the broker kills its worker. */
    private static final Duration SESSION_END_LIMIT = Duration.ofSeconds(30);
    private static final Duration END_LIMIT = Duration.ofSeconds(30); // a keeper of swapped sessions frees its memory
    private static final int HTTP_TIMEOUT_MS = 60_000;
    private static final int POST_TIMEOUT_MS = 300_000; // a move takes as long as its memory
    private static final int LOOK_EVERY_MS = 10;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Children children;
    private final Process process;
    private final Path state;
    private final Path log;
    private final Workplace workplace;
    private final int poolSize;
    private final Map<String, String> tokens = new ConcurrentHashMap<>();
    private String guest = "";
    private String http = "";

    private BrokerChild(Children children, Process process, Path state, Path log, Workplace workplace,
        int poolSize) {
        this.children = children;
        this.process = process;
        this.state = state;
        this.log = log;
        this.workplace = workplace;
        this.poolSize = poolSize;
    }

    /**
     * Starts a broker and waits until its pool is ready.
     *
     * @param workplace with the regions, if any.
     * @param environment of the broker; workers inherit from it.
     * @param name of its state folder and log.
     * @param poolSize number of ready workers, 0 for none.
     * @throws CheckException with the end of the broker's log, if it does not start.
     */
    static BrokerChild start(Installation installation, Children children, Workplace workplace,
        Map<String, String> environment, String backend, String name, int poolSize) {
        return start(installation, children, workplace, environment, backend, name, poolSize, List.of());
    }

    /** The same with additional settings. */
    static BrokerChild start(Installation installation, Children children, Workplace workplace,
        Map<String, String> environment, String backend, String name, int poolSize, List<String> settings) {
        List<String> all = new ArrayList<>();
        all.add("-Dhawser.vgpus.default.gpus=all"); // as in a native run: all GPUs that CUDA_VISIBLE_DEVICES allows
        all.addAll(settings);
        return launch(installation, children, workplace, environment, backend, name, poolSize, all);
    }

    /** The same without a setting of the vGPU default. A pool has one for all brokers, which the first one makes. */
    static BrokerChild launch(Installation installation, Children children, Workplace workplace,
        Map<String, String> environment, String backend, String name, int poolSize, List<String> settings) {
        Path state = workplace.folder().resolve(name);
        Path log = workplace.folder().resolve(name + ".log");
        List<String> command = new ArrayList<>(List.of(installation.launcher().toString(),
            "-Dhawser.listen.port=0", "-Dhawser.http.port=0", "-Dhawser.state-dir=" + state,
            "-Dhawser.gpu.backend=" + backend, "-Dhawser.worker.pool-size=" + poolSize,
            // Long limits: on a busy machine a slow start is not a failure.
            "-Dhawser.worker.start-timeout=240s", "-Dhawser.listen.handshake-timeout=60s"));
        command.addAll(settings);
        Path region = workplace.region();
        if (region != null) {
            command.addAll(List.of("-Dhawser.regions.check.path=" + region, "-Dhawser.regions.check.size="
                + (workplace.regionMib() << 20), "-Dhawser.regions.check.vgpu=default"));
        }
        workplace.vgpuRegions().forEach((vgpu, file) -> {
            String setting = "-Dhawser.regions." + vgpu;
            command.addAll(List.of(setting + ".path=" + file, setting + ".size=" + Workplace.VGPU_REGION_MIB + "M",
                setting + ".slots=2", setting + ".vgpu=" + vgpu));
        });
        Process process = children.start(command, environment, log, log);
        BrokerChild broker = new BrokerChild(children, process, state, log, workplace, poolSize);
        try {
            broker.awaitStart();
        } catch (CheckException e) {
            broker.close();
            throw e;
        }
        return broker;
    }

    private void awaitStart() {
        Path endpoints = state.resolve("endpoints.json");
        await("the start of the broker", START_LIMIT, () -> Files.exists(endpoints));
        try {
            JsonNode node = JSON.readTree(endpoints.toFile());
            guest = node.path("guest").asText();
            http = node.path("http").asText();
        } catch (IOException e) {
            throw new CheckException("the broker's " + endpoints + " cannot be read: " + e.getMessage(), e);
        }
        awaitReady();
    }

    /** Waits until the pool is full. */
    void awaitReady() {
        await(poolSize + " ready workers", START_LIMIT,
            () -> get("/api/v1/broker").at("/pool/ready").asInt() >= poolSize);
    }

    /** Waits until there is no session. */
    void awaitNoSession() {
        await("the end of all sessions", SESSION_END_LIMIT, () -> get("/api/v1/sessions").isEmpty());
    }

    /** Waits for a condition, while the broker runs. */
    void await(String what, Duration limit, BooleanSupplier condition) {
        long end = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (!process.isAlive()) {
                throw new CheckException("the broker ended with " + process.exitValue() + ":\n" + logEnd());
            }
            if (System.nanoTime() > end) {
                throw new CheckException(what + " did not happen within " + limit.toSeconds() + " s:\n" + logEnd());
            }
            try {
                Thread.sleep(LOOK_EVERY_MS); // there is no event for files and REST
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new CheckException("interrupted while waiting for " + what, e);
            }
        }
    }

    /** The REST interface's answer to a GET. */
    JsonNode get(String path) {
        try {
            return JSON.readTree(open(path).getInputStream());
        } catch (IOException e) {
            throw new CheckException("the broker does not answer GET " + path + ": " + e + "\n" + logEnd(), e);
        }
    }

    /** Makes a token of a vGPU, in the guests' format. */
    String token(String vgpu) {
        JsonNode answer = post("/api/v1/vgpus/" + vgpu + "/tokens", "{}");
        if (!answer.has("token")) {
            throw new CheckException("the broker does not make a token of " + vgpu + ": " + answer + "\n" + logEnd());
        }
        return answer.path("token").asText();
    }

    /** The REST interface's answer to a POST, also the problem with which it refuses. */
    JsonNode post(String path, String body) {
        try {
            HttpURLConnection connection = open(path);
            connection.setReadTimeout(POST_TIMEOUT_MS);
            connection.setRequestMethod("POST");
            connection.setRequestProperty("Content-Type", "application/json");
            connection.setDoOutput(true);
            connection.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
            InputStream answer = connection.getResponseCode() < HttpURLConnection.HTTP_BAD_REQUEST
                ? connection.getInputStream() : connection.getErrorStream();
            return answer == null ? JSON.createObjectNode() : JSON.readTree(answer);
        } catch (IOException e) {
            throw new CheckException("the broker does not answer POST " + path + ": " + e + "\n" + logEnd(), e);
        }
    }

    /** @throws CheckException if the broker refuses. */
    void delete(String path) {
        try {
            HttpURLConnection connection = open(path);
            connection.setRequestMethod("DELETE");
            int status = connection.getResponseCode();
            if (status >= HttpURLConnection.HTTP_BAD_REQUEST) {
                throw new CheckException("the broker answers DELETE " + path + " with " + status + "\n" + logEnd());
            }
        } catch (IOException e) {
            throw new CheckException("the broker does not answer DELETE " + path + ": " + e + "\n" + logEnd(), e);
        }
    }

    private HttpURLConnection open(String path) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) URI.create(http + path).toURL().openConnection();
        connection.setConnectTimeout(HTTP_TIMEOUT_MS);
        connection.setReadTimeout(HTTP_TIMEOUT_MS);
        connection.setRequestProperty("Authorization",
            "Bearer " + Files.readString(state.resolve("admin.token")).strip());
        return connection;
    }

    /**
     * The variables with which a guest program reaches this broker, only over the given carrier.
     *
     * @param vgpu the program's vGPU; null for the default one.
     */
    Map<String, String> guestVariables(Way way, String vgpu) {
        Map<String, String> variables = new HashMap<>();
        variables.put("HAWSER_CARRIER", way.label());
        if (way == Way.SHM) {
            Path region = vgpu == null ? workplace.region() : workplace.vgpuRegions().get(vgpu);
            variables.put("HAWSER_REGION", region.toString());
            return variables;
        }
        variables.put("HAWSER_BROKER", guest);
        if (vgpu == null) {
            variables.put("HAWSER_TOKEN_FILE", state.resolve("default.token").toString());
        } else {
            variables.put("HAWSER_TOKEN", tokens.computeIfAbsent(vgpu, this::token));
        }
        return variables;
    }

    /** The broker's process. */
    ProcessHandle process() {
        return process.toHandle();
    }

    /** The lines of its log that report a defect of the broker or of a worker; complete after its end. */
    List<String> defects() {
        return BrokerLog.defects(log);
    }

    /** The first warnings and errors of its log. */
    List<String> warnings() {
        return BrokerLog.warnings(log);
    }

    /** The present text of its log, which has the lines of its workers. */
    String logText() {
        try {
            return Files.readString(log, StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            throw new CheckException("the broker's log must be readable: " + log, e);
        }
    }

    int poolSize() {
        return poolSize;
    }

    private String logEnd() {
        try {
            List<String> lines = Files.readAllLines(log);
            return String.join("\n", lines.subList(Math.max(0, lines.size() - 15), lines.size()));
        } catch (IOException e) {
            return "(its log cannot be read: " + e + ")";
        }
    }

    @Override
    public void close() {
        children.end(process, END_LIMIT);
    }
}

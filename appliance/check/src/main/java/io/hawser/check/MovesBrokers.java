package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** The brokers of {@code hawser-check --moves}: one, or a pool of two; and the vGPU that moves. One thread. */
final class MovesBrokers implements AutoCloseable {
    private static final String VGPUS = "/api/v1/vgpus";
    private static final String GPUS = "/api/v1/gpus";
    private static final String PASSWORD = "HAWSER_DATABASE_PASSWORD";
    private static final String ALONE = "moves"; // state folder of the only broker
    private static final String DEFAULT_VGPU = "default";
    private static final String POOL_VGPU = "hawser-check";
    /** A broker's name is its own for as long as the database knows it, so each run has others. */
    private static final List<String> POOL = List.of("check-" + ProcessHandle.current().pid() + "-1",
        "check-" + ProcessHandle.current().pid() + "-2");
    private static final int READY_WORKERS = 2;
    /** Brokers of a pool learn of each other within seconds. */
    private static final Duration SEEN_LIMIT = Duration.ofSeconds(60);

    private final List<BrokerChild> brokers;
    private final String vgpu; // of the pool; null: the default one of the only broker
    private final List<String> gpus; // UUIDs of the first broker

    private MovesBrokers(List<BrokerChild> brokers, String vgpu, List<String> gpus) {
        this.brokers = brokers;
        this.vgpu = vgpu;
        this.gpus = gpus;
    }

    /**
     * The answer to a request for a move.
     *
     * @param ms time of the move; empty: the sessions stay, or there was none.
     * @param reason why they stay; empty when they do not.
     */
    record Moved(OptionalLong ms, String reason) {}

    /**
     * Starts one broker, or two when the options name a database.
     *
     * @param settings of each.
     * @throws CheckException if one does not start.
     */
    static MovesBrokers start(Installation installation, Children children, Workplace workplace, NativeCuda cuda,
        MovesOptions options, List<String> settings) {
        List<BrokerChild> started = new ArrayList<>();
        boolean isPool = options.database().isPresent();
        Map<String, String> environment = new HashMap<>(cuda.brokerEnvironment());
        if (isPool && System.getenv(PASSWORD) != null) {
            environment.put(PASSWORD, System.getenv(PASSWORD));
        }
        try {
            for (String name : isPool ? POOL : List.of(ALONE)) {
                List<String> own = new ArrayList<>(settings);
                // In a pool as well: only a broker with a vGPU has ready workers.
                own.add("-Dhawser.vgpus." + (isPool ? name : DEFAULT_VGPU) + ".gpus=any");
                options.database().ifPresent(url -> own.addAll(List.of("-Dhawser.database.url=" + url,
                    "-Dhawser.broker.name=" + name)));
                started.add(BrokerChild.launch(installation, children, workplace, environment, options.backend(), name,
                    READY_WORKERS, own));
            }
            if (isPool) {
                joinPool(started);
            }
            BrokerChild first = started.getFirst();
            List<String> uuids = new ArrayList<>();
            first.get(GPUS).forEach(gpu -> uuids.add(gpu.path("uuid").asText()));
            return new MovesBrokers(started, isPool ? POOL_VGPU : null, uuids);
        } catch (CheckException e) {
            started.forEach(BrokerChild::close);
            throw e;
        }
    }

    /** Waits until each broker knows both, and makes the vGPU that moves. */
    private static void joinPool(List<BrokerChild> brokers) {
        for (BrokerChild broker : brokers) {
            broker.await("a pool of two brokers", SEEN_LIMIT, () -> POOL.stream()
                .allMatch(name -> !broker.get(GPUS + "?broker=" + name).isEmpty()));
        }
        JsonNode made = brokers.getFirst().post(VGPUS, "{\"name\":\"" + POOL_VGPU + "\",\"broker\":\""
            + POOL.getFirst() + "\"}");
        if (!made.path("state").asText().equals("ready")) {
            throw new CheckException("the pool does not make a vGPU: " + made);
        }
    }

    /** The broker that guests name; it sends them on to the one that has the vGPU. */
    BrokerChild first() {
        return brokers.getFirst();
    }

    /** The vGPU of the guests; null is the default one. */
    String vgpu() {
        return vgpu;
    }

    /** Says between what the vGPU moves. */
    String places() {
        return vgpu != null ? "between two brokers" : gpus.size() > 1 ? "between two GPUs"
            : "to another worker on the same GPU";
    }

    /**
     * Moves the vGPU once: to another worker or GPU, or to the other broker.
     *
     * @param isFirst whether its program has just started. Between brokers this move is then a drain.
     */
    Moved move(boolean isFirst) {
        return vgpu == null ? moveToGpu() : isFirst ? drain() : moveToBroker();
    }

    private Moved moveToGpu() {
        String path = VGPUS + "/" + DEFAULT_VGPU;
        String here = first().get(path).path("placedGpus").path(0).asText();
        String to = gpus.stream().filter(uuid -> !uuid.equals(here)).findFirst().orElse("same");
        return moved(first().post(path + "/move", "{\"gpu\":\"" + to + "\"}"));
    }

    private static Moved moved(JsonNode answer) {
        if (!answer.has("ms")) {
            return new Moved(OptionalLong.empty(), answer.path("detail").asText(answer.toString()));
        }
        return new Moved(answer.path("sessions").asInt() > 0 ? OptionalLong.of(answer.path("ms").asLong())
            : OptionalLong.empty(), "");
    }

    private String home() {
        return first().get(VGPUS + "/" + vgpu).path("broker").asText();
    }

    private Moved moveToBroker() {
        String to = POOL.get(1 - POOL.indexOf(home()));
        return moved(first().post(VGPUS + "/" + vgpu + "/move", "{\"broker\":\"" + to + "\"}"));
    }

    /** The other broker must know that no earlier drain goes on; each set runs for longer than that takes. */
    private Moved drain() {
        String name = home();
        JsonNode answer = first().post("/api/v1/brokers/" + name + "/drain", "{}");
        JsonNode end = first().post("/api/v1/brokers/" + name + "/undrain", "{}");
        if (!end.path("broker").asText().equals(name)) {
            throw new CheckException("the drain of a broker does not end: " + end);
        }
        for (JsonNode one : answer.path("moved")) {
            if (one.path("vgpu").asText().equals(vgpu)) {
                return moved(one);
            }
        }
        for (JsonNode one : answer.path("stayed")) {
            if (one.path("vgpu").asText().equals(vgpu)) {
                return new Moved(OptionalLong.empty(), one.path("reason").asText());
            }
        }
        return new Moved(OptionalLong.empty(), answer.path("detail").asText(answer.toString()));
    }

    /** Number of the first broker's GPUs. */
    int gpus() {
        return gpus.size();
    }

    /** Defects in the logs of all, after their end. */
    List<String> defects() {
        return brokers.stream().flatMap(broker -> broker.defects().stream()).toList();
    }

    /** Removes the vGPU of the pool from the database, which stays, and ends the brokers. */
    @Override
    public void close() {
        try {
            if (vgpu != null) {
                first().delete(VGPUS + "/" + vgpu + "?force=true");
            }
        } finally {
            brokers.forEach(BrokerChild::close);
        }
    }
}

package io.hawser.broker.health;

import io.hawser.broker.Broker;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.nvml.GpuReading;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Whether a new guest can expect a session, and the reasons when it cannot.
 *
 * @param reasons empty when it can.
 * @param notes problems that do not prevent sessions.
 */
public record Readiness(List<String> reasons, List<String> notes, PoolState pool) {
    /** When the event loop is busy for longer, guests wait past their time limit. */
    static final Duration LOOP_LIMIT = Duration.ofSeconds(3);

    /** Checks a broker and its database. Waits for the database in bounded time; not on the event loop. */
    public static Readiness of(Broker broker, DatabaseProbe database) {
        Readiness pictures = of(broker);
        String problem = database.problem();
        if (!problem.isEmpty()) {
            pictures.reasons.add(problem);
        }
        if (!database.refused().isEmpty()) {
            pictures.notes.add("the database takes no changes: " + database.refused());
        }
        return pictures;
    }

    /** Checks a broker by its snapshots; never waits. */
    static Readiness of(Broker broker) {
        List<String> reasons = new ArrayList<>();
        List<String> notes = new ArrayList<>();
        Duration silence = broker.loopSilence();
        if (silence.compareTo(LOOP_LIMIT) > 0) {
            reasons.add("the event loop has not come round for " + silence.toSeconds() + " s");
        }
        PoolState pool = broker.pool();
        if (!pool.usable()) {
            reasons.add("no worker can be started: " + pool.lastFailure());
        } else if (pool.devices().isEmpty()) {
            reasons.add("no worker has reported a GPU yet");
        }
        gpus(broker, pool).forEach((uuid, problem) -> notes.add("GPU " + uuid + ": " + problem));
        if (!pool.devices().isEmpty() && notes.size() == pool.devices().size()) {
            reasons.add("no GPU can be used: " + String.join("; ", notes));
        }
        return new Readiness(reasons, notes, pool);
    }

    /** The problem of each GPU that cannot be used. */
    private static Map<String, String> gpus(Broker broker, PoolState pool) {
        Map<String, String> problems = new LinkedHashMap<>();
        for (Device device : pool.devices()) {
            GpuReading reading = broker.gpuMonitor().reading(device.uuid());
            if (reading.health() != GpuReading.Health.OK) {
                problems.put(device.uuid(), reading.healthDetail());
            } else if (!broker.workerFailure(device.uuid()).isEmpty()) {
                problems.put(device.uuid(), "no worker can be started: " + broker.workerFailure(device.uuid()));
            }
        }
        return problems;
    }

    /** Whether a new guest can expect a session. */
    public boolean isReady() {
        return reasons.isEmpty();
    }
}

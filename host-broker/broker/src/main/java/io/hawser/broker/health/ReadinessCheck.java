package io.hawser.broker.health;

import io.hawser.broker.LoopPulse;
import io.hawser.broker.admin.PoolView;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.nvml.GpuMonitor;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.store.Database;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Checks whether a new guest can expect a session. Any thread but the event loop. */
@Singleton
public final class ReadinessCheck {
    /** When the event loop is busy for longer, guests wait past their time limit. */
    private static final Duration LOOP_LIMIT = Duration.ofSeconds(3);

    private final LoopPulse pulse;
    private final WorkerPools pools;
    private final GpuMonitor monitor;
    private final PoolView members;
    private final DatabaseProbe database; // one for the broker's life: a hanging database then blocks only one thread

    /** Checks these parts of the broker. */
    @Inject
    public ReadinessCheck(LoopPulse pulse, WorkerPools pools, GpuMonitor monitor, Database database,
        PoolView members) {
        this.pulse = pulse;
        this.pools = pools;
        this.monitor = monitor;
        this.members = members;
        this.database = new DatabaseProbe(database);
    }

    /** Checks all parts. Waits for the database in bounded time. */
    public Readiness check() {
        Readiness pictures = checkSnapshots();
        String problem = database.problem();
        if (!problem.isEmpty()) {
            pictures.reasons().add(problem);
        }
        if (!database.refused().isEmpty()) {
            pictures.notes().add("the database takes no changes: " + database.refused());
        }
        return pictures;
    }

    /** Checks all parts but the database by their snapshots; never waits. */
    Readiness checkSnapshots() {
        List<String> reasons = new ArrayList<>();
        List<String> notes = new ArrayList<>();
        Duration silence = pulse.silence();
        if (silence.compareTo(LOOP_LIMIT) > 0) {
            reasons.add("the event loop has not come round for " + silence.toSeconds() + " s");
        }
        PoolState pool = pools.state();
        if (!pool.usable()) {
            reasons.add("no worker can be started: " + pool.lastFailure());
        } else if (pool.devices().isEmpty()) {
            reasons.add("no worker has reported a GPU yet");
        }
        gpus(pool).forEach((uuid, problem) -> notes.add("GPU " + uuid + ": " + problem));
        if (!pool.devices().isEmpty() && notes.size() == pool.devices().size()) {
            reasons.add("no GPU can be used: " + String.join("; ", notes));
        }
        if (!members.problem().isEmpty()) {
            (members.admitsSome() ? notes : reasons).add(members.problem());
        }
        return new Readiness(reasons, notes, pool);
    }

    /** The problem of each GPU that cannot be used. */
    private Map<String, String> gpus(PoolState pool) {
        Map<String, String> problems = new LinkedHashMap<>();
        for (Device device : pool.devices()) {
            GpuReading reading = monitor.reading(device.uuid());
            String failure = pools.failure(device.uuid());
            if (reading.health() != GpuReading.Health.OK) {
                problems.put(device.uuid(), reading.healthDetail());
            } else if (!failure.isEmpty()) {
                problems.put(device.uuid(), "no worker can be started: " + failure);
            }
        }
        return problems;
    }
}

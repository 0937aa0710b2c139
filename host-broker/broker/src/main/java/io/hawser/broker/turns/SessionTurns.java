package io.hawser.broker.turns;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.StartException;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.posix.PosixException;
import io.hawser.turns.RecordingEncoder;
import io.hawser.turns.TurnRecorder;
import io.hawser.turns.TurnRules;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.ToIntFunction;
import org.jboss.logging.Logger;

/** Gives workers their places in the turns before they get their sessions, and releases the places. Event loop only. */
public final class SessionTurns {
    private static final Logger LOG = Logger.getLogger(SessionTurns.class);

    private final TurnScheduler scheduler; // null: sessions take no turns
    private final ToIntFunction<String> weights;
    private final RecordingFile recording; // null: none
    private final Map<Worker, TurnScheduler.Place> places = new HashMap<>();

    private SessionTurns(TurnScheduler scheduler, RecordingFile recording, ToIntFunction<String> weights) {
        this.scheduler = scheduler;
        this.recording = recording;
        this.weights = weights;
    }

    /**
     * Starts the scheduler, and its recording if the settings ask for one.
     *
     * @param leavesEqual whether the driver alone divides the time between vGPUs of equal weight; called often, on
     *     another thread.
     * @param weights of vGPUs by name, 1 or more.
     * @throws StartException when the file of the recording cannot be made.
     */
    public static SessionTurns of(BrokerConfig.Turns settings, BooleanSupplier leavesEqual,
        ToIntFunction<String> weights) throws IOException {
        TurnRules rules = new TurnRules(settings.quantum().toNanos(), settings.grace().toNanos(),
            settings.linger().toNanos());
        RecordingFile recording = settings.record().isPresent() ? open(settings) : null;
        TurnRecorder recorder = recording == null ? null
            : new RecordingEncoder(recording, rules, System.nanoTime() - 1);
        return new SessionTurns(new TurnScheduler(rules, leavesEqual, recorder), recording, weights);
    }

    private static RecordingFile open(BrokerConfig.Turns settings) {
        Path path = settings.record().get();
        try {
            return RecordingFile.open(path, settings.recordMaxSize().asLongValue());
        } catch (IOException e) {
            throw new StartException("the recording of turns cannot be made: hawser.turns.record=" + path + ": " + e);
        }
    }

    /** No turns: each session launches kernels at any time. */
    public static SessionTurns none() {
        return new SessionTurns(null, null, vgpu -> 1);
    }

    /**
     * Gives a worker its place.
     *
     * @param gpus UUIDs of its session's GPUs.
     * @throws PosixException when the send to the worker fails; the worker is then unusable.
     */
    public void join(Worker worker, String vgpu, List<String> gpus) throws PosixException {
        if (scheduler == null) {
            return;
        }
        TurnScheduler.Place place;
        try {
            place = scheduler.place(vgpu, weights.applyAsInt(vgpu), gpus);
        } catch (IOException e) {
            LOG.errorf("a session of vGPU %s takes no turns: %s", vgpu, e.getMessage());
            return;
        }
        places.put(worker, place);
        worker.giveTurns(place.pageDescriptor(), place.bellDescriptor());
        place.begin();
    }

    /** Sets the weight of a vGPU, 1 or more. */
    public void setWeight(String vgpu, int weight) {
        if (scheduler != null) {
            scheduler.setWeight(vgpu, weight);
        }
    }

    /** Releases the place of a worker that has exited or failed to take its session. */
    public void leave(Worker worker) {
        TurnScheduler.Place place = places.remove(worker);
        if (place != null) {
            place.end();
        }
    }

    /** Ends the turns. Any thread, after the event loop's last call. */
    public void close() {
        if (scheduler != null) {
            scheduler.close();
        }
        if (recording != null) {
            recording.close();
        }
    }
}

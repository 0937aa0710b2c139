package io.hawser.broker.turns;

import io.hawser.broker.pool.Worker;
import io.hawser.broker.posix.PosixException;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToIntFunction;
import org.jboss.logging.Logger;

/** Gives workers their places in the turns before they get their sessions, and takes them back. Event loop only. */
public final class SessionTurns {
    private static final Logger LOG = Logger.getLogger(SessionTurns.class);

    private final TurnScheduler scheduler;
    private final ToIntFunction<String> weights;
    private final Map<Worker, TurnScheduler.Place> places = new HashMap<>();

    /**
     * Makes one without places.
     *
     * @param scheduler null where there are no turns.
     * @param weights of vGPUs by name, 1 or more.
     */
    public SessionTurns(TurnScheduler scheduler, ToIntFunction<String> weights) {
        this.scheduler = scheduler;
        this.weights = weights;
    }

    /** No turns: each session launches when it likes. */
    public static SessionTurns none() {
        return new SessionTurns(null, vgpu -> 1);
    }

    /**
     * Gives a worker its place.
     *
     * @param gpus UUIDs of its session's GPUs.
     * @throws PosixException when the worker does not take it; it is of no further use then.
     */
    public void give(Worker worker, String vgpu, List<String> gpus) throws PosixException {
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

    /** A vGPU has another weight from now on, 1 or more. */
    public void weigh(String vgpu, int weight) {
        if (scheduler != null) {
            scheduler.weigh(vgpu, weight);
        }
    }

    /** A worker is gone, or did not take its session. */
    public void gone(Worker worker) {
        TurnScheduler.Place place = places.remove(worker);
        if (place != null) {
            place.end();
        }
    }

    /** Ends the turns; nobody takes any more. Any thread, when the event loop calls no more. */
    public void close() {
        if (scheduler != null) {
            scheduler.close();
        }
    }
}

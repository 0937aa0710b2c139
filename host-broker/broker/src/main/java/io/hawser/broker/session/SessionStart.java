package io.hawser.broker.session;

import io.hawser.broker.model.Refusal;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerPool;
import io.hawser.broker.pool.WorkerPools;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.jboss.logging.Logger;

/**
 * The start of an admitted session: takes a worker and gives it the guest, and takes another worker when one fails to
 * receive the guest. Serves one session, over any carrier. Event loop only.
 */
public final class SessionStart {
    private static final Logger LOG = Logger.getLogger(SessionStart.class);
    /** Workers to try: a ready worker can die before it is taken. The limit stops endless retries. */
    private static final int MAX_WORKERS = 3;

    /** The guest's end of the start: its socket, or its slot of a region. */
    public interface Door {
        /** Receives a worker, and passes it to {@link SessionStart#assign} at once or later, or kills it. */
        void prepare(Worker worker);

        /**
         * Sends the worker the session and its descriptor. The session is attached to the worker.
         *
         * @throws IOException when the worker does not receive them; the worker is then unusable.
         */
        void send(Worker worker) throws IOException;

        /** Undoes {@link #send} after its failure, or after a worker that could not be attached. */
        default void takeBack() {}

        /** The worker serves the guest. Last call. */
        void started();

        /** No worker serves the guest. Last call. */
        void failed(Refusal refusal, String reason);
    }

    private final SessionRegistry sessions;
    private final WorkerPools pools;
    private final Session session;
    private final Door door;
    private CompletableFuture<Worker> taking;
    private boolean cancelled;
    private int tried;

    /** Prepares the start of a session; {@link #take} begins it. */
    public SessionStart(SessionRegistry sessions, WorkerPools pools, Session session, Door door) {
        this.sessions = sessions;
        this.pools = pools;
        this.session = session;
        this.door = door;
    }

    /** Takes a worker, or waits for one. The vGPU is marked as in use before. */
    public void take() {
        sessions.admission().markInUse(session.vgpu()).whenComplete((now, failure) -> {
            if (cancelled) {
                return;
            }
            if (failure == null) {
                takeWorker();
            } else {
                door.failed(Refusal.CAPACITY, failure.getMessage());
            }
        });
    }

    private void takeWorker() {
        tried++;
        taking = pools.take(session);
        taking.whenComplete((worker, failure) -> {
            if (worker != null) {
                door.prepare(worker);
            } else if (failure instanceof WorkerPool.NoWorkerException none) {
                door.failed(Refusal.CAPACITY, none.getMessage());
            }
        });
    }

    /** Gives the guest to a worker that the door has prepared. */
    public void assign(Worker worker) {
        try {
            sessions.attach(session, worker);
            door.send(worker);
        } catch (IOException e) {
            sessions.detach(session, worker);
            LOG.warnf("worker %d did not take session %d: %s", worker.id(), session.id(), e.getMessage());
            door.takeBack();
            if (tried < MAX_WORKERS) {
                take();
            } else {
                door.failed(Refusal.INTERNAL, "no worker took the session: tried=" + tried);
            }
            return;
        }
        sessions.run(session, worker);
        door.started();
    }

    /** Gives up the place in the queue for a worker. */
    public void cancel() {
        cancelled = true;
        if (taking != null) {
            taking.cancel(false);
        }
    }
}

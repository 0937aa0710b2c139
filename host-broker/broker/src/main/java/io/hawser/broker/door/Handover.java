package io.hawser.broker.door;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerPool;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.session.Session;
import io.netty.channel.epoll.EpollSocketChannel;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jboss.logging.Logger;

/**
 * Gives a guest's socket to a worker: takes a worker, takes the channel off the event loop without closing its socket,
 * passes the descriptor and closes the broker's copy. What the guest sends from then on is the worker's. Event loop
 * only.
 */
final class Handover {
    private static final Logger LOG = Logger.getLogger(Handover.class);
    /**
     * Workers that are tried: one can die between being ready and being taken, but not one after the other for ever.
     */
    private static final int MAX_WORKERS = 3;

    /** Told how it ended; at most one of the three ends, once. */
    interface Outcome {
        /** Whether the guest still waits and has sent nothing. */
        boolean ready();

        /** A worker has the socket. */
        void handedOver();

        /** The guest has gone before a worker had it. */
        void left();

        /** No worker has it. */
        void failed(Refusal refusal, String reason);
    }

    private final DoorContext door;
    private final EpollSocketChannel channel;
    private final Session session;
    private final long connectedNs;
    private final Outcome outcome;
    private CompletableFuture<Worker> taking;
    private int tried;

    Handover(DoorContext door, EpollSocketChannel channel, Session session, long connectedNs, Outcome outcome) {
        this.door = door;
        this.channel = channel;
        this.session = session;
        this.connectedNs = connectedNs;
        this.outcome = outcome;
    }

    void start() {
        tried++;
        taking = door.pools().take(session);
        taking.whenComplete((worker, failure) -> {
            if (worker != null) {
                detach(worker);
            } else if (failure instanceof WorkerPool.NoWorkerException none) {
                outcome.failed(Refusal.CAPACITY, none.getMessage());
            }
        });
    }

    /** The guest does not wait any more. */
    void cancel() {
        taking.cancel(false);
    }

    private void detach(Worker worker) {
        if (!channel.isRegistered()) {
            assign(worker);
            return;
        }
        channel.deregister().addListener(detached -> {
            if (detached.isSuccess()) {
                assign(worker);
            } else {
                worker.kill("its guest's socket could not be taken off the event loop");
                outcome.failed(Refusal.INTERNAL, "the broker failed; its log says why");
            }
        });
    }

    private void assign(Worker worker) {
        if (!channel.isOpen()) {
            // Closed while it left the event loop: Netty has removed its handlers, so that nobody else tells of it.
            worker.kill("its guest has left");
            outcome.left();
            return;
        }
        if (!outcome.ready()) {
            worker.kill("its guest has left");
            outcome.failed(Refusal.PROTOCOL, "the guest must send nothing between PROOF and WELCOME");
            return;
        }
        try {
            door.sessions().attach(session, worker);
            worker.assign(session.assignment(null), channel.fd().intValue());
        } catch (IOException e) {
            door.sessions().detach(session, worker);
            LOG.warnf("worker %d did not take session %d: %s", worker.id(), session.id(), e.getMessage());
            if (tried < MAX_WORKERS) {
                start();
            } else {
                outcome.failed(Refusal.INTERNAL, "no worker took the session: tried=" + tried);
            }
            return;
        }
        outcome.handedOver();
        door.sessions().run(session, worker);
        door.listener().sessionStarted(Carrier.TCP, Duration.ofNanos(System.nanoTime() - connectedNs));
        // Closes the broker's descriptor only: the connection lives on in the worker's copy.
        channel.close();
    }

    /** Refuses on a socket that is off the event loop already. */
    static void tellAndClose(EpollSocketChannel channel, byte[] record) {
        try {
            Posix.writeAtOnce(channel.fd().intValue(), record);
        } catch (PosixException e) {
            LOG.debugf("a refused guest was not told: %s", e.getMessage());
        }
        channel.close();
    }
}

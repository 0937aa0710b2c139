package io.hawser.broker.door;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.session.Session;
import io.hawser.broker.session.SessionStart;
import io.netty.channel.epoll.EpollSocketChannel;
import java.io.IOException;
import java.time.Duration;
import org.jboss.logging.Logger;

/**
 * Hands a guest's socket over to a worker. It removes the channel from the event loop without closing the socket. Then
 * it sends the descriptor to the worker and closes the broker's copy. The worker receives all further data of the
 * guest. Event loop only.
 */
final class Handover implements SessionStart.Door {
    private static final Logger LOG = Logger.getLogger(Handover.class);

    /** Receives the result: at most one of the last three methods is called, and only once. */
    interface Outcome {
        /** Whether the guest still waits and has sent no data. */
        boolean isReady();

        /** A worker has the socket. */
        void handedOver();

        /** The guest has left before a worker had its socket. */
        void guestLeft();

        /** No worker has received the socket. */
        void failed(Refusal refusal, String reason);
    }

    private final DoorContext door;
    private final EpollSocketChannel channel;
    private final Session session;
    private final long connectedNs;
    private final Outcome outcome;
    private final SessionStart start;

    Handover(DoorContext door, EpollSocketChannel channel, Session session, long connectedNs, Outcome outcome) {
        this.door = door;
        this.channel = channel;
        this.session = session;
        this.connectedNs = connectedNs;
        this.outcome = outcome;
        start = new SessionStart(door.sessions(), door.pools(), session, this);
    }

    void start() {
        start.take();
    }

    /** Cancels the handover, because the guest has left. */
    void cancel() {
        start.cancel();
    }

    @Override
    public void prepare(Worker worker) {
        if (!channel.isRegistered()) {
            assign(worker);
            return;
        }
        channel.deregister().addListener(detached -> {
            if (detached.isSuccess()) {
                assign(worker);
            } else {
                worker.kill("the guest's socket could not be removed from the event loop");
                outcome.failed(Refusal.INTERNAL, "the broker failed; its log says why");
            }
        });
    }

    private void assign(Worker worker) {
        if (!channel.isOpen()) {
            // The channel was closed during the removal. Netty has removed its handlers, so only this code can report
            // it.
            worker.kill("its guest has left");
            outcome.guestLeft();
        } else if (!outcome.isReady()) {
            worker.kill("its guest has left");
            outcome.failed(Refusal.PROTOCOL, "the guest must send nothing between PROOF and WELCOME");
        } else {
            start.assign(worker);
        }
    }

    @Override
    public void send(Worker worker) throws IOException {
        worker.assign(session.assignment(null), channel.fd().intValue());
        outcome.handedOver();
    }

    @Override
    public void started() {
        door.listener().sessionStarted(Carrier.TCP, Duration.ofNanos(System.nanoTime() - connectedNs));
        // Closes only the broker's descriptor: the worker's copy keeps the connection open.
        channel.close();
    }

    @Override
    public void failed(Refusal refusal, String reason) {
        outcome.failed(refusal, reason);
    }

    /** Rejects a guest whose socket is no longer on the event loop. */
    static void sendAndClose(EpollSocketChannel channel, byte[] record) {
        try {
            Posix.writeAtOnce(channel.fd().intValue(), record);
        } catch (PosixException e) {
            LOG.debugf("the reason could not be sent to a rejected guest: %s", e.getMessage());
        }
        channel.close();
    }
}

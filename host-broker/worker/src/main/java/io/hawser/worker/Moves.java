package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.channel.tcp.Stripes;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.move.SessionStream;
import io.hawser.worker.move.SlabMover;
import io.hawser.worker.session.Arrival;
import io.hawser.worker.session.Departure;
import io.hawser.worker.session.Session;
import io.hawser.worker.swap.KeeperLink;
import java.io.IOException;
import java.util.function.Consumer;

/**
 * A worker's part in moves of sessions (moving.md): it is the source or the target of its session, or the mover of
 * others. Control thread, except {@link #close}.
 */
final class Moves {
    private final GpuBackend backend;
    private final Consumer<WorkerMessage> broker;
    private SlabMover mover; // null unless this worker is one
    private int state = -1; // descriptor of the session that follows
    private Arrival arrival; // null unless the session comes from another worker
    private Session session;
    private Departure.Passage passage;

    Moves(GpuBackend backend, Consumer<WorkerMessage> broker) {
        this.backend = backend;
        this.broker = broker;
    }

    /** Becomes a mover. */
    void become() throws IOException {
        if (session != null || mover != null || state >= 0) {
            throw new IOException("a worker must become a mover once, and then serve no session");
        }
        mover = new SlabMover(backend);
    }

    /** Serves one side of a session as its mover. */
    void serve(BrokerMessage.MoveSide side, int descriptor) throws IOException {
        if (mover == null || descriptor < 0) {
            throw new IOException("a mover must get the socket of a session: descriptor=" + descriptor);
        }
        mover.serve(side.pair(), side.isSource(), descriptor);
    }

    /** Takes the state of the session that follows. */
    void take(int descriptor) throws IOException {
        if (session != null || mover != null || state >= 0 || descriptor < 0) {
            throw new IOException("a state must come once, before its session: descriptor=" + descriptor);
        }
        state = descriptor;
    }

    /** Takes the way to the mover, for the session that follows. */
    void link(int descriptor) throws IOException {
        if (session != null || state < 0 || arrival != null || descriptor < 0) {
            throw new IOException("the way to a mover must follow a state: descriptor=" + descriptor);
        }
        try {
            arrival = Arrival.fromHere(state, new KeeperLink(descriptor), broker);
        } finally {
            Descriptors.close(state);
        }
    }

    /** Takes the connection by which the session that follows comes from another broker, and waits for its state. */
    void receive(int descriptor) throws IOException {
        if (session != null || mover != null || state >= 0 || arrival != null || descriptor < 0) {
            throw new IOException("a session must come once, before it is assigned: descriptor=" + descriptor);
        }
        arrival = Arrival.fromAfar(new SessionStream(descriptor), broker);
    }

    /** The arrival of the session that follows; null for one that begins here. */
    Arrival arrival() {
        return arrival;
    }

    /**
     * Uses the worker's session. Call it before the session starts.
     *
     * @param to passes descriptors to the broker; null where the broker takes none.
     * @param stripes its further connections.
     */
    void attach(Session begun, Departure.Passage to, Stripes stripes) {
        session = begun;
        passage = to;
        session.moving().use(stripes);
        if (arrival != null) {
            session.moving().arrive(arrival);
        }
    }

    /** Lets the session leave. */
    void leave(BrokerMessage.MoveOut order, int descriptor) throws IOException {
        if (session == null || passage == null || descriptor < 0) {
            throw new IOException("a session must exist to leave, and get a way to its mover: descriptor="
                + descriptor);
        }
        if (!order.address().isEmpty()) {
            SessionStream stream = new SessionStream(descriptor);
            session.serveLater(() -> session.moving().leave(stream, order.address(), broker), 0);
            return;
        }
        KeeperLink way = new KeeperLink(descriptor);
        session.serveLater(() -> session.moving().leave(way, passage, broker), 0);
    }

    /** Ends a move of the session. */
    void end(BrokerMessage.MoveEnd end) throws IOException {
        if (session == null) {
            throw new IOException("a session must exist for the end of its move");
        }
        session.serveLater(() -> session.moving().end(end.isMoved()), 0);
    }

    /** Ends the mover. Any thread. */
    void close() {
        if (mover != null) {
            mover.close();
        }
    }
}

package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.memory.AvailableMemory;
import io.hawser.worker.session.Residence;
import io.hawser.worker.session.Session;
import io.hawser.worker.swap.KeeperLink;
import io.hawser.worker.swap.SlabKeeper;
import java.io.IOException;
import java.util.function.Consumer;

/**
 * A worker's part in swapping: it serves a session that may be swapped out, or it keeps the slabs of such sessions.
 * Control thread, except {@link #close}.
 */
final class Swapping {
    private final GpuBackend backend;
    private final Consumer<WorkerMessage> broker;
    private Session session; // null before it is known, and without a keeper
    private KeeperLink link; // of a session
    private boolean beginsOut;
    private SlabKeeper keeper; // null unless this worker keeps slabs
    private AvailableMemory available; // null before it is opened

    Swapping(GpuBackend backend, Consumer<WorkerMessage> broker) {
        this.backend = backend;
        this.broker = broker;
    }

    /** Opens what a keeper needs and the jail forbids to open. */
    void prepareForJail() throws IOException {
        available = AvailableMemory.open();
    }

    /** Becomes the keeper of the worker's GPU. */
    void become(BrokerMessage.Keep message) throws IOException {
        if (link != null || keeper != null) {
            throw new IOException("a worker must become a keeper once, and then serve no session");
        }
        if (available == null) {
            available = AvailableMemory.open();
        }
        keeper = new SlabKeeper(backend, message.maxBytes(), available,
            bytes -> broker.accept(new WorkerMessage.Kept(bytes)));
        keeper.start(message.aheadBytes());
    }

    /** Serves another session as its keeper. */
    void serve(BrokerMessage.KeepFor message, int descriptor) throws IOException {
        if (keeper == null || descriptor < 0) {
            throw new IOException("a keeper must get the socket of a session: descriptor=" + descriptor);
        }
        keeper.serve(descriptor, message.maxBytes());
    }

    /** Takes the way to the keeper, for the session that follows. */
    void use(BrokerMessage.Keeper message, int descriptor) throws IOException {
        if (link != null || keeper != null || descriptor < 0) {
            throw new IOException("a session's keeper must come once, with its socket: descriptor=" + descriptor);
        }
        link = new KeeperLink(descriptor);
        beginsOut = message.isOut();
    }

    /** Lets a session that has a keeper be swapped. Call it before the session starts. */
    void attach(Session begun) {
        if (link != null) {
            session = begun;
            session.residence().use(link, beginsOut, broker);
        }
    }

    /** Passes the broker's order to the session. */
    void order(Consumer<Residence> order) throws IOException {
        if (session == null) {
            throw new IOException("a session must have a keeper to be swapped");
        }
        session.serveLater(() -> order.accept(session.residence()), 0);
    }

    /** Ends both parts. Any thread, after the session's end. */
    void close() {
        if (link != null) {
            link.close();
        }
        if (keeper != null) {
            keeper.close();
        }
    }
}

package io.hawser.broker.pool;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hawser.broker.posix.PosixException;
import io.hawser.shm.control.BrokerMessageType;

/**
 * The orders of a move between GPUs to one worker. The caller keeps its copy of each descriptor and closes it. After a
 * PosixException the worker is unusable. Event loop only.
 *
 * @param worker the mover, or the worker that has a session, or the one that gets it.
 */
public record MoveOrders(Worker worker) {
    /** Makes the worker a mover: it serves no session, but copies memory between GPUs. */
    public void becomeMover() {
        worker.setMemoryQuota(0, 2); // its copies may be the first use of the targets' memory
        worker.send(Worker.message(BrokerMessageType.MOVER));
    }

    /**
     * Gives the mover its socket to one side of a session.
     *
     * @param pair number of the session in this move.
     * @param source whether it leads to the worker that has the session.
     */
    public void addSide(int pair, boolean source, int socket) throws PosixException {
        worker.sendWithDescriptor(Worker.message(BrokerMessageType.MOVE_SIDE).put("pair", pair).put("source", source),
            socket);
    }

    /** Orders a session out; {@code socket} leads to the mover. */
    public void moveOut(int socket) throws PosixException {
        worker.sendWithDescriptor(Worker.message(BrokerMessageType.MOVE_OUT), socket);
    }

    /**
     * Orders a session out to another broker.
     *
     * @param address of that broker, for the guest.
     * @param connection to that broker.
     */
    public void moveOut(String address, int connection) throws PosixException {
        worker.sendWithDescriptor(Worker.message(BrokerMessageType.MOVE_OUT).put("address", address), connection);
    }

    /**
     * Gives the worker the connection by which the session that follows comes from another broker. The call precedes
     * {@link Worker#assign}.
     */
    public void moveStream(int connection) throws PosixException {
        worker.sendWithDescriptor(Worker.message(BrokerMessageType.MOVE_STREAM), connection);
    }

    /**
     * Gives the worker the state of the session that follows, and its socket to the mover. The call precedes {@link
     * Worker#assign}.
     *
     * @param state memory that the session's worker has written.
     */
    public void moveIn(int state, int socket) throws PosixException {
        worker.sendWithDescriptor(Worker.message(BrokerMessageType.MOVE_IN), state);
        worker.sendWithDescriptor(Worker.message(BrokerMessageType.MOVE_LINK), socket);
    }

    /** Tells the worker that its session stays. */
    public void stay() {
        worker.send(end(false));
    }

    /** Tells the worker that its session is now another worker's; it ends, and the broker kills it otherwise. */
    public void leave(String reason) {
        worker.finish(end(true), reason);
    }

    /** Tells the worker that the session is now its own. */
    public void arrive() {
        worker.send(end(true));
    }

    private static ObjectNode end(boolean moved) {
        return Worker.message(BrokerMessageType.MOVE_END).put("moved", moved);
    }
}

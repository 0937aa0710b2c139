package io.hawser.broker.move;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.MoveOrders;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.session.Session;
import io.hawser.broker.session.SessionRegistry;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * One session in a move: its worker is the source, another worker the target. Until {@link #commit} the source has the
 * session. Event loop only.
 */
final class MovingSession {
    private static final int NONE = -1;

    private enum Phase {
        /** Waits for its target and for those of the other sessions; the source knows nothing of the move. */
        WAITING,
        /** The source writes the state. */
        LEAVING,
        /** The target restates the session. */
        ARRIVING,
        /** The session is complete at the target. */
        COMPLETE,
        /** The session is out of this move. */
        OVER
    }

    private final SessionRegistry sessions;
    private final Session session;
    private final Worker source;
    private Phase phase = Phase.WAITING;
    private CompletableFuture<Worker> taking;
    private Worker target; // null before it has one
    private LedgerSlot slot; // of the target
    private int link = NONE; // the target's socket to the mover

    MovingSession(SessionRegistry sessions, Session session) {
        this.sessions = sessions;
        this.session = session;
        source = session.worker();
        session.setMoving(true);
    }

    Session session() {
        return session;
    }

    Worker source() {
        return source;
    }

    /** Whether this worker is the target. */
    boolean isTarget(Worker worker) {
        return worker == target;
    }

    /** Takes the target as soon as there is one. */
    void expect(CompletableFuture<Worker> worker) {
        taking = worker;
    }

    void take(Worker worker) {
        target = worker;
    }

    boolean hasTarget() {
        return target != null;
    }

    boolean isComplete() {
        return phase == Phase.COMPLETE;
    }

    /** Whether the source still owes the answer to its order. */
    boolean isLeaving() {
        return phase == Phase.LEAVING;
    }

    boolean isArriving() {
        return phase == Phase.ARRIVING;
    }

    /** Whether the session has got the order to end, or has ended by itself. */
    boolean isEnding() {
        return session.view().state() == SessionState.ENDING;
    }

    /**
     * Connects both workers with the mover.
     *
     * @param pair number of this session in the move.
     */
    void connect(MoveOrders mover, int pair) throws PosixException {
        int[] ends = Posix.blockingPair();
        int[] others;
        try {
            others = Posix.blockingPair();
        } catch (PosixException e) {
            Posix.close(ends[0]);
            Posix.close(ends[1]);
            throw e;
        }
        link = others[1];
        try {
            mover.addSide(pair, true, ends[0]);
            mover.addSide(pair, false, others[0]);
            phase = Phase.LEAVING; // also when the send fails, which ends the source
            new MoveOrders(source).moveOut(ends[1]);
        } finally {
            Posix.close(ends[0]);
            Posix.close(ends[1]);
            Posix.close(others[0]);
        }
    }

    /**
     * Passes the session's state from the source to the target. The source has answered.
     *
     * @param gpus UUIDs of the target's GPUs.
     * @param memoryBytes quota of the vGPU on each; 0 for all.
     * @throws IOException when a worker does not pass or receive it.
     */
    void pass(WorkerMessage.MoveReady ready, List<String> gpus, long memoryBytes) throws IOException {
        Passed passed = Passed.from(source, ready);
        try {
            if (!passed.isComplete(ready)) {
                throw new IOException("the session's worker has not passed its state: worker=" + source.id());
            }
            if (session.view().guest().carrier() == Carrier.RDMA) {
                throw new IOException("the session uses RDMA by now: sessionId=" + session.id());
            }
            requireUsable();
            slot = sessions.prepare(session, target, gpus);
            new MoveOrders(target).moveIn(passed.state, link);
            session.guestEnd().give(target, slot, passed.socket);
            for (int stripe : passed.stripes) {
                target.giveStripe(stripe);
            }
            target.setMemoryQuota(memoryBytes, gpus.size());
        } finally {
            passed.close();
            closeLink();
        }
    }

    /** The descriptors that a source passes; each may be absent. */
    private record Passed(int state, int socket, List<Integer> stripes) {
        static Passed from(Worker source, WorkerMessage.MoveReady ready) {
            int state = source.receiveDescriptor();
            int socket = state >= 0 && ready.socket() ? source.receiveDescriptor() : NONE;
            List<Integer> stripes = new ArrayList<>();
            for (int next = 0; next >= 0 && stripes.size() < ready.stripes();) {
                next = source.receiveDescriptor();
                stripes.add(next);
            }
            return new Passed(state, socket, stripes);
        }

        boolean isComplete(WorkerMessage.MoveReady ready) {
            return state >= 0 && (!ready.socket() || socket >= 0) && stripes.size() == ready.stripes()
                && stripes.stream().allMatch(stripe -> stripe >= 0);
        }

        void close() {
            MovingSession.close(state);
            MovingSession.close(socket);
            stripes.forEach(MovingSession::close);
        }
    }

    /** Notes that the source has answered its order. */
    void answered() {
        phase = Phase.ARRIVING;
    }

    /** Drops the descriptors of a state that nobody waits for any more. */
    static void drain(Worker source, WorkerMessage.MoveReady ready) {
        if (ready.isReady()) {
            Passed.from(source, ready).close();
        }
    }

    void complete() {
        phase = Phase.COMPLETE;
    }

    /** Checks that neither worker is about to end. */
    void requireUsable() throws IOException {
        if (!source.isUsable() || !target.isUsable()) {
            throw new IOException("a worker of the session is ending: sessionId=" + session.id() + " worker="
                + (source.isUsable() ? target : source).id());
        }
    }

    /** Gives the session to the target. Each session of the move first, before any worker learns of it. */
    void commit(List<String> gpus) {
        phase = Phase.OVER;
        session.setMoving(false);
        sessions.replace(session, target, slot, gpus);
    }

    /** Tells both workers after {@link #commit}: the source ends before the target serves the guest. */
    void announce() {
        new MoveOrders(source).leave("its session has moved");
        new MoveOrders(target).arrive();
    }

    /**
     * Leaves the session with its source.
     *
     * @param waits whether a source that owes an answer gets the end of the move only after it.
     * @return whether the source still owes an answer.
     */
    boolean cancel(String reason, boolean waits) {
        boolean owes = phase == Phase.LEAVING;
        boolean knows = owes || phase == Phase.ARRIVING || phase == Phase.COMPLETE;
        phase = Phase.OVER;
        session.setMoving(false);
        closeLink();
        if (taking != null) {
            taking.cancel(false);
        }
        if (target != null) {
            sessions.withdraw(target);
            target.kill(reason);
        }
        if (knows && !(owes && waits) && source.isUsable()) {
            new MoveOrders(source).stay();
        }
        return owes;
    }

    private void closeLink() {
        close(link);
        link = NONE;
    }

    private static void close(int descriptor) {
        if (descriptor >= 0) {
            Posix.close(descriptor);
        }
    }
}

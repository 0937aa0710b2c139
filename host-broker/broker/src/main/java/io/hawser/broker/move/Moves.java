package io.hawser.broker.move;

import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.pool.MoveOrders;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.Session;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.vgpu.MovePlaces;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jboss.logging.Logger;

/** The moves of vGPUs with their sessions to other GPUs of this broker. Event loop only. */
public final class Moves {
    private static final Logger LOG = Logger.getLogger(Moves.class);
    /** Time to copy a GiB beside the fixed limit: NVLink and PCI Express need far less. */
    private static final long MS_A_GIB = 1000;

    private final EventLoop loop;
    private final SessionRegistry sessions;
    private final WorkerPools pools;
    private final Ledgers ledgers;
    private final MovePlaces places;
    private final Duration answerTimeout;
    private final Consumer<MoveOutcome> ended;
    private final List<RunningMove> running = new ArrayList<>();
    /**
     * Sources that have not answered the order of a failed move. A later order may only follow the answer, since no
     * message names its move. The task tells the source of the end of the move; null after that.
     */
    private final Map<Worker, ScheduledFuture<?>> owing = new HashMap<>();
    private final Set<Worker> afar = new HashSet<>(); // of these, the ones whose answers pass no descriptors

    /**
     * Starts without a move.
     *
     * @param answerTimeout limit for each answer of a worker, beside the time for copies.
     * @param ended receives each end of a move.
     */
    public Moves(EventLoop loop, SessionRegistry sessions, WorkerPools pools, Ledgers ledgers, MovePlaces places,
        Duration answerTimeout, Consumer<MoveOutcome> ended) {
        if (answerTimeout.toMillis() < 1) {
            throw new IllegalArgumentException("a time must be 1 ms or more: hawser.move.answer-timeout="
                + answerTimeout);
        }
        this.loop = loop;
        this.sessions = sessions;
        this.pools = pools;
        this.ledgers = ledgers;
        this.places = places;
        this.answerTimeout = answerTimeout;
        this.ended = ended;
    }

    /**
     * Begins to move a vGPU with its sessions.
     *
     * @param gpu as for {@link MovePlaces#begin}.
     * @return the move; the caller commits it when it is ready.
     * @throws VgpuException when a rule forbids the move; nothing has changed then.
     */
    public Move begin(String vgpu, String gpu) throws VgpuException {
        try {
            List<Session> moving = sessions.of(vgpu);
            for (Session session : moving) {
                requireMovable(session);
            }
            MovePlaces.Plan plan = places.begin(vgpu, gpu);
            Move move = new Move(this, plan, moving, limitMs(vgpu));
            running.add(move);
            LOG.infof("vGPU %s begins to move: from=%s to=%s sessions=%d", vgpu, plan.from(), plan.to(), moving.size());
            move.begin();
            return move;
        } catch (VgpuException e) {
            ended.accept(new MoveOutcome(vgpu, MoveOutcome.Result.REFUSED, "", Texts.shown(gpu), 0, 0, e.getMessage()));
            throw e;
        }
    }

    /**
     * Begins to move a vGPU with its sessions to another broker.
     *
     * @return the move, whose sessions still work.
     * @throws VgpuException when a rule forbids the move; nothing has changed then.
     */
    public Transfer transfer(String vgpu) throws VgpuException {
        List<Session> moving = sessions.of(vgpu);
        for (Session session : moving) {
            requireMovable(session);
        }
        Transfer transfer = new Transfer(this, places.depart(vgpu), moving);
        running.add(transfer);
        return transfer;
    }

    /** Time for each step of a vGPU's move, in ms. */
    public long limitMs(String vgpu) {
        return answerTimeout.toMillis() + MS_A_GIB * (ledgers.usedBytes(vgpu) >> 30);
    }

    private void requireMovable(Session session) throws VgpuException {
        String name = "sessionId=" + session.id() + " vgpu=" + session.vgpu();
        SessionState state = session.view().state();
        if (state != SessionState.RUNNING || !session.worker().isUsable()) {
            throw VgpuException.conflict("a session that is starting or ending cannot move: " + name);
        }
        if (session.view().guest().carrier() == Carrier.RDMA) {
            throw VgpuException.conflict("a session over RDMA cannot move: " + name);
        }
        if (owing.containsKey(session.worker())) {
            throw VgpuException.conflict("its worker has not answered the last order to move yet: " + name);
        }
    }

    /** Handles a worker's message about a move; returns false when the message is for the sessions. */
    public boolean handle(Worker worker, WorkerMessage message) {
        for (RunningMove move : List.copyOf(running)) {
            if (move.handle(worker, message)) {
                return true;
            }
        }
        if (message instanceof WorkerMessage.MoveReady late && owing.containsKey(worker)) {
            answered(worker, late);
        } else if (message instanceof WorkerMessage.OfMove) {
            worker.kill("it sent a move's message out of turn: " + message.getClass().getSimpleName());
        }
        return message instanceof WorkerMessage.OfMove;
    }

    private void answered(Worker source, WorkerMessage.MoveReady late) {
        ScheduledFuture<?> task = owing.remove(source);
        if (!afar.remove(source)) {
            MovingSession.drain(source, late);
        }
        if (task != null && task.cancel(false)) {
            tell(source);
        }
    }

    private static void tell(Worker source) {
        if (source.isUsable()) {
            new MoveOrders(source).stay();
        }
    }

    /** A worker has ended. The call precedes that of the sessions. */
    public void onExit(Worker worker, String reason) {
        ScheduledFuture<?> task = owing.remove(worker);
        afar.remove(worker);
        if (task != null) {
            task.cancel(false);
        }
        List.copyOf(running).forEach(move -> move.onExit(worker, reason));
    }

    /** Number of moves that have begun and not ended. */
    public int count() {
        return running.size();
    }

    /** Leaves all sessions where they are, for the end of the broker. */
    public void stop(String reason) {
        List.copyOf(running).forEach(move -> move.fail(reason));
    }

    /**
     * Notes that a source has not answered the order of a move that has failed.
     *
     * @param waits whether it learns of the end of the move only with its answer, or after the time for that.
     */
    void owes(Worker source, boolean waits) {
        owing.put(source, waits ? loop.schedule(() -> tell(source), answerTimeout.toMillis(), TimeUnit.MILLISECONDS)
            : null);
    }

    /** Adds a move that {@link #begin} has not made. */
    void add(RunningMove move) {
        running.add(move);
    }

    /** Removes such a move. */
    void remove(RunningMove move) {
        running.remove(move);
    }

    /** As {@link #owes}, for a source that was to go to another broker; it has got the end of the move. */
    void owesFromAfar(Worker source) {
        owing.put(source, null);
        afar.add(source);
    }

    MoveOutcome ended(RunningMove move, MoveOutcome outcome) {
        running.remove(move);
        if (outcome.problem().isEmpty()) {
            LOG.infof("vGPU %s has moved: from=%s to=%s sessions=%d ms=%d", outcome.vgpu(), outcome.from(),
                outcome.to(), outcome.sessions(), outcome.ms());
        } else {
            LOG.warnf("vGPU %s has not moved: from=%s to=%s ms=%d: %s", outcome.vgpu(), outcome.from(), outcome.to(),
                outcome.ms(), outcome.problem());
        }
        ended.accept(outcome);
        return outcome;
    }

    EventLoop loop() {
        return loop;
    }

    SessionRegistry sessions() {
        return sessions;
    }

    WorkerPools pools() {
        return pools;
    }

    MovePlaces places() {
        return places;
    }
}

package io.hawser.broker.move;

import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.pool.MoveOrders;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerRequest;
import io.hawser.broker.session.Session;
import io.hawser.broker.vgpu.MovePlaces;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * The move of one vGPU with its sessions. The steps:
 *
 * <ol>
 *   <li>The broker takes the mover and the targets, while the guests work on.
 *   <li>The sources write their states, and the targets restate the sessions ({@link MovingSession}).
 *   <li>When all sessions are complete at their targets, the move is ready. The caller writes the new place to the
 *       database.
 *   <li>{@link #commit} gives the sessions to the targets.
 * </ol>
 *
 * <p>Before the commit each failure, and each answer that does not come in time, leaves the sessions with their
 * sources. A session that ends meanwhile leaves the move. Event loop only.
 */
public final class Move implements RunningMove {
    /** A worker for these GPUs. */
    private record Request(String vgpu, List<String> gpus) implements WorkerRequest {}

    private enum Phase { TAKING, COPYING, READY, OVER }

    private final Moves moves;
    private final MovePlaces.Plan plan;
    private final List<MovingSession> parts = new ArrayList<>();
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private final long startedNs = System.nanoTime();
    private final long limitMs;
    private Phase phase = Phase.TAKING;
    private CompletableFuture<Worker> takingMover;
    private Worker mover; // null before the broker has it, and after its work
    private ScheduledFuture<?> deadline;
    private String failure = "";

    Move(Moves moves, MovePlaces.Plan plan, List<Session> sessions, long limitMs) {
        this.moves = moves;
        this.plan = plan;
        this.limitMs = limitMs;
        sessions.forEach(session -> parts.add(new MovingSession(moves.sessions(), session)));
    }

    /** The vGPU and its GPUs. Any thread. */
    public MovePlaces.Plan plan() {
        return plan;
    }

    /** Completes when all sessions are complete at their targets; with {@link VgpuException} when they stay. */
    public CompletableFuture<Void> ready() {
        return ready;
    }

    /** Takes the workers. Without sessions the move is ready at once. */
    void begin() {
        if (parts.isEmpty()) {
            markReady();
            return;
        }
        extend();
        takingMover = moves.pools().take(new Request("", plan.gpus()));
        receive(takingMover, worker -> mover = worker);
        for (MovingSession part : List.copyOf(parts)) {
            if (phase != Phase.TAKING) {
                return;
            }
            CompletableFuture<Worker> taking = moves.pools().take(new Request(plan.vgpu().name(), plan.home()));
            part.expect(taking);
            receive(taking, part::take);
        }
    }

    private void receive(CompletableFuture<Worker> taking, Consumer<Worker> receiver) {
        taking.whenComplete((worker, none) -> {
            if (worker == null) {
                if (!taking.isCancelled()) {
                    fail("no worker is there for the move: " + none.getMessage());
                }
            } else if (phase == Phase.TAKING) {
                receiver.accept(worker);
                copyWhenTaken();
            } else {
                worker.kill("the move is over");
            }
        });
    }

    private void copyWhenTaken() {
        if (phase != Phase.TAKING || mover == null || !parts.stream().allMatch(MovingSession::hasTarget)) {
            return;
        }
        phase = Phase.COPYING;
        extend();
        try {
            for (MovingSession part : parts) {
                part.requireUsable();
            }
            if (!mover.isUsable()) {
                throw new IOException("the mover has ended");
            }
            MoveOrders orders = new MoveOrders(mover);
            orders.becomeMover();
            for (int pair = 0; pair < parts.size(); pair++) {
                parts.get(pair).connect(orders, pair);
            }
        } catch (IOException e) {
            fail(e.getMessage());
        }
    }

    @Override
    public boolean handle(Worker worker, WorkerMessage message) {
        for (MovingSession part : parts) {
            if (part.source() == worker && part.isLeaving() && message instanceof WorkerMessage.MoveReady state) {
                leave(part, state);
                return true;
            }
            if (part.isTarget(worker)) {
                return handleTarget(part, message);
            }
        }
        return false;
    }

    private void leave(MovingSession part, WorkerMessage.MoveReady state) {
        extend();
        part.answered();
        try {
            if (!state.isReady()) {
                throw new IOException("session " + part.session().id() + " cannot move: " + state.reason());
            }
            part.pass(state, plan.home(), plan.vgpu().memoryBytes());
        } catch (IOException e) {
            fail(e.getMessage());
        }
    }

    private boolean handleTarget(MovingSession part, WorkerMessage message) {
        String problem = switch (message) {
            case WorkerMessage.MovedIn in when part.isArriving() -> in.reason();
            case WorkerMessage.Ended ended -> ended.reason();
            case WorkerMessage.Lost lost -> "a fault of the GPU: CUresult=" + lost.result();
            default -> null;
        };
        if (problem == null) {
            return false;
        }
        if (problem.isEmpty() && message instanceof WorkerMessage.MovedIn) {
            extend();
            part.complete();
            finishCopies();
        } else {
            fail("session " + part.session().id() + " cannot be restated: " + problem);
        }
        return true;
    }

    private void finishCopies() {
        if (phase == Phase.COPYING && parts.stream().allMatch(MovingSession::isComplete)) {
            markReady();
        }
    }

    private void markReady() {
        phase = Phase.READY;
        endMover();
        ready.complete(null);
    }

    private void endMover() {
        if (mover != null) {
            Worker done = mover;
            mover = null;
            done.end("the move needs it no longer");
        }
    }

    @Override
    public void onExit(Worker worker, String reason) {
        if (worker == mover) {
            fail("the mover has ended: " + reason);
            return;
        }
        for (MovingSession part : List.copyOf(parts)) {
            if (part.isTarget(worker)) {
                fail("the worker for session " + part.session().id() + " has ended: " + reason);
                return;
            }
            if (part.source() == worker) {
                if (part.isEnding()) {
                    drop(part);
                } else {
                    fail("session " + part.session().id() + " has ended with its worker: " + reason);
                }
                return;
            }
        }
    }

    /** A session has ended for its own reasons; the others go on. */
    private void drop(MovingSession part) {
        parts.remove(part);
        part.cancel("its session has ended", false);
        copyWhenTaken();
        finishCopies();
        if (parts.isEmpty() && phase == Phase.TAKING) {
            takingMover.cancel(false);
            markReady();
        }
    }

    /** Leaves the vGPU and its sessions where they are. Does nothing after the end of the move. */
    @Override
    public void fail(String reason) {
        fail(reason, true);
    }

    private void fail(String reason, boolean waits) {
        if (phase == Phase.OVER) {
            return;
        }
        failure = reason;
        close();
        if (takingMover != null) {
            takingMover.cancel(false);
        }
        if (mover != null) {
            mover.kill("the move is over");
            mover = null;
        }
        parts.forEach(part -> {
            if (part.cancel("the move is over", waits)) {
                moves.owes(part.source(), waits);
            }
        });
        parts.clear();
        moves.places().cancel(plan);
        moves.ended(this, outcome(MoveOutcome.Result.FAILED, 0, reason));
        ready.completeExceptionally(VgpuException.conflict("the vGPU has not moved: vgpu=" + plan.vgpu().name() + ": "
            + reason));
    }

    /**
     * Gives the vGPU and its sessions to the new GPU. The database has the new place.
     *
     * @return what has moved.
     * @throws VgpuException when the move has failed meanwhile; the database must get the old place again.
     */
    public MoveOutcome commit() throws VgpuException {
        requireReady();
        List.copyOf(parts).stream().filter(MovingSession::isEnding).forEach(this::drop);
        try {
            moves.places().requireValid(plan);
            for (MovingSession part : parts) {
                part.requireUsable();
            }
        } catch (VgpuException | IOException e) {
            fail(e.getMessage());
            throw VgpuException.conflict("the vGPU has not moved: vgpu=" + plan.vgpu().name() + ": " + e.getMessage());
        }
        close();
        moves.places().commit(plan);
        parts.forEach(part -> part.commit(plan.home()));
        parts.forEach(MovingSession::announce);
        return moves.ended(this, outcome(MoveOutcome.Result.MOVED, parts.size(), ""));
    }

    /** Checks that the sessions are still complete at their targets, and that the target's GPU still has room. */
    public void requireReady() throws VgpuException {
        if (phase != Phase.READY) {
            throw VgpuException.conflict("the vGPU has not moved: vgpu=" + plan.vgpu().name() + ": " + failure);
        }
        moves.places().requireValid(plan);
    }

    private void close() {
        phase = Phase.OVER;
        if (deadline != null) {
            deadline.cancel(false);
        }
    }

    /** Begins the time for the next answer. */
    private void extend() {
        if (deadline != null) {
            deadline.cancel(false);
        }
        deadline = moves.loop().schedule(() -> fail("a worker has not answered in time: limitMs=" + limitMs, false),
            limitMs, TimeUnit.MILLISECONDS);
    }

    private MoveOutcome outcome(MoveOutcome.Result result, int sessions, String problem) {
        return new MoveOutcome(plan.vgpu().name(), result, plan.from(), plan.to(), sessions,
            TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedNs), problem);
    }
}

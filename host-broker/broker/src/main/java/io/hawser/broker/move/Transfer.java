package io.hawser.broker.move;

import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.Traveller;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.pool.MoveOrders;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.session.Session;
import io.hawser.broker.vgpu.MovePlaces;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * The departure of a vGPU with its sessions to another broker. The caller asks the other broker first. Then {@link
 * #send} lets the sessions leave, and {@link #ready} completes when the other broker has all of them. The caller gives
 * the vGPU away in the pool's database, and then {@link #commit} ends the sessions here. Before the commit each failure
 * leaves the sessions here. Event loop only.
 */
public final class Transfer implements RunningMove {
    private enum Phase {
        /** The source knows nothing of the move. */
        WAITING,
        /** The source owes its answer. */
        LEAVING,
        /** The other broker has the session, and the source waits. */
        READY
    }

    private final Moves moves;
    private final MovePlaces.Plan plan;
    private final List<Part> parts = new ArrayList<>();
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private final long startedNs = System.nanoTime();
    private ScheduledFuture<?> deadline;
    private boolean isOver;
    private String failure = "";

    /** A session. */
    private static final class Part {
        private final Session session;
        private final Worker source;
        private Phase phase = Phase.WAITING;

        Part(Session session) {
            this.session = session;
            source = session.worker();
        }
    }

    Transfer(Moves moves, MovePlaces.Plan plan, List<Session> sessions) {
        this.moves = moves;
        this.plan = plan;
        sessions.forEach(session -> {
            session.setMoving(true);
            parts.add(new Part(session));
        });
    }

    /** The vGPU and its GPU here. Any thread. */
    public MovePlaces.Plan plan() {
        return plan;
    }

    /** The sessions, as the other broker must know them. */
    public List<Traveller> travellers() {
        return parts.stream().map(part -> part.session.traveller()).toList();
    }

    /** Whether the guests have come over TLS. */
    public boolean overTls() throws VgpuException {
        boolean overTls = parts.stream().anyMatch(part -> part.session.isOverTls());
        if (overTls && !parts.stream().allMatch(part -> part.session.isOverTls())) {
            throw VgpuException.conflict("the guests of a vGPU that moves must all use TLS, or none: vgpu="
                + plan.vgpu().name());
        }
        return overTls;
    }

    /** Completes when the other broker has all sessions; with {@link VgpuException} when they stay. */
    public CompletableFuture<Void> ready() {
        return ready;
    }

    /**
     * Lets the sessions leave.
     *
     * @param address of the other broker, for the guests.
     * @param connections to the other broker by session; closed by this.
     */
    public void send(String address, Map<Long, Held> connections, long limitMs) {
        try {
            if (isOver) {
                return;
            }
            deadline = moves.loop().schedule(() -> fail("a session has not left in time: limitMs=" + limitMs), limitMs,
                TimeUnit.MILLISECONDS);
            for (Part part : parts) {
                part.phase = Phase.LEAVING; // also when the send fails, which ends the source
                new MoveOrders(part.source).moveOut(address, connections.get(part.session.id()).descriptor());
            }
            completeWhenReady();
        } catch (PosixException e) {
            fail(e.getMessage());
        } finally {
            new HashMap<>(connections).values().forEach(Held::close);
        }
    }

    private void completeWhenReady() {
        if (!isOver && parts.stream().allMatch(part -> part.phase == Phase.READY)) {
            ready.complete(null);
        }
    }

    @Override
    public boolean handle(Worker worker, WorkerMessage message) {
        for (Part part : parts) {
            if (part.source == worker && part.phase == Phase.LEAVING
                && message instanceof WorkerMessage.MoveReady answer) {
                part.phase = answer.isReady() ? Phase.READY : Phase.WAITING;
                if (answer.isReady()) {
                    completeWhenReady();
                } else {
                    fail("session " + part.session.id() + " cannot move: " + answer.reason());
                }
                return true;
            }
        }
        return false;
    }

    @Override
    public void onExit(Worker worker, String reason) {
        for (Part part : List.copyOf(parts)) {
            if (part.source == worker) {
                if (part.phase == Phase.WAITING && part.session.view().state() == SessionState.ENDING) {
                    parts.remove(part);
                } else {
                    fail("session " + part.session.id() + " has ended with its worker: " + reason);
                }
            }
        }
    }

    @Override
    public void fail(String reason) {
        if (isOver) {
            return;
        }
        failure = reason;
        close();
        for (Part part : parts) {
            part.session.setMoving(false);
            if (part.phase != Phase.WAITING && part.source.isUsable()) {
                new MoveOrders(part.source).stay();
            }
            if (part.phase == Phase.LEAVING) {
                moves.owesFromAfar(part.source);
            }
        }
        moves.places().stay(plan);
        moves.ended(this, outcome(MoveOutcome.Result.FAILED, "", 0, reason));
        ready.completeExceptionally(problem());
    }

    /** Checks that all sessions are still complete at the other broker. */
    public void requireReady() throws VgpuException {
        if (isOver) {
            throw problem();
        }
        for (Part part : parts) {
            if (part.phase != Phase.READY || !part.source.isUsable()) {
                throw VgpuException.conflict("the vGPU has not moved: vgpu=" + plan.vgpu().name()
                    + ": a worker of its sessions is ending");
            }
        }
    }

    private VgpuException problem() {
        return VgpuException.conflict("the vGPU has not moved: vgpu=" + plan.vgpu().name() + ": " + failure);
    }

    /**
     * Ends the sessions here: the other broker has the vGPU.
     *
     * @param gpu UUID of its GPU there.
     */
    public MoveOutcome commit(String gpu) {
        close();
        parts.forEach(part -> {
            part.session.setMoving(false);
            new MoveOrders(part.source).leave("its session has moved to another broker");
        });
        return moves.ended(this, outcome(MoveOutcome.Result.MOVED, gpu, parts.size(), ""));
    }

    private MoveOutcome outcome(MoveOutcome.Result result, String gpu, int sessions, String problem) {
        return new MoveOutcome(plan.vgpu().name(), result, plan.from(), gpu, sessions,
            TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedNs), problem);
    }

    private void close() {
        isOver = true;
        if (deadline != null) {
            deadline.cancel(false);
        }
    }
}

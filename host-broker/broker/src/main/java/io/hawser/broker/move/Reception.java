package io.hawser.broker.move;

import io.hawser.broker.model.RefusedException;
import io.hawser.broker.model.Traveller;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.MoveOrders;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerRequest;
import io.hawser.broker.session.Session;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.vgpu.MovePlaces;
import java.io.IOException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * The arrival of a vGPU with its sessions from another broker. The steps:
 *
 * <ol>
 *   <li>This broker reserves room and takes a worker for each session.
 *   <li>For each session the guest and the other broker connect, and the worker makes the session.
 *   <li>The other broker gives the vGPU to this one in the pool's database, and {@link #commit} starts the sessions.
 * </ol>
 *
 * <p>Before the commit the sessions are the other broker's. This broker may give up only after it has deleted the
 * arrival's row, because the other broker's transaction deletes it as well. Event loop only.
 */
final class Reception implements RunningMove {
    private static final Logger LOG = Logger.getLogger(Reception.class);

    /** A worker for these GPUs. */
    private record Request(String vgpu, List<String> gpus) implements WorkerRequest {}

    private final Receptions receptions;
    private final Receptions.Wish wish;
    private final MovePlaces.Plan plan;
    private final List<Part> parts = new ArrayList<>();
    private final CompletableFuture<Void> taken = new CompletableFuture<>();
    private final ScheduledFuture<?> deadline;
    private boolean isGivingUp;
    private boolean isOver;

    /** A session and its worker here. */
    private static final class Part {
        private final Traveller traveller;
        private final Session session;
        private CompletableFuture<Worker> taking;
        private Worker target; // null before it is there
        private LedgerSlot slot; // of the target
        private Held stream; // null before the other broker has connected, and after the target has it
        private Held guest; // null before the guest has connected
        private boolean isMaking; // the target makes the session
        private boolean isComplete; // the target has said so

        Part(Traveller traveller, Session session) {
            this.traveller = traveller;
            this.session = session;
        }
    }

    Reception(Receptions receptions, Receptions.Wish wish, MovePlaces.Plan plan) {
        this.receptions = receptions;
        this.wish = wish;
        this.plan = plan;
        for (Traveller traveller : wish.sessions()) {
            Part[] made = new Part[1];
            Session session = receptions.sessions().expect(traveller.id(), traveller.guest(wish.vgpu()), plan.home(),
                () -> made[0].guest.release());
            session.useNonce(traveller.nonceBytes(), wish.overTls());
            made[0] = new Part(traveller, session);
            parts.add(made[0]);
        }
        deadline = receptions.loop().schedule(() -> fail("the other broker does not end the move in time: limitMs="
            + wish.limitMs()), wish.limitMs(), TimeUnit.MILLISECONDS);
    }

    String vgpu() {
        return wish.vgpu();
    }

    String id() {
        return wish.id();
    }

    MovePlaces.Plan plan() {
        return plan;
    }

    /** Whether the ticket is this arrival's. */
    boolean has(byte[] ticket) {
        return MessageDigest.isEqual(ticket, wish.ticketBytes());
    }

    /** Completes when a worker is there for each session; with {@link VgpuException} when none is. */
    CompletableFuture<Void> begin() {
        for (Part part : parts) {
            part.taking = receptions.pools().take(new Request(wish.vgpu(), plan.home()));
            part.taking.whenComplete((worker, none) -> {
                if (worker == null) {
                    fail("no worker is there for the move" + (none == null ? "" : ": " + none.getMessage()));
                } else if (isOver) {
                    worker.kill("the move is over");
                } else {
                    part.target = worker;
                    completeWhenTaken();
                }
            });
        }
        completeWhenTaken();
        return taken;
    }

    private void completeWhenTaken() {
        if (parts.stream().allMatch(part -> part.target != null)) {
            taken.complete(null);
        }
    }

    private Part part(long sessionId) {
        return parts.stream().filter(part -> part.traveller.id() == sessionId).findFirst().orElse(null);
    }

    /** Takes the connection by which a session comes from the other broker. */
    Runnable deliver(long sessionId, Held stream) throws RefusedException {
        Part part = part(sessionId);
        if (part == null || part.stream != null || part.isMaking || isGivingUp) {
            throw new RefusedException("a session must be expected, and come once: sessionId=" + sessionId);
        }
        part.stream = stream;
        return () -> make(part);
    }

    /** Whether a session is of this arrival. */
    boolean has(long sessionId) {
        return part(sessionId) != null;
    }

    /**
     * Takes the guest of a session of this arrival.
     *
     * @param keyId of the token that it has proved.
     * @param nonce that it names.
     */
    Runnable resume(long sessionId, String keyId, byte[] nonce, Held guest) throws RefusedException {
        Part part = part(sessionId);
        boolean isGuest = keyId.equals(part.traveller.keyId())
            && MessageDigest.isEqual(nonce, part.traveller.nonceBytes());
        if (!isGuest || part.guest != null || isGivingUp) {
            throw new RefusedException("a session must be expected, and resumed once by its guest: sessionId="
                + sessionId);
        }
        part.guest = guest;
        return () -> make(part);
    }

    /** Lets the target make the session, when both connections are there. */
    private void make(Part part) {
        if (part.stream == null || part.guest == null || part.target == null || isOver) {
            return;
        }
        part.isMaking = true;
        try {
            part.slot = receptions.sessions().prepare(part.session, part.target, plan.home());
            new MoveOrders(part.target).moveStream(part.stream.descriptor());
            part.target.assign(part.session.assignment(null, part.slot), part.guest.descriptor());
            part.target.setMemoryQuota(plan.vgpu().memoryBytes(), plan.home().size());
        } catch (IOException e) {
            fail(e.getMessage());
        } finally {
            drop(part.stream);
            part.stream = null;
            part.guest.close();
        }
    }

    private static void drop(Held connection) {
        if (connection != null) {
            connection.close();
            connection.release();
        }
    }

    @Override
    public boolean handle(Worker worker, WorkerMessage message) {
        for (Part part : parts) {
            if (part.target == worker) {
                return handle(part, message);
            }
        }
        return false;
    }

    private boolean handle(Part part, WorkerMessage message) {
        if (message instanceof WorkerMessage.MovedIn in && part.isMaking && in.reason().isEmpty()) {
            part.isComplete = true;
            endWhenAllHaveSaid();
            return true;
        } else if (isOver) {
            return false; // the session is this broker's
        }
        String problem = switch (message) {
            case WorkerMessage.MovedIn in when part.isMaking -> in.reason();
            case WorkerMessage.Ended ended -> ended.reason();
            case WorkerMessage.Lost lost -> "a fault of the GPU: CUresult=" + lost.result();
            default -> null;
        };
        if (problem != null && !problem.isEmpty()) {
            fail("session " + part.traveller.id() + " cannot be made: " + problem);
        }
        return problem != null;
    }

    @Override
    public void onExit(Worker worker, String reason) {
        if (isOver) {
            parts.removeIf(part -> part.target == worker);
            endWhenAllHaveSaid();
        } else if (parts.stream().anyMatch(part -> part.target == worker)) {
            fail("a worker of the move has ended: " + reason);
        }
    }

    /** Gives up, unless the database has given the vGPU to this broker already. */
    @Override
    public void fail(String reason) {
        if (isOver || isGivingUp) {
            return;
        }
        isGivingUp = true;
        taken.completeExceptionally(VgpuException.conflict("the vGPU cannot come: vgpu=" + wish.vgpu() + ": "
            + reason));
        receptions.giveUp(this, reason);
    }

    /** The row is deleted: the sessions stay at the other broker. */
    void cancel(String reason) {
        close();
        LOG.warnf("vGPU %s does not come from another broker: %s", wish.vgpu(), reason);
        for (Part part : parts) {
            if (part.taking != null) {
                part.taking.cancel(false);
            }
            if (part.target != null) {
                receptions.sessions().withdraw(part.target);
                part.target.kill("the move is over");
            }
            drop(part.stream);
            drop(part.guest);
        }
        parts.clear();
        endWhenAllHaveSaid();
        receptions.places().refuse(plan);
    }

    /** The database has given the vGPU to this broker: the sessions go on here. */
    void commit() {
        close();
        receptions.places().admit(plan);
        SessionRegistry sessions = receptions.sessions();
        for (Part part : parts) {
            if (part.slot == null || !part.target.isUsable()) {
                LOG.errorf("session %d is lost: its worker has ended while its vGPU came from another broker: vgpu=%s",
                    part.traveller.id(), wish.vgpu());
                drop(part.guest);
                part.isComplete = true;
            } else {
                sessions.receive(part.session, part.target, part.slot);
                new MoveOrders(part.target).arrive();
            }
        }
        LOG.infof("vGPU %s has come from another broker: gpu=%s sessions=%d", wish.vgpu(), plan.to(), parts.size());
        endWhenAllHaveSaid();
    }

    /** The database may be faster than a worker's message, which then still belongs to this move. */
    private void endWhenAllHaveSaid() {
        if (isOver && parts.stream().allMatch(part -> part.isComplete)) {
            receptions.end(this);
        }
    }

    private void close() {
        isOver = true;
        deadline.cancel(false);
        receptions.remove(this);
    }
}

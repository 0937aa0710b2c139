package io.hawser.broker.region;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.RefusedException;
import io.hawser.broker.pool.Assignment;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.session.Session;
import io.hawser.broker.session.SessionStart;
import io.hawser.shm.region.RegionLayout;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jboss.logging.Logger;

/**
 * One slot of a region, from a guest process's claim until the slot is free again. Event loop only. An access to the
 * region's memory throws InternalError when its file was truncated; {@link Region#guarded} then ends the region.
 */
final class Slot implements SessionStart.Door {
    private static final Logger LOG = Logger.getLogger(Slot.class);

    private enum Phase {
        /** No guest has the slot. */
        FREE,
        /** The session waits for a worker. */
        STARTING,
        /** A worker serves the slot, and handles the guest's actions first. */
        SERVING,
        /** The session was refused or has ended, and the guest can still read the reason. */
        CLOSED
    }

    private final Region region;
    private final RegionContext context;
    private final SlotMemory memory;
    private final int number;
    private volatile Phase phase = Phase.FREE;
    private Claim claim;
    private long claimedNs;
    private boolean locked;
    private long beat;
    private long beatNs;
    private boolean leaving;
    private Session session;
    private SessionStart start;

    Slot(Region region, RegionContext context, SlotMemory memory, int number) {
        this.region = region;
        this.context = context;
        this.memory = memory;
        this.number = number;
    }

    /** Whether a guest process has claimed the slot. */
    boolean inUse() {
        return phase != Phase.FREE;
    }

    /** Whether the slot has a session, so that its memory is in use. */
    boolean hasSession() {
        return session != null;
    }

    /** Whether {@link #look} has something to do; any thread. */
    boolean needsLook() {
        Phase now = phase;
        return now != Phase.SERVING && memory.guestState()
            != (now == Phase.FREE ? RegionLayout.GUEST_FREE : RegionLayout.GUEST_CLAIMED);
    }

    /** Checks for a claim, or for a guest that has left before or after its session. */
    void look() throws IOException {
        if (phase == Phase.SERVING) {
            return;
        }
        int state = memory.guestState();
        if (phase == Phase.FREE && state == RegionLayout.GUEST_CLAIMED) {
            claimed();
        } else if (phase == Phase.FREE && state != RegionLayout.GUEST_FREE) {
            memory.free();
        } else if (phase != Phase.FREE && state != RegionLayout.GUEST_CLAIMED) {
            free("the guest has left");
        }
    }

    /** Checks whether the guest lives; called each {@link RegionLayout#BEAT_MS}. */
    void tick(long nowNs) throws IOException {
        look();
        if (phase == Phase.FREE) {
            return;
        }
        String death = death(nowNs);
        if (phase != Phase.SERVING) {
            if (death != null) {
                free(death);
            }
            return;
        }
        int state = memory.guestState();
        if (state == RegionLayout.GUEST_LEFT && !leaving) {
            // The worker sees this state too. It ends the session after it has handled the guest's remaining records.
            leaving = true;
        } else if (state != RegionLayout.GUEST_CLAIMED) {
            end(state == RegionLayout.GUEST_LEFT ? "the guest has left" : "the guest has died: state=" + state);
        } else if (death != null) {
            end(death);
        }
    }

    private String death(long nowNs) throws IOException {
        if (locked) {
            return region.isLocked(number) ? null : "the guest has died: its lock is free";
        }
        long seen = memory.guestBeat();
        if (seen != beat) {
            beat = seen;
            beatNs = nowNs;
        }
        long timeoutNs = region.settings().guestTimeout().toNanos();
        return nowNs - beatNs <= timeoutNs ? null : "the guest's beat has not changed for longer than "
            + region.settings().guestTimeout().toMillis() + " ms";
    }

    private void claimed() throws IOException {
        claimedNs = System.nanoTime();
        claim = memory.claim();
        locked = region.isLocked(number);
        beat = memory.guestBeat();
        beatNs = claimedNs;
        leaving = false;
        phase = Phase.STARTING;
        Claim.Problem problem = claim.problem(region.epoch(), context.descriptionHash());
        if (problem != null) {
            refuse(problem.refusal(), problem.reason());
            return;
        }
        if (region.claimRefusal() != null) {
            refuse(Refusal.CAPACITY, region.claimRefusal());
            return;
        }
        Claim mine = claim;
        CompletableFuture<Void> moved = context.vgpus().whenMoved(region.settings().vgpu());
        if (moved.isDone()) {
            admit();
            return;
        }
        moved.thenRunAsync(() -> region.guarded(() -> {
            if (phase == Phase.STARTING && claim == mine) {
                admit();
            }
        }), context.loop());
    }

    private void admit() {
        try {
            session = context.sessions().admit(new Guest("", region.settings().vgpu(), Carrier.SHM, peer(), claim.pid(),
                claim.program(), claim.host()), this::sessionEnded);
        } catch (RefusedException e) {
            refuse(Refusal.CAPACITY, e.getMessage());
            return;
        }
        session.onCancel(reason -> region.guarded(() -> refuse(Refusal.CAPACITY, reason)));
        session.useEnd(this::give);
        memory.start(session.id(), locked ? RegionLayout.LIVENESS_LOCK : RegionLayout.LIVENESS_BEAT);
        wake();
        region.changed();
        start = new SessionStart(context.sessions(), context.pools(), session, this);
        start.take();
    }

    private String peer() {
        return "region " + region.settings().name() + " slot " + number;
    }

    @Override
    public void prepare(Worker worker) {
        region.guarded(() -> assign(worker));
        if (phase != Phase.SERVING && worker.isUsable()) {
            worker.kill("the region of its guest is gone");
        }
    }

    private void assign(Worker worker) {
        if (phase == Phase.STARTING && memory.guestState() == RegionLayout.GUEST_CLAIMED) {
            start.assign(worker);
            return;
        }
        worker.kill("its guest has left");
        if (phase == Phase.STARTING) {
            free("the guest has left");
        }
    }

    @Override
    public void send(Worker worker) throws IOException {
        phase = Phase.SERVING;
        // Before the worker gets the session: a guest that reads WELCOME in any other host state counts its session as
        // lost.
        memory.hostState(RegionLayout.HOST_SERVING);
        giveDoorbell(worker);
        worker.assign(session.assignment(place()), region.descriptor());
    }

    private void giveDoorbell(Worker worker) throws IOException {
        if (region.doorbell(number) >= 0) {
            worker.giveDoorbell(region.doorbell(number));
        }
    }

    private Assignment.Place place() {
        return new Assignment.Place(region.geometry().regionBytes(), region.geometry().slotCount(), number,
            claim.kind(), claim.mapAddress(), region.epoch());
    }

    /** Gives the running session to a further worker: the slot stays as it is, since the guest notices nothing. */
    private void give(Worker worker, LedgerSlot ledger, int socket) throws IOException {
        if (phase != Phase.SERVING || region.isFailed()) {
            throw new IOException("the region of the session's guest is gone: " + peer());
        }
        giveDoorbell(worker);
        worker.assign(session.assignment(place(), ledger), region.descriptor());
    }

    @Override
    public void takeBack() {
        phase = Phase.STARTING;
        memory.hostState(RegionLayout.HOST_STARTING);
    }

    @Override
    public void started() {
        context.listener().sessionStarted(Carrier.SHM, Duration.ofNanos(System.nanoTime() - claimedNs));
        wake();
    }

    @Override
    public void failed(Refusal refusal, String reason) {
        region.guarded(() -> refuse(refusal, reason));
    }

    private void refuse(Refusal refusal, String reason) {
        if (phase != Phase.STARTING) {
            return;
        }
        context.listener().refused(Carrier.SHM, refusal, region.settings().vgpu(), peer(),
            reason);
        if (context.logLimiter().allows()) {
            long dropped = context.logLimiter().takeDropped();
            LOG.warnf("claim refused: peer=%s program=%s reason=%s: %s%s", peer(), claim.program(), refusal.label(),
                reason, dropped == 0 ? "" : " (and " + dropped + " more not logged)");
        }
        phase = Phase.CLOSED;
        abandon();
        memory.close(RegionLayout.HOST_REFUSED, refusal.code(), reason);
        wake();
    }

    private void abandon() {
        if (start != null) {
            start.cancel();
            start = null;
        }
        if (session != null) {
            Session waiting = session;
            session = null;
            context.sessions().abandon(waiting);
            region.changed();
        }
    }

    /** Ends the slot's session, if it has one; the slot becomes free after the worker's exit. */
    void end(String reason) {
        if (session != null) {
            context.sessions().end(session.id(), reason);
        }
    }

    /** The guest is gone: ends its session, or frees the slot without one. */
    void guestGone(String reason) {
        if (phase == Phase.SERVING) {
            end(reason);
        } else if (phase != Phase.FREE) {
            free(reason);
        }
    }

    /** Called once at the end of a session: its worker has ended, or it never had a worker. */
    private void sessionEnded() {
        if (phase != Phase.SERVING) {
            return;
        }
        Session ended = session;
        session = null;
        phase = Phase.CLOSED;
        region.guarded(() -> {
            memory.close(RegionLayout.HOST_ENDED, 0, ended.endReason());
            wake();
            tick(System.nanoTime());
        });
        if (region.isFailed()) {
            phase = Phase.FREE;
        }
        region.changed();
    }

    private void free(String reason) {
        LOG.debugf("slot free: peer=%s: %s", peer(), reason);
        abandon();
        phase = Phase.FREE;
        claim = null;
        memory.free();
    }

    private void wake() {
        if (claim.kind() == RegionLayout.KIND_PROCESS) {
            memory.wakeGuest();
        }
    }

    /**
     * The region has failed: frees the slot without a message to the guest. A session with a worker runs to its end.
     */
    void drop() {
        if (phase != Phase.SERVING) {
            phase = Phase.FREE;
            abandon();
        }
    }
}

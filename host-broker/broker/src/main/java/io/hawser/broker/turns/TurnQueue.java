package io.hawser.broker.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jboss.logging.Logger;

/**
 * Turns on one GPU, or on GPUs that sessions use together. The vGPU that has used the least time for its weight is
 * next. The queue measures that time itself, from the grant until the work is done, and halves it while two vGPUs run
 * at once. A worker's state only decides when the queue reads the workers again. One thread.
 */
final class TurnQueue {
    private static final Logger LOG = Logger.getLogger(TurnQueue.class);
    private static final int LOOKS = 8; // in one call; a changed permit may change a worker's state
    private static final long SOON_NS = 20_000;
    private static final long NOTICE_NS = 200_000;
    private static final long WAKE_UP_NS = 1_000_000; // time to launch that the queue does not charge
    private static final int LOOKS_A_WAKE_UP = 20;

    private final TurnRules rules;
    private final BooleanSupplier leavesEqual;
    private boolean isLeftToDriver; // no turns
    private final List<TurnShare> shares = new ArrayList<>();
    private final Map<String, Double> debts = new HashMap<>(); // virtual time of vGPUs that left ahead of the clock
    private TurnShare holder;
    private long turnSinceNs;
    private boolean ending; // the holder must not launch further work
    private long endingSinceNs;
    private boolean lingers;
    private double clockNs; // virtual time of the vGPU that has used the least; never goes back
    private long lastNs;
    private boolean hasLooked;

    /**
     * Starts without workers.
     *
     * @param leavesEqual whether the driver alone divides the time between vGPUs of equal weight, because it gives
     *     their processes equal time.
     */
    TurnQueue(TurnRules rules, BooleanSupplier leavesEqual) {
        this.rules = rules;
        this.leavesEqual = leavesEqual;
    }

    /** Adds a worker; the caller then calls {@link #look}. */
    void join(Seat seat, String vgpu, int weight, long nowNs) {
        account(nowNs);
        TurnShare share = find(vgpu);
        if (share == null) {
            share = new TurnShare(vgpu, weight, shares.isEmpty() ? TurnPage.FREE : TurnPage.WAIT);
            share.setVirtualNs(debts.getOrDefault(vgpu, clockNs));
            debts.remove(vgpu);
            debts.values().removeIf(debt -> debt <= clockNs);
            if (shares.isEmpty()) {
                holder = share;
            }
            shares.add(share);
        }
        share.setWeight(weight);
        share.join(seat);
    }

    /** Removes a worker and its running work; the caller then calls {@link #look}. */
    void leave(Seat seat, long nowNs) {
        account(nowNs);
        shares.forEach(share -> share.seats.remove(seat));
        for (TurnShare share : List.copyOf(shares)) {
            if (share.seats.isEmpty()) {
                shares.remove(share);
                if (share.virtualNs() > clockNs) {
                    debts.put(share.vgpu, share.virtualNs()); // leaving and joining again must not erase the debt
                }
                if (share == holder) {
                    holder = null;
                }
            }
        }
    }

    /** Sets the weight of a vGPU. */
    void setWeight(String vgpu, int weight, long nowNs) {
        account(nowNs);
        TurnShare share = find(vgpu);
        if (share != null) {
            share.setWeight(weight);
        }
    }

    boolean isEmpty() {
        return shares.isEmpty();
    }

    /** Time charged to a vGPU while others shared the GPU; 0 for a vGPU without workers in this queue. */
    long chargedNs(String vgpu) {
        TurnShare share = find(vgpu);
        return share == null ? 0 : (long) share.chargedNs();
    }

    /** Whether the turn should change soon, if the workers behave. */
    boolean isPassing() {
        return ending && endingSinceNs + SOON_NS * 50 > lastNs || lingers;
    }

    private TurnShare find(String vgpu) {
        for (TurnShare share : shares) {
            if (share.vgpu.equals(vgpu)) {
                return share;
            }
        }
        return null;
    }

    /**
     * Reads the workers' states and grants the turn.
     *
     * @param nowNs never goes back.
     * @return latest time of the next call; {@code Long.MAX_VALUE}: when a worker rings.
     */
    long look(long nowNs) {
        account(nowNs);
        if (shares.size() < 2 || canLeaveToDriver()) {
            isLeftToDriver = shares.size() > 1;
            holder = isLeftToDriver || shares.isEmpty() ? null : shares.getFirst();
            ending = false;
            lingers = false;
            for (int i = 0; i < shares.size(); i++) {
                shares.get(i).setPermit(TurnPage.FREE);
            }
            return Long.MAX_VALUE;
        }
        if (isLeftToDriver) {
            isLeftToDriver = false;
            shares.forEach(share -> share.setPermit(TurnPage.WAIT)); // turns begin
        }
        for (int i = 0; i < LOOKS; i++) {
            read(nowNs);
            long next = decide(nowNs);
            if (next >= 0) {
                return next;
            }
        }
        return nowNs + SOON_NS;
    }

    /** Whether all vGPUs have equal weights and the driver divides the time between them. */
    private boolean canLeaveToDriver() {
        for (int i = 1; i < shares.size(); i++) {
            if (shares.get(i).weight() != shares.getFirst().weight()) {
                return false;
            }
        }
        return leavesEqual.getAsBoolean();
    }

    private void account(long nowNs) {
        long passed = hasLooked ? Math.max(0, nowNs - lastNs) : 0;
        hasLooked = true;
        lastNs = nowNs;
        int running = 0;
        for (int i = 0; i < shares.size(); i++) {
            running += isRunning(shares.get(i), nowNs) ? 1 : 0;
        }
        if (running == 0 || passed == 0 || isLeftToDriver || shares.size() < 2) {
            return;
        }
        for (int i = 0; i < shares.size(); i++) {
            if (isRunning(shares.get(i), nowNs)) {
                shares.get(i).charge((double) passed / running);
            }
        }
    }

    /**
     * Whether a vGPU is charged, by the last read states: every vGPU for running work, the holder also while it lingers
     * after a return, or wants the GPU for longer than the wake-up time.
     */
    private boolean isRunning(TurnShare share, long nowNs) {
        return share.isBusy()
            || share == holder && (lingers && share.hasReturned() || share.wants() && !mayWakeUp(nowNs));
    }

    private boolean mayWakeUp(long nowNs) {
        return nowNs - turnSinceNs < WAKE_UP_NS;
    }

    private void read(long nowNs) {
        double least = Double.MAX_VALUE;
        for (int i = 0; i < shares.size(); i++) {
            TurnShare share = shares.get(i);
            share.read(nowNs, rules.lingerNs());
            if (share.isActive() && !share.wants() && share != holder) {
                share.deactivate();
            }
            if (share.isActive()) {
                least = Math.min(least, share.virtualNs());
            }
        }
        if (least != Double.MAX_VALUE) {
            clockNs = Math.max(clockNs, least);
        }
        for (int i = 0; i < shares.size(); i++) {
            TurnShare share = shares.get(i);
            if (!share.isActive() && share.wants()) {
                share.activate(clockNs, rules.quantumNs());
            }
        }
    }

    /**
     * The vGPU that wants the GPU and has used the least time; the first of equal ones.
     *
     * @param except vGPU to ignore; null for none.
     */
    private TurnShare best(TurnShare except) {
        TurnShare best = null;
        for (int i = 0; i < shares.size(); i++) {
            TurnShare share = shares.get(i);
            if (share != except && share.wants() && (best == null || share.virtualNs() < best.virtualNs())) {
                best = share;
            }
        }
        return best;
    }

    /**
     * Takes one step.
     *
     * @return time of the next look, or -1 when a permit has changed and the caller must read the workers again.
     */
    private long decide(long nowNs) {
        TurnShare other = best(holder);
        if (other == null) {
            ending = false;
            lingers = false;
            if (holder != null && holder.permit() != TurnPage.OPEN) {
                turnSinceNs = nowNs;
                holder.setPermit(TurnPage.OPEN);
                return -1;
            }
            return Long.MAX_VALUE;
        }
        if (holder == null) {
            return grant(other, nowNs, "first");
        }
        if (!holder.wants()) {
            return passOrLinger(other, nowNs);
        }
        lingers = false;
        if (ending) {
            if (!holder.isBusy()) {
                return grant(best(null), nowNs, "drained");
            }
            long limit = endingSinceNs + rules.graceNs();
            return nowNs >= limit ? grant(other, nowNs, "grace") : limit;
        }
        if (holder.permit() != TurnPage.TURN) {
            holder.setPermit(TurnPage.TURN);
            return -1;
        }
        long due = due(other, nowNs);
        long noticeNs = due - NOTICE_NS;
        if (nowNs >= noticeNs) {
            announce(other);
        }
        if (nowNs < due) {
            long next = nowNs < noticeNs ? noticeNs : due;
            boolean isAwaited = !holder.isBusy() && mayWakeUp(nowNs); // its time starts with its first launch
            return isAwaited ? Math.min(next, nowNs + WAKE_UP_NS / LOOKS_A_WAKE_UP) : next;
        }
        ending = true;
        endingSinceNs = nowNs;
        holder.setPermit(TurnPage.WAIT);
        return -1;
    }

    /** End of the holder's turn: after a quantum if the holder is not behind, and earlier if it is far ahead. */
    private long due(TurnShare other, long nowNs) {
        double ahead = holder.virtualNs() - other.virtualNs();
        long full = Math.max(turnSinceNs + rules.quantumNs(), nowNs + holder.untilUsed(-ahead));
        double far = Math.max(holder.inVirtual(rules.quantumNs()), other.inVirtual(rules.quantumNs()));
        long early = Math.max(turnSinceNs + rules.shortestNs(), nowNs + holder.untilUsed(far - ahead));
        long due = Math.min(full, early);
        return due <= nowNs ? due : Math.max(due, nowNs + SOON_NS);
    }

    /**
     * Announces to a vGPU that its turn is next, since its wake-up takes a while, and withdraws an earlier
     * announcement.
     */
    private void announce(TurnShare next) {
        if (next.permit() == TurnPage.NEXT) {
            return;
        }
        for (int i = 0; i < shares.size(); i++) {
            if (shares.get(i).permit() == TurnPage.NEXT) {
                shares.get(i).setPermit(TurnPage.WAIT);
            }
        }
        next.setPermit(TurnPage.NEXT);
    }

    /**
     * Decides whether a holder without work keeps the turn. Passing the turn and returning it costs the GPU more than
     * the wait for a guest that issues work soon. Each pass also costs the same, so vGPUs with few turns would pay more
     * for the work in them, and the shares would be wrong.
     */
    private long passOrLinger(TurnShare other, long nowNs) {
        long due = ending ? nowNs : due(other, nowNs);
        long limit = holder.idleSinceNs() + holder.patience(rules.lingerNs());
        if (rules.lingerNs() > 0 && holder.returnsSoon() && nowNs < Math.min(limit, due)) {
            lingers = true;
            if (holder.permit() != TurnPage.TURN) {
                holder.setPermit(TurnPage.TURN);
                return -1;
            }
            if (nowNs >= due - NOTICE_NS) {
                announce(other);
            }
            return Math.min(limit, due);
        }
        boolean isAway = lingers && nowNs >= limit;
        if (isAway) {
            holder.recordAbsence();
        }
        return grant(other, nowNs, isAway ? "away" : "idle");
    }

    private long grant(TurnShare next, long nowNs, String reason) {
        TurnShare before = holder;
        if (LOG.isDebugEnabled()) {
            LOG.debugf("turn of %s after %s: %s, turnUs=%d endingUs=%d aheadUs=%d", next.vgpu,
                before == null ? "-" : before.vgpu, reason, (nowNs - turnSinceNs) / 1000,
                ending ? (nowNs - endingSinceNs) / 1000 : 0,
                before == null ? 0 : (long) (before.virtualNs() - next.virtualNs()) / 1000);
        }
        ending = false;
        lingers = false;
        next.startTurn();
        holder = next;
        turnSinceNs = nowNs;
        for (int i = 0; i < shares.size(); i++) {
            if (shares.get(i) != next) {
                shares.get(i).setPermit(TurnPage.WAIT);
            }
        }
        if (before != null && before != next && !before.wants()) {
            before.deactivate();
        }
        next.setPermit(TurnPage.TURN);
        return -1;
    }
}

package io.hawser.turns;

import io.hawser.shm.turns.TurnPage;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/**
 * Turns on one GPU, or on GPUs that sessions use together. The vGPU that has used the least time for its weight is
 * next. The queue measures that time itself, from the grant until the work is done, and halves it while two vGPUs run
 * at once. A worker's state only decides when the queue reads the workers again. One thread.
 */
final class TurnQueue {
    private static final Logger LOG = System.getLogger(TurnQueue.class.getName());
    private static final int LOOKS = 8; // in one call; a changed permit may change a worker's state
    private static final long SOON_NS = 20_000;
    private static final long NOTICE_NS = 200_000;
    private static final long WAKE_UP_NS = 1_000_000; // time to launch that the queue does not charge
    private static final int LOOKS_A_WAKE_UP = 20;

    private final TurnRules rules;
    private final BooleanSupplier leavesEqual;
    private final TurnRecorder recorder; // null: none
    private final CopyRounds copies;
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
    private long polledNs;
    private long dueNs; // result of the last look
    private boolean hasLooked;
    private boolean isChanged = true; // by a call since the last look
    private boolean wasLeavingEqual; // in the last look

    /**
     * Starts without workers.
     *
     * @param leavesEqual whether the driver alone divides the time between vGPUs of equal weight, because it gives
     *     their processes equal time.
     * @param recorder null for none.
     */
    TurnQueue(TurnRules rules, BooleanSupplier leavesEqual, TurnRecorder recorder) {
        this.rules = rules;
        this.leavesEqual = leavesEqual;
        this.recorder = recorder;
        copies = new CopyRounds(leavesEqual);
    }

    /** The copies of the same workers. */
    CopyRounds copies() {
        return copies;
    }

    /** Adds a worker; the caller then calls {@link #look} or {@link #poll}. */
    void join(TurnMember member, long nowNs) {
        change(nowNs);
        TurnShare share = find(member.vgpu);
        if (share == null) {
            share = new TurnShare(rules, member.vgpu, member.weight, shares.isEmpty() ? TurnPage.FREE : TurnPage.WAIT);
            share.setVirtualNs(debts.getOrDefault(member.vgpu, clockNs));
            debts.remove(member.vgpu);
            debts.values().removeIf(debt -> debt <= clockNs);
            if (shares.isEmpty()) {
                holder = share;
            }
            shares.add(share);
        }
        share.setWeight(member.weight);
        share.join(member);
        copies.join(member);
    }

    /** Removes a worker and its running work; the caller then calls {@link #look} or {@link #poll}. */
    void leave(TurnMember member, long nowNs) {
        change(nowNs);
        shares.forEach(share -> share.members.remove(member));
        copies.leave(member);
        for (TurnShare share : List.copyOf(shares)) {
            if (share.members.isEmpty()) {
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

    private void change(long nowNs) {
        account(nowNs);
        isChanged = true;
    }

    /** Sets the weight of a vGPU. */
    void setWeight(String vgpu, int weight, long nowNs) {
        change(nowNs);
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
        return ending && endingSinceNs + SOON_NS * 50 > polledNs || lingers;
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
     * As {@link #look}, but does nothing while no state has changed and the time of the next look has not come: a
     * thread that polls then decides the same as a thread that sleeps.
     */
    long poll(long nowNs) {
        polledNs = nowNs;
        return isQuiet(nowNs) ? dueNs : look(nowNs);
    }

    private boolean isQuiet(long nowNs) {
        if (isChanged || nowNs >= dueNs || leavesEqual.getAsBoolean() != wasLeavingEqual) {
            return false;
        }
        for (int i = 0; i < shares.size() && !needsNoTurns(); i++) {
            if (shares.get(i).hasChanged()) {
                return false;
            }
        }
        return true;
    }

    private boolean needsNoTurns() {
        return shares.size() < 2 || isLeftToDriver;
    }

    /**
     * Reads the workers' states and grants the turn.
     *
     * @param nowNs never goes back.
     * @return latest time of the next call; {@code Long.MAX_VALUE}: when a worker rings.
     */
    long look(long nowNs) {
        if (recorder != null && !shares.isEmpty()) {
            recorder.looked(nowNs, shares.getFirst().members.getFirst().number);
        }
        polledNs = nowNs;
        isChanged = false;
        wasLeavingEqual = leavesEqual.getAsBoolean();
        account(nowNs);
        dueNs = readAndGrant(nowNs);
        return dueNs;
    }

    private long readAndGrant(long nowNs) {
        if (shares.size() < 2 || wasLeavingEqual && haveEqualWeights()) {
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

    private boolean haveEqualWeights() {
        for (int i = 1; i < shares.size(); i++) {
            if (shares.get(i).weight() != shares.getFirst().weight()) {
                return false;
            }
        }
        return true;
    }

    private void account(long nowNs) {
        long passed = hasLooked ? Math.max(0, nowNs - lastNs) : 0;
        hasLooked = true;
        lastNs = nowNs;
        int running = 0;
        for (int i = 0; i < shares.size(); i++) {
            running += isRunning(shares.get(i), nowNs) ? 1 : 0;
        }
        if (running == 0 || passed == 0 || needsNoTurns()) {
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
            share.read(nowNs);
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
                share.activate(clockNs);
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
        long limit = holder.idleSinceNs() + holder.patience();
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
        if (LOG.isLoggable(Level.DEBUG)) {
            LOG.log(Level.DEBUG, "turn of " + next.vgpu + " after " + (before == null ? "-" : before.vgpu) + ": "
                + reason + ", turnUs=" + (nowNs - turnSinceNs) / 1000 + " endingUs="
                + (ending ? (nowNs - endingSinceNs) / 1000 : 0) + " aheadUs="
                + (before == null ? 0 : (long) (before.virtualNs() - next.virtualNs()) / 1000));
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

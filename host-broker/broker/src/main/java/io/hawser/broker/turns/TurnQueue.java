package io.hawser.broker.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jboss.logging.Logger;

/**
 * Turns on one GPU, or on GPUs that sessions use together. Whoever has used least for its weight is next; the time
 * that counts is this side's own, from the grant until the work is done, halved while two run beside each other. What a
 * worker says decides only when it is looked at again. One thread.
 */
final class TurnQueue {
    private static final Logger LOG = Logger.getLogger(TurnQueue.class);
    private static final int LOOKS = 8; // at once; a permit that is changed may change what a worker says
    private static final long SOON_NS = 20_000;
    private static final long NOTICE_NS = 200_000;
    private static final long WAKE_UP_NS = 1_000_000; // what a worker may take to launch, at the cost of nobody
    private static final int LOOKS_A_WAKE_UP = 20;

    private final TurnRules rules;
    private final BooleanSupplier leavesEqual;
    private boolean left; // to the driver: no turns
    private final List<TurnShare> shares = new ArrayList<>();
    private final Map<String, Double> debts = new HashMap<>(); // virtual time of those who have left with too much
    private TurnShare holder;
    private long turnSinceNs;
    private boolean ending; // the holder must launch no more
    private long endingSinceNs;
    private boolean lingers;
    private double clockNs; // virtual: what the one that has used least has used; never goes back
    private long lastNs;
    private boolean hasLooked;

    /**
     * Starts without workers.
     *
     * @param leavesEqual whether vGPUs of one weight are left to the driver, which gives their processes equal time.
     */
    TurnQueue(TurnRules rules, BooleanSupplier leavesEqual) {
        this.rules = rules;
        this.leavesEqual = leavesEqual;
    }

    /** A worker comes; {@link #look} next. */
    void join(Seat seat, String vgpu, int weight, long nowNs) {
        account(nowNs);
        TurnShare share = find(vgpu);
        if (share == null) {
            share = new TurnShare(vgpu, weight, shares.isEmpty() ? TurnPage.FREE : TurnPage.WAIT);
            share.virtualNs(debts.getOrDefault(vgpu, clockNs));
            debts.remove(vgpu);
            debts.values().removeIf(debt -> debt <= clockNs);
            if (shares.isEmpty()) {
                holder = share;
            }
            shares.add(share);
        }
        share.weigh(weight);
        share.join(seat);
    }

    /** A worker goes, with whatever it had running; {@link #look} next. */
    void leave(Seat seat, long nowNs) {
        account(nowNs);
        shares.forEach(share -> share.seats.remove(seat));
        for (TurnShare share : List.copyOf(shares)) {
            if (share.seats.isEmpty()) {
                shares.remove(share);
                if (share.virtualNs() > clockNs) {
                    debts.put(share.vgpu, share.virtualNs()); // coming again pays nothing
                }
                if (share == holder) {
                    holder = null;
                }
            }
        }
    }

    /** Another weight from now on. */
    void weigh(String vgpu, int weight, long nowNs) {
        account(nowNs);
        TurnShare share = find(vgpu);
        if (share != null) {
            share.weigh(weight);
        }
    }

    boolean isEmpty() {
        return shares.isEmpty();
    }

    /** Time that a vGPU has been charged while others had the GPU too; 0 for one that is not here. */
    long chargedNs(String vgpu) {
        TurnShare share = find(vgpu);
        return share == null ? 0 : (long) share.chargedNs();
    }

    /** Whether more than one wants the GPU now. */
    boolean isContended() {
        int wanting = 0;
        for (int i = 0; i < shares.size(); i++) {
            wanting += shares.get(i).wants() ? 1 : 0;
        }
        return wanting > 1;
    }

    /** Whether the next change comes soon, if the workers do what they should. */
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
     * Looks at the workers and gives the turn to whoever it is due to.
     *
     * @param nowNs never goes back.
     * @return when to look again at the latest; {@code Long.MAX_VALUE}: when a worker rings.
     */
    long look(long nowNs) {
        account(nowNs);
        if (shares.size() < 2 || isLeft()) {
            left = shares.size() > 1;
            holder = left || shares.isEmpty() ? null : shares.getFirst();
            ending = false;
            lingers = false;
            for (int i = 0; i < shares.size(); i++) {
                shares.get(i).permit(TurnPage.FREE);
            }
            return Long.MAX_VALUE;
        }
        if (left) {
            left = false;
            shares.forEach(share -> share.permit(TurnPage.WAIT)); // from here on by turns
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

    /** Whether all have one weight, and the driver does for them what turns would. */
    private boolean isLeft() {
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
        if (running == 0 || passed == 0 || left || shares.size() < 2) {
            return;
        }
        for (int i = 0; i < shares.size(); i++) {
            if (isRunning(shares.get(i), nowNs)) {
                shares.get(i).charge((double) passed / running);
            }
        }
    }

    /** By what was seen last: the others are charged for what still runs, the holder but for the times to wake up. */
    private boolean isRunning(TurnShare share, long nowNs) {
        return share.busy()
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
            if (share.active() && !share.wants() && share != holder) {
                share.rest();
            }
            if (share.active()) {
                least = Math.min(least, share.virtualNs());
            }
        }
        if (least != Double.MAX_VALUE) {
            clockNs = Math.max(clockNs, least);
        }
        for (int i = 0; i < shares.size(); i++) {
            TurnShare share = shares.get(i);
            if (!share.active() && share.wants()) {
                share.begin(clockNs, rules.quantumNs());
            }
        }
    }

    /** The one of those that want it that has used least, without one; the first of them if they are alike. */
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

    /** Does one step; a time to look again, or -1 when a permit was changed and the workers are to be read again. */
    private long decide(long nowNs) {
        TurnShare other = best(holder);
        if (other == null) {
            ending = false;
            lingers = false;
            if (holder != null && holder.permit() != TurnPage.OPEN) {
                turnSinceNs = nowNs;
                holder.permit(TurnPage.OPEN);
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
            if (!holder.busy()) {
                return grant(best(null), nowNs, "drained");
            }
            long limit = endingSinceNs + rules.graceNs();
            return nowNs >= limit ? grant(other, nowNs, "grace") : limit;
        }
        if (holder.permit() != TurnPage.TURN) {
            holder.permit(TurnPage.TURN);
            return -1;
        }
        long due = due(other, nowNs);
        long noticeNs = due - NOTICE_NS;
        if (nowNs >= noticeNs) {
            announce(other);
        }
        if (nowNs < due) {
            long next = nowNs < noticeNs ? noticeNs : due;
            boolean isAwaited = !holder.busy() && mayWakeUp(nowNs); // its time begins with its first launch
            return isAwaited ? Math.min(next, nowNs + WAKE_UP_NS / LOOKS_A_WAKE_UP) : next;
        }
        ending = true;
        endingSinceNs = nowNs;
        holder.permit(TurnPage.WAIT);
        return -1;
    }

    /** When the holder's turn is over: after a quantum if it is not behind, and earlier if it is far ahead. */
    private long due(TurnShare other, long nowNs) {
        double ahead = holder.virtualNs() - other.virtualNs();
        long full = Math.max(turnSinceNs + rules.quantumNs(), nowNs + holder.untilUsed(-ahead));
        double far = Math.max(holder.inVirtual(rules.quantumNs()), other.inVirtual(rules.quantumNs()));
        long early = Math.max(turnSinceNs + rules.shortestNs(), nowNs + holder.untilUsed(far - ahead));
        long due = Math.min(full, early);
        return due <= nowNs ? due : Math.max(due, nowNs + SOON_NS);
    }

    /** Tells one that its turn is the next, since waking up takes a while, and who was told before that it is not. */
    private void announce(TurnShare next) {
        if (next.permit() == TurnPage.NEXT) {
            return;
        }
        for (int i = 0; i < shares.size(); i++) {
            if (shares.get(i).permit() == TurnPage.NEXT) {
                shares.get(i).permit(TurnPage.WAIT);
            }
        }
        next.permit(TurnPage.NEXT);
    }

    /**
     * The holder's work is done, and it has nothing to be launched. To pass the turn and have it back costs the GPU
     * more than a guest that comes back soon; and if each pass costs the same, those with few turns pay more of it for
     * what they do in them, so that shares come out wrong.
     */
    private long passOrLinger(TurnShare other, long nowNs) {
        long due = ending ? nowNs : due(other, nowNs);
        long limit = holder.idleSinceNs() + holder.patience(rules.lingerNs());
        if (rules.lingerNs() > 0 && holder.comesBack() && nowNs < Math.min(limit, due)) {
            lingers = true;
            if (holder.permit() != TurnPage.TURN) {
                holder.permit(TurnPage.TURN);
                return -1;
            }
            if (nowNs >= due - NOTICE_NS) {
                announce(other);
            }
            return Math.min(limit, due);
        }
        boolean isAway = lingers && nowNs >= limit;
        if (isAway) {
            holder.stayedAway();
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
        next.begin();
        holder = next;
        turnSinceNs = nowNs;
        for (int i = 0; i < shares.size(); i++) {
            if (shares.get(i) != next) {
                shares.get(i).permit(TurnPage.WAIT);
            }
        }
        if (before != null && before != next && !before.wants()) {
            before.rest();
        }
        next.permit(TurnPage.TURN);
        return -1;
    }
}

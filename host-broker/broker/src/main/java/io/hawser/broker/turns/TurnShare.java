package io.hawser.broker.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;

/** One vGPU's part in the turns on a GPU: its workers, which have its turn together, and the time that it has used. */
final class TurnShare {
    /** What a weight is measured by: with this one, virtual time is time. */
    private static final int UNIT = 100;
    /** A guest may have slept while it waited for the turn, so that it is later after its first work in it. */
    static final int FIRST_LINGERS = 4;
    /** Soon returns count 1, late ones as much as 8 of them, within these bounds; with 2 it is expected back. */
    private static final int LATE = 8;
    private static final int ENOUGH_RETURNS = 2;
    private static final int MIN_RETURNS = -4;
    private static final int MAX_RETURNS = 16;

    final String vgpu;
    final List<Seat> seats = new ArrayList<>();
    private int weight;
    private int permit;
    private double virtualNs;
    private double chargedNs;
    private boolean active;
    private boolean wants;
    private boolean busy;
    private long idleSinceNs;
    private int returns; // soon after the end of its work, against late ones
    private boolean hasReturned; // after work that it has done since it was given the turn

    TurnShare(String vgpu, int weight, int permit) {
        this.vgpu = vgpu;
        this.permit = permit;
        weigh(weight);
    }

    void weigh(int newWeight) {
        if (newWeight < 1) {
            throw new IllegalArgumentException("a weight must be 1 or more: vgpu=" + vgpu + " weight=" + newWeight);
        }
        weight = newWeight;
    }

    int weight() {
        return weight;
    }

    void join(Seat seat) {
        seats.add(seat);
        seat.permit(permit);
    }

    /** Tells all workers; those that come later are told the same. */
    void permit(int told) {
        if (told != permit) {
            permit = told;
            for (Seat seat : seats) {
                seat.permit(told);
            }
        }
    }

    int permit() {
        return permit;
    }

    /**
     * Reads what the workers say.
     *
     * @param lingerNs after the end of its work, work that comes is soon.
     */
    void read(long nowNs, long lingerNs) {
        boolean anyWants = false;
        boolean anyBusy = false;
        for (int i = 0; i < seats.size(); i++) {
            int state = seats.get(i).state();
            anyBusy |= state == TurnPage.BUSY;
            anyWants |= state != TurnPage.IDLE;
        }
        if (wants && !anyWants) {
            idleSinceNs = nowNs;
        } else if (!wants && anyWants && idleSinceNs != 0) {
            // A late one is counted only where it was waited for: of one that has no turn, it may be seen late.
            returns = Math.min(returns + (nowNs - idleSinceNs <= patience(lingerNs) ? 1 : 0), MAX_RETURNS);
            hasReturned = true;
        }
        wants = anyWants;
        busy = anyBusy;
    }

    /** Whether it has something running or to be launched. */
    boolean wants() {
        return wants;
    }

    /** Whether it has something running, as it says. */
    boolean busy() {
        return busy;
    }

    long idleSinceNs() {
        return idleSinceNs;
    }

    /** Whether it mostly comes back soon. */
    boolean comesBack() {
        return returns >= ENOUGH_RETURNS;
    }

    /** It was waited for in its turn, and did not come back soon. */
    void stayedAway() {
        returns = Math.max(returns - LATE, MIN_RETURNS);
    }

    /** It is given the turn. */
    void begin() {
        hasReturned = false;
    }

    /** Whether it has come back after work that it has done in this turn. */
    boolean hasReturned() {
        return hasReturned;
    }

    /** How long after the end of its work it may be expected back. */
    long patience(long lingerNs) {
        return lingerNs * (hasReturned ? 1 : FIRST_LINGERS);
    }

    /** Whether it counts for the virtual time of the GPU. */
    boolean active() {
        return active;
    }

    /** It wants the GPU again: what it has not used while it did not is lost, but for a turn. */
    void begin(double clockNs, long quantumNs) {
        active = true;
        virtualNs = Math.max(virtualNs, clockNs - inVirtual(quantumNs));
    }

    void rest() {
        active = false;
    }

    void charge(double ns) {
        chargedNs += ns;
        virtualNs += inVirtual(ns);
    }

    double chargedNs() {
        return chargedNs;
    }

    double virtualNs() {
        return virtualNs;
    }

    void virtualNs(double ns) {
        virtualNs = ns;
    }

    /** What a time is in this share's virtual time. */
    double inVirtual(double ns) {
        return ns * UNIT / weight;
    }

    /** How long this share alone takes to use up so much virtual time; 0 for what is over. */
    long untilUsed(double virtual) {
        return (long) Math.max(0, virtual * weight / UNIT);
    }
}

package io.hawser.broker.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;

/** One vGPU's part in the turns on a GPU: its workers, which have its turn together, and the time that it has used. */
final class TurnShare {
    /** What a weight is measured by: with this one, virtual time is time. */
    private static final int UNIT = 100;

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
    private double thinkNs = Double.MAX_VALUE; // between the end of its work and its next

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

    /** Reads what the workers say. */
    void read(long nowNs) {
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
            double gap = nowNs - idleSinceNs;
            thinkNs = thinkNs == Double.MAX_VALUE ? gap : thinkNs + (gap - thinkNs) / 4;
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

    /** Whether it mostly comes back so soon. */
    boolean comesBackWithin(long ns) {
        return thinkNs <= ns;
    }

    /** It did not come back in time. */
    void stayedAway(long ns) {
        thinkNs = Math.max(thinkNs, 2.0 * ns);
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

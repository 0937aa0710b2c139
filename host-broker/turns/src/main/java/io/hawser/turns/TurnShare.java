package io.hawser.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;

/** One vGPU's part in the turns on a GPU: its workers, which share its turn, and the time that it has used. */
final class TurnShare {
    /** The weight at which virtual time equals time. */
    private static final int UNIT = 100;
    /**
     * A soon return counts +1 and a late one -{@link TurnRules#lateReturns}, within these bounds. From 2 on the queue
     * expects the vGPU to return soon.
     */
    private static final int ENOUGH_RETURNS = 2;
    private static final int MIN_RETURNS = -4;
    private static final int MAX_RETURNS = 16;

    final String vgpu;
    private final TurnRules rules;
    final List<TurnMember> members = new ArrayList<>();
    private int weight;
    private int permit;
    private double virtualNs;
    private double chargedNs;
    private boolean active;
    private boolean wants;
    private boolean busy;
    private long idleSinceNs;
    private int returns; // soon ones minus late ones
    private boolean hasReturned; // to more work in the present turn

    TurnShare(TurnRules rules, String vgpu, int weight, int permit) {
        this.rules = rules;
        this.vgpu = vgpu;
        this.permit = permit;
        setWeight(weight);
    }

    void setWeight(int newWeight) {
        if (newWeight < 1) {
            throw new IllegalArgumentException("a weight must be 1 or more: vgpu=" + vgpu + " weight=" + newWeight);
        }
        weight = newWeight;
    }

    int weight() {
        return weight;
    }

    void join(TurnMember member) {
        members.add(member);
        member.setPermit(permit);
    }

    /** Sends the permit to all present and later workers. */
    void setPermit(int newPermit) {
        if (newPermit != permit) {
            permit = newPermit;
            for (TurnMember member : members) {
                member.setPermit(newPermit);
            }
        }
    }

    int permit() {
        return permit;
    }

    /** Whether a worker's state differs from the last one that {@link #read} has seen. */
    boolean hasChanged() {
        for (int i = 0; i < members.size(); i++) {
            if (members.get(i).hasChanged()) {
                return true;
            }
        }
        return false;
    }

    /** Reads the workers' states. */
    void read(long nowNs) {
        boolean anyWants = false;
        boolean anyBusy = false;
        for (int i = 0; i < members.size(); i++) {
            int state = members.get(i).read();
            anyBusy |= state == TurnPage.BUSY;
            anyWants |= state != TurnPage.IDLE;
        }
        if (wants && !anyWants) {
            idleSinceNs = nowNs;
        } else if (!wants && anyWants && idleSinceNs != 0) {
            // Only recordAbsence() counts late returns, because the queue may see a return late when the vGPU has no
            // turn.
            returns = Math.min(returns + (nowNs - idleSinceNs <= patience() ? 1 : 0), MAX_RETURNS);
            hasReturned = true;
        }
        wants = anyWants;
        busy = anyBusy;
    }

    /** Whether the vGPU has running work or work to launch. */
    boolean wants() {
        return wants;
    }

    /** Whether the vGPU reports running work. */
    boolean isBusy() {
        return busy;
    }

    long idleSinceNs() {
        return idleSinceNs;
    }

    /** Whether the vGPU mostly returns soon. */
    boolean returnsSoon() {
        return returns >= ENOUGH_RETURNS;
    }

    /** Counts a late return: the queue waited for the vGPU in its turn in vain. */
    void recordAbsence() {
        returns = Math.max(returns - rules.lateReturns(), MIN_RETURNS);
    }

    /** Notes the start of the vGPU's turn. */
    void startTurn() {
        hasReturned = false;
    }

    /** Whether the vGPU has issued more work after it finished work in this turn. */
    boolean hasReturned() {
        return hasReturned;
    }

    /** How long after the end of its work the queue waits for the vGPU. */
    long patience() {
        return rules.lingerNs() * (hasReturned ? 1 : rules.firstLingers());
    }

    /** Whether the vGPU counts for the virtual time of the GPU. */
    boolean isActive() {
        return active;
    }

    /**
     * Counts the vGPU for the virtual time again. Of the time that it did not use while inactive it keeps one turn at
     * most.
     */
    void activate(double clockNs) {
        active = true;
        virtualNs = Math.max(virtualNs, clockNs - inVirtual(rules.quantumNs()));
    }

    void deactivate() {
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

    void setVirtualNs(double ns) {
        virtualNs = ns;
    }

    /** Converts a time to this share's virtual time. */
    double inVirtual(double ns) {
        return ns * UNIT / weight;
    }

    /** Time in which this share alone uses up a virtual time; 0 for a negative one. */
    long untilUsed(double virtual) {
        return (long) Math.max(0, virtual * weight / UNIT);
    }
}

package io.hawser.turns;

/**
 * Rules of turns. The last three are constants of a broker; only the simulator tries others.
 *
 * @param quantumNs length of a turn while others wait; over 0.
 * @param graceNs how long others wait for work that outlasts its turn before they launch beside it; 0 or more.
 * @param lingerNs how long an idle vGPU keeps its turn when it usually issues more work within that time; 0 for never.
 * @param turnParts divisor of the quantum for the minimum length of a turn, which ends early for a vGPU that is far
 *     behind; 1 or more.
 * @param firstLingers patience, in multiples of the linger time, before the first return in a turn; 1 or more. The
 *     guest may have slept while it waited for the turn, so its first return is later.
 * @param lateReturns soon returns that one late return outweighs; 1 or more.
 */
public record TurnRules(long quantumNs, long graceNs, long lingerNs, int turnParts, int firstLingers,
    int lateReturns) {
    /** Part of a quantum that a turn lasts at least. */
    public static final int TURN_PARTS = 8;
    /** Multiple of the linger time before the first return. */
    public static final int FIRST_LINGERS = 4;
    /** Soon returns that a late one outweighs. */
    public static final int LATE_RETURNS = 8;

    /** Checks the ranges. */
    public TurnRules {
        if (quantumNs <= 0 || graceNs < 0 || lingerNs < 0) {
            throw new IllegalArgumentException("turns need a quantum over 0, a grace and a linger of 0 or more: "
                + "quantumNs=" + quantumNs + " graceNs=" + graceNs + " lingerNs=" + lingerNs);
        }
        if (turnParts < 1 || firstLingers < 1 || lateReturns < 1) {
            throw new IllegalArgumentException("turns need constants of 1 or more: turnParts=" + turnParts
                + " firstLingers=" + firstLingers + " lateReturns=" + lateReturns);
        }
    }

    /** Rules with a broker's constants. */
    public TurnRules(long quantumNs, long graceNs, long lingerNs) {
        this(quantumNs, graceNs, lingerNs, TURN_PARTS, FIRST_LINGERS, LATE_RETURNS);
    }

    /** Minimum length of a turn when another vGPU returns. */
    long shortestNs() {
        return quantumNs / turnParts;
    }
}

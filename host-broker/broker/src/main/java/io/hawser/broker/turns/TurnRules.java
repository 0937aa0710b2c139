package io.hawser.broker.turns;

import io.hawser.broker.config.BrokerConfig;

/**
 * How turns are given.
 *
 * @param quantumNs length of a turn while others wait; over 0.
 * @param graceNs how long others wait for work that outlasts its turn before they launch beside it; 0 or more.
 * @param lingerNs how long the turn, while it lasts, stays with a vGPU that has done its work and is used to come back
 *     sooner than that; 0 for never.
 */
public record TurnRules(long quantumNs, long graceNs, long lingerNs) {
    /** The largest compute share, and that of vGPUs that name none. */
    public static final int MAX_WEIGHT = 100;

    /** A compute share, held to its range. */
    public static int weight(int computeShare) {
        if (computeShare < 1 || computeShare > MAX_WEIGHT) {
            throw new IllegalArgumentException("a compute share must be 1.." + MAX_WEIGHT + ": computeShare="
                + computeShare);
        }
        return computeShare;
    }

    /** As the settings say. */
    public static TurnRules of(BrokerConfig.Turns settings) {
        return new TurnRules(settings.quantum().toNanos(), settings.grace().toNanos(), settings.linger().toNanos());
    }

    /** Holds them to their ranges. */
    public TurnRules {
        if (quantumNs <= 0 || graceNs < 0 || lingerNs < 0) {
            throw new IllegalArgumentException("turns need a quantum over 0, a grace and a linger of 0 or more: "
                + "quantumNs=" + quantumNs + " graceNs=" + graceNs + " lingerNs=" + lingerNs);
        }
    }

    /** A turn is not cut shorter than this for a vGPU that has come back. */
    long shortestNs() {
        return quantumNs / 8;
    }
}

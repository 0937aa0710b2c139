package io.hawser.broker.turns;

import io.hawser.broker.config.BrokerConfig;

/**
 * Rules of turns.
 *
 * @param quantumNs length of a turn while others wait; over 0.
 * @param graceNs how long others wait for work that outlasts its turn before they launch beside it; 0 or more.
 * @param lingerNs how long an idle vGPU keeps its turn when it usually issues more work within that time; 0 for never.
 */
public record TurnRules(long quantumNs, long graceNs, long lingerNs) {
    /** Takes the rules from the settings. */
    public static TurnRules of(BrokerConfig.Turns settings) {
        return new TurnRules(settings.quantum().toNanos(), settings.grace().toNanos(), settings.linger().toNanos());
    }

    /** Checks the ranges. */
    public TurnRules {
        if (quantumNs <= 0 || graceNs < 0 || lingerNs < 0) {
            throw new IllegalArgumentException("turns need a quantum over 0, a grace and a linger of 0 or more: "
                + "quantumNs=" + quantumNs + " graceNs=" + graceNs + " lingerNs=" + lingerNs);
        }
    }

    /** Minimum length of a turn when another vGPU returns. */
    long shortestNs() {
        return quantumNs / 8;
    }
}

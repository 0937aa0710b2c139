package io.hawser.broker.swap;

import io.hawser.broker.config.SwapConfig;

/**
 * Rules of swapping.
 *
 * @param maxBytes memory of the host for swapped sessions of one GPU; 0 for none.
 * @param aheadBytes part of it that is allocated before it is needed.
 * @param stayNs how long memory that has come to a GPU stays there at least.
 * @param idleNs how long a vGPU must have been idle to leave for one that waits.
 * @param turnNs how long a vGPU that is never idle stays while another waits, if both have equal shares.
 */
record SwapRules(long maxBytes, long aheadBytes, long stayNs, long idleNs, long turnNs) {
    /** Takes the rules from the settings. */
    static SwapRules of(SwapConfig settings) {
        return new SwapRules(settings.memory().asLongValue(), settings.ahead().asLongValue(),
            settings.stay().toNanos(), settings.idle().toNanos(), settings.turn().toNanos());
    }

    SwapRules {
        if (maxBytes < 0 || aheadBytes < 0 || stayNs < 0 || idleNs < 0 || turnNs < 0) {
            throw new IllegalArgumentException("hawser.swap.* must be 0 or more");
        }
    }
}

package io.hawser.broker.swap;

import io.hawser.broker.config.SwapConfig;

/**
 * Rules of swapping.
 *
 * @param maxBytes memory of the host for swapped sessions of one GPU; 0 for none.
 * @param aheadBytes part of it that is allocated before it is needed.
 * @param pieceBytes longest part of a session's memory that moves as a whole.
 * @param stayNs how long memory that has come to a GPU stays there at least.
 * @param idleNs how long a vGPU must have been idle to leave for one that waits.
 * @param turnNs how long a vGPU that is never idle stays while another waits, if both have equal shares.
 * @param deepNs how long a vGPU that is out must have been idle for its sessions to leave the GPU wholly; 0: never.
 */
record SwapRules(long maxBytes, long aheadBytes, long pieceBytes, long stayNs, long idleNs, long turnNs,
    long deepNs) {
    /** As the workers have it. */
    private static final long PIECE_BYTES = 512L << 20;
    /** Workers report their work every half second, so a busy session can look idle for that long. */
    private static final long LEAST_IDLE_NS = 1_000_000_000;

    /** Takes the rules from the settings. */
    static SwapRules of(SwapConfig settings) {
        return new SwapRules(settings.memory().asLongValue(), settings.ahead().asLongValue(),
            PIECE_BYTES, settings.stay().toNanos(), Math.max(LEAST_IDLE_NS, settings.idle().toNanos()),
            settings.turn().toNanos(),
            settings.deep().isZero() ? 0 : Math.max(LEAST_IDLE_NS, settings.deep().toNanos()));
    }

    SwapRules {
        if (maxBytes < 0 || aheadBytes < 0 || pieceBytes < 1 || stayNs < 0 || idleNs < 0 || turnNs < 0
            || deepNs < 0) {
            throw new IllegalArgumentException("hawser.swap.* must be 0 or more");
        }
    }
}

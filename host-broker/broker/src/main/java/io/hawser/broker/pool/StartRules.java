package io.hawser.broker.pool;

/**
 * Limits of starts of workers. A start takes processor time, and NVIDIA's driver creates contexts one after the other:
 * beyond a few starts at a time, each further one only delays the others.
 *
 * @param atOnce workers that start at a time, 1 or more.
 * @param ration workers that start at a time, 1 or more, while only vGPUs above their share wait; stops one vGPU that
 *     wastes workers from keeping every processor busy with starts.
 * @param refill workers that start ahead at a time, 1 or more, while sessions run; leaves the processors to them.
 * @param maxWaiting starts of one vGPU in line, 1 or more; stops one vGPU from taking every session with starts.
 */
public record StartRules(int atOnce, int ration, int refill, int maxWaiting) {
    private static final int LEAST_AT_ONCE = 2; // one start computes while another waits for the driver
    /** Workers that start at a time, in eighths of the processors: docs/specification/figures.md has measurements. */
    private static final int STARTING_EIGHTHS = 3;
    /** Processors for each worker that starts while only vGPUs above their share wait. */
    private static final int PROCESSORS_A_RATION = 4;
    /** Processors for each worker that starts ahead while sessions run. */
    private static final int PROCESSORS_A_REFILL = 16;

    /** Checks the ranges. */
    public StartRules {
        if (atOnce < 1 || ration < 1 || refill < 1 || maxWaiting < 1) {
            throw new IllegalArgumentException("limits of starts must be 1 or more: hawser.pool.max-starting=" + atOnce
                + " ration=" + ration + " refill=" + refill + " hawser.sessions.max-waiting=" + maxWaiting);
        }
    }

    /**
     * Limits for a machine with this number of processors.
     *
     * @param maxStarting workers that start at a time; 0 derives the number from the processors.
     */
    public static StartRules of(int processors, int maxStarting, int maxWaiting) {
        int atOnce = maxStarting == 0 ? Math.max(LEAST_AT_ONCE, processors * STARTING_EIGHTHS / 8) : maxStarting;
        return new StartRules(atOnce, Math.max(1, processors / PROCESSORS_A_RATION),
            Math.max(1, processors / PROCESSORS_A_REFILL), maxWaiting);
    }
}

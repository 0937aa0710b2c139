package io.hawser.broker.pool;

/**
 * Limits of a {@link StartQueue}.
 *
 * @param ration workers that start at a time, 1 or more, while only vGPUs above their share wait; stops one vGPU that
 *     wastes workers from keeping every processor busy with starts.
 * @param maxWaiting starts of one vGPU in line, 1 or more; stops one vGPU from taking every session with starts.
 */
public record StartRules(int ration, int maxWaiting) {
    /** Processors for each worker that starts for a vGPU above its share. */
    private static final int PROCESSORS_A_START = 4;

    /** Checks the ranges. */
    public StartRules {
        if (ration < 1 || maxWaiting < 1) {
            throw new IllegalArgumentException("limits of starts must be 1 or more: ration=" + ration
                + " hawser.sessions.max-waiting=" + maxWaiting);
        }
    }

    /** Limits for a machine with this number of processors. */
    public static StartRules of(int processors, int maxWaiting) {
        return new StartRules(Math.max(1, processors / PROCESSORS_A_START), maxWaiting);
    }
}

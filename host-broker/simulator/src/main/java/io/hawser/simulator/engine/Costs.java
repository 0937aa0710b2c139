package io.hawser.simulator.engine;

/**
 * The costs of a change of turn. A trace of turns on an H200 shows about 0.15 ms in all.
 *
 * @param switchNs time of a GPU's switch from one process to another; 0 or more.
 * @param wakeUpNs time in which a worker wakes up from its sleep, from the announcement of its turn; 0 or more.
 * @param guestWakeUpNs delay of the next launch of a guest that has waited for more than a millisecond; 0 or more.
 */
public record Costs(long switchNs, long wakeUpNs, long guestWakeUpNs) {
    /** No costs. */
    public static final Costs NONE = new Costs(0, 0, 0);

    /** Length of the driver's time slices while several processes use a GPU at once; an assumption of the model. */
    private static final double SLICE_NS = 2_000_000;

    /** Checks the ranges. */
    public Costs {
        if (switchNs < 0 || wakeUpNs < 0 || guestWakeUpNs < 0) {
            throw new IllegalArgumentException("costs must be 0 or more: switchNs=" + switchNs + " wakeUpNs=" + wakeUpNs
                + " guestWakeUpNs=" + guestWakeUpNs);
        }
    }

    /** The part of a GPU's time that serves each of the processes that use it at once. */
    double rate(int processes) {
        return processes <= 1 ? 1 : SLICE_NS / (SLICE_NS + switchNs) / processes;
    }
}

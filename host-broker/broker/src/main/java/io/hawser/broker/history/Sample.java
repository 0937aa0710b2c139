package io.hawser.broker.history;

/**
 * The figures of the broker, a GPU or a vGPU at one time; all are non-negative.
 *
 * @param utilizationPercent NaN where it is unknown.
 * @param waitedPercent share of its sessions' time in which they waited for their turn.
 */
public record Sample(double sessions, double usedBytes, double callsPerSecond, double roundTripsPerSecond,
    double bytesInPerSecond, double bytesOutPerSecond, double utilizationPercent, double waitedPercent) {

    /** Number of figures. */
    static final int FIGURES = 8;

    /** The figures in their order. */
    double[] figures() {
        return new double[] {sessions, usedBytes, callsPerSecond, roundTripsPerSecond, bytesInPerSecond,
            bytesOutPerSecond, utilizationPercent, waitedPercent};
    }
}

package io.hawser.broker.history;

/**
 * The figures of one moment, of the broker, a GPU or a vGPU; all 0 or more.
 *
 * @param utilizationPercent NaN where it is unknown.
 * @param waitedPercent of its sessions' time, which they waited for their turn.
 */
public record Sample(double sessions, double usedBytes, double callsPerSecond, double roundTripsPerSecond,
    double bytesInPerSecond, double bytesOutPerSecond, double utilizationPercent, double waitedPercent) {

    /** How many figures it has. */
    static final int FIGURES = 8;

    /** The figures in their order. */
    double[] figures() {
        return new double[] {sessions, usedBytes, callsPerSecond, roundTripsPerSecond, bytesInPerSecond,
            bytesOutPerSecond, utilizationPercent, waitedPercent};
    }
}

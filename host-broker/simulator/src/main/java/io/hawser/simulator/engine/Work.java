package io.hawser.simulator.engine;

/**
 * The work of a tenant, in rounds: a pause, then kernels one after the other, of which some are in flight at a time.
 * The next round's pause begins when all kernels of a round are done.
 */
@FunctionalInterface
public interface Work {
    /** Kernels of a round that never ends. */
    long ENDLESS = Long.MAX_VALUE;

    /** Describes the next round; called at the end of the one before, and at first. */
    void next(Round round);

    /** A round, which {@link #next} fills. */
    final class Round {
        private long pauseNs;
        private double kernelNs;
        private long kernels;
        private int window;

        /**
         * Sets all values.
         *
         * @param pauseNs before the first launch; 0 or more; {@code Long.MAX_VALUE} when there is no further work.
         * @param kernelNs length of each kernel while it has its GPUs alone; over 0.
         * @param kernels their number, 1 or more, or {@link #ENDLESS}.
         * @param window kernels in flight, 1 or more.
         */
        public void set(long pauseNs, double kernelNs, long kernels, int window) {
            if (pauseNs < 0 || !(kernelNs > 0) || kernels < 1 || window < 1) {
                throw new IllegalArgumentException("a round needs a pause of 0 or more, and kernels: pauseNs=" + pauseNs
                    + " kernelNs=" + kernelNs + " kernels=" + kernels + " window=" + window);
            }
            this.pauseNs = pauseNs;
            this.kernelNs = kernelNs;
            this.kernels = kernels;
            this.window = window;
        }

        long pauseNs() {
            return pauseNs;
        }

        /** Time of all kernels; infinite for an endless round. */
        double totalNs() {
            return kernels == ENDLESS ? Double.POSITIVE_INFINITY : kernels * kernelNs;
        }

        /** Time of the kernels that are launched when kernels have run for a time: those done and a full window. */
        double launchedNs(double doneNs) {
            double launched = Math.floor(doneNs / kernelNs + 1e-6) + window;
            return Math.min(totalNs(), launched * kernelNs);
        }
    }
}

package io.hawser.broker.history;

/** The points of one series: by the second for 10 minutes, by 15 seconds for a day. Guarded by its {@link History}. */
final class Series {
    /** Seconds of a coarse point. */
    static final int COARSE_SECONDS = 15;
    /** Period with points by the second. */
    static final int FINE_SECONDS = 600;
    /** Whole period of the series. */
    static final int ALL_SECONDS = 86_400;

    private final Tier fine;
    private final Tier coarse;
    private final double[] sums = new double[Sample.FIGURES];
    private final int[] counts = new int[Sample.FIGURES];
    private long coarsePoint = -1;
    private boolean hasSamples;

    Series(Tier.Budget fineBudget, Tier.Budget coarseBudget) {
        fine = new Tier(1, FINE_SECONDS, fineBudget);
        coarse = new Tier(COARSE_SECONDS, ALL_SECONDS / COARSE_SECONDS, coarseBudget);
    }

    Tier fine() {
        return fine;
    }

    Tier coarse() {
        return coarse;
    }

    /** Adds the sample of a second. */
    void add(long tick, Sample sample) {
        turn(tick);
        hasSamples = true;
        double[] figures = sample.figures();
        fine.set(tick, figures);
        for (int i = 0; i < figures.length; i++) {
            if (!Double.isNaN(figures[i])) {
                sums[i] += figures[i];
                counts[i]++;
            }
        }
    }

    /** Starts a second. When this completes a coarse point, stores the point's average. */
    void turn(long tick) {
        long point = tick / COARSE_SECONDS;
        if (point == coarsePoint) {
            return;
        }
        if (hasSamples) {
            double[] average = new double[sums.length];
            for (int i = 0; i < sums.length; i++) {
                // Seconds without a sample count as 0; a figure unknown in all seconds stays unknown.
                average[i] = counts[i] == 0 ? Double.NaN
                    : i == History.UTILIZATION ? sums[i] / counts[i] : sums[i] / COARSE_SECONDS;
            }
            coarse.set(coarsePoint, average);
        }
        hasSamples = false;
        java.util.Arrays.fill(sums, 0);
        java.util.Arrays.fill(counts, 0);
        coarsePoint = point;
    }
}

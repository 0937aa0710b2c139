package io.hawser.broker.history;

/** What one thing was: by the second for 10 minutes, by 15 seconds for a day. Guarded by its {@link History}. */
final class Series {
    /** Seconds of a coarse point. */
    static final int COARSE_SECONDS = 15;
    /** What is kept by the second. */
    static final int FINE_SECONDS = 600;
    /** What is kept in all. */
    static final int ALL_SECONDS = 86_400;

    private final Tier fine;
    private final Tier coarse;
    private final double[] sums = new double[Sample.FIGURES];
    private final int[] counts = new int[Sample.FIGURES];
    private long coarsePoint = -1;
    private boolean something;

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

    /** What it was in a second. */
    void add(long tick, Sample sample) {
        turn(tick);
        something = true;
        double[] figures = sample.figures();
        fine.set(tick, figures);
        for (int i = 0; i < figures.length; i++) {
            if (!Double.isNaN(figures[i])) {
                sums[i] += figures[i];
                counts[i]++;
            }
        }
    }

    /** A second is over; the one in which a coarse point is complete keeps its average. */
    void turn(long tick) {
        long point = tick / COARSE_SECONDS;
        if (point == coarsePoint) {
            return;
        }
        if (something) {
            double[] average = new double[sums.length];
            for (int i = 0; i < sums.length; i++) {
                // Seconds without a sample count as 0, but one that is unknown in all of them stays so.
                average[i] = counts[i] == 0 ? Double.NaN
                    : i == History.UTILIZATION ? sums[i] / counts[i] : sums[i] / COARSE_SECONDS;
            }
            coarse.set(coarsePoint, average);
        }
        something = false;
        java.util.Arrays.fill(sums, 0);
        java.util.Arrays.fill(counts, 0);
        coarsePoint = point;
    }
}

package io.hawser.check;

import java.util.Arrays;
import java.util.List;
import java.util.function.ToDoubleFunction;

/** The arithmetic of measurements with several programs. */
final class Ratios {
    /** Bodies of a kernel come in blocks of threads. */
    private static final int BODIES_STEP = 256;

    private Ratios() {
    }

    /**
     * An amount of work.
     *
     * @param weight of the program; 0 excludes it from ratios, because its work is of another kind.
     */
    record Part(int weight, double amount) {
        private double perWeight() {
            return amount / weight;
        }
    }

    /** The mean of the two middle values, which are one value for an odd number; NaN without values. */
    static double median(double... values) {
        if (values.length == 0) {
            return Double.NaN;
        }
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    /** The largest amount per weight over the smallest; NaN if no part has a weight, infinite if one has no amount. */
    static double mostOverLeast(List<Part> parts) {
        double[] perWeight = parts.stream().filter(part -> part.weight > 0).mapToDouble(Part::perWeight).toArray();
        return Arrays.stream(perWeight).max().orElse(Double.NaN) / Arrays.stream(perWeight).min().orElse(Double.NaN);
    }

    /** Each amount as a multiple of the first. */
    static double[] toFirst(List<Part> parts) {
        return parts.stream().mapToDouble(part -> part.amount / parts.getFirst().amount).toArray();
    }

    /**
     * The largest deviation of such a multiple from the one that the weights give, in percent of the latter; infinite
     * if the first has no amount.
     */
    static double deviationPercent(List<Part> parts) {
        if (parts.getFirst().amount == 0) {
            return Double.POSITIVE_INFINITY;
        }
        ToDoubleFunction<Part> deviation =
            part -> Math.abs(part.perWeight() / parts.getFirst().perWeight() - 1) * 100;
        return parts.stream().mapToDouble(deviation).max().orElse(Double.NaN);
    }

    /** Two programs in turn over both at once; 1 if the exchange costs nothing. */
    static double exchange(double aloneS, double bothS) {
        return 2 * aloneS / bothS;
    }

    /** The additional time beside others, in percent of the mean time alone. */
    static double costPercent(double aloneBeforeS, double aloneAfterS, double besideS) {
        return 100 * (besideS / ((aloneBeforeS + aloneAfterS) / 2) - 1);
    }

    /**
     * The size of a kernel that takes a wanted time; times grow with sizes.
     *
     * @param bodies the size of a measured kernel.
     * @param tookMs its time.
     * @return a multiple of 256, at least 256.
     */
    static int bodies(int bodies, double tookMs, double wantedMs) {
        return Math.max((int) (bodies * wantedMs / tookMs / BODIES_STEP), 1) * BODIES_STEP;
    }
}

package io.hawser.gpu.software.exec;

/** Comparisons that need more than one JVM branch. Results are 1 or 0. */
public final class Compare {
    private Compare() {
    }

    /** Ordered and different. */
    public static int ne(float a, float b) {
        return a < b || a > b ? 1 : 0;
    }

    /** Ordered and different. */
    public static int ne(double a, double b) {
        return a < b || a > b ? 1 : 0;
    }

    /** Equal or unordered. */
    public static int equ(float a, float b) {
        return a < b || a > b ? 0 : 1;
    }

    /** Equal or unordered. */
    public static int equ(double a, double b) {
        return a < b || a > b ? 0 : 1;
    }

    /** Ordered. */
    public static int num(float a, float b) {
        return !Float.isNaN(a) && !Float.isNaN(b) ? 1 : 0;
    }

    /** Ordered. */
    public static int num(double a, double b) {
        return !Double.isNaN(a) && !Double.isNaN(b) ? 1 : 0;
    }

    /** Unordered. */
    public static int nan(float a, float b) {
        return !Float.isNaN(a) && !Float.isNaN(b) ? 0 : 1;
    }

    /** Unordered. */
    public static int nan(double a, double b) {
        return !Double.isNaN(a) && !Double.isNaN(b) ? 0 : 1;
    }
}

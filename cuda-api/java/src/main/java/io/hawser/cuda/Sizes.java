package io.hawser.cuda;

/**
 * Sizes from a guest's numbers. All values are unsigned 64-bit numbers in a long. Results saturate at {@link #MOST}
 * instead of wrapping, so that a product of the guest's numbers never becomes small.
 */
public final class Sizes {
    /** Larger than any buffer or allocation. */
    public static final long MOST = Long.MAX_VALUE;

    private Sizes() {
    }

    /** Sum, at most {@link #MOST}. */
    public static long add(long a, long b) {
        long sum = a + b;
        return a < 0 || b < 0 || sum < 0 ? MOST : sum;
    }

    /** Product, at most {@link #MOST}. */
    public static long multiply(long a, long b) {
        if (a == 0 || b == 0) {
            return 0;
        }
        return a < 0 || b < 0 || Math.multiplyHigh(a, b) != 0 || a * b < 0 ? MOST : a * b;
    }

    /** Span in memory of {@code rows} rows of {@code width} bytes that are {@code pitch} bytes apart. */
    public static long box(long pitch, long rows, long width) {
        return rows == 0 || width == 0 ? 0 : add(multiply(pitch, rows - 1), width);
    }
}

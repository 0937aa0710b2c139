package io.hawser.broker.history;

/**
 * A figure of 0 or more in 16 bits, for plots: exact below 128 in steps of 1/16, whole numbers exact below 2048, then
 * to 1/2048 of itself. Its value grows with its bits.
 */
final class Packed {
    /** No figure. */
    static final short UNKNOWN = -1;

    private static final int STEPS = 16; // in one
    private static final int MANTISSA_BITS = 10;
    private static final int MANTISSA = 1 << MANTISSA_BITS;
    private static final int LARGEST = 0xfffe; // UNKNOWN is 0xffff

    private Packed() {
    }

    /** Packs a figure; NaN is unknown, and what is below 0 is 0. */
    static short of(double value) {
        if (Double.isNaN(value)) {
            return UNKNOWN;
        }
        long steps = Math.round(Math.max(0, value) * STEPS);
        int shift = Math.max(0, Long.SIZE - Long.numberOfLeadingZeros(steps) - MANTISSA_BITS - 1);
        return (short) Math.min((long) shift * MANTISSA + (steps >>> shift), LARGEST);
    }

    /** The figure; NaN when it is unknown. */
    static double value(short packed) {
        if (packed == UNKNOWN) {
            return Double.NaN;
        }
        int bits = Short.toUnsignedInt(packed);
        int shift = Math.max(0, bits / MANTISSA - 1);
        return (double) ((long) (bits - shift * MANTISSA) << shift) / STEPS;
    }
}

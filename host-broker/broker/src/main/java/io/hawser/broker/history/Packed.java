package io.hawser.broker.history;

/**
 * A non-negative figure in 16 bits, for plots. Values below 128 have steps of 1/16, whole numbers below 2048 are exact,
 * and larger values have a relative precision of 1/2048. Larger values have larger unsigned bits.
 */
final class Packed {
    /** The unknown value. */
    static final short UNKNOWN = -1;

    private static final int STEPS = 16; // steps per unit
    private static final int MANTISSA_BITS = 10;
    private static final int MANTISSA = 1 << MANTISSA_BITS;
    private static final int LARGEST = 0xfffe; // UNKNOWN is 0xffff

    private Packed() {
    }

    /** Packs a figure; NaN becomes unknown, and a negative value becomes 0. */
    static short of(double value) {
        if (Double.isNaN(value)) {
            return UNKNOWN;
        }
        long steps = Math.round(Math.max(0, value) * STEPS);
        int shift = Math.max(0, Long.SIZE - Long.numberOfLeadingZeros(steps) - MANTISSA_BITS - 1);
        return (short) Math.min((long) shift * MANTISSA + (steps >>> shift), LARGEST);
    }

    /** Unpacks a figure; NaN when it is unknown. */
    static double value(short packed) {
        if (packed == UNKNOWN) {
            return Double.NaN;
        }
        int bits = Short.toUnsignedInt(packed);
        int shift = Math.max(0, bits / MANTISSA - 1);
        return (double) ((long) (bits - shift * MANTISSA) << shift) / STEPS;
    }
}

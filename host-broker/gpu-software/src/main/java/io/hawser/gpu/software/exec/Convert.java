package io.hawser.gpu.software.exec;

import java.math.BigInteger;

/**
 * Conversions that need more than one JVM instruction. Rounding mode 0 rounds to nearest even; the other modes are the
 * constants of {@link Rounding}.
 */
public final class Convert {
    private static final double TWO_63 = 0x1p63;
    private static final double TWO_64 = 0x1p64;

    private Convert() {
    }

    static BigInteger unsigned(long value) {
        BigInteger result = BigInteger.valueOf(value & Long.MAX_VALUE);
        return value < 0 ? result.setBit(63) : result;
    }

    /** A float rounded to a whole number. */
    public static float whole(float a, int mode) {
        return (float) whole((double) a, mode);
    }

    /** A double rounded to a whole number, its sign kept. */
    public static double whole(double a, int mode) {
        return switch (mode) {
            case Rounding.RZ -> a < 0 ? Math.ceil(a) : Math.floor(a);
            case Rounding.RM -> Math.floor(a);
            case Rounding.RP -> Math.ceil(a);
            default -> Math.rint(a);
        };
    }

    /** Whole double to u32, saturated; NaN gives 0. */
    public static int toU32(double whole) {
        return whole >= 0x1p32 ? -1 : whole > 0 ? (int) (long) whole : 0;
    }

    /** Whole double to u64, saturated; NaN gives 0. */
    public static long toU64(double whole) {
        if (whole >= TWO_64) {
            return -1;
        }
        return whole >= TWO_63 ? (long) (whole - TWO_63) ^ Long.MIN_VALUE : whole > 0 ? (long) whole : 0;
    }

    /** Whole double to a narrower integer, saturated; NaN gives 0. */
    public static int toNarrow(double whole, int least, int most) {
        return Double.isNaN(whole) ? 0 : Math.clamp((long) whole, least, most);
    }

    /** u64 to f64, nearest. */
    public static double f64FromU64(long a) {
        if (a >= 0) {
            return a;
        }
        // Halves the value but keeps the lost bit, so that doubling the result rounds only once.
        return (double) (a >>> 1 | a & 1) * 2;
    }

    /** u64 to f32, nearest. */
    public static float f32FromU64(long a) {
        return a >= 0 ? (float) a : (float) (a >>> 1 | a & 1) * 2;
    }

    /** Integer to f32, rounded by the mode. */
    public static float f32FromLong(long a, int mode) {
        return Rounding.fromLong(a, false, mode);
    }

    /** u64 to f32, rounded by the mode. */
    public static float f32FromU64(long a, int mode) {
        return Rounding.fromLong(a, true, mode);
    }

    /** Integer to f64, rounded by the mode. */
    public static double f64FromLong(long a, int mode) {
        return Rounding.doubleFromLong(a, false, mode);
    }

    /** u64 to f64, rounded by the mode. */
    public static double f64FromU64(long a, int mode) {
        return Rounding.doubleFromLong(a, true, mode);
    }

    /** f64 to f32, rounded by the mode. */
    public static float f32FromF64(double a, int mode) {
        return Rounding.fromDouble(a, mode);
    }

    /** f64, or an integer of at most 53 bits, to f16. */
    public static int f16FromF64(double a) {
        return HalfMath.toF16(Rounding.toFloatOdd(a));
    }

    /** f64, or an integer of at most 53 bits, to bf16. */
    public static int bf16FromF64(double a) {
        return HalfMath.toBf16(Rounding.toFloatOdd(a));
    }

    /** A double that gives the same result as a 64-bit integer in any rounding to 24 bits or fewer. */
    public static double oddFromLong(long a) {
        double near = a;
        // 2^63 is the only double here that exceeds a long's range; it is above the exact value.
        int order = near == TWO_63 ? -1 : Long.compare(a, (long) near);
        return Rounding.odd(near, order);
    }

    /** As {@link #oddFromLong} for u64. */
    public static double oddFromU64(long a) {
        return a >= 0 ? oddFromLong(a) : oddFromLong(a >>> 1 | a & 1) * 2;
    }

    /** f64 to f16 bits, rounded by the mode. */
    public static int f16FromF64Toward(double a, int mode) {
        if (Double.isNaN(a)) {
            return HalfMath.toF16(Float.NaN);
        }
        int near = f16FromF64(a);
        double back = HalfMath.f16(near);
        if (back == a) {
            return near;
        }
        boolean down = mode == Rounding.RM || mode == Rounding.RZ && a > 0;
        return stepBits(near, back > a, back < a, down);
    }

    /** f64 to bf16 bits, rounded by the mode. */
    public static int bf16FromF64Toward(double a, int mode) {
        if (Double.isNaN(a)) {
            return HalfMath.toBf16(Float.NaN);
        }
        int near = bf16FromF64(a);
        double back = HalfMath.bf16(near);
        if (back == a) {
            return near;
        }
        boolean down = mode == Rounding.RM || mode == Rounding.RZ && a > 0;
        return stepBits(near, back > a, back < a, down);
    }

    // The next lower or higher 16-bit float: magnitudes have the order of their bits.
    private static int stepBits(int bits, boolean above, boolean below, boolean down) {
        boolean negative = (bits & 0x8000) != 0;
        if (down && above) {
            return (bits & 0x7FFF) == 0 ? 0x8001 : negative ? bits + 1 : bits - 1;
        }
        if (!down && below) {
            return (bits & 0x7FFF) == 0 ? 0x0001 : negative ? bits - 1 : bits + 1;
        }
        return bits;
    }

    /** cvt.pack.sat: one saturated value of the narrow type. */
    public static int clamp(int a, int least, int most) {
        return Math.clamp(a, least, most);
    }

    /** .relu of f32 before a packed conversion. */
    public static float relu(float a) {
        return HalfMath.relu(a);
    }

    /** Saturates u32 to an upper bound. */
    public static int clampUnsigned(int a, int most) {
        return Integer.compareUnsigned(a, most) > 0 ? most : a;
    }

    /** Saturates s64. */
    public static long clamp(long a, long least, long most) {
        return Math.clamp(a, least, most);
    }

    /** Saturates u64 to an upper bound. */
    public static long clampUnsigned(long a, long most) {
        return Long.compareUnsigned(a, most) > 0 ? most : a;
    }
}

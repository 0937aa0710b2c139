package io.hawser.gpu.software.exec;

import java.math.BigDecimal;

/**
 * Directed rounding. f32 results come from a double that was rounded to odd: its last bit is set when digits were lost.
 * Any second rounding to 24 bits or fewer treats that double as the exact value. f64 results are compared with exact
 * decimal arithmetic.
 */
final class Rounding {
    /** Toward zero, toward minus infinity, toward plus infinity. */
    static final int RZ = 1;
    static final int RM = 2;
    static final int RP = 3;

    private Rounding() {
    }

    /**
     * Rounds to odd.
     *
     * @param near  the double nearest to the exact value.
     * @param error any number with the sign of (exact - near); 0 if near is exact.
     */
    static double odd(double near, double error) {
        if (error == 0 || !Double.isFinite(near) || Double.isNaN(error)) {
            return near;
        }
        long bits = Double.doubleToRawLongBits(near);
        if ((bits & 1) != 0) {
            return near;
        }
        return Double.longBitsToDouble((error > 0) == (near > 0) ? bits + 1 : bits - 1);
    }

    static double sumOdd(double a, double b) {
        double sum = a + b;
        double part = sum - a;
        return odd(sum, (a - (sum - part)) + (b - part));
    }

    static double fmaOdd(float a, float b, float c) {
        return sumOdd((double) a * b, c);
    }

    /** Rounds an exact or odd-rounded double to a float in a direction. */
    static float toFloat(double exact, int mode) {
        float near = (float) exact;
        if (near == exact || Double.isNaN(exact)) {
            return near;
        }
        return switch (mode) {
            case RZ -> Math.abs((double) near) > Math.abs(exact)
                ? exact > 0 ? Math.nextDown(near) : Math.nextUp(near) : near;
            case RM -> near > exact ? Math.nextDown(near) : near;
            case RP -> near < exact ? Math.nextUp(near) : near;
            default -> near;
        };
    }

    /** A float that any rounding to 16 bits treats like the exact or odd-rounded double. */
    static float toFloatOdd(double exact) {
        float near = (float) exact;
        if (near == exact || Double.isNaN(exact) || Float.isInfinite(near)) {
            return near;
        }
        int bits = Float.floatToRawIntBits(near);
        if ((bits & 1) != 0) {
            return near;
        }
        if (near == 0) {
            return Math.copySign(Float.MIN_VALUE, (float) Math.signum(exact));
        }
        return Float.intBitsToFloat(Math.abs(exact) > Math.abs((double) near) ? bits + 1 : bits - 1);
    }

    private static boolean oppositeSigns(double a, double b) {
        return (Double.doubleToRawLongBits(a) ^ Double.doubleToRawLongBits(b)) < 0;
    }

    // The sum of opposite numbers is -0 when rounding down, +0 otherwise.
    static float add(float a, float b, int mode) {
        double sum = sumOdd(a, b);
        if (sum == 0 && mode == RM && oppositeSigns(a, b)) {
            return -0.0f;
        }
        return toFloat(sum, mode);
    }

    static float mul(float a, float b, int mode) {
        return toFloat((double) a * b, mode);
    }

    static float fma(float a, float b, float c, int mode) {
        double product = (double) a * b;
        double sum = sumOdd(product, c);
        if (sum == 0 && mode == RM && oppositeSigns(product, c)) {
            return -0.0f;
        }
        return toFloat(sum, mode);
    }

    static float div(float a, float b, int mode) {
        double quotient = (double) a / b;
        if (!Double.isFinite(quotient) || quotient == 0 || Float.isInfinite(b)) {
            return (float) quotient;
        }
        double rest = Math.fma(-quotient, b, a);
        return toFloat(odd(quotient, b > 0 ? rest : -rest), mode);
    }

    static float sqrt(float a, int mode) {
        double root = Math.sqrt((double) a);
        if (!Double.isFinite(root) || root == 0) {
            return (float) root;
        }
        return toFloat(odd(root, Math.fma(-root, root, a)), mode);
    }

    private static double toDouble(BigDecimal exact, int mode) {
        double near = exact.doubleValue();
        int order = Double.isInfinite(near) ? near > 0 ? 1 : -1 : new BigDecimal(near).compareTo(exact);
        if (near == 0 && exact.signum() < 0) {
            near = -0.0;
        }
        return step(near, order, mode);
    }

    /** Corrects a result rounded to nearest; {@code order} is the sign of (near - exact). */
    private static double step(double near, int order, int mode) {
        boolean positive = order > 0 ? near > 0 : near >= 0 && !oppositeSigns(near, 1);
        int side = mode == RZ ? positive ? RM : RP : mode;
        if (side == RM && order > 0) {
            return Math.nextDown(near);
        }
        return side == RP && order < 0 ? near == 0 && !positive ? -0.0 : Math.nextUp(near) : near;
    }

    static double add(double a, double b, int mode) {
        double near = a + b;
        if (!Double.isFinite(a) || !Double.isFinite(b)) {
            return near;
        }
        BigDecimal exact = new BigDecimal(a).add(new BigDecimal(b));
        if (exact.signum() == 0) {
            return mode == RM && oppositeSigns(a, b) ? -0.0 : near;
        }
        return toDouble(exact, mode);
    }

    static double mul(double a, double b, int mode) {
        double near = a * b;
        if (!Double.isFinite(a) || !Double.isFinite(b) || a == 0 || b == 0) {
            return near;
        }
        return toDouble(new BigDecimal(a).multiply(new BigDecimal(b)), mode);
    }

    static double fma(double a, double b, double c, int mode) {
        double near = Math.fma(a, b, c);
        if (!Double.isFinite(a) || !Double.isFinite(b) || !Double.isFinite(c)) {
            return near;
        }
        BigDecimal exact = new BigDecimal(a).multiply(new BigDecimal(b)).add(new BigDecimal(c));
        if (exact.signum() == 0) {
            return mode == RM && oppositeSigns(oppositeSigns(a, b) ? -1 : 1, c) ? -0.0 : near;
        }
        return toDouble(exact, mode);
    }

    static double div(double a, double b, int mode) {
        double near = a / b;
        if (!Double.isFinite(a) || !Double.isFinite(b) || a == 0 || b == 0) {
            return near;
        }
        int order;
        if (Double.isInfinite(near)) {
            order = near > 0 ? 1 : -1;
        } else {
            int compared = new BigDecimal(near).multiply(new BigDecimal(b)).compareTo(new BigDecimal(a));
            order = b > 0 ? compared : -compared;
        }
        return step(near, order, mode);
    }

    static double sqrt(double a, int mode) {
        double near = Math.sqrt(a);
        if (!Double.isFinite(near) || near == 0) {
            return near;
        }
        BigDecimal root = new BigDecimal(near);
        return step(near, root.multiply(root).compareTo(new BigDecimal(a)), mode);
    }

    static float fromDouble(double value, int mode) {
        return toFloat(value, mode);
    }

    static float fromLong(long value, boolean unsigned, int mode) {
        BigDecimal exact = unsigned ? new BigDecimal(Convert.unsigned(value)) : BigDecimal.valueOf(value);
        // 64 bits exceed a double's precision: rounds them to odd first.
        double near = exact.doubleValue();
        return toFloat(odd(near, exact.compareTo(new BigDecimal(near))), mode);
    }

    static double doubleFromLong(long value, boolean unsigned, int mode) {
        return value == 0 ? 0 : toDouble(unsigned ? new BigDecimal(Convert.unsigned(value)) : BigDecimal.valueOf(value),
            mode);
    }
}

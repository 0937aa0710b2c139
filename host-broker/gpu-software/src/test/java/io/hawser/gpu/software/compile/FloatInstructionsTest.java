package io.hawser.gpu.software.compile;

import static io.hawser.gpu.software.compile.Cases.d;
import static io.hawser.gpu.software.compile.Cases.f;
import static io.hawser.gpu.software.compile.Cases.u;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Compares floating instructions with exact decimal arithmetic. */
class FloatInstructionsTest {
    private static final float[] EDGES = {0f, -0f, 1f, -1.5f, 3f, Float.MIN_VALUE, -Float.MIN_NORMAL, Float.MAX_VALUE,
        -Float.MAX_VALUE, 0.1f, 1e-30f, 16777215f, 1e20f};

    /** The float nearest to an exact value in a direction, found by trial. */
    private static float toFloat(BigDecimal exact, String mode) {
        float near = exact.floatValue();
        if (Float.isInfinite(near)) {
            boolean up = near > 0;
            boolean keep = mode.equals("rn") || mode.equals(up ? "rp" : "rm");
            return keep ? near : up ? Float.MAX_VALUE : -Float.MAX_VALUE;
        }
        int order = new BigDecimal(near).compareTo(exact);
        float down = order > 0 ? Math.nextDown(near) : near;
        float up = order < 0 ? Math.nextUp(near) : near;
        float result = switch (mode) {
            case "rz" -> exact.signum() > 0 ? down : up;
            case "rm" -> down;
            case "rp" -> up;
            default -> near;
        };
        return result == 0 && exact.signum() < 0 ? -0f : result;
    }

    private static double toDouble(BigDecimal exact, String mode) {
        double near = exact.doubleValue();
        int order = new BigDecimal(near).compareTo(exact);
        double down = order > 0 ? Math.nextDown(near) : near;
        double up = order < 0 ? Math.nextUp(near) : near;
        return switch (mode) {
            case "rz" -> exact.signum() > 0 ? down : up;
            case "rm" -> down;
            case "rp" -> up;
            default -> near;
        };
    }

    @Test
    void shouldRoundF32InEachDirection() throws Exception {
        Cases cases = new Cases();
        for (String mode : new String[] {"rn", "rz", "rm", "rp"}) {
            for (float a : EDGES) {
                for (float b : EDGES) {
                    BigDecimal x = new BigDecimal(a);
                    BigDecimal y = new BigDecimal(b);
                    BigDecimal sum = x.add(y);
                    if (sum.signum() != 0) {
                        cases.add("add." + mode + ".f32 $d, $0, $1", "fff", f(toFloat(sum, mode)), f(a), f(b));
                    } else if (a != 0) {
                        cases.add("add." + mode + ".f32 $d, $0, $1", "fff", f(mode.equals("rm") ? -0f : 0f), f(a),
                            f(b));
                    }
                    if (a != 0 && b != 0) {
                        cases.add("mul." + mode + ".f32 $d, $0, $1", "fff", f(toFloat(x.multiply(y), mode)), f(a),
                            f(b));
                        // 400 digits decide on which side of a float the quotient lies.
                        cases.add("div." + mode + ".f32 $d, $0, $1", "fff",
                            f(toFloat(x.divide(y, new MathContext(400)), mode)), f(a), f(b));
                    }
                    BigDecimal fused = x.multiply(y).add(new BigDecimal(0.1f));
                    cases.add("fma." + mode + ".f32 $d, $0, $1, $2", "ffff", f(toFloat(fused, mode)), f(a), f(b),
                        f(0.1f));
                }
                if (a > 0) {
                    cases.add("sqrt." + mode + ".f32 $d, $0", "ff",
                        f(toFloat(new BigDecimal(a).sqrt(new MathContext(200)), mode)), f(a));
                    cases.add("rcp." + mode + ".f32 $d, $0", "ff",
                        f(toFloat(BigDecimal.ONE.divide(new BigDecimal(a), new MathContext(300)), mode)), f(a));
                }
            }
        }
        cases.run();
    }

    @Test
    void shouldRoundF64InEachDirection() throws Exception {
        Cases cases = new Cases();
        Random random = new Random(9);
        for (String mode : new String[] {"rn", "rz", "rm", "rp"}) {
            for (int i = 0; i < 20; i++) {
                double a = random.nextGaussian() * Math.pow(10, random.nextInt(40) - 20);
                double b = random.nextGaussian() * Math.pow(10, random.nextInt(40) - 20);
                BigDecimal x = new BigDecimal(a);
                BigDecimal y = new BigDecimal(b);
                cases.add("add." + mode + ".f64 $d, $0, $1", "ddd", d(toDouble(x.add(y), mode)), d(a), d(b))
                    .add("sub." + mode + ".f64 $d, $0, $1", "ddd", d(toDouble(x.subtract(y), mode)), d(a), d(b))
                    .add("mul." + mode + ".f64 $d, $0, $1", "ddd", d(toDouble(x.multiply(y), mode)), d(a), d(b))
                    .add("fma." + mode + ".f64 $d, $0, $1, $2", "dddd", d(toDouble(x.multiply(y).add(x), mode)), d(a),
                        d(b), d(a))
                    .add("div." + mode + ".f64 $d, $0, $1", "ddd",
                        d(toDouble(x.divide(y, new MathContext(200)), mode)), d(a), d(b))
                    .add("sqrt." + mode + ".f64 $d, $0", "dd",
                        d(toDouble(x.abs().sqrt(new MathContext(200)), mode)), d(Math.abs(a)));
            }
        }
        cases.run();
    }

    @Test
    void shouldTreatNanInfinityAndSignedZero() throws Exception {
        float nan = Float.NaN;
        float inf = Float.POSITIVE_INFINITY;
        new Cases().add("min.f32 $d, $0, $1", "fff", f(3), f(nan), f(3))
            .add("max.f32 $d, $0, $1", "fff", f(3), f(3), f(nan))
            .add("min.NaN.f32 $d, $0, $1", "fff", f(nan), f(nan), f(3))
            .add("min.f32 $d, $0, $1", "fff", f(-0f), f(0f), f(-0f))
            .add("max.f64 $d, $0, $1", "ddd", d(0.0), d(-0.0), d(0.0))
            .add("add.sat.f32 $d, $0, $1", "fff", f(1), f(0.75f), f(0.5f))
            .add("add.sat.f32 $d, $0, $1", "fff", f(0), f(nan), f(0.5f))
            .add("mul.sat.f32 $d, $0, $1", "fff", f(0), f(-2), f(0.5f))
            .add("mul.ftz.f32 $d, $0, $1", "fff", f(0), f(1e-30f), f(1e-10f))
            .add("mul.f32 $d, $0, $1", "fff", f(1e-30f * 1e-10f), f(1e-30f), f(1e-10f))
            .add("add.ftz.f32 $d, $0, $1", "fff", f(-0f), f(-1e-40f), f(-1e-41f))
            .add("abs.f32 $d, $0", "ff", f(2), f(-2)).add("neg.f64 $d, $0", "dd", d(-0.0), d(0.0))
            .add("copysign.f32 $d, $0, $1", "fff", f(3), f(1), f(-3))
            .add("setp.eq.f32 $d, $0, $1", "pff", 0, f(nan), f(nan))
            .add("setp.ne.f32 $d, $0, $1", "pff", 0, f(nan), f(1))
            .add("setp.neu.f32 $d, $0, $1", "pff", 1, f(nan), f(1))
            .add("setp.ltu.f64 $d, $0, $1", "pdd", 1, d(Double.NaN), d(1))
            .add("setp.lt.f64 $d, $0, $1", "pdd", 0, d(Double.NaN), d(1))
            .add("setp.ge.f32 $d, $0, $1", "pff", 0, f(nan), f(1))
            .add("setp.geu.f32 $d, $0, $1", "pff", 1, f(1), f(nan))
            .add("setp.gtu.f32 $d, $0, $1", "pff", 0, f(1), f(2))
            .add("setp.num.f32 $d, $0, $1", "pff", 1, f(1), f(inf))
            .add("setp.nan.f32 $d, $0, $1", "pff", 1, f(1), f(nan))
            .add("setp.eq.ftz.f32 $d, $0, $1", "pff", 1, f(1e-40f), f(-1e-41f))
            .add("set.gt.f32.f32 $d, $0, $1", "fff", f(1), f(2), f(1))
            .add("testp.subnormal.f32 $d, $0", "pf", 1, f(1e-40f))
            .add("testp.infinite.f64 $d, $0", "pd", 1, d(Double.NEGATIVE_INFINITY))
            .add("testp.normal.f32 $d, $0", "pf", 0, f(0f))
            .add("rcp.approx.f32 $d, $0", "ff", f(inf), f(0f))
            .add("rsqrt.approx.f32 $d, $0", "ff", f(0.5f), f(4))
            .add("sqrt.rn.f32 $d, $0", "ff", f(nan), f(-4))
            .add("ex2.approx.f32 $d, $0", "ff", f(1024), f(10))
            .add("ex2.approx.ftz.f32 $d, $0", "ff", f(0), f(-140))
            .add("lg2.approx.f32 $d, $0", "ff", f(-3), f(0.125f))
            .add("lg2.approx.f32 $d, $0", "ff", f(-inf), f(0))
            .add("sin.approx.f32 $d, $0", "ff", f((float) Math.sin(0.5f)), f(0.5f))
            .add("cos.approx.f32 $d, $0", "ff", f(1), f(0))
            .add("tanh.approx.f32 $d, $0", "ff", f(1), f(40)).run();
    }

    @Test
    void shouldGivePtxNanBitsToIntegers() throws Exception {
        // mov.b32 of a computed NaN gives PTX's canonical bits; mov.b32 of a loaded NaN gives the bits of that NaN.
        new Cases().add("{ .reg .f32 %t; sub.f32 %t, $0, $0; mov.b32 $d, %t; }", "rf", 0x7FFFFFFFL,
            f(Float.POSITIVE_INFINITY)).add("mov.b32 $d, $0", "rf", 0xFFC12345L, 0xFFC12345L).run();
    }

    @Test
    void shouldConvertWithEveryRounding() throws Exception {
        Cases cases = new Cases();
        float[] values = {0f, -0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.7f, 1e10f, -1e10f, 3e9f, 1e20f, Float.NaN,
            Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, 127.5f, 65535.9f};
        for (float v : values) {
            double rounded = Math.rint(v);
            cases.add("cvt.rni.s32.f32 $d, $0", "rf", u((int) rounded), f(v))
                .add("cvt.rzi.s32.f32 $d, $0", "rf", u((int) v), f(v))
                .add("cvt.rmi.s64.f32 $d, $0", "lf", (long) Math.floor(v), f(v))
                .add("cvt.rpi.s32.f64 $d, $0", "rd", u((int) Math.ceil(v)), d(v))
                .add("cvt.rzi.u32.f32 $d, $0", "rf", Float.isNaN(v) ? 0 : Math.clamp((long) v, 0, 0xFFFFFFFFL), f(v))
                .add("cvt.rzi.u64.f64 $d, $0", "ld", Float.isNaN(v) || v < 0 ? 0 : v > 1.8e19 ? -1
                    : new BigDecimal(v).longValue(), d(v))
                .add("cvt.rni.f32.f32 $d, $0", "ff", f((float) rounded), f(v))
                .add("cvt.rzi.u8.f32 $d, $0", "rf", Float.isNaN(v) ? 0 : Math.clamp((long) v, 0, 255), f(v))
                .add("cvt.sat.f32.f32 $d, $0", "ff", f(v > 0 ? Math.min(v, 1) : 0), f(v))
                .add("cvt.f64.f32 $d, $0", "df", d(v), f(v));
        }
        for (int v : new int[] {0, 1, -1, 16777217, -16777219, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            BigDecimal exact = BigDecimal.valueOf(v);
            for (String mode : new String[] {"rn", "rz", "rm", "rp"}) {
                cases.add("cvt." + mode + ".f32.s32 $d, $0", "fr", f(toFloat(exact, mode)), u(v))
                    .add("cvt." + mode + ".f32.u32 $d, $0", "fr", f(toFloat(BigDecimal.valueOf(u(v)), mode)), u(v));
            }
            cases.add("cvt.rn.f64.s32 $d, $0", "dr", d(v), u(v))
                .add("cvt.sat.u8.s32 $d, $0", "rr", Math.clamp(v, 0, 255), u(v))
                .add("cvt.sat.s8.s32 $d, $0", "rr", u(Math.clamp(v, -128, 127)), u(v))
                .add("cvt.sat.s32.u32 $d, $0", "rr", Math.min(u(v), Integer.MAX_VALUE), u(v))
                .add("cvt.s64.s32 $d, $0", "lr", v, u(v)).add("cvt.u64.u32 $d, $0", "lr", u(v), u(v));
        }
        for (long v : new long[] {1, -1, (1L << 53) + 1, Long.MAX_VALUE, Long.MIN_VALUE, 0xFFFFFFFFFFFFFBFFL}) {
            BigDecimal exact = BigDecimal.valueOf(v);
            BigDecimal unsigned = new BigDecimal(Long.toUnsignedString(v));
            for (String mode : new String[] {"rn", "rz", "rm", "rp"}) {
                cases.add("cvt." + mode + ".f64.s64 $d, $0", "dl", d(toDouble(exact, mode)), v)
                    .add("cvt." + mode + ".f64.u64 $d, $0", "dl", d(toDouble(unsigned, mode)), v)
                    .add("cvt." + mode + ".f32.u64 $d, $0", "fl", f(toFloat(unsigned, mode)), v);
            }
        }
        for (double v : new double[] {1.1, -1.1, 1e300, 1e-320, 16777217.0, -1e-46}) {
            for (String mode : new String[] {"rn", "rz", "rm", "rp"}) {
                cases.add("cvt." + mode + ".f32.f64 $d, $0", "fd", f(toFloat(new BigDecimal(v), mode)), d(v));
            }
        }
        cases.run();
    }

    private static long h(float value) {
        return Float.floatToFloat16(value) & 0xFFFF;
    }

    @Test
    void shouldComputeInHalfPrecisions() throws Exception {
        Cases cases = new Cases();
        float[] values = {0f, 1f, -1.5f, 0.1f, 65504f, 6e-8f, 3.14159f, 1000.5f};
        for (float x : values) {
            float a = Float.float16ToFloat(Float.floatToFloat16(x));
            for (float y : values) {
                float b = Float.float16ToFloat(Float.floatToFloat16(y));
                BigDecimal fused = new BigDecimal(a).multiply(new BigDecimal(b)).add(new BigDecimal(a));
                cases.add("add.f16 $d, $0, $1", "hhh", h(a + b), h(a), h(b))
                    .add("mul.f16 $d, $0, $1", "hhh", h(a * b), h(a), h(b))
                    .add("fma.rn.f16 $d, $0, $1, $2", "hhhh", nearestHalf(fused, h(a * b + a)), h(a), h(b), h(a))
                    .add("add.f16x2 $d, $0, $1", "rrr", h(a + b) << 16 | h(b - a), h(a) << 16 | h(b),
                        h(b) << 16 | h(-a))
                    .add("setp.lt.f16 $d, $0, $1", "phh", a < b ? 1 : 0, h(a), h(b))
                    .add("set.ge.f16x2.f16x2 $d, $0, $1", "rrr", (a >= b ? 0x3C00L << 16 : 0) | (b >= a ? 0x3C00 : 0),
                        h(a) << 16 | h(b), h(b) << 16 | h(a));
            }
            cases.add("cvt.rn.f16.f32 $d, $0", "hf", h(x), f(x)).add("cvt.f32.f16 $d, $0", "fh", f(a), h(x))
                .add("cvt.rn.f16x2.f32 $d, $0, $1", "rff", h(x) << 16 | h(2), f(x), f(2))
                .add("cvt.rn.bf16.f32 $d, $0", "hf", bf16(x), f(x))
                .add("cvt.f32.bf16 $d, $0", "fh", f(x) & 0xFFFF0000L, f(x) >>> 16)
                .add("fma.rn.bf16 $d, $0, $1, $2", "hhhh", f(x) >>> 16, f(x) >>> 16, 0x3F80, 0)
                .add("cvt.rzi.s32.f16 $d, $0", "rh", u((int) a), h(x))
                .add("neg.f16 $d, $0", "hh", h(x) ^ 0x8000, h(x))
                .add("fma.rn.relu.f16 $d, $0, $1, $2", "hhhh", h(Math.max(a, 0f)), h(x), 0x3C00, 0);
        }
        cases.add("cvt.rz.f16.f32 $d, $0", "hf", h(1f), f(1.0009f))
            .add("cvt.rp.f16.f32 $d, $0", "hf", 0x3C01, f(1.0001f))
            .add("cvt.rn.f16.s32 $d, $0", "hr", h(2049f), 2049).add("cvt.rn.f16.u64 $d, $0", "hl", 0x7C00, -1L);
        cases.run();
    }

    private static long bf16(float x) {
        int bits = Float.floatToRawIntBits(x);
        int rounded = bits + 0x7FFF + (bits >>> 16 & 1) >>> 16;
        return rounded;
    }

    /** The f16 nearest to an exact value: the guess or one of its neighbours. */
    private static long nearestHalf(BigDecimal exact, long guess) {
        if (exact.abs().compareTo(new BigDecimal(65520)) >= 0) {
            return exact.signum() > 0 ? 0x7C00 : 0xFC00;
        }
        long best = -1;
        BigDecimal least = null;
        for (long bits = Math.max(guess & 0x8000, guess - 1); bits <= guess + 1; bits++) {
            float value = Float.float16ToFloat((short) bits);
            if (Float.isFinite(value)) {
                BigDecimal distance = new BigDecimal(value).subtract(exact).abs();
                int order = least == null ? -1 : distance.compareTo(least);
                if (order < 0 || order == 0 && (bits & 1) == 0) {
                    best = bits;
                    least = distance;
                }
            }
        }
        return best;
    }
}

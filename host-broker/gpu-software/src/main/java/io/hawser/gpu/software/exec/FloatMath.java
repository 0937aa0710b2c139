package io.hawser.gpu.software.exec;

/** f32 and f64 arithmetic. The translator adds flushing of subnormals and saturation around these methods. */
public final class FloatMath {
    private static final double LN2 = 0.6931471805599453;
    private static final double LOG2E = 1.4426950408889634;

    private FloatMath() {
    }

    /** .ftz: turns subnormals into zeros of the same sign. */
    public static float flush(float a) {
        return Math.abs(a) < Float.MIN_NORMAL ? Math.copySign(0f, a) : a;
    }

    /** .sat: clamps to 0..1 and turns NaN into 0. */
    public static float saturate(float a) {
        return a > 0f ? Math.min(a, 1f) : 0f;
    }

    /** As {@link #saturate(float)}. */
    public static double saturate(double a) {
        return a > 0 ? Math.min(a, 1) : 0;
    }

    /** Bits of a computed value: a NaN becomes the NaN of PTX's f32 arithmetic. */
    public static int computedBits(float a) {
        return !Float.isNaN(a) ? Float.floatToRawIntBits(a) : 0x7FFFFFFF;
    }

    @Ptx("add.rz.f32")
    public static float addRz(float a, float b) {
        return Rounding.add(a, b, Rounding.RZ);
    }

    @Ptx("sub.rz.f32")
    public static float subRz(float a, float b) {
        return Rounding.add(a, -b, Rounding.RZ);
    }

    @Ptx("mul.rz.f32")
    public static float mulRz(float a, float b) {
        return Rounding.mul(a, b, Rounding.RZ);
    }

    @Ptx({"fma.rz.f32", "mad.rz.f32"})
    public static float fmaRz(float a, float b, float c) {
        return Rounding.fma(a, b, c, Rounding.RZ);
    }

    @Ptx("div.rz.f32")
    public static float divRz(float a, float b) {
        return Rounding.div(a, b, Rounding.RZ);
    }

    @Ptx("rcp.rz.f32")
    public static float rcpRz(float a) {
        return Rounding.div(1, a, Rounding.RZ);
    }

    @Ptx("sqrt.rz.f32")
    public static float sqrtRz(float a) {
        return Rounding.sqrt(a, Rounding.RZ);
    }

    @Ptx("add.rz.f64")
    public static double addRz(double a, double b) {
        return Rounding.add(a, b, Rounding.RZ);
    }

    @Ptx("sub.rz.f64")
    public static double subRz(double a, double b) {
        return Rounding.add(a, -b, Rounding.RZ);
    }

    @Ptx("mul.rz.f64")
    public static double mulRz(double a, double b) {
        return Rounding.mul(a, b, Rounding.RZ);
    }

    @Ptx({"fma.rz.f64", "mad.rz.f64"})
    public static double fmaRz(double a, double b, double c) {
        return Rounding.fma(a, b, c, Rounding.RZ);
    }

    @Ptx("div.rz.f64")
    public static double divRz(double a, double b) {
        return Rounding.div(a, b, Rounding.RZ);
    }

    @Ptx("rcp.rz.f64")
    public static double rcpRz(double a) {
        return Rounding.div(1, a, Rounding.RZ);
    }

    @Ptx("sqrt.rz.f64")
    public static double sqrtRz(double a) {
        return Rounding.sqrt(a, Rounding.RZ);
    }

    @Ptx("add.rm.f32")
    public static float addRm(float a, float b) {
        return Rounding.add(a, b, Rounding.RM);
    }

    @Ptx("sub.rm.f32")
    public static float subRm(float a, float b) {
        return Rounding.add(a, -b, Rounding.RM);
    }

    @Ptx("mul.rm.f32")
    public static float mulRm(float a, float b) {
        return Rounding.mul(a, b, Rounding.RM);
    }

    @Ptx({"fma.rm.f32", "mad.rm.f32"})
    public static float fmaRm(float a, float b, float c) {
        return Rounding.fma(a, b, c, Rounding.RM);
    }

    @Ptx("div.rm.f32")
    public static float divRm(float a, float b) {
        return Rounding.div(a, b, Rounding.RM);
    }

    @Ptx("rcp.rm.f32")
    public static float rcpRm(float a) {
        return Rounding.div(1, a, Rounding.RM);
    }

    @Ptx("sqrt.rm.f32")
    public static float sqrtRm(float a) {
        return Rounding.sqrt(a, Rounding.RM);
    }

    @Ptx("add.rm.f64")
    public static double addRm(double a, double b) {
        return Rounding.add(a, b, Rounding.RM);
    }

    @Ptx("sub.rm.f64")
    public static double subRm(double a, double b) {
        return Rounding.add(a, -b, Rounding.RM);
    }

    @Ptx("mul.rm.f64")
    public static double mulRm(double a, double b) {
        return Rounding.mul(a, b, Rounding.RM);
    }

    @Ptx({"fma.rm.f64", "mad.rm.f64"})
    public static double fmaRm(double a, double b, double c) {
        return Rounding.fma(a, b, c, Rounding.RM);
    }

    @Ptx("div.rm.f64")
    public static double divRm(double a, double b) {
        return Rounding.div(a, b, Rounding.RM);
    }

    @Ptx("rcp.rm.f64")
    public static double rcpRm(double a) {
        return Rounding.div(1, a, Rounding.RM);
    }

    @Ptx("sqrt.rm.f64")
    public static double sqrtRm(double a) {
        return Rounding.sqrt(a, Rounding.RM);
    }

    @Ptx("add.rp.f32")
    public static float addRp(float a, float b) {
        return Rounding.add(a, b, Rounding.RP);
    }

    @Ptx("sub.rp.f32")
    public static float subRp(float a, float b) {
        return Rounding.add(a, -b, Rounding.RP);
    }

    @Ptx("mul.rp.f32")
    public static float mulRp(float a, float b) {
        return Rounding.mul(a, b, Rounding.RP);
    }

    @Ptx({"fma.rp.f32", "mad.rp.f32"})
    public static float fmaRp(float a, float b, float c) {
        return Rounding.fma(a, b, c, Rounding.RP);
    }

    @Ptx("div.rp.f32")
    public static float divRp(float a, float b) {
        return Rounding.div(a, b, Rounding.RP);
    }

    @Ptx("rcp.rp.f32")
    public static float rcpRp(float a) {
        return Rounding.div(1, a, Rounding.RP);
    }

    @Ptx("sqrt.rp.f32")
    public static float sqrtRp(float a) {
        return Rounding.sqrt(a, Rounding.RP);
    }

    @Ptx("add.rp.f64")
    public static double addRp(double a, double b) {
        return Rounding.add(a, b, Rounding.RP);
    }

    @Ptx("sub.rp.f64")
    public static double subRp(double a, double b) {
        return Rounding.add(a, -b, Rounding.RP);
    }

    @Ptx("mul.rp.f64")
    public static double mulRp(double a, double b) {
        return Rounding.mul(a, b, Rounding.RP);
    }

    @Ptx({"fma.rp.f64", "mad.rp.f64"})
    public static double fmaRp(double a, double b, double c) {
        return Rounding.fma(a, b, c, Rounding.RP);
    }

    @Ptx("div.rp.f64")
    public static double divRp(double a, double b) {
        return Rounding.div(a, b, Rounding.RP);
    }

    @Ptx("rcp.rp.f64")
    public static double rcpRp(double a) {
        return Rounding.div(1, a, Rounding.RP);
    }

    @Ptx("sqrt.rp.f64")
    public static double sqrtRp(double a) {
        return Rounding.sqrt(a, Rounding.RP);
    }

    @Ptx({"fma.f32", "mad.f32"})
    public static float fma(float a, float b, float c) {
        return Math.fma(a, b, c);
    }

    @Ptx("abs.f32")
    public static float abs(float a) {
        return Math.abs(a);
    }

    @Ptx("neg.f32")
    public static float neg(float a) {
        return -a;
    }

    /** Returns the other operand when one is NaN; -0 is less than +0. */
    @Ptx("min.f32")
    public static float min(float a, float b) {
        return Float.isNaN(a) ? b : Float.isNaN(b) ? a : Math.min(a, b);
    }

    @Ptx("max.f32")
    public static float max(float a, float b) {
        return Float.isNaN(a) ? b : Float.isNaN(b) ? a : Math.max(a, b);
    }

    /** The magnitude of b with the sign of a, in PTX's order of operands. */
    @Ptx("copysign.f32")
    public static float copysign(float a, float b) {
        return Math.copySign(b, a);
    }

    @Ptx(value = "testp.finite.f32", result = "pred")
    public static int testFinite(float a) {
        return Float.isFinite(a) ? 1 : 0;
    }

    @Ptx(value = "testp.infinite.f32", result = "pred")
    public static int testInfinite(float a) {
        return Float.isInfinite(a) ? 1 : 0;
    }

    @Ptx(value = "testp.number.f32", result = "pred")
    public static int testNumber(float a) {
        return !Float.isNaN(a) ? 1 : 0;
    }

    @Ptx(value = "testp.notanumber.f32", result = "pred")
    public static int testNotANumber(float a) {
        return !Float.isNaN(a) ? 0 : 1;
    }

    @Ptx(value = "testp.normal.f32", result = "pred")
    public static int testNormal(float a) {
        return Float.isFinite(a) && Math.abs(a) >= Float.MIN_NORMAL ? 1 : 0;
    }

    @Ptx(value = "testp.subnormal.f32", result = "pred")
    public static int testSubnormal(float a) {
        return a != 0 && Math.abs(a) < Float.MIN_NORMAL ? 1 : 0;
    }

    @Ptx({"fma.f64", "mad.f64"})
    public static double fma(double a, double b, double c) {
        return Math.fma(a, b, c);
    }

    @Ptx("abs.f64")
    public static double abs(double a) {
        return Math.abs(a);
    }

    @Ptx("neg.f64")
    public static double neg(double a) {
        return -a;
    }

    /** Returns the other operand when one is NaN; -0 is less than +0. */
    @Ptx("min.f64")
    public static double min(double a, double b) {
        return Double.isNaN(a) ? b : Double.isNaN(b) ? a : Math.min(a, b);
    }

    @Ptx("max.f64")
    public static double max(double a, double b) {
        return Double.isNaN(a) ? b : Double.isNaN(b) ? a : Math.max(a, b);
    }

    /** The magnitude of b with the sign of a, in PTX's order of operands. */
    @Ptx("copysign.f64")
    public static double copysign(double a, double b) {
        return Math.copySign(b, a);
    }

    @Ptx(value = "testp.finite.f64", result = "pred")
    public static int testFinite(double a) {
        return Double.isFinite(a) ? 1 : 0;
    }

    @Ptx(value = "testp.infinite.f64", result = "pred")
    public static int testInfinite(double a) {
        return Double.isInfinite(a) ? 1 : 0;
    }

    @Ptx(value = "testp.number.f64", result = "pred")
    public static int testNumber(double a) {
        return !Double.isNaN(a) ? 1 : 0;
    }

    @Ptx(value = "testp.notanumber.f64", result = "pred")
    public static int testNotANumber(double a) {
        return !Double.isNaN(a) ? 0 : 1;
    }

    @Ptx(value = "testp.normal.f64", result = "pred")
    public static int testNormal(double a) {
        return Double.isFinite(a) && Math.abs(a) >= Double.MIN_NORMAL ? 1 : 0;
    }

    @Ptx(value = "testp.subnormal.f64", result = "pred")
    public static int testSubnormal(double a) {
        return a != 0 && Math.abs(a) < Double.MIN_NORMAL ? 1 : 0;
    }

    @Ptx("min.NaN.f32")
    public static float minNan(float a, float b) {
        return Math.min(a, b);
    }

    @Ptx("max.NaN.f32")
    public static float maxNan(float a, float b) {
        return Math.max(a, b);
    }

    private static float xorSign(float magnitude, float a, float b) {
        int sign = (Float.floatToRawIntBits(a) ^ Float.floatToRawIntBits(b)) & Integer.MIN_VALUE;
        return Float.intBitsToFloat(Float.floatToRawIntBits(magnitude) & Integer.MAX_VALUE | sign);
    }

    @Ptx("min.xorsign.abs.f32")
    public static float minXorSign(float a, float b) {
        return xorSign(min(Math.abs(a), Math.abs(b)), a, b);
    }

    @Ptx("max.xorsign.abs.f32")
    public static float maxXorSign(float a, float b) {
        return xorSign(max(Math.abs(a), Math.abs(b)), a, b);
    }

    @Ptx("min.NaN.xorsign.abs.f32")
    public static float minNanXorSign(float a, float b) {
        return Float.isNaN(a) || Float.isNaN(b) ? Float.NaN : minXorSign(a, b);
    }

    @Ptx("max.NaN.xorsign.abs.f32")
    public static float maxNanXorSign(float a, float b) {
        return Float.isNaN(a) || Float.isNaN(b) ? Float.NaN : maxXorSign(a, b);
    }

    @Ptx({"rcp.rn.f32", "rcp.approx.f32"})
    public static float rcp(float a) {
        return 1f / a;
    }

    @Ptx("rcp.rn.f64")
    public static double rcp(double a) {
        return 1 / a;
    }

    @Ptx({"sqrt.rn.f32", "sqrt.approx.f32"})
    public static float sqrt(float a) {
        return (float) Math.sqrt(a);
    }

    @Ptx("sqrt.rn.f64")
    public static double sqrt(double a) {
        return Math.sqrt(a);
    }

    @Ptx("rsqrt.approx.f32")
    public static float rsqrt(float a) {
        return (float) (1 / Math.sqrt(a));
    }

    @Ptx("rsqrt.approx.f64")
    public static double rsqrt(double a) {
        return 1 / Math.sqrt(a);
    }

    // The .ftz forms read and write only the upper 32 bits; library code refines the result from them.
    private static double upperHalf(double a) {
        double cut = Double.longBitsToDouble(Double.doubleToRawLongBits(a) & 0xFFFFFFFF00000000L);
        return Math.abs(cut) < Double.MIN_NORMAL ? Math.copySign(0, cut) : cut;
    }

    @Ptx("rcp.approx.ftz.f64")
    public static double rcpUpper(double a) {
        return Double.isNaN(a) ? a : upperHalf(1 / upperHalf(a));
    }

    @Ptx("rsqrt.approx.ftz.f64")
    public static double rsqrtUpper(double a) {
        return Double.isNaN(a) ? a : upperHalf(1 / Math.sqrt(upperHalf(a)));
    }

    @Ptx("sin.approx.f32")
    public static float sin(float a) {
        return (float) Math.sin(a);
    }

    @Ptx("cos.approx.f32")
    public static float cos(float a) {
        return (float) Math.cos(a);
    }

    @Ptx("tanh.approx.f32")
    public static float tanh(float a) {
        return (float) Math.tanh(a);
    }

    @Ptx("ex2.approx.f32")
    public static float ex2(float a) {
        return (float) Math.exp(a * LN2);
    }

    @Ptx("lg2.approx.f32")
    public static float lg2(float a) {
        return (float) (Math.log(a) * LOG2E);
    }
}

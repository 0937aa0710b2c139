package io.hawser.gpu.software.exec;

/**
 * f16 and bf16 arithmetic on the values' bits. Operations compute in f32, which has twice the digits, so that rounding
 * twice gives the same result as rounding once; fma computes in an odd-rounded double. The packed forms (f16x2, ...)
 * apply these methods to each half.
 */
public final class HalfMath {
    // The NaN that PTX's 16-bit arithmetic returns.
    private static final int NAN = 0x7FFF;

    private HalfMath() {
    }

    /** Value of f16 bits. */
    public static float f16(int bits) {
        return Float.float16ToFloat((short) bits);
    }

    /** f16 bits nearest to a value, ties to even. */
    public static int toF16(float value) {
        return Float.isNaN(value) ? NAN : Float.floatToFloat16(value) & 0xFFFF;
    }

    /** Value of bf16 bits. */
    public static float bf16(int bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /** bf16 bits nearest to a value, ties to even. */
    public static int toBf16(float value) {
        if (Float.isNaN(value)) {
            return NAN;
        }
        int bits = Float.floatToRawIntBits(value);
        return bits + 0x7FFF + (bits >>> 16 & 1) >>> 16;
    }

    /** Lower half of a packed pair. */
    public static int low(int pair) {
        return pair & 0xFFFF;
    }

    /** Upper half. */
    public static int high(int pair) {
        return pair >>> 16;
    }

    /** Lower half as a signed number. */
    public static int lowSigned(int pair) {
        return (short) pair;
    }

    /** Upper half as a signed number. */
    public static int highSigned(int pair) {
        return pair >> 16;
    }

    /** Joins two halves, the lower one first. */
    public static int pair(int low, int high) {
        return high << 16 | low & 0xFFFF;
    }

    /** .ftz of f16. */
    public static int flushF16(int a) {
        return (a & 0x7C00) == 0 ? a & 0x8000 : a;
    }

    /** .ftz of bf16; no instruction of PTX 9.0 has it, but the translator looks it up for all types alike. */
    public static int flushBf16(int a) {
        return (a & 0x7F80) == 0 ? a & 0x8000 : a;
    }

    /** .sat of f16. */
    public static int saturateF16(int a) {
        return toF16(FloatMath.saturate(f16(a)));
    }

    /** .sat of bf16. */
    public static int saturateBf16(int a) {
        return toBf16(FloatMath.saturate(bf16(a)));
    }

    /** .relu of f16: negative values become zero, NaN the canonical NaN. */
    public static int reluF16(int a) {
        return toF16(relu(f16(a)));
    }

    /** .relu of bf16. */
    public static int reluBf16(int a) {
        return toBf16(relu(bf16(a)));
    }

    static float relu(float a) {
        return Float.isNaN(a) ? a : a > 0 ? a : 0f;
    }

    @Ptx("abs.f16")
    public static int absF16(int a) {
        return a & 0x7FFF;
    }

    @Ptx("abs.bf16")
    public static int absBf16(int a) {
        return a & 0x7FFF;
    }

    @Ptx("neg.f16")
    public static int negF16(int a) {
        return a ^ 0x8000;
    }

    @Ptx("neg.bf16")
    public static int negBf16(int a) {
        return a ^ 0x8000;
    }

    @Ptx("add.f16")
    public static int addF16(int a, int b) {
        return toF16(f16(a) + f16(b));
    }

    @Ptx("sub.f16")
    public static int subF16(int a, int b) {
        return toF16(f16(a) - f16(b));
    }

    @Ptx("mul.f16")
    public static int mulF16(int a, int b) {
        return toF16(f16(a) * f16(b));
    }

    @Ptx("fma.f16")
    public static int fmaF16(int a, int b, int c) {
        return toF16(Rounding.toFloatOdd(Rounding.fmaOdd(f16(a), f16(b), f16(c))));
    }

    @Ptx("min.f16")
    public static int minF16(int a, int b) {
        return toF16(FloatMath.min(f16(a), f16(b)));
    }

    @Ptx("max.f16")
    public static int maxF16(int a, int b) {
        return toF16(FloatMath.max(f16(a), f16(b)));
    }

    @Ptx("min.NaN.f16")
    public static int minNanF16(int a, int b) {
        return toF16(Math.min(f16(a), f16(b)));
    }

    @Ptx("max.NaN.f16")
    public static int maxNanF16(int a, int b) {
        return toF16(Math.max(f16(a), f16(b)));
    }

    @Ptx("min.xorsign.abs.f16")
    public static int minXorSignF16(int a, int b) {
        return toF16(FloatMath.minXorSign(f16(a), f16(b)));
    }

    @Ptx("max.xorsign.abs.f16")
    public static int maxXorSignF16(int a, int b) {
        return toF16(FloatMath.maxXorSign(f16(a), f16(b)));
    }

    @Ptx("ex2.approx.f16")
    public static int ex2F16(int a) {
        return toF16(FloatMath.ex2(f16(a)));
    }

    @Ptx("tanh.approx.f16")
    public static int tanhF16(int a) {
        return toF16(FloatMath.tanh(f16(a)));
    }

    @Ptx("add.bf16")
    public static int addBf16(int a, int b) {
        return toBf16(bf16(a) + bf16(b));
    }

    @Ptx("sub.bf16")
    public static int subBf16(int a, int b) {
        return toBf16(bf16(a) - bf16(b));
    }

    @Ptx("mul.bf16")
    public static int mulBf16(int a, int b) {
        return toBf16(bf16(a) * bf16(b));
    }

    @Ptx("fma.bf16")
    public static int fmaBf16(int a, int b, int c) {
        return toBf16(Rounding.toFloatOdd(Rounding.fmaOdd(bf16(a), bf16(b), bf16(c))));
    }

    @Ptx("min.bf16")
    public static int minBf16(int a, int b) {
        return toBf16(FloatMath.min(bf16(a), bf16(b)));
    }

    @Ptx("max.bf16")
    public static int maxBf16(int a, int b) {
        return toBf16(FloatMath.max(bf16(a), bf16(b)));
    }

    @Ptx("min.NaN.bf16")
    public static int minNanBf16(int a, int b) {
        return toBf16(Math.min(bf16(a), bf16(b)));
    }

    @Ptx("max.NaN.bf16")
    public static int maxNanBf16(int a, int b) {
        return toBf16(Math.max(bf16(a), bf16(b)));
    }

    @Ptx("min.xorsign.abs.bf16")
    public static int minXorSignBf16(int a, int b) {
        return toBf16(FloatMath.minXorSign(bf16(a), bf16(b)));
    }

    @Ptx("max.xorsign.abs.bf16")
    public static int maxXorSignBf16(int a, int b) {
        return toBf16(FloatMath.maxXorSign(bf16(a), bf16(b)));
    }

    @Ptx("ex2.approx.bf16")
    public static int ex2Bf16(int a) {
        return toBf16(FloatMath.ex2(bf16(a)));
    }

    @Ptx("tanh.approx.bf16")
    public static int tanhBf16(int a) {
        return toBf16(FloatMath.tanh(bf16(a)));
    }
}

package io.hawser.gpu.software.exec;

/**
 * Integer arithmetic of 16, 32 and 64 bits. Narrow operands arrive widened by their type; the store truncates results.
 */
public final class IntMath {
    private IntMath() {
    }

    private static long wide(int unsigned) {
        return unsigned & 0xFFFFFFFFL;
    }

    @Ptx("mul.hi.s16")
    public static int mulHiS16(int a, int b) {
        return a * b >> 16;
    }

    @Ptx("mul.hi.u16")
    public static int mulHiU16(int a, int b) {
        return a * b >>> 16;
    }

    @Ptx("mul.hi.s32")
    public static int mulHiS32(int a, int b) {
        return (int) ((long) a * b >> 32);
    }

    @Ptx("mul.hi.u32")
    public static int mulHiU32(int a, int b) {
        return (int) (wide(a) * wide(b) >>> 32);
    }

    @Ptx("mul.hi.s64")
    public static long mulHiS64(long a, long b) {
        return Math.multiplyHigh(a, b);
    }

    @Ptx("mul.hi.u64")
    public static long mulHiU64(long a, long b) {
        return Math.unsignedMultiplyHigh(a, b);
    }

    @Ptx(value = "mul.wide.s16", result = "s32")
    public static int mulWideS16(int a, int b) {
        return a * b;
    }

    @Ptx(value = "mul.wide.u16", result = "u32")
    public static int mulWideU16(int a, int b) {
        return a * b;
    }

    @Ptx(value = "mul.wide.s32", result = "s64")
    public static long mulWideS32(int a, int b) {
        return (long) a * b;
    }

    @Ptx(value = "mul.wide.u32", result = "u64")
    public static long mulWideU32(int a, int b) {
        return wide(a) * wide(b);
    }

    @Ptx({"mad.lo.s16", "mad.lo.u16", "mad.lo.s32", "mad.lo.u32"})
    public static int madLo32(int a, int b, int c) {
        return a * b + c;
    }

    @Ptx({"mad.lo.s64", "mad.lo.u64"})
    public static long madLo64(long a, long b, long c) {
        return a * b + c;
    }

    @Ptx("mad.hi.s16")
    public static int madHiS16(int a, int b, int c) {
        return mulHiS16(a, b) + c;
    }

    @Ptx("mad.hi.u16")
    public static int madHiU16(int a, int b, int c) {
        return mulHiU16(a, b) + c;
    }

    @Ptx("mad.hi.s32")
    public static int madHiS32(int a, int b, int c) {
        return mulHiS32(a, b) + c;
    }

    @Ptx("mad.hi.u32")
    public static int madHiU32(int a, int b, int c) {
        return mulHiU32(a, b) + c;
    }

    @Ptx("mad.hi.sat.s32")
    public static int madHiSat(int a, int b, int c) {
        return addSat(mulHiS32(a, b), c);
    }

    @Ptx("mad.hi.s64")
    public static long madHiS64(long a, long b, long c) {
        return Math.multiplyHigh(a, b) + c;
    }

    @Ptx("mad.hi.u64")
    public static long madHiU64(long a, long b, long c) {
        return Math.unsignedMultiplyHigh(a, b) + c;
    }

    @Ptx(value = {"mad.wide.s16"}, args = "T,T,s32", result = "s32")
    public static int madWideS16(int a, int b, int c) {
        return a * b + c;
    }

    @Ptx(value = {"mad.wide.u16"}, args = "T,T,u32", result = "u32")
    public static int madWideU16(int a, int b, int c) {
        return a * b + c;
    }

    @Ptx(value = "mad.wide.s32", args = "T,T,s64", result = "s64")
    public static long madWideS32(int a, int b, long c) {
        return (long) a * b + c;
    }

    @Ptx(value = "mad.wide.u32", args = "T,T,u64", result = "u64")
    public static long madWideU32(int a, int b, long c) {
        return wide(a) * wide(b) + c;
    }

    private static long product24S(int a, int b) {
        return (long) (a << 8 >> 8) * (b << 8 >> 8);
    }

    private static long product24U(int a, int b) {
        return (long) (a & 0xFFFFFF) * (b & 0xFFFFFF);
    }

    @Ptx("mul24.lo.s32")
    public static int mul24LoS(int a, int b) {
        return (int) product24S(a, b);
    }

    @Ptx("mul24.lo.u32")
    public static int mul24LoU(int a, int b) {
        return (int) product24U(a, b);
    }

    @Ptx("mul24.hi.s32")
    public static int mul24HiS(int a, int b) {
        return (int) (product24S(a, b) >> 16);
    }

    @Ptx("mul24.hi.u32")
    public static int mul24HiU(int a, int b) {
        return (int) (product24U(a, b) >>> 16);
    }

    @Ptx("mad24.lo.s32")
    public static int mad24LoS(int a, int b, int c) {
        return mul24LoS(a, b) + c;
    }

    @Ptx("mad24.lo.u32")
    public static int mad24LoU(int a, int b, int c) {
        return mul24LoU(a, b) + c;
    }

    @Ptx("mad24.hi.s32")
    public static int mad24HiS(int a, int b, int c) {
        return mul24HiS(a, b) + c;
    }

    @Ptx("mad24.hi.u32")
    public static int mad24HiU(int a, int b, int c) {
        return mul24HiU(a, b) + c;
    }

    @Ptx("mad24.hi.sat.s32")
    public static int mad24HiSat(int a, int b, int c) {
        return addSat(mul24HiS(a, b), c);
    }

    @Ptx({"sad.s16", "sad.u16", "sad.s32"})
    public static int sadS32(int a, int b, int c) {
        return c + (a < b ? b - a : a - b);
    }

    @Ptx("sad.u32")
    public static int sadU32(int a, int b, int c) {
        return c + (Integer.compareUnsigned(a, b) < 0 ? b - a : a - b);
    }

    @Ptx("sad.s64")
    public static long sadS64(long a, long b, long c) {
        return c + (a < b ? b - a : a - b);
    }

    @Ptx("sad.u64")
    public static long sadU64(long a, long b, long c) {
        return c + (Long.compareUnsigned(a, b) < 0 ? b - a : a - b);
    }

    // PTX leaves division by zero unspecified. NVIDIA's GPUs return all ones, and so do these methods.
    @Ptx({"div.s16", "div.u16", "div.s32"})
    public static int divS32(int a, int b) {
        return b == 0 ? -1 : a / b;
    }

    @Ptx("div.u32")
    public static int divU32(int a, int b) {
        return b == 0 ? -1 : Integer.divideUnsigned(a, b);
    }

    @Ptx("div.s64")
    public static long divS64(long a, long b) {
        return b == 0 ? -1 : a / b;
    }

    @Ptx("div.u64")
    public static long divU64(long a, long b) {
        return b == 0 ? -1 : Long.divideUnsigned(a, b);
    }

    @Ptx({"rem.s16", "rem.u16", "rem.s32"})
    public static int remS32(int a, int b) {
        return b == 0 ? -1 : a % b;
    }

    @Ptx("rem.u32")
    public static int remU32(int a, int b) {
        return b == 0 ? -1 : Integer.remainderUnsigned(a, b);
    }

    @Ptx("rem.s64")
    public static long remS64(long a, long b) {
        return b == 0 ? -1 : a % b;
    }

    @Ptx("rem.u64")
    public static long remU64(long a, long b) {
        return b == 0 ? -1 : Long.remainderUnsigned(a, b);
    }

    @Ptx({"abs.s16", "abs.s32"})
    public static int abs32(int a) {
        return Math.abs(a);
    }

    @Ptx("abs.s64")
    public static long abs64(long a) {
        return Math.abs(a);
    }

    @Ptx({"min.s16", "min.u16", "min.s32"})
    public static int minS32(int a, int b) {
        return Math.min(a, b);
    }

    @Ptx({"max.s16", "max.u16", "max.s32"})
    public static int maxS32(int a, int b) {
        return Math.max(a, b);
    }

    @Ptx({"min.relu.s32", "min.relu.s16"})
    public static int minRelu(int a, int b) {
        return Math.max(Math.min(a, b), 0);
    }

    @Ptx({"max.relu.s32", "max.relu.s16"})
    public static int maxRelu(int a, int b) {
        return Math.max(Math.max(a, b), 0);
    }

    @Ptx("min.u32")
    public static int minU32(int a, int b) {
        return a + Integer.MIN_VALUE < b + Integer.MIN_VALUE ? a : b;
    }

    @Ptx("max.u32")
    public static int maxU32(int a, int b) {
        return a + Integer.MIN_VALUE > b + Integer.MIN_VALUE ? a : b;
    }

    @Ptx("min.s64")
    public static long minS64(long a, long b) {
        return Math.min(a, b);
    }

    @Ptx("max.s64")
    public static long maxS64(long a, long b) {
        return Math.max(a, b);
    }

    @Ptx("min.u64")
    public static long minU64(long a, long b) {
        return Long.compareUnsigned(a, b) < 0 ? a : b;
    }

    @Ptx("max.u64")
    public static long maxU64(long a, long b) {
        return Long.compareUnsigned(a, b) > 0 ? a : b;
    }

    @Ptx("add.sat.s32")
    public static int addSat(int a, int b) {
        return Math.clamp((long) a + b, Integer.MIN_VALUE, Integer.MAX_VALUE);
    }

    @Ptx("sub.sat.s32")
    public static int subSat(int a, int b) {
        return Math.clamp((long) a - b, Integer.MIN_VALUE, Integer.MAX_VALUE);
    }

    // Carry chains: the translator keeps CC.CF in a register and calls one method for the result and one for the carry.

    @Ptx(value = "addc.u32", args = "T,T,u32")
    public static int addCarry(int a, int b, int carry) {
        return a + b + carry;
    }

    @Ptx(value = "addc.u64", args = "T,T,u32")
    public static long addCarry(long a, long b, int carry) {
        return a + b + carry;
    }

    @Ptx(value = "carry.u32", args = "T,T,u32", result = "u32")
    public static int carryOut(int a, int b, int carry) {
        return (int) (wide(a) + wide(b) + carry >>> 32);
    }

    @Ptx(value = "carry.u64", args = "T,T,u32", result = "u32")
    public static int carryOut(long a, long b, int carry) {
        long sum = a + b + carry;
        return (int) ((a & b | (a | b) & ~sum) >>> 63);
    }

    // GPUs subtract by adding the complement: after sub.cc the carry is 1 where nothing was borrowed. PTX ISA 9.0 calls
    // the flag a borrow; for chains of subtractions both are equivalent. nvcc's division of 128 bits reads the flag
    // with addc.
    @Ptx(value = "subc.u32", args = "T,T,u32")
    public static int subtractWithCarry(int a, int b, int carry) {
        return addCarry(a, ~b, carry);
    }

    @Ptx(value = "subc.u64", args = "T,T,u32")
    public static long subtractWithCarry(long a, long b, int carry) {
        return addCarry(a, ~b, carry);
    }

    @Ptx(value = "subcarry.u32", args = "T,T,u32", result = "u32")
    public static int carryOutOfSubtraction(int a, int b, int carry) {
        return carryOut(a, ~b, carry);
    }

    @Ptx(value = "subcarry.u64", args = "T,T,u32", result = "u32")
    public static int carryOutOfSubtraction(long a, long b, int carry) {
        return carryOut(a, ~b, carry);
    }

    @Ptx("dp4a.s32.s32")
    public static int dp4aSS(int a, int b, int c) {
        return dp4a(a, b, c, true, true);
    }

    @Ptx("dp4a.s32.u32")
    public static int dp4aSU(int a, int b, int c) {
        return dp4a(a, b, c, true, false);
    }

    @Ptx("dp4a.u32.s32")
    public static int dp4aUS(int a, int b, int c) {
        return dp4a(a, b, c, false, true);
    }

    @Ptx("dp4a.u32.u32")
    public static int dp4aUU(int a, int b, int c) {
        return dp4a(a, b, c, false, false);
    }

    private static int dp4a(int a, int b, int c, boolean signedA, boolean signedB) {
        int sum = c;
        for (int shift = 0; shift < 32; shift += 8) {
            int x = signedA ? (byte) (a >> shift) : a >>> shift & 0xFF;
            int y = signedB ? (byte) (b >> shift) : b >>> shift & 0xFF;
            sum += x * y;
        }
        return sum;
    }

    private static int dp2a(int a, int b, int c, boolean signedA, boolean signedB) {
        int sum = c;
        for (int i = 0; i < 2; i++) {
            int x = signedA ? (short) (a >> 16 * i) : a >>> 16 * i & 0xFFFF;
            int y = signedB ? (byte) (b >> 8 * i) : b >>> 8 * i & 0xFF;
            sum += x * y;
        }
        return sum;
    }

    @Ptx("dp2a.lo.s32.s32")
    public static int dp2aLoSS(int a, int b, int c) {
        return dp2a(a, b, c, true, true);
    }

    @Ptx("dp2a.lo.s32.u32")
    public static int dp2aLoSU(int a, int b, int c) {
        return dp2a(a, b, c, true, false);
    }

    @Ptx("dp2a.lo.u32.s32")
    public static int dp2aLoUS(int a, int b, int c) {
        return dp2a(a, b, c, false, true);
    }

    @Ptx("dp2a.lo.u32.u32")
    public static int dp2aLoUU(int a, int b, int c) {
        return dp2a(a, b, c, false, false);
    }

    @Ptx("dp2a.hi.s32.s32")
    public static int dp2aHiSS(int a, int b, int c) {
        return dp2a(a, b >> 16, c, true, true);
    }

    @Ptx("dp2a.hi.s32.u32")
    public static int dp2aHiSU(int a, int b, int c) {
        return dp2a(a, b >> 16, c, true, false);
    }

    @Ptx("dp2a.hi.u32.s32")
    public static int dp2aHiUS(int a, int b, int c) {
        return dp2a(a, b >> 16, c, false, true);
    }

    @Ptx("dp2a.hi.u32.u32")
    public static int dp2aHiUU(int a, int b, int c) {
        return dp2a(a, b >> 16, c, false, false);
    }
}

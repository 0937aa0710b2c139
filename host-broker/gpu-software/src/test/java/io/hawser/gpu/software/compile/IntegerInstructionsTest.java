package io.hawser.gpu.software.compile;

import static io.hawser.gpu.software.compile.Cases.u;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.ValueLayout;
import java.math.BigInteger;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Compares integer instructions with exact results. */
class IntegerInstructionsTest {
    private static final BigInteger MASK = BigInteger.ONE.shiftLeft(128).subtract(BigInteger.ONE);

    private static final int[] EDGES = {0, 1, -1, 2, 31, 32, 255, 0x7FFF, 0x8000, 0xFFFF, 0x12345678, 0x80000000,
        0x7FFFFFFF, 0xFEDCBA98};
    private static final BigInteger TWO_64 = BigInteger.ONE.shiftLeft(64);

    private static BigInteger unsigned(long value) {
        return value < 0 ? BigInteger.valueOf(value).add(TWO_64) : BigInteger.valueOf(value);
    }

    @Test
    void shouldComputeExactlyIn32Bits() throws Exception {
        Cases cases = new Cases();
        for (int a : EDGES) {
            for (int b : EDGES) {
                long ua = u(a);
                long ub = u(b);
                cases.add("add.s32 $d, $0, $1", "rrr", u(a + b), ua, ub)
                    .add("sub.u32 $d, $0, $1", "rrr", u(a - b), ua, ub)
                    .add("add.sat.s32 $d, $0, $1", "rrr", u(Math.clamp((long) a + b, Integer.MIN_VALUE,
                        Integer.MAX_VALUE)), ua, ub)
                    .add("mul.lo.s32 $d, $0, $1", "rrr", u(a * b), ua, ub)
                    .add("mul.hi.s32 $d, $0, $1", "rrr", u((int) ((long) a * b >> 32)), ua, ub)
                    .add("mul.hi.u32 $d, $0, $1", "rrr", ua * ub >>> 32, ua, ub)
                    .add("mul.wide.s32 $d, $0, $1", "lrr", (long) a * b, ua, ub)
                    .add("mul.wide.u32 $d, $0, $1", "lrr", ua * ub, ua, ub)
                    .add("mad.wide.s32 $d, $0, $1, $2", "lrrl", (long) a * b + 77, ua, ub, 77)
                    .add("min.s32 $d, $0, $1", "rrr", u(Math.min(a, b)), ua, ub)
                    .add("max.u32 $d, $0, $1", "rrr", Math.max(ua, ub), ua, ub)
                    .add("sad.u32 $d, $0, $1, $2", "rrrr", u((int) (Math.abs(ua - ub) + 3)), ua, ub, 3)
                    .add("setp.lt.s32 $d, $0, $1", "prr", a < b ? 1 : 0, ua, ub)
                    .add("setp.hs.u32 $d, $0, $1", "prr", ua >= ub ? 1 : 0, ua, ub)
                    .add("set.le.u32.s32 $d, $0, $1", "rrr", a <= b ? u(-1) : 0, ua, ub);
                if (b != 0) {
                    cases.add("div.s32 $d, $0, $1", "rrr", u(a / b), ua, ub)
                        .add("rem.s32 $d, $0, $1", "rrr", u(a % b), ua, ub)
                        .add("div.u32 $d, $0, $1", "rrr", ua / ub, ua, ub)
                        .add("rem.u32 $d, $0, $1", "rrr", ua % ub, ua, ub);
                }
            }
        }
        cases.run();
    }

    @Test
    void shouldComputeExactlyIn64Bits() throws Exception {
        Cases cases = new Cases();
        long[] edges = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, 0x123456789ABCDEFL, -77, 1L << 32};
        for (long a : edges) {
            for (long b : edges) {
                BigInteger product = unsigned(a).multiply(unsigned(b));
                cases.add("mul.hi.u64 $d, $0, $1", "lll", product.shiftRight(64).longValue(), a, b)
                    .add("mul.lo.u64 $d, $0, $1", "lll", a * b, a, b)
                    .add("mul.hi.s64 $d, $0, $1", "lll",
                        BigInteger.valueOf(a).multiply(BigInteger.valueOf(b)).shiftRight(64).longValue(), a, b)
                    .add("max.s64 $d, $0, $1", "lll", Math.max(a, b), a, b)
                    .add("min.u64 $d, $0, $1", "lll", unsigned(a).min(unsigned(b)).longValue(), a, b)
                    .add("setp.gt.u64 $d, $0, $1", "pll", unsigned(a).compareTo(unsigned(b)) > 0 ? 1 : 0, a, b)
                    .add("xor.b64 $d, $0, $1", "lll", a ^ b, a, b);
                if (b != 0) {
                    cases.add("div.u64 $d, $0, $1", "lll", unsigned(a).divide(unsigned(b)).longValue(), a, b)
                        .add("rem.s64 $d, $0, $1", "lll", a % b, a, b);
                }
            }
        }
        cases.run();
    }

    @Test
    void shouldComputeExactlyIn16Bits() throws Exception {
        Cases cases = new Cases();
        int[] edges = {0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x1234};
        for (int a : edges) {
            for (int b : edges) {
                short sa = (short) a;
                short sb = (short) b;
                cases.add("add.s16 $d, $0, $1", "hhh", a + b & 0xFFFF, a, b)
                    .add("mul.lo.u16 $d, $0, $1", "hhh", a * b & 0xFFFF, a, b)
                    .add("mul.hi.s16 $d, $0, $1", "hhh", sa * sb >> 16 & 0xFFFF, a, b)
                    .add("mul.hi.u16 $d, $0, $1", "hhh", (long) a * b >> 16 & 0xFFFF, a, b)
                    .add("mul.wide.s16 $d, $0, $1", "rhh", u(sa * sb), a, b)
                    .add("min.s16 $d, $0, $1", "hhh", Math.min(sa, sb) & 0xFFFF, a, b)
                    .add("max.u16 $d, $0, $1", "hhh", Math.max(a, b), a, b)
                    .add("setp.lt.s16 $d, $0, $1", "phh", sa < sb ? 1 : 0, a, b)
                    .add("setp.lt.u16 $d, $0, $1", "phh", a < b ? 1 : 0, a, b)
                    .add("shr.s16 $d, $0, 3", "hh", sa >> 3 & 0xFFFF, a)
                    .add("shr.u16 $d, $0, 20", "hh", 0, a)
                    .add("shl.b16 $d, $0, 4", "hh", a << 4 & 0xFFFF, a)
                    .add("not.b16 $d, $0", "hh", ~a & 0xFFFF, a)
                    .add("cvt.s32.s16 $d, $0", "rh", u(sa), a)
                    .add("cvt.s64.s8 $d, $0", "lh", (byte) a, a)
                    .add("cvt.u32.u8 $d, $0", "rh", a & 0xFF, a)
                    .add("abs.s16 $d, $0", "hh", Math.abs(sa) & 0xFFFF, a);
                if (b != 0) {
                    cases.add("div.s16 $d, $0, $1", "hhh", sa / sb & 0xFFFF, a, b)
                        .add("rem.u16 $d, $0, $1", "hhh", a % b, a, b);
                }
            }
        }
        cases.run();
    }

    @Test
    void shouldShiftAsPtxDoesBeyondTheWidth() throws Exception {
        Cases cases = new Cases();
        for (int a : EDGES) {
            for (int s : new int[] {0, 1, 31, 32, 33, 63, 64, 200, -1}) {
                long wide = (long) a << 32 | u(a);
                boolean over = Integer.compareUnsigned(s, 31) > 0;
                boolean over64 = Integer.compareUnsigned(s, 63) > 0;
                cases.add("shl.b32 $d, $0, $1", "rrr", over ? 0 : u(a << s), u(a), u(s))
                    .add("shr.u32 $d, $0, $1", "rrr", over ? 0 : u(a >>> s), u(a), u(s))
                    .add("shr.s32 $d, $0, $1", "rrr", u(over ? a >> 31 : a >> s), u(a), u(s))
                    .add("shl.b64 $d, $0, $1", "llr", over64 ? 0 : wide << s, wide, u(s))
                    .add("shr.s64 $d, $0, $1", "llr", over64 ? wide >> 63 : wide >> s, wide, u(s))
                    .add("shr.u64 $d, $0, $1", "llr", over64 ? 0 : wide >>> s, wide, u(s))
                    .add("shf.l.wrap.b32 $d, $0, $1, $2", "rrrr",
                        u((int) (((long) ~a << 32 | u(a)) << (s & 31) >>> 32)),
                        u(a), u(~a), u(s))
                    .add("shf.r.clamp.b32 $d, $0, $1, $2", "rrrr",
                        over ? u(~a) : u((int) (((long) ~a << 32 | u(a)) >>> s)), u(a), u(~a), u(s));
            }
        }
        cases.run();
    }

    @Test
    void shouldWorkOnBitFields() throws Exception {
        Cases cases = new Cases();
        for (int a : EDGES) {
            long wide = (long) a << 32 | u(a * 31);
            for (int[] field : new int[][] {{0, 8}, {4, 32}, {31, 1}, {31, 5}, {32, 4}, {8, 0}, {0, 32}, {40, 10},
                {255, 255}, {3, 29}}) {
                int pos = field[0];
                int len = field[1];
                cases.add("bfe.u32 $d, $0, $1, $2", "rrrr", field(u(a), 32, pos, len, false), u(a), pos, len)
                    .add("bfe.s32 $d, $0, $1, $2", "rrrr", u((int) field(u(a), 32, pos, len, true)), u(a), pos, len)
                    .add("bfe.u64 $d, $0, $1, $2", "llrr", field(wide, 64, pos, len, false), wide, pos, len)
                    .add("bfe.s64 $d, $0, $1, $2", "llrr", field(wide, 64, pos, len, true), wide, pos, len)
                    .add("bfi.b32 $d, $0, $1, $2, $3", "rrrrr", insert(u(~a), u(a), 32, pos, len), u(~a), u(a), pos,
                        len)
                    .add("bfi.b64 $d, $0, $1, $2, $3", "lllrr", insert(~wide, wide, 64, pos, len), ~wide, wide, pos,
                        len);
            }
            cases.add("popc.b32 $d, $0", "rr", Integer.bitCount(a), u(a))
                .add("clz.b64 $d, $0", "rl", Long.numberOfLeadingZeros(wide), wide)
                .add("brev.b32 $d, $0", "rr", u(Integer.reverse(a)), u(a))
                .add("bfind.u32 $d, $0", "rr", u(a == 0 ? -1 : 31 - Integer.numberOfLeadingZeros(a)), u(a))
                .add("bfind.shiftamt.s32 $d, $0", "rr",
                    u(a == 0 || a == -1 ? -1 : Integer.numberOfLeadingZeros(a < 0 ? ~a : a)), u(a))
                .add("lop3.b32 $d, $0, $1, $2, 0x96", "rrrr", u(a ^ 0x0F0F0F0F ^ 0x33333333), u(a), 0x0F0F0F0FL,
                    0x33333333L)
                .add("lop3.b32 $d, $0, $1, $2, 0xE8", "rrrr",
                    u(a & 0x0F0F0F0F | a & 0x33333333 | 0x0F0F0F0F & 0x33333333), u(a), 0x0F0F0F0FL, 0x33333333L)
                .add("bmsk.clamp.b32 $d, $0, 4", "rr", a < 0 || a > 31 ? 0 : u(0xF << a), u(a))
                .add("szext.wrap.s32 $d, $0, 8", "rr", u((byte) a), u(a))
                .add("fns.b32 $d, $0, 0, 1", "rr", u(a == 0 ? -1 : Integer.numberOfTrailingZeros(a)), u(a));
        }
        cases.add("max.s16x2.relu $d, $0, $1", "rrr", 0x00007FFFL, 0x80017FFFL, 0xFFFF8000L)
            .add("min.relu.s32 $d, $0, $1", "rrr", 0, u(-5), 7);
        cases.add("vabsdiff4.u32.u32.u32 $d, $0, $1, 9", "rrr", 0x016F7F0EL, 0x80FF0102L, 0x7F908010L)
            .add("vabsdiff4.u32.u32.u32.add $d, $0, $1, 5", "rrr", 0x102L, 0x80FF0102L, 0x7F908010L)
            .add("vabsdiff2.u32.u32.u32 $d, $0, $1, 9", "rrr", 0x016F7F0EL, 0x80FF0102L, 0x7F908010L)
            .add("vabsdiff2.u32.u32.u32.add $d, $0, $1, 5", "rrr", 0x8082L, 0x80FF0102L, 0x7F908010L);
        cases.add("prmt.b32 $d, $0, $1, 0xFE10", "rrr", expectedPrmt(), 0x80FF0102L, 0x7F908010L)
            .add("prmt.b32.rc16 $d, $0, 0, 1", "rr", 0x80FF80FFL, 0x80FF0102L)
            .add("prmt.b32.f4e $d, $0, $1, 3", "rrr", 0x90801080L, 0x80FF0102L, 0x7F908010L)
            .add("prmt.b32.ecl $d, $0, 0, 2", "rr", 0x80FFFFFFL, 0x80FF0102L);
        cases.run();
    }

    // Copies bytes 0 and 1; gives the signs of bytes 6 and 7: 0x90 is negative, 0x7F is not.
    private static long expectedPrmt() {
        return 0x02L | 0x01L << 8 | 0xFFL << 16;
    }

    private static long field(long a, int width, int pos, int len, boolean signed) {
        if (len == 0) {
            return 0;
        }
        boolean sign = signed && (a >>> Math.min(pos + len - 1, width - 1) & 1) != 0;
        long result = 0;
        for (int i = 0; i < width; i++) {
            boolean bit = i < len && pos + i < width ? (a >>> pos + i & 1) != 0 : sign;
            result |= bit ? 1L << i : 0;
        }
        return result;
    }

    private static long insert(long from, long into, int width, int pos, int len) {
        long result = into;
        for (int i = 0; i < len && pos + i < width; i++) {
            result = result & ~(1L << pos + i) | (from >>> i & 1) << pos + i;
        }
        return width == 32 ? result & 0xFFFFFFFFL : result;
    }

    @Test
    void shouldCarryThroughChains() throws Exception {
        Cases cases = new Cases();
        Random random = new Random(5);
        for (int i = 0; i < 40; i++) {
            long a = i < 4 ? -1L >> i : random.nextLong();
            long b = i < 2 ? 1 : random.nextLong();
            String split = "{ .reg .b32 %al, %ah, %bl, %bh, %cl, %ch; mov.b64 {%al, %ah}, $0; mov.b64 {%bl, %bh}, $1; ";
            cases.add(split + "add.cc.u32 %cl, %al, %bl; addc.u32 %ch, %ah, %bh; mov.b64 $d, {%cl, %ch}; }", "lll",
                a + b, a, b);
            cases.add(split + "sub.cc.u32 %al, %al, %bl; subc.cc.u32 %ah, %ah, %bh; mov.b64 $d, {%al, %ah}; }", "lll",
                a - b, a, b);
            cases.add(split + "mul.lo.u32 %cl, %al, %bl; mul.hi.u32 %ch, %al, %bl; mad.lo.cc.u32 %ch, %al, %bh, %ch; "
                + "mad.lo.u32 %ch, %ah, %bl, %ch; mov.b64 $d, {%cl, %ch}; }", "lll", a * b, a, b);
            cases.add("{ .reg .b64 %t; add.cc.u64 %t, $0, $1; addc.u64 $d, 0, 0; }", "lll",
                unsigned(a).add(unsigned(b)).shiftRight(64).longValue(), a, b);
            // Like the hardware's carry, from which nvcc's division of 128 bits finds out whether something was
            // borrowed.
            cases.add("{ .reg .b64 %t; sub.cc.u64 %t, $0, $1; addc.u64 $d, 0, 0; }", "lll",
                Long.compareUnsigned(a, b) < 0 ? 0 : 1, a, b);
            cases.add("{ .reg .b64 %t; sub.cc.u64 %t, $0, $1; subc.u64 $d, 0, 0; }", "lll",
                Long.compareUnsigned(a, b) < 0 ? -1 : 0, a, b);
            cases.add("{ .reg .b64 %t; mad.lo.cc.u64 %t, $0, $1, $1; madc.hi.u64 $d, $0, $1, 0; }", "lll",
                unsigned(a).multiply(unsigned(b)).add(unsigned(b)).shiftRight(64).longValue(), a, b);
        }
        cases.run();
    }

    @Test
    void shouldDivide128BitsInCodeOfTheCompiler() throws Exception {
        int threads = 64;
        Random random = new Random(6);
        BigInteger[] operands = new BigInteger[2 * threads];
        try (Device device = new Device(Device.resource("wide-sm75.ptx"))) {
            long p = device.allocate(96L * threads);
            for (int t = 0; t < threads; t++) {
                for (int k = 0; k < 2; k++) {
                    // Operands of every length reach each path of the division; the divisor is never 0.
                    int bits = random.nextInt(128);
                    BigInteger value = new BigInteger(1 + bits, random).setBit(bits);
                    operands[2 * t + k] = value;
                    put(device, p + 96L * t + 16L * k, value);
                }
            }
            device.launch("divide", 1, threads, p);
            for (int t = 0; t < threads; t++) {
                BigInteger a = operands[2 * t];
                BigInteger b = operands[2 * t + 1];
                BigInteger[] expected = {a.divide(b), a.mod(b), signed(a).divide(signed(b)),
                    signed(a).remainder(signed(b))};
                for (int k = 0; k < 4; k++) {
                    assertEquals(expected[k].and(MASK), get(device, p + 96L * t + 32 + 16L * k),
                        a + " by " + b + " " + k);
                }
            }
        }
    }

    private static BigInteger signed(BigInteger bits) {
        return bits.testBit(127) ? bits.subtract(BigInteger.ONE.shiftLeft(128)) : bits;
    }

    private static void put(Device device, long address, BigInteger value) {
        device.at(address, 16).set(ValueLayout.JAVA_LONG_UNALIGNED, 0, value.longValue());
        device.at(address, 16).set(ValueLayout.JAVA_LONG_UNALIGNED, 8, value.shiftRight(64).longValue());
    }

    private static BigInteger get(Device device, long address) {
        return unsigned(device.at(address, 16).get(ValueLayout.JAVA_LONG_UNALIGNED, 8)).shiftLeft(64)
            .add(unsigned(device.at(address, 16).get(ValueLayout.JAVA_LONG_UNALIGNED, 0)));
    }

    @Test
    void shouldSelectAndMovePacked() throws Exception {
        new Cases().add("selp.b32 $d, $0, $1, $2", "rrrp", 5, 5, 6, 1)
            .add("selp.f32 $d, $0, $1, $2", "fffp", Cases.f(6), Cases.f(5), Cases.f(6), 0)
            .add("slct.u32.s32 $d, $0, $1, $2", "rrrr", 6, 5, 6, u(-1))
            .add("slct.b64.f32 $d, $0, $1, $2", "lllf", 5, 5, 6, Cases.f(-0.0f))
            .add("slct.b64.f32 $d, $0, $1, $2", "lllf", 6, 5, 6, Cases.f(Float.NaN))
            .add("mov.b32 $d, {$0, $1}", "rhh", 0xBEEF1234L, 0x1234, 0xBEEF)
            .add("mov.b64 $d, {$0, $1}", "lrr", 0xBEEF123400005678L, 0x5678, 0xBEEF1234L)
            .add("mov.b64 {_, $d}, $0", "rl", 0x89ABCDEFL, 0x89ABCDEF01234567L)
            .add("setp.eq.and.s32 $d, $0, 3, $1", "prp", 0, 3, 0)
            .add("setp.ne.or.u32 $d, $0, 3, !$1", "prp", 1, 3, 0)
            .add("{ .reg .pred %q; setp.lt.s32 %q|$d, $0, 3; }", "pr", 1, 3)
            .add("dp4a.s32.u32 $d, $0, $1, $2", "rrrr", u(-1 * 255 + 2 * 3 + 10), 0x000002FFL, 0x000003FFL, 10)
            .add("dp2a.lo.u32.u32 $d, $0, $1, $2", "rrrr", 0xFFFF * 2L + 1 * 3 + 1, 0x0001FFFFL, 0x0302L, 1)
            .add("mul24.lo.s32 $d, $0, $1", "rrr", u(-5), 0x12FFFFFFL, 5)
            .add("mul24.hi.u32 $d, $0, $1", "rrr", 0xFFFFFFL * 0xFFFFFFL >>> 16, 0xFFFFFFFFL, 0x00FFFFFFL)
            .add("@!$1 mov.u32 $d, $0; @$1 mov.u32 $d, 9", "rrp", 9, 4, 1)
            .add("cnot.b32 $d, $0", "rr", 1, 0).run();
    }
}

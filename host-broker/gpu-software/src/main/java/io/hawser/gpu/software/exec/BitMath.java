package io.hawser.gpu.software.exec;

/** Shifts, fields, counts and permutations of bits. */
public final class BitMath {
    private BitMath() {
    }

    @Ptx(value = {"shl.b16", "shl.b32"}, args = "T,u32")
    public static int shl32(int a, int b) {
        return Integer.compareUnsigned(b, 31) > 0 ? 0 : a << b;
    }

    @Ptx(value = "shl.b64", args = "T,u32")
    public static long shl64(long a, int b) {
        return Integer.compareUnsigned(b, 63) > 0 ? 0 : a << b;
    }

    @Ptx(value = {"shr.b16", "shr.b32", "shr.u16", "shr.u32"}, args = "T,u32")
    public static int shrU32(int a, int b) {
        return Integer.compareUnsigned(b, 31) > 0 ? 0 : a >>> b;
    }

    @Ptx(value = {"shr.s16", "shr.s32"}, args = "T,u32")
    public static int shrS32(int a, int b) {
        return Integer.compareUnsigned(b, 31) > 0 ? a >> 31 : a >> b;
    }

    @Ptx(value = {"shr.b64", "shr.u64"}, args = "T,u32")
    public static long shrU64(long a, int b) {
        return Integer.compareUnsigned(b, 63) > 0 ? 0 : a >>> b;
    }

    @Ptx(value = "shr.s64", args = "T,u32")
    public static long shrS64(long a, int b) {
        return Integer.compareUnsigned(b, 63) > 0 ? a >> 63 : a >> b;
    }

    @Ptx(value = {"shf.l.wrap.b32"}, args = "T,T,u32")
    public static int shfLeftWrap(int a, int b, int c) {
        return (int) ((((long) b << 32) | a & 0xFFFFFFFFL) << (c & 31) >>> 32);
    }

    @Ptx(value = {"shf.l.clamp.b32"}, args = "T,T,u32")
    public static int shfLeftClamp(int a, int b, int c) {
        return Integer.compareUnsigned(c, 31) > 0 ? a : shfLeftWrap(a, b, c);
    }

    @Ptx(value = {"shf.r.wrap.b32"}, args = "T,T,u32")
    public static int shfRightWrap(int a, int b, int c) {
        return (int) ((((long) b << 32) | a & 0xFFFFFFFFL) >>> (c & 31));
    }

    @Ptx(value = {"shf.r.clamp.b32"}, args = "T,T,u32")
    public static int shfRightClamp(int a, int b, int c) {
        return Integer.compareUnsigned(c, 31) > 0 ? b : shfRightWrap(a, b, c);
    }

    @Ptx("cnot.b16")
    public static int cnot16(int a) {
        return a == 0 ? 1 : 0;
    }

    @Ptx("cnot.b32")
    public static int cnot32(int a) {
        return a == 0 ? 1 : 0;
    }

    @Ptx("cnot.b64")
    public static long cnot64(long a) {
        return a == 0 ? 1 : 0;
    }

    /** Combines the eight minterms of a three-input function; with a constant table the JIT removes the unused ones. */
    @Ptx(value = "lop3.b32", args = "T,T,T,u32")
    public static int lop3(int a, int b, int c, int lut) {
        int r = 0;
        r |= (lut & 1) != 0 ? ~a & ~b & ~c : 0;
        r |= (lut & 2) != 0 ? ~a & ~b & c : 0;
        r |= (lut & 4) != 0 ? ~a & b & ~c : 0;
        r |= (lut & 8) != 0 ? ~a & b & c : 0;
        r |= (lut & 16) != 0 ? a & ~b & ~c : 0;
        r |= (lut & 32) != 0 ? a & ~b & c : 0;
        r |= (lut & 64) != 0 ? a & b & ~c : 0;
        r |= (lut & 128) != 0 ? a & b & c : 0;
        return r;
    }

    @Ptx(value = "popc.b32", result = "u32")
    public static int popc32(int a) {
        return Integer.bitCount(a);
    }

    @Ptx(value = "popc.b64", result = "u32")
    public static int popc64(long a) {
        return Long.bitCount(a);
    }

    @Ptx(value = "clz.b32", result = "u32")
    public static int clz32(int a) {
        return Integer.numberOfLeadingZeros(a);
    }

    @Ptx(value = "clz.b64", result = "u32")
    public static int clz64(long a) {
        return Long.numberOfLeadingZeros(a);
    }

    @Ptx("brev.b32")
    public static int brev32(int a) {
        return Integer.reverse(a);
    }

    @Ptx("brev.b64")
    public static long brev64(long a) {
        return Long.reverse(a);
    }

    @Ptx(value = "bfind.u32", result = "u32")
    public static int bfindU32(int a) {
        return 31 - Integer.numberOfLeadingZeros(a);
    }

    @Ptx(value = "bfind.s32", result = "u32")
    public static int bfindS32(int a) {
        return bfindU32(a < 0 ? ~a : a);
    }

    @Ptx(value = "bfind.u64", result = "u32")
    public static int bfindU64(long a) {
        return 63 - Long.numberOfLeadingZeros(a);
    }

    @Ptx(value = "bfind.s64", result = "u32")
    public static int bfindS64(long a) {
        return bfindU64(a < 0 ? ~a : a);
    }

    @Ptx(value = "bfind.shiftamt.u32", result = "u32")
    public static int bfindShiftU32(int a) {
        return a == 0 ? -1 : Integer.numberOfLeadingZeros(a);
    }

    @Ptx(value = "bfind.shiftamt.s32", result = "u32")
    public static int bfindShiftS32(int a) {
        return bfindShiftU32(a < 0 ? ~a : a);
    }

    @Ptx(value = "bfind.shiftamt.u64", result = "u32")
    public static int bfindShiftU64(long a) {
        return a == 0 ? -1 : Long.numberOfLeadingZeros(a);
    }

    @Ptx(value = "bfind.shiftamt.s64", result = "u32")
    public static int bfindShiftS64(long a) {
        return bfindShiftU64(a < 0 ? ~a : a);
    }

    /**
     * Absolute differences of the unsigned bytes of two words. nvcc translates CUDA's {@code __v...} functions to these
     * video instructions. The third operand gives the bytes that the instruction does not write: here it writes all of
     * them.
     */
    @Ptx("vabsdiff4.u32.u32.u32")
    public static int vabsdiff4(int a, int b, int c) {
        return absoluteDifferences(a, b, 8);
    }

    /** Absolute differences of the unsigned halves of two words. */
    @Ptx("vabsdiff2.u32.u32.u32")
    public static int vabsdiff2(int a, int b, int c) {
        return absoluteDifferences(a, b, 16);
    }

    /** Sum of the absolute differences of the unsigned bytes of two words, plus the third operand. */
    @Ptx("vabsdiff4.u32.u32.u32.add")
    public static int vabsdiff4Add(int a, int b, int c) {
        int differences = absoluteDifferences(a, b, 8);
        return c + (differences & 0xFF) + (differences >>> 8 & 0xFF) + (differences >>> 16 & 0xFF)
            + (differences >>> 24);
    }

    /** Sum of the absolute differences of the unsigned halves of two words, plus the third operand. */
    @Ptx("vabsdiff2.u32.u32.u32.add")
    public static int vabsdiff2Add(int a, int b, int c) {
        int differences = absoluteDifferences(a, b, 16);
        return c + (differences & 0xFFFF) + (differences >>> 16);
    }

    private static int absoluteDifferences(int a, int b, int bits) {
        int mask = (1 << bits) - 1;
        int result = 0;
        for (int shift = 0; shift < Integer.SIZE; shift += bits) {
            result |= Math.abs((a >>> shift & mask) - (b >>> shift & mask)) << shift;
        }
        return result;
    }

    /** Position of the n-th set bit from a base, upwards for n over 0, downwards for n under 0; all ones if none. */
    @Ptx(value = "fns.b32", args = "b32,b32,s32")
    public static int fns(int mask, int base, int offset) {
        if (Integer.compareUnsigned(base, 31) > 0) {
            return -1;
        }
        if (offset == 0) {
            return (mask >>> base & 1) != 0 ? base : -1;
        }
        int step = offset > 0 ? 1 : -1;
        int left = Math.abs(offset);
        for (int bit = base; bit >= 0 && bit < 32; bit += step) {
            if ((mask >>> bit & 1) != 0 && --left == 0) {
                return bit;
            }
        }
        return -1;
    }

    @Ptx(value = "bfe.u32", args = "T,u32,u32")
    public static int bfeU32(int a, int start, int length) {
        int pos = start & 0xFF;
        int len = length & 0xFF;
        int shifted = pos > 31 ? 0 : a >>> pos;
        return len > 31 ? shifted : shifted & (1 << len) - 1;
    }

    @Ptx(value = "bfe.s32", args = "T,u32,u32")
    public static int bfeS32(int a, int start, int length) {
        int pos = start & 0xFF;
        int len = length & 0xFF;
        if (len == 0) {
            return 0;
        }
        int shifted = a >> Math.min(pos, 31);
        // Bits above the top are copies of the sign, so a field that reaches the top is already sign-extended.
        return pos + len >= 32 ? shifted : shifted << 32 - len >> 32 - len;
    }

    @Ptx(value = "bfe.u64", args = "T,u32,u32")
    public static long bfeU64(long a, int start, int length) {
        int pos = start & 0xFF;
        int len = length & 0xFF;
        long shifted = pos > 63 ? 0 : a >>> pos;
        return len > 63 ? shifted : shifted & (1L << len) - 1;
    }

    @Ptx(value = "bfe.s64", args = "T,u32,u32")
    public static long bfeS64(long a, int start, int length) {
        int pos = start & 0xFF;
        int len = length & 0xFF;
        if (len == 0) {
            return 0;
        }
        long shifted = a >> Math.min(pos, 63);
        return pos + len >= 64 ? shifted : shifted << 64 - len >> 64 - len;
    }

    @Ptx(value = "bfi.b32", args = "T,T,u32,u32")
    public static int bfi32(int field, int into, int start, int length) {
        int pos = start & 0xFF;
        int len = length & 0xFF;
        if (pos > 31 || len == 0) {
            return into;
        }
        int mask = (len > 31 ? -1 : (1 << len) - 1) << pos;
        return into & ~mask | field << pos & mask;
    }

    @Ptx(value = "bfi.b64", args = "T,T,u32,u32")
    public static long bfi64(long field, long into, int start, int length) {
        int pos = start & 0xFF;
        int len = length & 0xFF;
        if (pos > 63 || len == 0) {
            return into;
        }
        long mask = (len > 63 ? -1 : (1L << len) - 1) << pos;
        return into & ~mask | field << pos & mask;
    }

    @Ptx(value = "bmsk.clamp.b32", args = "u32,u32")
    public static int bmskClamp(int start, int width) {
        if (Integer.compareUnsigned(start, 31) > 0) {
            return 0;
        }
        return (Integer.compareUnsigned(width, 31) > 0 ? -1 : (1 << width) - 1) << start;
    }

    @Ptx(value = "bmsk.wrap.b32", args = "u32,u32")
    public static int bmskWrap(int start, int width) {
        return (1 << (width & 31)) - 1 << (start & 31);
    }

    @Ptx(value = "szext.clamp.s32", args = "T,u32")
    public static int szextClampS(int a, int width) {
        return Integer.compareUnsigned(width, 31) > 0 ? a : szextWrapS(a, width);
    }

    @Ptx(value = "szext.wrap.s32", args = "T,u32")
    public static int szextWrapS(int a, int width) {
        int n = width & 31;
        return n == 0 ? 0 : a << 32 - n >> 32 - n;
    }

    @Ptx(value = "szext.clamp.u32", args = "T,u32")
    public static int szextClampU(int a, int width) {
        return Integer.compareUnsigned(width, 31) > 0 ? a : szextWrapU(a, width);
    }

    @Ptx(value = "szext.wrap.u32", args = "T,u32")
    public static int szextWrapU(int a, int width) {
        return a & (1 << (width & 31)) - 1;
    }

    private static int selectByte(long bytes, int selector) {
        int value = (int) (bytes >>> (selector & 7) * 8) & 0xFF;
        return (selector & 8) != 0 ? (byte) value >> 7 & 0xFF : value;
    }

    private static long join(int a, int b) {
        return (long) b << 32 | a & 0xFFFFFFFFL;
    }

    @Ptx("prmt.b32")
    public static int prmt(int a, int b, int selectors) {
        long bytes = join(a, b);
        return selectByte(bytes, selectors) | selectByte(bytes, selectors >> 4) << 8
            | selectByte(bytes, selectors >> 8) << 16 | selectByte(bytes, selectors >> 12) << 24;
    }

    @Ptx("prmt.b32.f4e")
    public static int prmtF4e(int a, int b, int c) {
        return (int) (join(a, b) >>> (c & 3) * 8);
    }

    @Ptx("prmt.b32.b4e")
    public static int prmtB4e(int a, int b, int c) {
        long bytes = join(a, b);
        int n = c & 3;
        return selectByte(bytes, n) | selectByte(bytes, n + 7 & 7) << 8
            | selectByte(bytes, n + 6 & 7) << 16 | selectByte(bytes, n + 5 & 7) << 24;
    }

    @Ptx("prmt.b32.rc8")
    public static int prmtRc8(int a, int b, int c) {
        return (a >>> (c & 3) * 8 & 0xFF) * 0x01010101;
    }

    @Ptx("prmt.b32.ecl")
    public static int prmtEcl(int a, int b, int c) {
        int n = c & 3;
        int result = 0;
        for (int i = 0; i < 4; i++) {
            result |= (a >>> Math.max(i, n) * 8 & 0xFF) << i * 8;
        }
        return result;
    }

    @Ptx("prmt.b32.ecr")
    public static int prmtEcr(int a, int b, int c) {
        int n = c & 3;
        int result = 0;
        for (int i = 0; i < 4; i++) {
            result |= (a >>> Math.min(i, n) * 8 & 0xFF) << i * 8;
        }
        return result;
    }

    @Ptx("prmt.b32.rc16")
    public static int prmtRc16(int a, int b, int c) {
        return (a >>> (c & 1) * 16 & 0xFFFF) * 0x00010001;
    }
}

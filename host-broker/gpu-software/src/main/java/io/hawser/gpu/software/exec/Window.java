package io.hawser.gpu.software.exec;

/**
 * Shared, local and parameter memory: arrays of 32-bit words. Each thread has an array for its local memory, so that
 * the JVM's bounds check protects the memory. An address consists of a base and a number of words that the instruction
 * adds. Keeping the two apart lets the JIT merge the checks of neighbouring accesses. Only one host thread accesses a
 * CTA's shared memory, so atomics are plain operations.
 */
public final class Window {
    /**
     * Generic addresses: the upper half selects the window, the lower half is the offset in it. All user addresses of
     * Linux are lower.
     */
    static final long SHARED = 1L << 56;
    static final long LOCAL = 2L << 56;
    static final long PARAM = 3L << 56;
    /** Addresses of functions; no access reads them. */
    static final long CODE = 4L << 56;

    private Window() {
    }

    /** The memory of a generic address outside global memory. */
    static int[] of(CtaSlot c, int t, long address, int bytes) {
        long window = address >>> 32 << 32;
        if (window == SHARED) {
            return c.shared;
        }
        if (window == LOCAL) {
            return c.local[t];
        }
        if (window == PARAM) {
            return c.params;
        }
        throw Faults.global(address, bytes);
    }

    static int[] forStore(CtaSlot c, int t, long address, int bytes) {
        if (address >>> 32 << 32 == PARAM) {
            throw Faults.global(address, bytes);
        }
        return of(c, t, address, bytes);
    }

    /** Generic address of a shared offset. */
    public static long genericShared(long offset) {
        return SHARED + offset;
    }

    /** Generic address of a local offset. */
    public static long genericLocal(long offset) {
        return LOCAL + offset;
    }

    /** Generic address of a kernel parameter's offset. */
    public static long genericParam(long offset) {
        return PARAM + offset;
    }

    /** Offset of a generic shared address. */
    public static long toShared(long address) {
        return address - SHARED;
    }

    /** Offset of a generic local address. */
    public static long toLocal(long address) {
        return address - LOCAL;
    }

    /** Offset of a generic parameter address. */
    public static long toParam(long address) {
        return address - PARAM;
    }

    /** isspacep for the windows. */
    public static int isShared(long address) {
        return address >>> 32 << 32 == SHARED ? 1 : 0;
    }

    /** As {@link #isShared}. */
    public static int isLocal(long address) {
        return address >>> 32 << 32 == LOCAL ? 1 : 0;
    }

    /** As {@link #isShared}. */
    public static int isParam(long address) {
        return address >>> 32 << 32 == PARAM ? 1 : 0;
    }

    /** As {@link #isShared}: an address outside all windows is global, as on a GPU. */
    public static int isGlobal(long address) {
        return address >>> 56 == 0 ? 1 : 0;
    }

    /** Narrows a 64-bit offset into a window to the 32 bits that accesses take. */
    public static int narrow(long offset) {
        if (offset != (int) offset || offset < 0) {
            throw Faults.window(offset);
        }
        return (int) offset;
    }

    private static int word(int base, int words, int mask) {
        if ((base & mask) != 0) {
            throw Faults.misaligned(base, mask + 1);
        }
        return (base >> 2) + words;
    }

    /** Word index of a vector access of mask + 1 bytes. */
    public static int vector(int base, int mask) {
        return word(base, 0, mask);
    }

    /** Loads; {@code words} is added to the base. */
    public static int ldU8(int[] w, int base, int words) {
        return w[(base >> 2) + words] >>> (base & 3) * 8 & 0xFF;
    }

    public static int ldS8(int[] w, int base, int words) {
        return (byte) (w[(base >> 2) + words] >>> (base & 3) * 8);
    }

    public static int ldU16(int[] w, int base, int words) {
        return w[word(base & ~2, words, 3)] >>> (base & 2) * 8 & 0xFFFF;
    }

    public static int ldS16(int[] w, int base, int words) {
        return (short) (w[word(base & ~2, words, 3)] >>> (base & 2) * 8);
    }

    public static int ld32(int[] w, int base, int words) {
        return w[word(base, words, 3)];
    }

    public static float ldF32(int[] w, int base, int words) {
        return Float.intBitsToFloat(w[word(base, words, 3)]);
    }

    /** 64-bit accesses need an even sum of base and words. */
    public static long ld64(int[] w, int base, int words) {
        int at = word(base + words * 4, 0, 7);
        return w[at] & 0xFFFFFFFFL | (long) w[at + 1] << 32;
    }

    public static double ldF64(int[] w, int base, int words) {
        return Double.longBitsToDouble(ld64(w, base, words));
    }

    /** Stores. */
    public static void stU8(int[] w, int base, int words, int value) {
        int at = (base >> 2) + words;
        int shift = (base & 3) * 8;
        w[at] = w[at] & ~(0xFF << shift) | (value & 0xFF) << shift;
    }

    public static void stU16(int[] w, int base, int words, int value) {
        int at = word(base & ~2, words, 3);
        int shift = (base & 2) * 8;
        w[at] = w[at] & ~(0xFFFF << shift) | (value & 0xFFFF) << shift;
    }

    public static void st32(int[] w, int base, int words, int value) {
        w[word(base, words, 3)] = value;
    }

    public static void stF32(int[] w, int base, int words, float value) {
        w[word(base, words, 3)] = Float.floatToRawIntBits(value);
    }

    public static void st64(int[] w, int base, int words, long value) {
        int at = word(base + words * 4, 0, 7);
        // The upper word first: if it is out of bounds, nothing has been written.
        w[at + 1] = (int) (value >>> 32);
        w[at] = (int) value;
    }

    public static void stF64(int[] w, int base, int words, double value) {
        st64(w, base, words, Double.doubleToRawLongBits(value));
    }
}

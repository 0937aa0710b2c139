package io.hawser.gpu.software.exec;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Loads and stores of kernels. Methods without a slot access only global memory; those with a slot take generic
 * addresses. Every access first checks the alignment and the shadow.
 */
public final class Mem {
    // SAFETY: every access passes valid() first, so its address is in an allocated granule or in mapped host memory.
    static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private Mem() {
    }

    /**
     * Checks an access of 1 << shift bytes. The rotation turns misaligned addresses into huge numbers, so that one
     * comparison finds both misaligned addresses and addresses without a shadow.
     */
    static boolean valid(Globals g, long address, int shift) {
        long offset = address - g.base();
        return Long.compareUnsigned(Long.rotateRight(offset, shift), g.size() >>> shift) < 0
            && ALL.get(ValueLayout.JAVA_BYTE, g.shadow() + (offset >>> GlobalMemory.GRANULE_SHIFT)) != 0;
    }

    static long check(Globals g, long address, int shift) {
        if (!valid(g, address, shift)) {
            throw Faults.global(address, 1 << shift);
        }
        return address;
    }

    /** Global load. */
    public static int ldU8(Globals g, long address) {
        return ALL.get(ValueLayout.JAVA_BYTE, check(g, address, 0)) & 0xFF;
    }

    /** Generic load. */
    public static int ldU8(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 0) ? ALL.get(ValueLayout.JAVA_BYTE, address) & 0xFF
            : Window.ldU8(Window.of(c, t, address, 1), (int) address, 0);
    }

    /** Global store. */
    public static void stU8(Globals g, long address, int value) {
        ALL.set(ValueLayout.JAVA_BYTE, check(g, address, 0), (byte) value);
    }

    /** Generic store. */
    public static void stU8(Globals g, CtaSlot c, int t, long address, int value) {
        if (valid(g, address, 0)) {
            ALL.set(ValueLayout.JAVA_BYTE, address, (byte) value);
        } else {
            Window.stU8(Window.forStore(c, t, address, 1), (int) address, 0, value);
        }
    }

    /** Global load. */
    public static int ldS8(Globals g, long address) {
        return ALL.get(ValueLayout.JAVA_BYTE, check(g, address, 0));
    }

    /** Generic load. */
    public static int ldS8(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 0) ? ALL.get(ValueLayout.JAVA_BYTE, address)
            : Window.ldS8(Window.of(c, t, address, 1), (int) address, 0);
    }

    /** Global load. */
    public static int ldU16(Globals g, long address) {
        return ALL.get(SHORT, check(g, address, 1)) & 0xFFFF;
    }

    /** Generic load. */
    public static int ldU16(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 1) ? ALL.get(SHORT, address) & 0xFFFF
            : Window.ldU16(Window.of(c, t, address, 2), (int) address, 0);
    }

    /** Global store. */
    public static void stU16(Globals g, long address, int value) {
        ALL.set(SHORT, check(g, address, 1), (short) value);
    }

    /** Generic store. */
    public static void stU16(Globals g, CtaSlot c, int t, long address, int value) {
        if (valid(g, address, 1)) {
            ALL.set(SHORT, address, (short) value);
        } else {
            Window.stU16(Window.forStore(c, t, address, 2), (int) address, 0, value);
        }
    }

    /** Global load. */
    public static int ldS16(Globals g, long address) {
        return ALL.get(SHORT, check(g, address, 1));
    }

    /** Generic load. */
    public static int ldS16(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 1) ? ALL.get(SHORT, address)
            : Window.ldS16(Window.of(c, t, address, 2), (int) address, 0);
    }

    /** Global load. */
    public static int ld32(Globals g, long address) {
        return ALL.get(INT, check(g, address, 2));
    }

    /** Generic load. */
    public static int ld32(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 2) ? ALL.get(INT, address)
            : Window.ld32(Window.of(c, t, address, 4), (int) address, 0);
    }

    /** Global store. */
    public static void st32(Globals g, long address, int value) {
        ALL.set(INT, check(g, address, 2), value);
    }

    /** Generic store. */
    public static void st32(Globals g, CtaSlot c, int t, long address, int value) {
        if (valid(g, address, 2)) {
            ALL.set(INT, address, value);
        } else {
            Window.st32(Window.forStore(c, t, address, 4), (int) address, 0, value);
        }
    }

    /** Global load. */
    public static long ld64(Globals g, long address) {
        return ALL.get(LONG, check(g, address, 3));
    }

    /** Generic load. */
    public static long ld64(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 3) ? ALL.get(LONG, address)
            : Window.ld64(Window.of(c, t, address, 8), (int) address, 0);
    }

    /** Global store. */
    public static void st64(Globals g, long address, long value) {
        ALL.set(LONG, check(g, address, 3), value);
    }

    /** Generic store. */
    public static void st64(Globals g, CtaSlot c, int t, long address, long value) {
        if (valid(g, address, 3)) {
            ALL.set(LONG, address, value);
        } else {
            Window.st64(Window.forStore(c, t, address, 8), (int) address, 0, value);
        }
    }

    /** Global load. */
    public static float ldF32(Globals g, long address) {
        return Float.intBitsToFloat(ALL.get(INT, check(g, address, 2)));
    }

    /** Generic load. */
    public static float ldF32(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 2) ? Float.intBitsToFloat(ALL.get(INT, address))
            : Window.ldF32(Window.of(c, t, address, 4), (int) address, 0);
    }

    /** Global store. */
    public static void stF32(Globals g, long address, float value) {
        ALL.set(INT, check(g, address, 2), Float.floatToRawIntBits(value));
    }

    /** Generic store. */
    public static void stF32(Globals g, CtaSlot c, int t, long address, float value) {
        if (valid(g, address, 2)) {
            ALL.set(INT, address, Float.floatToRawIntBits(value));
        } else {
            Window.stF32(Window.forStore(c, t, address, 4), (int) address, 0, value);
        }
    }

    /** Global load. */
    public static double ldF64(Globals g, long address) {
        return Double.longBitsToDouble(ALL.get(LONG, check(g, address, 3)));
    }

    /** Generic load. */
    public static double ldF64(Globals g, CtaSlot c, int t, long address) {
        return valid(g, address, 3) ? Double.longBitsToDouble(ALL.get(LONG, address))
            : Window.ldF64(Window.of(c, t, address, 8), (int) address, 0);
    }

    /** Global store. */
    public static void stF64(Globals g, long address, double value) {
        ALL.set(LONG, check(g, address, 3), Double.doubleToRawLongBits(value));
    }

    /** Generic store. */
    public static void stF64(Globals g, CtaSlot c, int t, long address, double value) {
        if (valid(g, address, 3)) {
            ALL.set(LONG, address, Double.doubleToRawLongBits(value));
        } else {
            Window.stF64(Window.forStore(c, t, address, 8), (int) address, 0, value);
        }
    }
    /** Checks a vector access of global memory, 1 << shift bytes in all; raw accesses may follow. */
    public static long vector(Globals g, long address, int shift) {
        return check(g, address, shift);
    }

    /** Whether an access at a generic address goes to no window: to global memory or to an invalid address. */
    public static boolean isGlobal(Globals g, long address) {
        return Long.compareUnsigned(address - g.base(), g.size()) < 0;
    }

    /** Requires the alignment of a vector access at a generic address. */
    public static void aligned(long address, int bytes) {
        if ((address & bytes - 1) != 0) {
            throw Faults.global(address, bytes);
        }
    }

    /**
     * Follows an acquiring, relaxed or volatile load: the JIT must not reuse the value or move later loads before it.
     */
    public static void acquire() {
        java.lang.invoke.VarHandle.acquireFence();
    }

    /** Precedes a releasing, relaxed or volatile store. */
    public static void release() {
        java.lang.invoke.VarHandle.releaseFence();
    }

    /** Orders memory accesses (membar, fence). */
    public static void fence() {
        java.lang.invoke.VarHandle.fullFence();
    }

    /** cp.async: copies bytes from global to shared memory and fills the rest of {@code size} with zeros. */
    public static void copyAsync(Globals g, long from, int[] shared, int to, int size, int bytes) {
        if (bytes < 0 || bytes > size) {
            throw Faults.window(bytes);
        }
        if (bytes > 0) {
            check(g, from, 31 - Integer.numberOfLeadingZeros(size));
        }
        int at = Window.vector(to, size - 1);
        for (int i = 0; i < size; i += 4) {
            int word = i + 4 <= bytes ? RawMem.ld32(from + i) : 0;
            for (int b = i; b < bytes && b < i + 4 && i + 4 > bytes; b++) {
                word |= RawMem.ldU8(from + b) << 8 * (b - i);
            }
            shared[at + i / 4] = word;
        }
    }
}

package io.hawser.gpu.software.exec;

import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * Implements atom and red. Global memory needs hardware atomics, because CTAs run on several host threads. Shared and
 * local memory need none, because one thread runs a CTA. Each call passes its operation as a constant, so that the JIT
 * folds the switch.
 */
public final class Atomics {
    /** Operations; the translator finds them by "op.type". */
    public enum Op {
        ADD_I,
        AND,
        OR,
        XOR,
        EXCH,
        INC_U32,
        DEC_U32,
        MIN_S,
        MIN_U,
        MAX_S,
        MAX_U,
        ADD_F32,
        ADD_F64,
        ADD_F16X2,
        ADD_BF16X2,
        MIN_F16X2,
        MAX_F16X2,
        MIN_BF16X2,
        MAX_BF16X2;

        static final Op[] ALL = values();
    }

    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private Atomics() {
    }

    /** The new value of a 32-bit operation. */
    static int apply(Op op, int old, int b) {
        return switch (op) {
            case ADD_I -> old + b;
            case AND -> old & b;
            case OR -> old | b;
            case XOR -> old ^ b;
            case EXCH -> b;
            case INC_U32 -> Integer.compareUnsigned(old, b) >= 0 ? 0 : old + 1;
            case DEC_U32 -> old == 0 || Integer.compareUnsigned(old, b) > 0 ? b : old - 1;
            case MIN_S -> Math.min(old, b);
            case MIN_U -> IntMath.minU32(old, b);
            case MAX_S -> Math.max(old, b);
            case MAX_U -> IntMath.maxU32(old, b);
            case ADD_F32 -> FloatMath.computedBits(Float.intBitsToFloat(old) + Float.intBitsToFloat(b));
            case ADD_F16X2 -> HalfMath.pair(HalfMath.addF16(HalfMath.low(old), HalfMath.low(b)),
                HalfMath.addF16(HalfMath.high(old), HalfMath.high(b)));
            case ADD_BF16X2 -> HalfMath.pair(HalfMath.addBf16(HalfMath.low(old), HalfMath.low(b)),
                HalfMath.addBf16(HalfMath.high(old), HalfMath.high(b)));
            case MIN_F16X2 -> HalfMath.pair(HalfMath.minF16(HalfMath.low(old), HalfMath.low(b)),
                HalfMath.minF16(HalfMath.high(old), HalfMath.high(b)));
            case MAX_F16X2 -> HalfMath.pair(HalfMath.maxF16(HalfMath.low(old), HalfMath.low(b)),
                HalfMath.maxF16(HalfMath.high(old), HalfMath.high(b)));
            case MIN_BF16X2 -> HalfMath.pair(HalfMath.minBf16(HalfMath.low(old), HalfMath.low(b)),
                HalfMath.minBf16(HalfMath.high(old), HalfMath.high(b)));
            case MAX_BF16X2 -> HalfMath.pair(HalfMath.maxBf16(HalfMath.low(old), HalfMath.low(b)),
                HalfMath.maxBf16(HalfMath.high(old), HalfMath.high(b)));
            case ADD_F64 -> throw new AssertionError(op);
        };
    }

    /** The new value of a 64-bit operation. */
    static long apply(Op op, long old, long b) {
        return switch (op) {
            case ADD_I -> old + b;
            case AND -> old & b;
            case OR -> old | b;
            case XOR -> old ^ b;
            case EXCH -> b;
            case MIN_S -> Math.min(old, b);
            case MIN_U -> IntMath.minU64(old, b);
            case MAX_S -> Math.max(old, b);
            case MAX_U -> IntMath.maxU64(old, b);
            case ADD_F64 -> Double.doubleToRawLongBits(Double.longBitsToDouble(old) + Double.longBitsToDouble(b));
            default -> throw new AssertionError(op);
        };
    }

    /** Global 32-bit read-modify-write; returns the old value. */
    public static int global32(Globals g, long address, int b, int op) {
        long at = Mem.check(g, address, 2);
        switch (Op.ALL[op]) {
            case ADD_I :
                return (int) INT.getAndAdd(Mem.ALL, at, b);
            case EXCH :
                return (int) INT.getAndSet(Mem.ALL, at, b);
            default :
                break;
        }
        while (true) {
            int old = (int) INT.getVolatile(Mem.ALL, at);
            int now = apply(Op.ALL[op], old, b);
            if (INT.compareAndSet(Mem.ALL, at, old, now)) {
                return old;
            }
        }
    }

    /** Global 64-bit read-modify-write. */
    public static long global64(Globals g, long address, long b, int op) {
        long at = Mem.check(g, address, 3);
        switch (Op.ALL[op]) {
            case ADD_I :
                return (long) LONG.getAndAdd(Mem.ALL, at, b);
            case EXCH :
                return (long) LONG.getAndSet(Mem.ALL, at, b);
            default :
                break;
        }
        while (true) {
            long old = (long) LONG.getVolatile(Mem.ALL, at);
            long now = apply(Op.ALL[op], old, b);
            if (LONG.compareAndSet(Mem.ALL, at, old, now)) {
                return old;
            }
        }
    }

    /** Global compare and swap; returns the old value. */
    public static int globalCas32(Globals g, long address, int expected, int value) {
        return (int) INT.compareAndExchange(Mem.ALL, Mem.check(g, address, 2), expected, value);
    }

    /** As {@link #globalCas32}. */
    public static long globalCas64(Globals g, long address, long expected, long value) {
        return (long) LONG.compareAndExchange(Mem.ALL, Mem.check(g, address, 3), expected, value);
    }

    // 16 bits are exchanged inside their 32-bit word: the JVM's narrowest compare-and-set on memory is 32 bits.

    /** As {@link #globalCas32}. */
    public static int globalCas16(Globals g, long address, int expected, int value) {
        long at = Mem.check(g, address, 1) & ~3L;
        int shift = (int) (address & 2) * 8;
        while (true) {
            int word = (int) INT.getVolatile(Mem.ALL, at);
            int old = word >>> shift & 0xFFFF;
            int now = word & ~(0xFFFF << shift) | (value & 0xFFFF) << shift;
            if (old != (expected & 0xFFFF) || INT.compareAndSet(Mem.ALL, at, word, now)) {
                return old;
            }
        }
    }

    /** Global 16-bit floating add. */
    public static int globalAdd16(Globals g, long address, int b, int bf16) {
        long at = Mem.check(g, address, 1) & ~3L;
        int shift = (int) (address & 2) * 8;
        while (true) {
            int word = (int) INT.getVolatile(Mem.ALL, at);
            int old = word >>> shift & 0xFFFF;
            int now = word & ~(0xFFFF << shift) | add16(old, b, bf16) << shift;
            if (INT.compareAndSet(Mem.ALL, at, word, now)) {
                return old;
            }
        }
    }

    private static int add16(int a, int b, int bf16) {
        return bf16 != 0 ? HalfMath.addBf16(a, b) : HalfMath.addF16(a, b);
    }

    /** Forms for shared memory. */
    public static int window32(int[] w, int address, int b, int op) {
        int old = Window.ld32(w, address, 0);
        Window.st32(w, address, 0, apply(Op.ALL[op], old, b));
        return old;
    }

    /** As {@link #window32}. */
    public static long window64(int[] w, int address, long b, int op) {
        long old = Window.ld64(w, address, 0);
        Window.st64(w, address, 0, apply(Op.ALL[op], old, b));
        return old;
    }

    /** As {@link #window32}. */
    public static int windowCas32(int[] w, int address, int expected, int value) {
        int old = Window.ld32(w, address, 0);
        if (old == expected) {
            Window.st32(w, address, 0, value);
        }
        return old;
    }

    /** As {@link #window32}. */
    public static long windowCas64(int[] w, int address, long expected, long value) {
        long old = Window.ld64(w, address, 0);
        if (old == expected) {
            Window.st64(w, address, 0, value);
        }
        return old;
    }

    /** As {@link #window32}. */
    public static int windowCas16(int[] w, int address, int expected, int value) {
        int old = Window.ldU16(w, address, 0);
        if (old == expected) {
            Window.stU16(w, address, 0, value);
        }
        return old;
    }

    /** As {@link #window32}. */
    public static int windowAdd16(int[] w, int address, int b, int bf16) {
        int old = Window.ldU16(w, address, 0);
        Window.stU16(w, address, 0, add16(old, b, bf16));
        return old;
    }

    /** Form for generic addresses. */
    public static int generic32(Globals g, CtaSlot c, int t, long address, int b, int op) {
        return Mem.isGlobal(g, address) ? global32(g, address, b, op)
            : window32(Window.forStore(c, t, address, 4), (int) address, b, op);
    }

    /** Form for generic addresses. */
    public static long generic64(Globals g, CtaSlot c, int t, long address, long b, int op) {
        return Mem.isGlobal(g, address) ? global64(g, address, b, op)
            : window64(Window.forStore(c, t, address, 8), (int) address, b, op);
    }

    /** Form for generic addresses. */
    public static int genericCas32(Globals g, CtaSlot c, int t, long address, int expected, int value) {
        return Mem.isGlobal(g, address) ? globalCas32(g, address, expected, value)
            : windowCas32(Window.forStore(c, t, address, 4), (int) address, expected, value);
    }

    /** Form for generic addresses. */
    public static long genericCas64(Globals g, CtaSlot c, int t, long address, long expected, long value) {
        return Mem.isGlobal(g, address) ? globalCas64(g, address, expected, value)
            : windowCas64(Window.forStore(c, t, address, 8), (int) address, expected, value);
    }

    /** Form for generic addresses. */
    public static int genericCas16(Globals g, CtaSlot c, int t, long address, int expected, int value) {
        return Mem.isGlobal(g, address) ? globalCas16(g, address, expected, value)
            : windowCas16(Window.forStore(c, t, address, 2), (int) address, expected, value);
    }

    /** Form for generic addresses. */
    public static int genericAdd16(Globals g, CtaSlot c, int t, long address, int b, int bf16) {
        return Mem.isGlobal(g, address) ? globalAdd16(g, address, b, bf16)
            : windowAdd16(Window.forStore(c, t, address, 2), (int) address, b, bf16);
    }
}

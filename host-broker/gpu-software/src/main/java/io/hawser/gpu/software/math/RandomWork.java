package io.hawser.gpu.software.math;

import io.hawser.cuda.generated.curand.HwsRandFunction;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Numbers of Philox in the distributions of cuRAND. A float takes one number of the sequence, a double two; normal
 * numbers come in pairs, by Box and Muller's method. Any thread; calls of one generator come in their order.
 */
final class RandomWork {
    private static final float FLOAT_STEP = 0x1p-32f;
    private static final double DOUBLE_STEP = 0x1p-53;
    private static final int HIGH_SHIFT = 21; // 53 bits of a double, less 32
    private static final int DOUBLE_NUMBERS = 2;

    private final long seed;
    private final AtomicLong position; // of the next number of the sequence

    RandomWork(long seed, long offset) {
        this.seed = seed;
        position = new AtomicLong(offset);
    }

    private static boolean isDouble(int function) {
        return function == HwsRandFunction.HWS_RAND_UNIFORM_DOUBLE || function == HwsRandFunction.HWS_RAND_NORMAL_DOUBLE
            || function == HwsRandFunction.HWS_RAND_LOG_NORMAL_DOUBLE;
    }

    /** Whether a function makes normal numbers, whose count is even. */
    static boolean isNormal(int function) {
        return function >= HwsRandFunction.HWS_RAND_NORMAL && function <= HwsRandFunction.HWS_RAND_LOG_NORMAL_DOUBLE;
    }

    private static boolean isLogNormal(int function) {
        return function == HwsRandFunction.HWS_RAND_LOG_NORMAL
            || function == HwsRandFunction.HWS_RAND_LOG_NORMAL_DOUBLE;
    }

    /**
     * Fills memory with the next numbers.
     *
     * @param function an HwsRandFunction for bits, uniform or normal numbers.
     * @param output address of {@code count} numbers, which is checked.
     */
    void fill(int function, long output, long count, double mean, double stddev) {
        boolean isDouble = isDouble(function);
        // SAFETY: the numbers lie in the session's memory; the worker has checked their bytes.
        MemorySegment out =
            MemorySegment.ofAddress(output).reinterpret(count * (isDouble ? Double.BYTES : Float.BYTES));
        Philox numbers = new Philox(seed, position.getAndAdd(isDouble ? DOUBLE_NUMBERS * count : count));
        if (function == HwsRandFunction.HWS_RAND_BITS) {
            for (long i = 0; i < count; i++) {
                out.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i, numbers.next());
            }
        } else if (isNormal(function)) {
            normal(out, count, numbers, isDouble, isLogNormal(function), mean, stddev);
        } else {
            for (long i = 0; i < count; i++) {
                set(out, i, isDouble, isDouble ? uniformDouble(numbers) : uniform(numbers));
            }
        }
    }

    private static void normal(MemorySegment out, long count, Philox numbers, boolean isDouble, boolean isLog,
        double mean, double stddev) {
        for (long i = 0; i + 1 < count; i += 2) {
            double radius = Math.sqrt(-2 * Math.log(isDouble ? uniformDouble(numbers) : uniform(numbers)));
            double angle = 2 * Math.PI * (isDouble ? uniformDouble(numbers) : uniform(numbers));
            double first = mean + stddev * radius * Math.sin(angle);
            double second = mean + stddev * radius * Math.cos(angle);
            set(out, i, isDouble, isLog ? Math.exp(first) : first);
            set(out, i + 1, isDouble, isLog ? Math.exp(second) : second);
        }
    }

    private static void set(MemorySegment out, long index, boolean isDouble, double value) {
        if (isDouble) {
            out.setAtIndex(ValueLayout.JAVA_DOUBLE_UNALIGNED, index, value);
        } else {
            out.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, index, (float) value);
        }
    }

    /** In (0, 1], as documented. */
    private static float uniform(Philox numbers) {
        return Integer.toUnsignedLong(numbers.next()) * FLOAT_STEP + FLOAT_STEP / 2;
    }

    private static double uniformDouble(Philox numbers) {
        long low = Integer.toUnsignedLong(numbers.next());
        long high = Integer.toUnsignedLong(numbers.next());
        return (low ^ high << HIGH_SHIFT) * DOUBLE_STEP + DOUBLE_STEP / 2;
    }
}

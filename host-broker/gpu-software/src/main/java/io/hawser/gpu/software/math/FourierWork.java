package io.hawser.gpu.software.math;

import io.hawser.cuda.backend.FftPlan;
import io.hawser.cuda.backend.FftPlan.Side;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Transforms of up to three dimensions, dimension by dimension. A transform of real numbers computes half of the
 * spectrum. One transform at a time: the memory of several would not fit the worker's heap. Any thread.
 */
final class FourierWork {
    /** Complex numbers of one transform, 128 MiB: the worker has a heap of 1 GiB. */
    private static final long MAX_NUMBERS = 1 << 23;
    private static final long MAX_LENGTH = 1 << 20;
    /** Doubles of the tables that are kept for further transforms. */
    private static final long KEPT_DOUBLES = 1 << 23;

    private final Map<Integer, Fourier> kept = new LinkedHashMap<>(16, 0.75f, true);
    private double[] line = new double[0];
    private double[] result = new double[0];

    /** Whether a transform fits the worker's memory. */
    static boolean fits(FftPlan plan) {
        long numbers = 1;
        for (long size : plan.sizes()) {
            if (size > MAX_LENGTH || numbers > MAX_NUMBERS / size) {
                return false;
            }
            numbers *= size;
        }
        return true;
    }

    /** Executes a plan that fits. Input and output are checked. */
    synchronized void transform(FftPlan plan, long input, long output, boolean isForward) {
        boolean isInPlace = input == output;
        Side in = plan.input(isInPlace);
        Side out = plan.output(isInPlace);
        // SAFETY: both sides lie in the session's memory; the worker has checked their bytes.
        MemorySegment source = MemorySegment.ofAddress(input).reinterpret(in.bytes());
        MemorySegment target = MemorySegment.ofAddress(output).reinterpret(out.bytes());
        long[] sizes = in.isComplex() ? in.sizes() : out.sizes(); // of the numbers, half a spectrum of real ones
        int[] lengths = new int[sizes.length];
        int numbers = 1;
        for (int i = 0; i < sizes.length; i++) {
            lengths[i] = (int) sizes[i];
            numbers *= lengths[i];
        }
        int last = sizes.length - 1;
        int rows = numbers / lengths[last];
        int rowLength = (int) plan.sizes()[last];
        double[] data = new double[2 * numbers];
        for (long batch = 0; batch < plan.batch(); batch++) {
            if (in.isComplex()) {
                copyComplex(source, in, batch, data, false);
            } else {
                spectrum(source, in, batch, data, rows, rowLength);
            }
            for (int dimension = 0; dimension < sizes.length; dimension++) {
                boolean isRow = dimension == last && !(in.isComplex() && out.isComplex());
                if (!isRow) {
                    transformLines(data, lengths, dimension, isForward);
                }
            }
            if (out.isComplex()) {
                copyComplex(target, out, batch, data, true);
            } else {
                numbers(target, out, batch, data, rows, rowLength);
            }
        }
        if (line.length > KEPT_DOUBLES) {
            line = new double[0];
            result = new double[0];
        }
    }

    private Fourier of(int length) {
        Fourier found = kept.get(length);
        if (found == null) {
            found = new Fourier(length);
            kept.put(length, found);
            long doubles = kept.keySet().stream().mapToLong(Fourier::doubles).sum();
            for (Iterator<Integer> eldest = kept.keySet().iterator(); doubles > KEPT_DOUBLES && kept.size() > 1;) {
                doubles -= Fourier.doubles(eldest.next());
                eldest.remove();
            }
        }
        if (line.length < 2 * length) {
            line = new double[2 * length];
            result = new double[2 * length];
        }
        return found;
    }

    private void transformLines(double[] data, int[] lengths, int dimension, boolean isForward) {
        int length = lengths[dimension];
        int step = 1;
        for (int i = dimension + 1; i < lengths.length; i++) {
            step *= lengths[i];
        }
        Fourier fourier = of(length);
        for (int first = 0; first < data.length / 2; first += length * step) {
            for (int i = 0; i < step; i++) {
                for (int k = 0; k < length; k++) {
                    System.arraycopy(data, 2 * (first + i + k * step), line, 2 * k, 2);
                }
                if (isForward) {
                    fourier.forward(line, result);
                } else {
                    fourier.inverse(line, result);
                }
                for (int k = 0; k < length; k++) {
                    System.arraycopy(result, 2 * k, data, 2 * (first + i + k * step), 2);
                }
            }
        }
    }

    /** Transforms rows of real numbers into half of their spectrum. */
    private void spectrum(MemorySegment source, Side side, long batch, double[] data, int rows, int rowLength) {
        Fourier fourier = of(rowLength);
        int half = rowLength / 2 + 1;
        for (int row = 0; row < rows; row++) {
            long at = rowStart(side, batch, row);
            for (int k = 0; k < rowLength; k++) {
                line[2 * k] = real(source, side, at + k * side.steps()[side.steps().length - 1], 0);
                line[2 * k + 1] = 0;
            }
            fourier.forward(line, result);
            System.arraycopy(result, 0, data, 2 * row * half, 2 * half);
        }
    }

    /** Transforms rows of half a spectrum into real numbers. The rest of a row is the conjugate of this half. */
    private void numbers(MemorySegment target, Side side, long batch, double[] data, int rows, int rowLength) {
        Fourier fourier = of(rowLength);
        int half = rowLength / 2 + 1;
        for (int row = 0; row < rows; row++) {
            System.arraycopy(data, 2 * row * half, line, 0, 2 * half);
            line[1] = 0; // the sum of real numbers is real
            if (rowLength % 2 == 0) {
                line[rowLength + 1] = 0;
            }
            for (int k = half; k < rowLength; k++) {
                line[2 * k] = line[2 * (rowLength - k)];
                line[2 * k + 1] = -line[2 * (rowLength - k) + 1];
            }
            fourier.inverse(line, result);
            long at = rowStart(side, batch, row);
            for (int k = 0; k < rowLength; k++) {
                setReal(target, side, at + k * side.steps()[side.steps().length - 1], 0, result[2 * k]);
            }
        }
    }

    /** Index of the first element of a row, of rows in the order of their coordinates. */
    private static long rowStart(Side side, long batch, int row) {
        long at = batch * side.dist();
        int rest = row;
        for (int i = side.sizes().length - 2; i >= 0; i--) {
            at += rest % side.sizes()[i] * side.steps()[i];
            rest /= (int) side.sizes()[i];
        }
        return at;
    }

    private static void copyComplex(MemorySegment memory, Side side, long batch, double[] data, boolean isOutput) {
        int last = side.sizes().length - 1;
        int rowLength = (int) side.sizes()[last];
        for (int row = 0; row < data.length / 2 / rowLength; row++) {
            long at = rowStart(side, batch, row);
            for (int k = 0; k < rowLength; k++) {
                int place = 2 * (row * rowLength + k);
                for (int part = 0; part < 2; part++) {
                    if (isOutput) {
                        setReal(memory, side, at + k * side.steps()[last], part, data[place + part]);
                    } else {
                        data[place + part] = real(memory, side, at + k * side.steps()[last], part);
                    }
                }
            }
        }
    }

    private static long offset(Side side, long index, int part) {
        return index * side.elementBytes() + (long) part * partBytes(side);
    }

    private static int partBytes(Side side) {
        return side.isComplex() ? side.elementBytes() / 2 : side.elementBytes();
    }

    private static double real(MemorySegment memory, Side side, long index, int part) {
        return partBytes(side) == Float.BYTES
            ? memory.get(ValueLayout.JAVA_FLOAT_UNALIGNED, offset(side, index, part))
            : memory.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, offset(side, index, part));
    }

    private static void setReal(MemorySegment memory, Side side, long index, int part, double value) {
        if (partBytes(side) == Float.BYTES) {
            memory.set(ValueLayout.JAVA_FLOAT_UNALIGNED, offset(side, index, part), (float) value);
        } else {
            memory.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, offset(side, index, part), value);
        }
    }
}

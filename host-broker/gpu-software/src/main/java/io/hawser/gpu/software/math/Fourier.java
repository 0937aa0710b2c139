package io.hawser.gpu.software.math;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Fourier transforms of one length, not normalised, of complex numbers in double precision: by the factors of the
 * length, and for a length with a large prime factor by Bluestein's convolution. Not for several threads at once.
 */
final class Fourier {
    /** Above it, a convolution is faster than the sum over a factor. */
    private static final int MAX_FACTOR = 31;

    private final int length;
    private final int[] factors; // null with a convolution
    private final double[] roots; // exp(-2 pi i k / length), or of the convolution exp(-pi i k^2 / length)
    private final double[] sum = new double[2 * MAX_FACTOR];
    private final Fourier convolution;
    private final double[] chirp; // the transform of the convolution's second operand
    private final double[] operand;
    private final double[] product;

    Fourier(int length) {
        this.length = length;
        factors = factors(length);
        roots = new double[2 * length];
        for (int k = 0; k < length; k++) {
            // Exact for every length: k^2 mod 2 length is what the angle depends on.
            double angle = factors != null ? -2 * Math.PI * k / length
                : -Math.PI * ((long) k * k % (2L * length)) / length;
            roots[2 * k] = Math.cos(angle);
            roots[2 * k + 1] = Math.sin(angle);
        }
        int size = factors != null ? 0 : Integer.highestOneBit(2 * length - 2) << 1;
        convolution = factors != null ? null : new Fourier(size);
        operand = new double[2 * size];
        product = new double[2 * size];
        chirp = new double[2 * size];
        if (convolution != null) {
            for (int k = 0; k < length; k++) {
                int mirrored = k == 0 ? 0 : size - k;
                operand[2 * k] = roots[2 * k];
                operand[2 * k + 1] = -roots[2 * k + 1];
                operand[2 * mirrored] = roots[2 * k];
                operand[2 * mirrored + 1] = -roots[2 * k + 1];
            }
            convolution.forward(operand, chirp);
        }
    }

    /** Doubles that an object of a length keeps. */
    static long doubles(int length) {
        return factors(length) != null ? 2L * length : 2L * length + 8L * Integer.highestOneBit(2 * length - 2) * 2;
    }

    /** Factors in the order of the transform; null when one is too large. */
    private static int[] factors(int length) {
        List<Integer> factors = new ArrayList<>();
        int rest = length;
        for (int factor = 4; rest > 1; factor = factor == 4 ? 2 : factor == 2 ? 3 : factor + 2) {
            while (rest % factor == 0) {
                factors.add(factor);
                rest /= factor;
            }
            if (factor > MAX_FACTOR && rest > 1) {
                return null;
            }
        }
        return factors.stream().anyMatch(factor -> factor > MAX_FACTOR) ? null
            : factors.stream().mapToInt(Integer::intValue).toArray();
    }

    /** Transforms with the exponent's negative sign; {@code out} is another array. Both have pairs of numbers. */
    void forward(double[] in, double[] out) {
        if (factors != null) {
            combine(in, 0, 1, out, 0, 0, length);
        } else {
            convolve(in, out);
        }
    }

    /** Transforms with the exponent's positive sign, which is that of the conjugate numbers, conjugated. */
    void inverse(double[] in, double[] out) {
        for (int k = 0; k < length; k++) {
            in[2 * k + 1] = -in[2 * k + 1];
        }
        forward(in, out);
        for (int k = 0; k < length; k++) {
            in[2 * k + 1] = -in[2 * k + 1];
            out[2 * k + 1] = -out[2 * k + 1];
        }
    }

    /** Transforms the {@code count} numbers of {@code in} from {@code from} on, {@code step} apart. */
    private void combine(double[] in, int from, int step, double[] out, int at, int level, int count) {
        if (count == 1) {
            out[2 * at] = in[2 * from];
            out[2 * at + 1] = in[2 * from + 1];
            return;
        }
        int factor = factors[level];
        int part = count / factor;
        for (int i = 0; i < factor; i++) {
            combine(in, from + i * step, step * factor, out, at + i * part, level + 1, part);
        }
        for (int k = 0; k < part; k++) {
            for (int j = 0; j < factor; j++) {
                double real = 0;
                double imaginary = 0;
                for (int i = 0; i < factor; i++) {
                    int root = 2 * (int) ((long) i * (k + j * part) % count * step);
                    int place = 2 * (at + i * part + k);
                    real += out[place] * roots[root] - out[place + 1] * roots[root + 1];
                    imaginary += out[place] * roots[root + 1] + out[place + 1] * roots[root];
                }
                sum[2 * j] = real;
                sum[2 * j + 1] = imaginary;
            }
            for (int j = 0; j < factor; j++) {
                out[2 * (at + j * part + k)] = sum[2 * j];
                out[2 * (at + j * part + k) + 1] = sum[2 * j + 1];
            }
        }
    }

    private void convolve(double[] in, double[] out) {
        int size = convolution.length;
        Arrays.fill(operand, 0);
        for (int k = 0; k < length; k++) {
            operand[2 * k] = in[2 * k] * roots[2 * k] - in[2 * k + 1] * roots[2 * k + 1];
            operand[2 * k + 1] = in[2 * k] * roots[2 * k + 1] + in[2 * k + 1] * roots[2 * k];
        }
        convolution.forward(operand, product);
        for (int k = 0; k < size; k++) {
            double real = product[2 * k] * chirp[2 * k] - product[2 * k + 1] * chirp[2 * k + 1];
            product[2 * k + 1] = product[2 * k] * chirp[2 * k + 1] + product[2 * k + 1] * chirp[2 * k];
            product[2 * k] = real;
        }
        convolution.inverse(product, operand);
        for (int k = 0; k < length; k++) {
            double real = operand[2 * k] / size;
            double imaginary = operand[2 * k + 1] / size;
            out[2 * k] = real * roots[2 * k] - imaginary * roots[2 * k + 1];
            out[2 * k + 1] = real * roots[2 * k + 1] + imaginary * roots[2 * k];
        }
    }
}

package io.hawser.gpu.software.dnn;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.MemorySegment;
import java.util.Random;

/** Tensors of random numbers, in any layout, and packed copies of them. */
final class Samples {
    private final Random random;

    Samples(long seed) {
        random = new Random(seed);
    }

    /** A number from {@code low} to {@code high}, both included. */
    int number(int low, int high) {
        return low + random.nextInt(high - low + 1);
    }

    double real() {
        return random.nextDouble(-2, 2);
    }

    /** A tensor with these sizes, packed, with its channels last, or with gaps. */
    Tensor tensor(long... sizes) {
        try {
            return fill(switch (random.nextInt(3)) {
                case 0 -> Shape.packed(0, sizes);
                case 1 -> Shape.channelsLast(0, sizes);
                default -> gaps(sizes);
            });
        } catch (Refusal e) {
            throw new AssertionError(e);
        }
    }

    private Shape gaps(long... sizes) throws Refusal {
        long[] strides = new long[sizes.length];
        long next = 1;
        for (int i = sizes.length - 1; i >= 0; i--) {
            strides[i] = next + random.nextInt(3);
            next = strides[i] * sizes[i];
        }
        return new Shape(0, sizes, strides);
    }

    Tensor fill(Shape shape) {
        float[] values = new float[(int) shape.extent()];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) random.nextDouble(-2, 2);
        }
        return new Tensor(shape, MemorySegment.ofArray(values));
    }

    /** The elements in order. */
    static double[] values(Tensor tensor) {
        double[] values = new double[(int) tensor.shape().count()];
        Walk walk = new Walk(tensor.shape().sizes(), tensor.shape().strides());
        for (int i = 0; i < values.length; i++) {
            values[i] = tensor.get(walk.place(0));
            walk.next();
        }
        return values;
    }

    /** Writes elements in order. */
    static void set(Tensor tensor, double... values) {
        Walk walk = new Walk(tensor.shape().sizes(), tensor.shape().strides());
        for (double value : values) {
            tensor.set(walk.place(0), value);
            walk.next();
        }
    }

    /** Checks elements to the precision of float. */
    static void assertNear(double[] expected, Tensor got, String what) {
        double[] values = values(got);
        assertEquals(expected.length, values.length, what);
        for (int i = 0; i < expected.length; i++) {
            assertEquals(expected[i], values[i], 1e-5 * (1 + Math.abs(expected[i])), what + " element " + i);
        }
    }

    /** {@code alpha * result + beta * before}, element by element. */
    static double[] blended(double[] result, double alpha, double[] before, double beta) {
        double[] blended = new double[result.length];
        for (int i = 0; i < result.length; i++) {
            blended[i] = alpha * result[i] + (beta == 0 ? 0 : beta * before[i]);
        }
        return blended;
    }
}

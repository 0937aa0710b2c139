package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_BAD_PARAM;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ConvolutionTest {
    private static final int CASES = 300;

    /** Sizes of a convolution with two or three dimensions of space, and its tensors. */
    private static final class Case {
        private final Samples samples;
        private final int space; // dimensions
        private final long batch;
        private final long groups;
        private final long channels; // of a group
        private final long filters; // of a group
        private final long[] in;
        private final long[] window;
        private final long[] out;
        private final long[] prePad;
        private final long[] postPad;
        private final long[] stride;
        private final long[] dilation;
        private final boolean isFlipped;
        private final Tensor x;
        private final Tensor w;
        private final Tensor y;

        Case(long seed) {
            samples = new Samples(seed);
            space = samples.number(1, 3);
            batch = samples.number(1, 2);
            groups = samples.number(1, 3);
            channels = samples.number(1, 2);
            filters = samples.number(1, 2);
            isFlipped = samples.number(0, 1) == 0;
            in = new long[space];
            window = new long[space];
            out = new long[space];
            prePad = new long[space];
            postPad = new long[space];
            stride = new long[space];
            dilation = new long[space];
            for (int i = 0; i < space; i++) {
                in[i] = samples.number(1, 6);
                window[i] = samples.number(1, 3);
                dilation[i] = samples.number(1, 3);
                stride[i] = samples.number(1, 5); // may be larger than the window
                prePad[i] = samples.number(0, 5); // and so may the padding
                long reach = (window[i] - 1) * dilation[i] + 1;
                postPad[i] = Math.max(samples.number(0, 4), reach - in[i] - prePad[i]);
                out[i] = 1 + (in[i] + prePad[i] + postPad[i] - reach) / stride[i];
            }
            x = samples.tensor(sizes(batch, groups * channels, in));
            w = samples.tensor(sizes(groups * filters, channels, window));
            y = samples.tensor(sizes(batch, groups * filters, out));
        }

        private static long[] sizes(long first, long second, long[] space) {
            long[] sizes = new long[2 + space.length];
            sizes[0] = first;
            sizes[1] = second;
            System.arraycopy(space, 0, sizes, 2, space.length);
            return sizes;
        }

        Convolution made() throws Refusal {
            return Convolution.of(new Convolution.Content(prePad, postPad, stride, dilation, isFlipped,
                samples.number(0, 1) == 0 ? 0 : groups), x.shape(), w.shape(), y.shape());
        }

        /** Visits each product of the sums: numbers of the elements of packed x, w and y. */
        void visit(Product product) {
            long inputs = volume(in);
            long taps = volume(window);
            long outputs = volume(out);
            for (long n = 0; n < batch; n++) {
                for (long k = 0; k < groups * filters; k++) {
                    for (long c = 0; c < channels; c++) {
                        for (long o = 0; o < outputs; o++) {
                            for (long t = 0; t < taps; t++) {
                                long at = input(o, t);
                                long channel = k / filters * channels + c;
                                if (at >= 0) {
                                    long tap = isFlipped ? taps - 1 - t : t;
                                    product.at((int) ((n * groups * channels + channel) * inputs + at),
                                        (int) ((k * channels + c) * taps + tap),
                                        (int) ((n * groups * filters + k) * outputs + o));
                                }
                            }
                        }
                    }
                }
            }
        }

        private static long volume(long[] sizes) {
            return Arrays.stream(sizes).reduce(1, (a, b) -> a * b);
        }

        private long input(long output, long tap) {
            long at = 0;
            long step = 1;
            long o = output;
            long t = tap;
            for (int i = space - 1; i >= 0; i--) {
                long index = o % out[i] * stride[i] - prePad[i] + t % window[i] * dilation[i];
                if (index < 0 || index >= in[i]) {
                    return -1;
                }
                at += index * step;
                step *= in[i];
                o /= out[i];
                t /= window[i];
            }
            return at;
        }

        private interface Product {
            void at(int x, int w, int y);
        }
    }

    @Test
    void shouldEqualTheSumsOfRandomShapes() throws Refusal {
        for (int seed = 0; seed < CASES; seed++) {
            Case c = new Case(seed);
            Convolution convolution = c.made();
            double alpha = c.samples.real();
            double beta = seed % 2 == 0 ? 0 : c.samples.real();
            double[] x = Samples.values(c.x);
            double[] w = Samples.values(c.w);
            double[] y = Samples.values(c.y);
            double[] sums = new double[y.length];
            double[] inputs = new double[x.length];
            double[] filters = new double[w.length];
            c.visit((i, f, o) -> {
                sums[o] += x[i] * w[f];
                inputs[i] += y[o] * w[f];
                filters[f] += x[i] * y[o];
            });
            Tensor dx = c.samples.tensor(c.x.shape().sizes());
            double[] beforeX = Samples.values(dx);
            Tensor xLike = c.x;
            Convolution backward = Convolution.of(content(c), dx.shape(), c.w.shape(), c.y.shape());
            backward.backwardData(c.w, c.y, dx, alpha, beta);
            Samples.assertNear(Samples.blended(inputs, alpha, beforeX, beta), dx, "dx seed=" + seed);
            Tensor dw = c.samples.fill(c.w.shape());
            double[] beforeW = Samples.values(dw);
            convolution.backwardFilter(xLike, c.y, dw, alpha, beta);
            Samples.assertNear(Samples.blended(filters, alpha, beforeW, beta), dw, "dw seed=" + seed);
            convolution.forward(c.x, c.w, c.y, alpha, beta);
            Samples.assertNear(Samples.blended(sums, alpha, y, beta), c.y, "y seed=" + seed);
        }
    }

    private static Convolution.Content content(Case c) {
        return new Convolution.Content(c.prePad, c.postPad, c.stride, c.dilation, c.isFlipped, c.groups);
    }

    @Test
    void shouldSumRowsThatAreLongerThanABlock() throws Refusal {
        Samples samples = new Samples(1);
        int width = 10_000;
        Tensor x = samples.fill(Shape.packed(0, 1, 1, 1, width));
        Tensor w = samples.fill(Shape.packed(0, 1, 1, 1, 3));
        Tensor y = samples.fill(Shape.packed(0, 1, 1, 1, width));
        Convolution convolution = Convolution.of(new Convolution.Content(new long[] {0, 1}, new long[] {0, 1},
            new long[] {1, 1}, new long[] {1, 1}, false, 1), x.shape(), w.shape(), y.shape());
        double[] in = Samples.values(x);
        double[] taps = Samples.values(w);
        double[] expected = new double[width];
        double[] gradient = new double[width];
        for (int o = 0; o < width; o++) {
            for (int t = 0; t < 3; t++) {
                int i = o + t - 1;
                if (i >= 0 && i < width) {
                    expected[o] += in[i] * taps[t];
                    gradient[i] += in[o] * taps[t];
                }
            }
        }
        convolution.forward(x, w, y, 1, 0);
        Samples.assertNear(expected, y, "y");
        convolution.backwardData(w, x, y, 1, 0);
        Samples.assertNear(gradient, y, "dx");
    }

    @Test
    void shouldRefuseShapesThatDoNotFit() throws Refusal {
        Shape x = Shape.packed(0, 2, 4, 5, 5);
        Shape y = Shape.packed(0, 2, 6, 3, 3);
        assertStatus(CUDNN_STATUS_BAD_PARAM, x, Shape.packed(0, 6, 3, 3, 3), y); // channels
        assertStatus(CUDNN_STATUS_BAD_PARAM, x, Shape.packed(0, 5, 4, 3, 3), y); // filters
        assertStatus(CUDNN_STATUS_BAD_PARAM, x, Shape.packed(0, 6, 4, 2, 3), y); // output
        assertStatus(CUDNN_STATUS_BAD_PARAM, x, Shape.packed(0, 6, 4, 6, 6), y); // a window larger than the input
        assertStatus(CUDNN_STATUS_BAD_PARAM, x, Shape.packed(0, 6, 4, 3, 3, 1), y); // dimensions
        assertStatus(CUDNN_STATUS_NOT_SUPPORTED, Shape.packed(2, 2, 4, 5, 5), Shape.packed(2, 6, 4, 3, 3),
            Shape.packed(2, 2, 6, 3, 3)); // half
    }

    private static void assertStatus(int status, Shape x, Shape w, Shape y) {
        long[] ones = {1, 1};
        long[] zeros = {0, 0};
        Refusal refusal = assertThrows(Refusal.class,
            () -> Convolution.of(new Convolution.Content(zeros, zeros, ones, ones, false, 1), x, w, y));
        assertEquals(status, refusal.status(), refusal.getMessage());
    }
}

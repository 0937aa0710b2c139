package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_BAD_PARAM;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import io.hawser.cuda.generated.cudnn.cudnnPoolingMode_t;
import org.junit.jupiter.api.Test;

class PoolingTest {
    private static final int CASES = 200;

    /** Pools one plane of two dimensions by the definition, and spreads the gradient. */
    private static void pool(Pooling.Content content, double[][] x, double[][] y, double[][] dy, double[][] dx) {
        for (int row = 0; row < y.length; row++) {
            for (int column = 0; column < y[0].length; column++) {
                int top = (int) (row * content.stride()[0] - content.pad()[0]);
                int left = (int) (column * content.stride()[1] - content.pad()[1]);
                int bestRow = -1;
                int bestColumn = -1;
                int inside = 0;
                double sum = 0;
                for (int r = Math.max(top, 0); r < Math.min(top + content.window()[0], x.length); r++) {
                    for (int c = Math.max(left, 0); c < Math.min(left + content.window()[1], x[0].length); c++) {
                        inside++;
                        sum += x[r][c];
                        if (bestRow < 0 || x[r][c] > x[bestRow][bestColumn]) {
                            bestRow = r;
                            bestColumn = c;
                        }
                    }
                }
                if (content.isMax()) {
                    y[row][column] = x[bestRow][bestColumn];
                    dx[bestRow][bestColumn] += dy[row][column];
                    continue;
                }
                double divisor = content.mode() == cudnnPoolingMode_t.CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                    ? content.window()[0] * content.window()[1] : inside;
                y[row][column] = sum / divisor;
                for (int r = Math.max(top, 0); r < Math.min(top + content.window()[0], x.length); r++) {
                    for (int c = Math.max(left, 0); c < Math.min(left + content.window()[1], x[0].length); c++) {
                        dx[r][c] += dy[row][column] / divisor;
                    }
                }
            }
        }
    }

    private static double[][] plane(double[] values, int plane, int rows, int columns) {
        double[][] part = new double[rows][columns];
        for (int i = 0; i < rows * columns && values != null; i++) {
            part[i / columns][i % columns] = values[plane * rows * columns + i];
        }
        return part;
    }

    private static void put(double[] values, int plane, double[][] part) {
        int columns = part[0].length;
        for (int i = 0; i < part.length * columns; i++) {
            values[plane * part.length * columns + i] = part[i / columns][i % columns];
        }
    }

    @Test
    void shouldEqualTheDefinitionForRandomShapes() throws Refusal {
        for (int seed = 0; seed < CASES; seed++) {
            Samples samples = new Samples(seed);
            int planes = samples.number(1, 3);
            int[] in = {samples.number(1, 7), samples.number(1, 7)};
            long[] window = new long[2];
            long[] pad = new long[2];
            long[] stride = {samples.number(1, 4), samples.number(1, 4)}; // may be larger than the window
            int[] out = new int[2];
            for (int i = 0; i < 2; i++) {
                pad[i] = samples.number(0, 2);
                window[i] = samples.number((int) pad[i] + 1, (int) Math.max(pad[i] + 1, Math.min(4, in[i])));
                window[i] = Math.min(window[i], in[i] + 2 * pad[i]);
                out[i] = (int) (1 + (in[i] + 2 * pad[i] - window[i]) / stride[i]);
            }
            Pooling.Content content = new Pooling.Content(seed % 4, 0, window, pad, stride);
            Tensor x = samples.tensor(1, planes, in[0], in[1]);
            Tensor y = samples.tensor(1, planes, out[0], out[1]);
            Tensor dx = samples.tensor(1, planes, in[0], in[1]);
            double alpha = samples.real();
            double beta = new double[] {0, 1, samples.real()}[seed % 3];
            double[] values = Samples.values(x);
            double[] gradients = Samples.values(y);
            double[] before = Samples.values(dx);
            double[] results = new double[gradients.length];
            double[] spread = new double[before.length];
            for (int plane = 0; plane < planes; plane++) {
                double[][] result = new double[out[0]][out[1]];
                double[][] gradient = new double[in[0]][in[1]];
                pool(content, plane(values, plane, in[0], in[1]), result, plane(gradients, plane, out[0], out[1]),
                    gradient);
                put(results, plane, result);
                put(spread, plane, gradient);
            }
            Pooling pooling = Pooling.of(content, x.shape(), y.shape());
            pooling.backward(x.volume(), y.volume(), dx.volume(), alpha, beta);
            Samples.assertNear(Samples.blended(spread, alpha, before, beta), dx, "dx seed=" + seed);
            pooling.forward(x.volume(), y.volume(), alpha, beta);
            Samples.assertNear(Samples.blended(results, alpha, gradients, beta), y, "y seed=" + seed);
        }
    }

    @Test
    void shouldPoolThreeDimensions() throws Refusal {
        Samples samples = new Samples(3);
        Tensor x = samples.tensor(1, 1, 2, 2, 4);
        Tensor y = samples.tensor(1, 1, 1, 1, 2);
        Pooling.Content content = new Pooling.Content(cudnnPoolingMode_t.CUDNN_POOLING_MAX, 0, new long[] {2, 2, 2},
            new long[] {0, 0, 0}, new long[] {2, 2, 2});
        Pooling.of(content, x.shape(), y.shape()).forward(x.volume(), y.volume(), 1, 0);
        double[] in = Samples.values(x);
        double[] most = {Double.NEGATIVE_INFINITY, Double.NEGATIVE_INFINITY};
        for (int i = 0; i < in.length; i++) {
            most[i % 4 / 2] = Math.max(most[i % 4 / 2], in[i]);
        }
        Samples.assertNear(most, y, "y");
    }

    @Test
    void shouldPropagateNanOnlyWhereTheDescriptorSaysSo() throws Refusal {
        Samples samples = new Samples(4);
        Tensor x = samples.fill(Shape.packed(0, 1, 1, 1, 3));
        Samples.set(x, 1, Double.NaN, 2);
        Tensor y = samples.fill(Shape.packed(0, 1, 1, 1, 1));
        for (int nan : new int[] {cudnnNanPropagation_t.CUDNN_NOT_PROPAGATE_NAN,
            cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN}) {
            Pooling.Content content = new Pooling.Content(cudnnPoolingMode_t.CUDNN_POOLING_MAX, nan,
                new long[] {1, 3}, new long[] {0, 0}, new long[] {1, 1});
            Pooling.of(content, x.shape(), y.shape()).forward(x.volume(), y.volume(), 1, 0);
            assertEquals(nan == cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN, Double.isNaN(y.get(0)));
            assertTrue(Double.isNaN(y.get(0)) || y.get(0) == 2);
        }
    }

    @Test
    void shouldRefuseWindowsOfPaddingAndOtherSizes() throws Refusal {
        Shape x = Shape.packed(0, 1, 1, 4, 4);
        assertStatus(CUDNN_STATUS_NOT_SUPPORTED, x, Shape.packed(0, 1, 1, 7, 7), 2); // a padding of a whole window
        assertStatus(CUDNN_STATUS_BAD_PARAM, x, Shape.packed(0, 1, 1, 4, 5), 1);
        assertStatus(CUDNN_STATUS_BAD_PARAM, x, Shape.packed(0, 1, 2, 5, 5), 1);
    }

    private static void assertStatus(int status, Shape x, Shape y, long pad) {
        Refusal refusal = assertThrows(Refusal.class, () -> Pooling.of(new Pooling.Content(0, 0, new long[] {2, 2},
            new long[] {pad, pad}, new long[] {1, 1}), x, y));
        assertEquals(status, refusal.status(), refusal.getMessage());
    }
}

package io.hawser.gpu.software.dnn;

import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.cuda.generated.cudnn.cudnnSoftmaxAlgorithm_t;
import io.hawser.cuda.generated.cudnn.cudnnSoftmaxMode_t;
import org.junit.jupiter.api.Test;

class SoftmaxTest {
    private static final int LOG = cudnnSoftmaxAlgorithm_t.CUDNN_SOFTMAX_LOG;

    @Test
    void shouldEqualTheDefinitionForEachAlgorithmAndMode() throws Refusal {
        for (int seed = 0; seed < 120; seed++) {
            Samples samples = new Samples(seed);
            int algorithm = seed % 3;
            int mode = seed / 3 % 2;
            int batch = samples.number(1, 3);
            int channels = samples.number(1, 5);
            int area = samples.number(1, 4);
            Tensor x = samples.tensor(batch, channels, 1, area);
            Tensor y = samples.tensor(batch, channels, 1, area);
            double alpha = samples.real();
            double beta = seed % 2 == 0 ? 0 : samples.real();
            double[] in = Samples.values(x);
            double[] before = Samples.values(y);
            boolean isChannel = mode == cudnnSoftmaxMode_t.CUDNN_SOFTMAX_MODE_CHANNEL;
            double[] sums = new double[batch * area];
            for (int i = 0; i < in.length; i++) {
                sums[group(i, channels, area, isChannel)] += Math.exp(in[i]);
            }
            double[] expected = new double[in.length];
            for (int i = 0; i < in.length; i++) {
                double value = Math.exp(in[i]) / sums[group(i, channels, area, isChannel)];
                expected[i] = algorithm == LOG ? Math.log(value) : value;
            }
            Softmax softmax = Softmax.of(algorithm, mode, x.shape());
            softmax.forward(x, y, alpha, beta);
            Samples.assertNear(Samples.blended(expected, alpha, before, beta), y, "y seed=" + seed);
            Samples.set(y, expected);
            Tensor dy = samples.tensor(batch, channels, 1, area);
            double[] gradients = Samples.values(dy);
            double[] products = new double[batch * area];
            for (int i = 0; i < in.length; i++) {
                products[group(i, channels, area, isChannel)] += gradients[i] * (algorithm == LOG ? 1 : expected[i]);
            }
            double[] result = new double[in.length];
            for (int i = 0; i < in.length; i++) {
                double product = products[group(i, channels, area, isChannel)];
                result[i] = algorithm == LOG ? gradients[i] - Math.exp(expected[i]) * product
                    : expected[i] * (gradients[i] - product);
            }
            softmax.backward(y, dy, dy, alpha, beta); // in place
            Samples.assertNear(Samples.blended(result, alpha, gradients, beta), dy, "dx seed=" + seed);
        }
    }

    private static int group(int element, int channels, int area, boolean isChannel) {
        int image = element / (channels * area);
        return isChannel ? image * area + element % area : image;
    }

    @Test
    void shouldNotOverflow() throws Refusal {
        Samples samples = new Samples(1);
        Tensor x = samples.fill(Shape.packed(0, 1, 2, 1, 1));
        Samples.set(x, 1000, 1000);
        Softmax.of(cudnnSoftmaxAlgorithm_t.CUDNN_SOFTMAX_ACCURATE, 0, x.shape()).forward(x, x, 1, 0);
        Samples.assertNear(new double[] {0.5, 0.5}, x, "y");
    }

    @Test
    void shouldRefuseUnknownNumbers() {
        assertThrows(Refusal.class, () -> Softmax.of(3, 0, Shape.packed(0, 1, 2)));
        assertThrows(Refusal.class, () -> Softmax.of(0, 2, Shape.packed(0, 1, 2)));
    }
}

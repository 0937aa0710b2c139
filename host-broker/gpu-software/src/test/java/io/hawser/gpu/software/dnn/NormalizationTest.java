package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnBatchNormMode_t.CUDNN_BATCHNORM_PER_ACTIVATION;
import static io.hawser.cuda.generated.cudnn.cudnnBatchNormMode_t.CUDNN_BATCHNORM_SPATIAL;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class NormalizationTest {
    private static final double EPSILON = 1e-2;

    /** Tensors of a random case. */
    private static final class Case {
        private final Samples samples;
        private final int mode;
        private final int batch;
        private final int channels;
        private final int area;
        private final Tensor x;
        private final long[] parameters;
        private final int count;

        Case(long seed) {
            samples = new Samples(seed);
            mode = seed % 2 == 0 ? CUDNN_BATCHNORM_SPATIAL : CUDNN_BATCHNORM_PER_ACTIVATION;
            batch = samples.number(2, 4);
            channels = samples.number(1, 3);
            area = samples.number(1, 4);
            x = samples.tensor(batch, channels, 1, area);
            parameters = mode == CUDNN_BATCHNORM_SPATIAL ? new long[] {1, channels, 1, 1}
                : new long[] {1, channels, 1, area};
            count = mode == CUDNN_BATCHNORM_SPATIAL ? channels : channels * area;
        }

        Tensor parameter() throws Refusal {
            return samples.fill(Shape.packed(0, parameters));
        }

        Normalization made() throws Refusal {
            return Normalization.of(mode, x.shape(), Shape.packed(0, parameters), EPSILON);
        }

        /** The parameter that an element has. */
        int of(int element) {
            return mode == CUDNN_BATCHNORM_SPATIAL ? element / area % channels : element % (channels * area);
        }

        int members() {
            return mode == CUDNN_BATCHNORM_SPATIAL ? batch * area : batch;
        }

        double[] means(double[] values) {
            double[] means = new double[count];
            for (int i = 0; i < values.length; i++) {
                means[of(i)] += values[i] / members();
            }
            return means;
        }

        double[] variances(double[] values, double[] means) {
            double[] variances = new double[count];
            for (int i = 0; i < values.length; i++) {
                variances[of(i)] += Math.pow(values[i] - means[of(i)], 2) / members();
            }
            return variances;
        }

        double[] normalized(double[] values, double[] means, double[] variances, double[] scale, double[] bias) {
            double[] result = new double[values.length];
            for (int i = 0; i < values.length; i++) {
                result[i] = bias[of(i)] + scale[of(i)] * (values[i] - means[of(i)])
                    / Math.sqrt(variances[of(i)] + EPSILON);
            }
            return result;
        }
    }

    @Test
    void shouldNormalizeByTheBatchAndKeepItsStatistics() throws Refusal {
        for (int seed = 0; seed < 60; seed++) {
            Case c = new Case(seed);
            Tensor scale = c.parameter();
            Tensor bias = c.parameter();
            Tensor runningMean = c.parameter();
            Tensor runningVariance = c.parameter();
            Tensor savedMean = c.parameter();
            Tensor savedInverse = c.parameter();
            double factor = seed % 3 == 0 ? 1 : 0.3;
            double[] in = Samples.values(c.x);
            double[] means = c.means(in);
            double[] variances = c.variances(in, means);
            double[] oldMeans = Samples.values(runningMean);
            double[] oldVariances = Samples.values(runningVariance);
            double[] unbiased = variances.clone();
            double[] inverses = variances.clone();
            for (int i = 0; i < variances.length; i++) {
                unbiased[i] *= c.members() / (c.members() - 1.0);
                inverses[i] = 1 / Math.sqrt(variances[i] + EPSILON);
            }
            double alpha = c.samples.real();
            double beta = seed % 2 == 0 ? 0 : c.samples.real();
            double[] expected = Samples.blended(
                c.normalized(in, means, variances, Samples.values(scale), Samples.values(bias)), alpha, in, beta);
            c.made().train(c.x, c.x, scale, bias, new Normalization.Statistics(runningMean, runningVariance, factor,
                savedMean, savedInverse), alpha, beta); // in place
            Samples.assertNear(expected, c.x, "y seed=" + seed);
            Samples.assertNear(means, savedMean, "mean");
            Samples.assertNear(inverses, savedInverse, "inverse");
            Samples.assertNear(Samples.blended(means, factor, oldMeans, 1 - factor), runningMean, "running mean");
            Samples.assertNear(Samples.blended(unbiased, factor, oldVariances, 1 - factor), runningVariance,
                "running variance");
        }
    }

    @Test
    void shouldNormalizeByGivenStatistics() throws Refusal {
        for (int seed = 0; seed < 20; seed++) {
            Case c = new Case(seed);
            Tensor scale = c.parameter();
            Tensor bias = c.parameter();
            Tensor mean = c.parameter();
            Tensor variance = c.parameter();
            double[] positive = Samples.values(variance);
            for (int i = 0; i < positive.length; i++) {
                positive[i] = Math.abs(positive[i]);
            }
            Samples.set(variance, positive);
            Tensor y = c.samples.tensor(c.x.shape().sizes());
            double[] before = Samples.values(y);
            double[] expected = c.normalized(Samples.values(c.x), Samples.values(mean), positive,
                Samples.values(scale), Samples.values(bias));
            c.made().infer(c.x, y, scale, bias, mean, variance, 2, 0.5);
            Samples.assertNear(Samples.blended(expected, 2, before, 0.5), y, "y seed=" + seed);
        }
    }

    /** The sum of the results, each times its gradient. */
    private static double loss(Case c, double[] in, double[] scale, double[] bias, double[] gradients) {
        double[] means = c.means(in);
        double[] result = c.normalized(in, means, c.variances(in, means), scale, bias);
        double loss = 0;
        for (int i = 0; i < result.length; i++) {
            loss += result[i] * gradients[i];
        }
        return loss;
    }

    private interface Loss {
        double of(double[] changed);
    }

    /** The derivative of a loss by each number. */
    private static double[] slopes(double[] at, Loss loss) {
        double step = 1e-5;
        double[] slopes = new double[at.length];
        for (int i = 0; i < at.length; i++) {
            double[] changed = at.clone();
            changed[i] = at[i] + step;
            double more = loss.of(changed);
            changed[i] = at[i] - step;
            slopes[i] = (more - loss.of(changed)) / (2 * step);
        }
        return slopes;
    }

    private static void assertSlopes(double[] slopes, double[] got, String what) {
        for (int i = 0; i < slopes.length; i++) {
            assertEquals(slopes[i], got[i], 1e-3 * (1 + Math.abs(slopes[i])), what + " element " + i);
        }
    }

    @Test
    void shouldComputeTheGradientsOfDataScaleAndBias() throws Refusal {
        for (int seed = 0; seed < 30; seed++) {
            Case c = new Case(seed);
            Tensor scale = c.parameter();
            Tensor dScale = c.parameter();
            Tensor dBias = c.parameter();
            Tensor dy = c.samples.tensor(c.x.shape().sizes());
            Tensor dx = c.samples.tensor(c.x.shape().sizes());
            double[] in = Samples.values(c.x);
            double[] scales = Samples.values(scale);
            double[] biases = new double[scales.length];
            double[] gradients = Samples.values(dy);
            boolean isSaved = seed % 3 == 0;
            Tensor mean = c.parameter();
            Tensor inverse = c.parameter();
            c.made().train(c.x, dx, scale, dBias, new Normalization.Statistics(null, null, 0, mean, inverse), 1, 0);
            double[] before = Samples.values(dx);
            double[] beforeScale = Samples.values(dScale);
            c.made().backward(c.x, dy, dx, new Normalization.Parameters(scale, dScale, dBias, isSaved ? mean : null,
                isSaved ? inverse : null), new Normalization.Factors(2, 0.5, 3, seed % 2));
            assertSlopes(Samples.blended(slopes(in, v -> loss(c, v, scales, biases, gradients)), 2, before, 0.5),
                Samples.values(dx), "dx seed=" + seed);
            assertSlopes(Samples.blended(slopes(scales, v -> loss(c, in, v, biases, gradients)), 3, beforeScale,
                seed % 2), Samples.values(dScale), "dscale seed=" + seed);
        }
    }

    @Test
    void shouldRefuseParametersOfAnotherMode() throws Refusal {
        Shape data = Shape.packed(0, 2, 3, 4, 5);
        assertThrows(Refusal.class, () -> Normalization.of(CUDNN_BATCHNORM_SPATIAL, data,
            Shape.packed(0, 1, 3, 4, 5), EPSILON));
        assertThrows(Refusal.class, () -> Normalization.of(CUDNN_BATCHNORM_PER_ACTIVATION, data,
            Shape.packed(0, 1, 3, 1, 1), EPSILON));
        assertThrows(Refusal.class, () -> Normalization.of(CUDNN_BATCHNORM_SPATIAL, data,
            Shape.packed(0, 1, 3, 1, 1), -1));
        assertThrows(Refusal.class, () -> Normalization.of(3, data, Shape.packed(0, 1, 3, 1, 1), EPSILON));
    }

    /** Normalizes the channels of one image with one place, by the definition. */
    private static double[] responses(LocalResponse response, double[] in) {
        double[] out = new double[in.length];
        for (int c = 0; c < in.length; c++) {
            double sum = 0;
            for (int i = 0; i < response.width(); i++) {
                int channel = c - (response.width() - 1) / 2 + i;
                sum += channel < 0 || channel >= in.length ? 0 : in[channel] * in[channel];
            }
            out[c] = in[c] / Math.pow(response.k() + response.alpha() / response.width() * sum, response.beta());
        }
        return out;
    }

    @Test
    void shouldNormalizeAcrossChannels() throws Refusal {
        for (int width = 1; width <= 16; width++) {
            Samples samples = new Samples(width);
            LocalResponse response = new LocalResponse(width, 0.5, 0.75, 2);
            response.check();
            Tensor x = samples.tensor(1, 9, 1, 1);
            Tensor y = samples.tensor(1, 9, 1, 1);
            Tensor dy = samples.tensor(1, 9, 1, 1);
            Tensor dx = samples.tensor(1, 9, 1, 1);
            double[] in = Samples.values(x);
            double[] gradients = Samples.values(dy);
            double[] before = Samples.values(y);
            double[] beforeX = Samples.values(dx);
            response.forward(x, y, 2, 0.5);
            Samples.assertNear(Samples.blended(responses(response, in), 2, before, 0.5), y, "y width=" + width);
            response.backward(x, dy, dx, 2, 0.5);
            double[] slopes = slopes(in, v -> {
                double[] out = responses(response, v);
                double loss = 0;
                for (int i = 0; i < out.length; i++) {
                    loss += out[i] * gradients[i];
                }
                return loss;
            });
            assertSlopes(Samples.blended(slopes, 2, beforeX, 0.5), Samples.values(dx), "dx width=" + width);
        }
        assertThrows(Refusal.class, () -> new LocalResponse(17, 1, 1, 1).check());
    }
}

package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.cudnnBatchNormMode_t;

/**
 * Batch normalization: each channel, or each place of an image, gets the mean 0 and the variance 1 over the batch.
 * Computes in double. Any thread.
 */
final class Normalization {
    private final Shape data;
    private final Shape parameters;
    private final Groups groups;
    private final double epsilon;

    private Normalization(Shape data, Shape parameters, double epsilon) {
        this.data = data;
        this.parameters = parameters;
        this.epsilon = epsilon;
        groups = new Groups(data, parameters.sizes());
    }

    /**
     * Checks the numbers of a call.
     *
     * @param mode a cudnnBatchNormMode_t.
     * @param parameters the shape of scale, bias, mean and variance.
     */
    static Normalization of(int mode, Shape data, Shape parameters, double epsilon) throws Refusal {
        Refusal.require(mode >= cudnnBatchNormMode_t.CUDNN_BATCHNORM_PER_ACTIVATION
            && mode <= cudnnBatchNormMode_t.CUDNN_BATCHNORM_SPATIAL_PERSISTENT, "a mode of normalization");
        Refusal.support(data.isFloat() && parameters.isFloat(), "a normalization in float");
        Refusal.require(data.dims() == 4 || data.dims() == 5, "a normalized tensor has 4 or 5 dimensions");
        boolean isSpatial = mode != cudnnBatchNormMode_t.CUDNN_BATCHNORM_PER_ACTIVATION;
        boolean fits = parameters.dims() == data.dims();
        for (int i = 0; i < data.dims() && fits; i++) {
            fits = parameters.size(i) == (i == 0 || i > 1 && isSpatial ? 1 : data.size(i));
        }
        Refusal.require(fits, "parameters have the sizes of cudnnDeriveBNTensorDescriptor");
        Refusal.require(epsilon >= 0, "epsilon is not negative"); // CUDNN_BN_MIN_EPSILON of cuDNN 9 is 0
        return new Normalization(data, parameters, epsilon);
    }

    /** Elements that have a common mean. */
    long members() {
        return groups.members();
    }

    /** {@code y = alpha * (bias + scale * (x - mean) / sqrt(variance + epsilon)) + beta * y}. */
    void infer(Tensor x, Tensor y, Tensor scale, Tensor bias, Tensor mean, Tensor variance, double alpha,
        double beta) {
        Elements.map(y, beta, v -> alpha * (v[2] + v[1] * (v[0] - v[3]) / Math.sqrt(v[4] + epsilon)), x, scale, bias,
            mean, variance);
    }

    /**
     * What a training step writes besides the result; null for tensors that the program does not want.
     *
     * @param factor of the new values in the running ones.
     */
    record Statistics(Tensor runningMean, Tensor runningVariance, double factor, Tensor savedMean,
        Tensor savedInverse) {
    }

    /** Normalizes by the batch's own mean and variance; {@code x} may be {@code y}. */
    void train(Tensor x, Tensor y, Tensor scale, Tensor bias, Statistics statistics, double alpha, double beta) {
        groups.each((group, member) -> {
            double mean = mean(x, group, member);
            double variance = variance(x, group, member, mean);
            double inverse = 1 / Math.sqrt(variance + epsilon);
            long at = group.place(2);
            for (long i = 0; i < groups.members(); i++) {
                double value = (x.get(group.place(0) + member.place(0)) - mean) * inverse;
                y.blend(group.place(1) + member.place(1), alpha * (bias.get(at) + scale.get(at) * value), beta);
                member.next();
            }
            if (statistics.runningMean != null) {
                double unbiased = variance * groups.members() / (groups.members() - 1);
                double old = 1 - statistics.factor;
                statistics.runningMean.blend(at, statistics.factor * mean, old);
                statistics.runningVariance.blend(at, statistics.factor * unbiased, old);
            }
            if (statistics.savedMean != null) {
                statistics.savedMean.set(at, mean);
                statistics.savedInverse.set(at, inverse);
            }
        }, x.shape().strides(), y.shape().strides(), parameters.strides());
    }

    private double mean(Tensor x, Walk group, Walk member) {
        double sum = 0;
        for (long i = 0; i < groups.members(); i++) {
            sum += x.get(group.place(0) + member.place(0));
            member.next();
        }
        return sum / groups.members();
    }

    private double variance(Tensor x, Walk group, Walk member, double mean) {
        double sum = 0;
        for (long i = 0; i < groups.members(); i++) {
            double difference = x.get(group.place(0) + member.place(0)) - mean;
            sum += difference * difference;
            member.next();
        }
        return sum / groups.members();
    }

    /** Factors of the gradients, and of what the outputs held before. */
    record Factors(double dataAlpha, double dataBeta, double parameterAlpha, double parameterBeta) {
    }

    /** Tensors that the parameters' gradients need; the saved ones are null when the program has not saved them. */
    record Parameters(Tensor scale, Tensor dScale, Tensor dBias, Tensor savedMean, Tensor savedInverse) {
    }

    /** The gradients of data, scale and bias; {@code dy} may be {@code dx}. */
    void backward(Tensor x, Tensor dy, Tensor dx, Parameters given, Factors factors) {
        groups.each((group, member) -> {
            long at = group.place(3);
            double mean = given.savedMean == null ? mean(x, group, member) : given.savedMean.get(at);
            double inverse = given.savedInverse == null ? 1 / Math.sqrt(variance(x, group, member, mean) + epsilon)
                : given.savedInverse.get(at);
            double sum = 0;
            double product = 0;
            for (long i = 0; i < groups.members(); i++) {
                double gradient = dy.get(group.place(1) + member.place(1));
                sum += gradient;
                product += gradient * (x.get(group.place(0) + member.place(0)) - mean) * inverse;
                member.next();
            }
            double scale = given.scale.get(at) * inverse;
            for (long i = 0; i < groups.members(); i++) {
                double value = (x.get(group.place(0) + member.place(0)) - mean) * inverse;
                double gradient = dy.get(group.place(1) + member.place(1));
                double result = scale * (gradient - (sum + value * product) / groups.members());
                dx.blend(group.place(2) + member.place(2), factors.dataAlpha * result, factors.dataBeta);
                member.next();
            }
            given.dScale.blend(at, factors.parameterAlpha * product, factors.parameterBeta);
            given.dBias.blend(at, factors.parameterAlpha * sum, factors.parameterBeta);
        }, data.strides(), dy.shape().strides(), dx.shape().strides(), parameters.strides());
    }
}

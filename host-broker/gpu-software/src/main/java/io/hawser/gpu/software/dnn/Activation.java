package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.cudnnActivationMode_t;
import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;

/**
 * A function of an activation, and its derivative.
 *
 * @param mode a cudnnActivationMode_t.
 * @param nan a cudnnNanPropagation_t; only the rectified modes use it.
 * @param coefficient the ceiling of a clipped one, or the alpha of an exponential one.
 * @param swishBeta the factor inside of a swish.
 */
record Activation(int mode, int nan, double coefficient, double swishBeta) {
    /** Checks that the mode has a formula here, by itself. */
    void check() throws Refusal {
        Refusal.require(mode >= cudnnActivationMode_t.CUDNN_ACTIVATION_SIGMOID
            && mode <= cudnnActivationMode_t.CUDNN_ACTIVATION_SWISH, "a mode of activation");
        // Documented: the identity belongs to cudnnConvolutionBiasActivationForward only.
        Refusal.support(mode != cudnnActivationMode_t.CUDNN_ACTIVATION_IDENTITY, "an activation other than identity");
    }

    private double unordered() {
        return nan == cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN ? Double.NaN : 0;
    }

    static double sigmoid(double x) {
        return 1 / (1 + Math.exp(-x));
    }

    double of(double x) {
        return switch (mode) {
            case cudnnActivationMode_t.CUDNN_ACTIVATION_SIGMOID -> sigmoid(x);
            case cudnnActivationMode_t.CUDNN_ACTIVATION_RELU -> Double.isNaN(x) ? unordered() : Math.max(x, 0);
            case cudnnActivationMode_t.CUDNN_ACTIVATION_TANH -> Math.tanh(x);
            case cudnnActivationMode_t.CUDNN_ACTIVATION_CLIPPED_RELU -> Double.isNaN(x) ? unordered()
                : Math.min(Math.max(x, 0), coefficient);
            case cudnnActivationMode_t.CUDNN_ACTIVATION_ELU -> x > 0 ? x : coefficient * Math.expm1(x);
            case cudnnActivationMode_t.CUDNN_ACTIVATION_SWISH -> x * sigmoid(swishBeta * x);
            default -> x;
        };
    }

    /** The derivative at {@code x}, where the function has the value {@code y}. */
    double derivative(double x, double y) {
        return switch (mode) {
            case cudnnActivationMode_t.CUDNN_ACTIVATION_SIGMOID -> y * (1 - y);
            case cudnnActivationMode_t.CUDNN_ACTIVATION_RELU -> Double.isNaN(x) ? unordered() : x > 0 ? 1 : 0;
            case cudnnActivationMode_t.CUDNN_ACTIVATION_TANH -> 1 - y * y;
            case cudnnActivationMode_t.CUDNN_ACTIVATION_CLIPPED_RELU -> Double.isNaN(x) ? unordered()
                : x > 0 && x < coefficient ? 1 : 0;
            case cudnnActivationMode_t.CUDNN_ACTIVATION_ELU -> x > 0 ? 1 : coefficient * Math.exp(x);
            case cudnnActivationMode_t.CUDNN_ACTIVATION_SWISH -> {
                double inner = sigmoid(swishBeta * x);
                yield inner + swishBeta * x * inner * (1 - inner);
            }
            default -> 1;
        };
    }

    /** {@code out = alpha * activation(in) + beta * out}; {@code in} may be {@code out}. */
    void forward(Tensor in, Tensor out, double alpha, double beta) {
        Elements.map(out, beta, v -> alpha * of(v[0]), in);
    }

    /** {@code dx = alpha * dy * derivative + beta * dx}; {@code dy} may be {@code dx}. */
    void backward(Tensor y, Tensor dy, Tensor x, Tensor dx, double alpha, double beta) {
        Elements.map(dx, beta, v -> alpha * v[1] * derivative(v[2], v[0]), y, dy, x);
    }
}

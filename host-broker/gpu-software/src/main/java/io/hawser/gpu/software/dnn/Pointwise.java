package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import io.hawser.cuda.generated.cudnn.cudnnPointwiseMode_t;

/**
 * A function of one or two elements.
 *
 * @param mode a cudnnPointwiseMode_t.
 * @param nan a cudnnNanPropagation_t; minima, maxima and the rectified mode use it.
 * @param lower of the rectified mode, as {@code upper} and {@code slope}.
 */
record Pointwise(int mode, int nan, double lower, double upper, double slope, double eluAlpha, double swishBeta) {
    private static final double GELU = Math.sqrt(2 / Math.PI);
    private static final double GELU_CUBE = 0.044715; // of the approximation by tanh

    /** Checks that the mode has a formula here. */
    void check() throws Refusal {
        if (!isBinary() && !isUnary()) {
            throw Refusal.unsupported(Names.of(cudnnPointwiseMode_t.class, mode));
        }
        // Where the line of the slope begins is documented for 0 only.
        Refusal.support(slope == 0 || lower == 0, "a slope that begins at 0");
    }

    boolean isBinary() {
        return switch (mode) {
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_ADD, cudnnPointwiseMode_t.CUDNN_POINTWISE_MUL,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_MIN, cudnnPointwiseMode_t.CUDNN_POINTWISE_MAX,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_SUB, cudnnPointwiseMode_t.CUDNN_POINTWISE_DIV -> true;
            default -> false;
        };
    }

    private boolean isUnary() {
        return switch (mode) {
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_SQRT, cudnnPointwiseMode_t.CUDNN_POINTWISE_RSQRT,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_ABS, cudnnPointwiseMode_t.CUDNN_POINTWISE_EXP,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_LOG, cudnnPointwiseMode_t.CUDNN_POINTWISE_NEG,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_IDENTITY, cudnnPointwiseMode_t.CUDNN_POINTWISE_RECIPROCAL,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_RELU_FWD, cudnnPointwiseMode_t.CUDNN_POINTWISE_TANH_FWD,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_SIGMOID_FWD, cudnnPointwiseMode_t.CUDNN_POINTWISE_ELU_FWD,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_SWISH_FWD,
                cudnnPointwiseMode_t.CUDNN_POINTWISE_GELU_APPROX_TANH_FWD -> true;
            default -> false;
        };
    }

    private boolean isPropagating() {
        return nan == cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN;
    }

    double of(double x, double b) {
        boolean isUnordered = Double.isNaN(x) || Double.isNaN(b);
        return switch (mode) {
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_ADD -> x + b;
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_SUB -> x - b;
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_MUL -> x * b;
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_DIV -> x / b;
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_MIN -> isUnordered && !isPropagating()
                ? Double.isNaN(x) ? b : x : Math.min(x, b);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_MAX -> isUnordered && !isPropagating()
                ? Double.isNaN(x) ? b : x : Math.max(x, b);
            default -> of(x);
        };
    }

    private double of(double x) {
        return switch (mode) {
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_SQRT -> Math.sqrt(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_RSQRT -> 1 / Math.sqrt(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_ABS -> Math.abs(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_EXP -> Math.exp(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_LOG -> Math.log(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_NEG -> -x;
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_RECIPROCAL -> 1 / x;
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_RELU_FWD -> rectified(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_TANH_FWD -> Math.tanh(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_SIGMOID_FWD -> Activation.sigmoid(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_ELU_FWD -> x > 0 ? x : eluAlpha * Math.expm1(x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_SWISH_FWD -> x * Activation.sigmoid(swishBeta * x);
            case cudnnPointwiseMode_t.CUDNN_POINTWISE_GELU_APPROX_TANH_FWD ->
                x / 2 * (1 + Math.tanh(GELU * (x + GELU_CUBE * x * x * x)));
            default -> x; // identity
        };
    }

    private double rectified(double x) {
        if (Double.isNaN(x)) {
            return isPropagating() ? x : lower;
        }
        return x < lower ? lower + slope * (x - lower) : Math.min(x, upper);
    }
}

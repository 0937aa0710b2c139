package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import io.hawser.cuda.generated.cudnn.cudnnReduceTensorOp_t;

/**
 * Sums and other results over dimensions of a tensor.
 *
 * @param operator a cudnnReduceTensorOp_t.
 * @param nan a cudnnNanPropagation_t; only minima and maxima use it.
 */
record Reduction(int operator, int nan) {
    /** Checks the operator, and that the output has the input's sizes or 1. */
    void check(Shape in, Shape out) throws Refusal {
        Refusal.require(operator >= cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_ADD
            && operator <= cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, "an operator of a reduction");
        Refusal.support(in.isFloat() && out.isFloat(), "a reduction in float");
        Refusal.require(out.isWithin(in), "a reduction keeps a size or makes it 1");
    }

    private double start() {
        return switch (operator) {
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MUL,
                cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS -> 1;
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MIN -> Double.POSITIVE_INFINITY;
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MAX -> Double.NEGATIVE_INFINITY;
            default -> 0;
        };
    }

    private double more(double result, double value) {
        return switch (operator) {
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MUL -> result * value;
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS -> value == 0 ? result : result * value;
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MIN -> isSkipped(value) ? result : Math.min(result, value);
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_MAX -> isSkipped(value) ? result : Math.max(result, value);
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_AMAX -> isSkipped(value) ? result
                : Math.max(result, Math.abs(value));
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_NORM1 -> result + Math.abs(value);
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_NORM2 -> result + value * value;
            default -> result + value;
        };
    }

    private boolean isSkipped(double value) {
        return Double.isNaN(value) && nan != cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN;
    }

    private double end(double result, long members) {
        return switch (operator) {
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_AVG -> result / members;
            case cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_NORM2 -> Math.sqrt(result);
            default -> result;
        };
    }

    /** {@code out = alpha * reduction(in) + beta * out}. */
    void run(Tensor in, Tensor out, double alpha, double beta) {
        Groups groups = new Groups(in.shape(), out.shape().sizes());
        groups.each((group, member) -> {
            double result = start();
            for (long i = 0; i < groups.members(); i++) {
                result = more(result, in.get(group.place(0) + member.place(0)));
                member.next();
            }
            out.blend(group.place(1), alpha * end(result, groups.members()), beta);
        }, in.shape().strides(), out.shape().strides());
    }
}

package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import io.hawser.cuda.generated.cudnn.cudnnOpTensorOp_t;

/**
 * An operator of cudnnOpTensor.
 *
 * @param kind a cudnnOpTensorOp_t.
 * @param nan a cudnnNanPropagation_t; only minima and maxima use it.
 */
record Operator(int kind, int nan) {
    /** Whether it has one operand. */
    boolean isUnary() {
        return kind == cudnnOpTensorOp_t.CUDNN_OP_TENSOR_SQRT || kind == cudnnOpTensorOp_t.CUDNN_OP_TENSOR_NOT;
    }

    void check() throws Refusal {
        Refusal.require(kind >= cudnnOpTensorOp_t.CUDNN_OP_TENSOR_ADD
            && kind <= cudnnOpTensorOp_t.CUDNN_OP_TENSOR_NOT, "an operator of tensors");
    }

    double of(double a, double b) {
        boolean isSelecting = kind == cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MIN
            || kind == cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MAX;
        if (isSelecting && nan != cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN && (Double.isNaN(a) || Double.isNaN(b))) {
            return Double.isNaN(a) ? b : a;
        }
        return switch (kind) {
            case cudnnOpTensorOp_t.CUDNN_OP_TENSOR_ADD -> a + b;
            case cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MUL -> a * b;
            case cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MIN -> Math.min(a, b);
            case cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MAX -> Math.max(a, b);
            case cudnnOpTensorOp_t.CUDNN_OP_TENSOR_SQRT -> Math.sqrt(a);
            default -> 1 - a;
        };
    }
}

package io.hawser.gpu.software.dnn;

import java.util.List;

/**
 * An operation of a graph: it computes one tensor from others.
 *
 * @param isPointwise an element of the output depends on the inputs' elements with its index only.
 */
record Operation(List<GraphTensor> inputs, GraphTensor output, boolean isPointwise, Kernel kernel) {
    /** Computes with tensors in memory. */
    interface Kernel {
        void run(List<Tensor> inputs, Tensor output);
    }

    /**
     * Checks the tensors of an operation whose output depends on other elements, too.
     *
     * @param beta the factor of what the output held before.
     */
    static Operation of(List<GraphTensor> inputs, GraphTensor output, double beta, Kernel kernel) throws Refusal {
        check(inputs, output, beta);
        return new Operation(inputs, output, false, kernel);
    }

    /** Checks the tensors of an operation element by element. */
    static Operation pointwise(List<GraphTensor> inputs, GraphTensor output, Kernel kernel) throws Refusal {
        check(inputs, output, 0);
        return new Operation(inputs, output, true, kernel);
    }

    private static void check(List<GraphTensor> inputs, GraphTensor output, double beta) throws Refusal {
        for (GraphTensor tensor : inputs) {
            Refusal.support(tensor.shape().isFloat(), "tensors in float");
        }
        Refusal.support(output.shape().isFloat() && output.shape().isDisjoint(),
            "an output in float whose elements do not overlap");
        Refusal.require(!output.isByValue(), "an output is no number by value");
        Refusal.support(beta == 0 || !output.isVirtual(), "a virtual output without a former value");
    }
}

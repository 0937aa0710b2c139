package io.hawser.gpu.software.dnn;

import java.util.List;

/** An operation of a graph: it computes one tensor from others. */
record Operation(List<GraphTensor> inputs, GraphTensor output, Kernel kernel) {
    /** Computes with tensors in memory. */
    interface Kernel {
        void run(List<Tensor> inputs, Tensor output);
    }

    /**
     * Checks the tensors.
     *
     * @param beta the factor of what the output held before.
     */
    static Operation of(List<GraphTensor> inputs, GraphTensor output, double beta, Kernel kernel) throws Refusal {
        for (GraphTensor tensor : inputs) {
            Refusal.support(tensor.shape().isFloat(), "tensors in float");
        }
        Refusal.support(output.shape().isFloat() && output.shape().isDisjoint(),
            "an output in float whose elements do not overlap");
        Refusal.require(!output.isByValue(), "an output is no number by value");
        Refusal.support(beta == 0 || !output.isVirtual(), "a virtual output without a former value");
        return new Operation(inputs, output, kernel);
    }
}

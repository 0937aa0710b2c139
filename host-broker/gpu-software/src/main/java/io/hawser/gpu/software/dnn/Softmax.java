package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.cudnnSoftmaxAlgorithm_t;
import io.hawser.cuda.generated.cudnn.cudnnSoftmaxMode_t;
import java.util.Arrays;

/** Softmax over a tensor's channels or images, its logarithm, and their gradients. Any thread. */
final class Softmax {
    private final boolean isLog;
    private final Groups groups;

    private Softmax(boolean isLog, Groups groups) {
        this.isLog = isLog;
        this.groups = groups;
    }

    /**
     * Checks the numbers of a call. The fast algorithm, which may overflow in cuDNN, is the accurate one.
     *
     * @param algorithm a cudnnSoftmaxAlgorithm_t.
     * @param mode a cudnnSoftmaxMode_t.
     */
    static Softmax of(int algorithm, int mode, Shape shape) throws Refusal {
        Refusal.require(algorithm >= cudnnSoftmaxAlgorithm_t.CUDNN_SOFTMAX_FAST
            && algorithm <= cudnnSoftmaxAlgorithm_t.CUDNN_SOFTMAX_LOG, "an algorithm of softmax");
        Refusal.require(mode == cudnnSoftmaxMode_t.CUDNN_SOFTMAX_MODE_INSTANCE
            || mode == cudnnSoftmaxMode_t.CUDNN_SOFTMAX_MODE_CHANNEL, "a mode of softmax");
        Refusal.support(shape.dims() > 1, "softmax of a tensor with channels");
        long[] kept = shape.sizes();
        if (mode == cudnnSoftmaxMode_t.CUDNN_SOFTMAX_MODE_CHANNEL) {
            kept[1] = 1;
        } else {
            Arrays.fill(kept, 1, kept.length, 1);
        }
        return new Softmax(algorithm == cudnnSoftmaxAlgorithm_t.CUDNN_SOFTMAX_LOG, new Groups(shape, kept));
    }

    /** {@code out = alpha * softmax(in) + beta * out}; {@code in} may be {@code out}. */
    void forward(Tensor in, Tensor out, double alpha, double beta) {
        groups.each((group, member) -> {
            double most = Double.NEGATIVE_INFINITY;
            for (long i = 0; i < groups.members(); i++) {
                most = Math.max(most, in.get(group.place(0) + member.place(0)));
                member.next();
            }
            double sum = 0;
            for (long i = 0; i < groups.members(); i++) {
                sum += Math.exp(in.get(group.place(0) + member.place(0)) - most);
                member.next();
            }
            double log = Math.log(sum);
            for (long i = 0; i < groups.members(); i++) {
                double value = in.get(group.place(0) + member.place(0)) - most;
                out.blend(group.place(1) + member.place(1), alpha * (isLog ? value - log : Math.exp(value) / sum),
                    beta);
                member.next();
            }
        }, in.shape().strides(), out.shape().strides());
    }

    /** {@code dx = alpha * gradient + beta * dx}; {@code dy} may be {@code dx}. */
    void backward(Tensor y, Tensor dy, Tensor dx, double alpha, double beta) {
        groups.each((group, member) -> {
            double sum = 0;
            for (long i = 0; i < groups.members(); i++) {
                double gradient = dy.get(group.place(1) + member.place(1));
                sum += isLog ? gradient : gradient * y.get(group.place(0) + member.place(0));
                member.next();
            }
            for (long i = 0; i < groups.members(); i++) {
                double gradient = dy.get(group.place(1) + member.place(1));
                double value = y.get(group.place(0) + member.place(0));
                double result = isLog ? gradient - Math.exp(value) * sum : value * (gradient - sum);
                dx.blend(group.place(2) + member.place(2), alpha * result, beta);
                member.next();
            }
        }, y.shape().strides(), dy.shape().strides(), dx.shape().strides());
    }
}

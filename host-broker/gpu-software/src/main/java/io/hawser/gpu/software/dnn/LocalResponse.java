package io.hawser.gpu.software.dnn;

/**
 * Local response normalization across channels: {@code y = x / (k + alpha / width * sum of squares) ^ beta}. The sum is
 * over {@code width} channels around the element's own. Computes in double. Any thread.
 */
record LocalResponse(int width, double alpha, double beta, double k) {
    private static final int MAX_WIDTH = 16; // cudnn_ops.h of cuDNN 9.19, CUDNN_LRN_MAX_N
    private static final double MIN_K = 1e-5; // CUDNN_LRN_MIN_K
    private static final double MIN_BETA = 0.01; // CUDNN_LRN_MIN_BETA

    void check() throws Refusal {
        Refusal.require(width >= 1 && width <= MAX_WIDTH && k >= MIN_K && beta >= MIN_BETA,
            "the window has 1 to 16 channels, and k and beta have cuDNN's minima");
    }

    private int behind() {
        return (width - 1) / 2;
    }

    private int ahead() {
        return width - 1 - behind();
    }

    /** Reads the elements of a tensor that differ in their channel only. */
    private final class Line {
        private final Tensor tensor;
        private final long base;
        private final long stride;

        Line(Tensor tensor, long base) {
            this.tensor = tensor;
            this.base = base;
            stride = tensor.shape().stride(1);
        }

        double get(long channel) {
            return tensor.get(base + channel * stride);
        }

        /** The divisor of a channel's element, before the power. */
        double scale(long channel) {
            double sum = 0;
            long end = Math.min(tensor.shape().size(1), channel + ahead() + 1);
            for (long i = Math.max(0, channel - behind()); i < end; i++) {
                sum += get(i) * get(i);
            }
            return k + alpha / width * sum;
        }
    }

    /** {@code out = factor * normalized + former * out}; {@code in} is not {@code out}. */
    void forward(Tensor in, Tensor out, double factor, double former) {
        Shape shape = out.shape();
        Parallel.each(shape.count(), width, (from, to) -> {
            Walk walk = new Walk(shape.sizes(), in.shape().strides(), shape.strides());
            walk.seek(from);
            for (long i = from; i < to; i++) {
                long channel = walk.index(1);
                Line line = new Line(in, walk.place(0) - channel * in.shape().stride(1));
                out.blend(walk.place(1), factor * line.get(channel) * Math.pow(line.scale(channel), -beta), former);
                walk.next();
            }
        });
    }

    /** {@code dx = factor * gradient + former * dx}; {@code dx} is neither {@code x} nor {@code dy}. */
    void backward(Tensor x, Tensor dy, Tensor dx, double factor, double former) {
        Shape shape = dx.shape();
        Parallel.each(shape.count(), (long) width * width, (from, to) -> {
            Walk walk = new Walk(shape.sizes(), x.shape().strides(), dy.shape().strides(), shape.strides());
            walk.seek(from);
            for (long i = from; i < to; i++) {
                long channel = walk.index(1);
                Line line = new Line(x, walk.place(0) - channel * x.shape().stride(1));
                Line gradients = new Line(dy, walk.place(1) - channel * dy.shape().stride(1));
                double sum = 0; // over the channels whose window has this one
                long end = Math.min(shape.size(1), channel + behind() + 1);
                for (long j = Math.max(0, channel - ahead()); j < end; j++) {
                    sum += gradients.get(j) * line.get(j) * Math.pow(line.scale(j), -beta - 1);
                }
                double gradient = gradients.get(channel) * Math.pow(line.scale(channel), -beta)
                    - 2 * alpha / width * beta * line.get(channel) * sum;
                dx.blend(walk.place(2), factor * gradient, former);
                walk.next();
            }
        });
    }
}

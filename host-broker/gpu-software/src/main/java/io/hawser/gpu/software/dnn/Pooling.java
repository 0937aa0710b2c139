package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import io.hawser.cuda.generated.cudnn.cudnnPoolingMode_t;
import java.util.Arrays;

/** The maximum or the average of the input below a window, and its gradient. Any thread. */
final class Pooling {
    private final Content content;
    private final Spatial space;
    private final long[] planes; // batch and channels

    private Pooling(Content content, Spatial space, Shape x) {
        this.content = content;
        this.space = space;
        planes = new long[] {x.size(0), x.size(1)};
    }

    /**
     * What a descriptor of a pooling has.
     *
     * @param mode a cudnnPoolingMode_t.
     * @param nan a cudnnNanPropagation_t.
     */
    record Content(int mode, int nan, long[] window, long[] pad, long[] stride) {
        boolean isMax() {
            return mode == cudnnPoolingMode_t.CUDNN_POOLING_MAX
                || mode == cudnnPoolingMode_t.CUDNN_POOLING_MAX_DETERMINISTIC;
        }

        boolean isPropagating() {
            return nan == cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN;
        }
    }

    /** Checks that the shapes fit each other. */
    static Pooling of(Content content, Shape xShape, Shape yShape) throws Refusal {
        Refusal.require(content.mode >= cudnnPoolingMode_t.CUDNN_POOLING_MAX
            && content.mode <= cudnnPoolingMode_t.CUDNN_POOLING_MAX_DETERMINISTIC, "a mode of pooling");
        Refusal.support(xShape.isFloat() && yShape.isFloat(), "a pooling in float");
        Refusal.require(xShape.dims() == yShape.dims() && content.stride.length == xShape.dims() - 2,
            "tensors and pooling have the same dimensions");
        Shape x = xShape.volume();
        Shape y = yShape.volume();
        Refusal.require(x.size(0) == y.size(0) && x.size(1) == y.size(1), "batch and channels are equal");
        for (int i = 0; i < content.window.length; i++) {
            Refusal.support(content.pad[i] < content.window[i], "paddings smaller than their windows");
        }
        long[] ones = new long[content.window.length];
        Arrays.fill(ones, 1);
        Spatial space = Spatial.of(x, y,
            new Spatial.Numbers(content.window, content.pad, content.pad, content.stride, ones));
        return new Pooling(content, space, x);
    }

    /** The part of a window that lies in the input, at an output. */
    private final class Window {
        private final long[] from = new long[3];
        private final long[] to = new long[3];
        private final long[] best = new long[3];
        private final long[] strides;

        Window(Shape x) {
            strides = x.strides();
        }

        /** Moves to the output at {@code first}, {@code first + 1} and so on of a walk. */
        void move(Walk output, int first) {
            for (int dim = 0; dim < 3; dim++) {
                long start = space.input(dim, output.index(first + dim), 0);
                from[dim] = Math.max(0, start);
                to[dim] = Math.min(space.in(dim), start + space.window(dim));
            }
        }

        private long place(long depth, long row, long column) {
            return depth * strides[2] + row * strides[3] + column * strides[4];
        }

        /** The place, beyond the plane's, of what {@link #findMaximum} of a window over the same sizes has found. */
        long placeOf(Window found) {
            return place(found.best[0], found.best[1], found.best[2]);
        }

        /** Finds the first maximum in a plane. */
        void findMaximum(Tensor in, long plane) {
            System.arraycopy(from, 0, best, 0, 3);
            double most = in.get(plane + placeOf(this));
            for (long depth = from[0]; depth < to[0]; depth++) {
                for (long row = from[1]; row < to[1]; row++) {
                    for (long column = from[2]; column < to[2]; column++) {
                        double value = in.get(plane + place(depth, row, column));
                        if (isMore(value, most)) {
                            best[0] = depth;
                            best[1] = row;
                            best[2] = column;
                            most = value;
                        }
                    }
                }
            }
        }

        double maximum(Tensor in, long plane) {
            findMaximum(in, plane);
            return in.get(plane + placeOf(this));
        }

        private boolean isMore(double value, double most) {
            return content.isPropagating() ? !Double.isNaN(most) && (value > most || Double.isNaN(value))
                : value > most || Double.isNaN(most) && !Double.isNaN(value);
        }

        double sum(Tensor in, long plane) {
            double sum = 0;
            for (long depth = from[0]; depth < to[0]; depth++) {
                for (long row = from[1]; row < to[1]; row++) {
                    for (long column = from[2]; column < to[2]; column++) {
                        sum += in.get(plane + place(depth, row, column));
                    }
                }
            }
            return sum;
        }

        void add(Tensor out, long plane, double value) {
            for (long depth = from[0]; depth < to[0]; depth++) {
                for (long row = from[1]; row < to[1]; row++) {
                    for (long column = from[2]; column < to[2]; column++) {
                        out.blend(plane + place(depth, row, column), value, 1);
                    }
                }
            }
        }

        /** The divisor of the sum. */
        double divisor() {
            return content.mode == cudnnPoolingMode_t.CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                ? (double) space.window(0) * space.window(1) * space.window(2)
                : (double) (to[0] - from[0]) * (to[1] - from[1]) * (to[2] - from[2]);
        }
    }

    /** {@code out = alpha * pooling(in) + beta * out}, of tensors as {@link Tensor#volume} gives them. */
    void forward(Tensor in, Tensor out, double alpha, double beta) {
        Shape x = in.shape();
        Shape y = out.shape();
        Parallel.each(y.count(), space.taps(), (from, to) -> {
            Walk walk = new Walk(y.sizes(), y.strides());
            Window window = new Window(x);
            walk.seek(from);
            for (long i = from; i < to; i++) {
                long plane = walk.index(0) * x.stride(0) + walk.index(1) * x.stride(1);
                window.move(walk, 2);
                double value = content.isMax() ? window.maximum(in, plane)
                    : window.sum(in, plane) / window.divisor();
                out.blend(walk.place(0), alpha * value, beta);
                walk.next();
            }
        });
    }

    /**
     * {@code dx = alpha * gradient + beta * dx}, of tensors as {@link Tensor#volume} gives them. Of equal maxima, the
     * first one gets the gradient: cuDNN leaves open which one does.
     */
    void backward(Tensor in, Tensor dy, Tensor dx, double alpha, double beta) {
        Shape x = in.shape();
        Shape gradient = dx.shape();
        Shape y = dy.shape();
        long outputs = Sizes.multiply(Sizes.multiply(space.out(0), space.out(1)), space.out(2));
        if (beta != 1) {
            Elements.map(dx, 0, v -> beta == 0 ? 0 : beta * v[0], dx);
        }
        Parallel.each(Sizes.multiply(planes[0], planes[1]), Sizes.multiply(outputs, space.taps()), (from, to) -> {
            Walk plane = new Walk(planes, x.strides(), gradient.strides(), y.strides());
            Walk output = new Walk(new long[] {space.out(0), space.out(1), space.out(2)},
                new long[] {y.stride(2), y.stride(3), y.stride(4)});
            Window read = new Window(x);
            Window written = new Window(gradient);
            plane.seek(from);
            for (long i = from; i < to; i++) {
                for (long element = 0; element < outputs; element++) {
                    double value = alpha * dy.get(plane.place(2) + output.place(0));
                    written.move(output, 0);
                    if (content.isMax()) {
                        read.move(output, 0);
                        read.findMaximum(in, plane.place(0));
                        dx.blend(plane.place(1) + written.placeOf(read), value, 1);
                    } else {
                        written.add(dx, plane.place(1), value / written.divisor());
                    }
                    output.next();
                }
                plane.next();
            }
        });
    }
}

package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import java.util.Arrays;

/**
 * A convolution and its two gradients, by their sums, in double. Tensors are those of the shapes that it was made for.
 * Any thread.
 */
final class Convolution {
    private static final int BLOCK = 4096; // columns whose sums a thread keeps: a size is guest-chosen

    private final Spatial space;
    private final boolean isFlipped;
    private final long batch;
    private final long channels; // of a group
    private final long filters; // of a group
    private final long groups;
    private final long[] x; // strides
    private final long[] w;
    private final long[] y;

    private Convolution(Spatial space, boolean isFlipped, long groups, Shape x, Shape w, Shape y) {
        this.space = space;
        this.isFlipped = isFlipped;
        this.groups = groups;
        batch = x.size(0);
        channels = w.size(1);
        filters = w.size(0) / groups;
        this.x = x.strides();
        this.w = w.strides();
        this.y = y.strides();
    }

    /**
     * What a descriptor of a convolution has.
     *
     * @param isFlipped the window is reversed, as a mathematical convolution has it.
     * @param groups 0: as many as the channels of the tensor and of the filter tell.
     */
    record Content(long[] prePad, long[] postPad, long[] stride, long[] dilation, boolean isFlipped, long groups) {
    }

    /** Checks that the shapes fit each other. */
    static Convolution of(Content content, Shape xShape, Shape wShape, Shape yShape) throws Refusal {
        Refusal.support(xShape.isFloat() && wShape.isFloat() && yShape.isFloat(), "a convolution in float");
        Refusal.require(xShape.dims() == wShape.dims() && xShape.dims() == yShape.dims()
            && content.stride.length == xShape.dims() - 2, "tensors and convolution have the same dimensions");
        Shape x = xShape.volume();
        Shape w = wShape.volume();
        Shape y = yShape.volume();
        Refusal.require(content.groups != 0 || x.size(1) % w.size(1) == 0, "groups have the filter's channels");
        long groups = content.groups == 0 ? x.size(1) / w.size(1) : content.groups;
        Refusal.require(groups > 0 && w.size(0) % groups == 0 && x.size(1) == Sizes.multiply(w.size(1), groups)
            && y.size(1) == w.size(0) && x.size(0) == y.size(0), "batch, channels and filters fit each other");
        long[] window = Arrays.copyOfRange(wShape.sizes(), 2, wShape.dims());
        Spatial space = Spatial.of(x, y, new Spatial.Numbers(window, content.prePad, content.postPad, content.stride,
            content.dilation));
        return new Convolution(space, content.isFlipped, groups, x, w, y);
    }

    private double weight(Tensor filter, long base, long depth, long row, long column) {
        return filter.get(base + (isFlipped ? space.window(0) - 1 - depth : depth) * w[2]
            + (isFlipped ? space.window(1) - 1 - row : row) * w[3]
            + (isFlipped ? space.window(2) - 1 - column : column) * w[4]);
    }

    /** {@code out = alpha * convolution(in, filter) + beta * out}. */
    void forward(Tensor in, Tensor filter, Tensor out, double alpha, double beta) {
        long[] rows = {batch, groups * filters, space.out(0), space.out(1)};
        long steps = Sizes.multiply(Sizes.multiply(space.out(2), channels), space.taps());
        Parallel.each(product(rows), steps, (from, to) -> {
            Walk walk = new Walk(rows, y);
            walk.seek(from);
            double[] sums = new double[(int) Math.min(BLOCK, space.out(2))];
            for (long row = from; row < to; row++) {
                for (long block = 0; block < space.out(2); block += BLOCK) {
                    long end = Math.min(block + BLOCK, space.out(2));
                    Arrays.fill(sums, 0);
                    sumForward(in, filter, walk, block, end, sums);
                    for (long column = block; column < end; column++) {
                        out.blend(walk.place(0) + column * y[4], alpha * sums[(int) (column - block)], beta);
                    }
                }
                walk.next();
            }
        });
    }

    private void sumForward(Tensor in, Tensor filter, Walk at, long block, long end, double[] sums) {
        long group = at.index(1) / filters;
        for (long channel = 0; channel < channels; channel++) {
            long base = at.index(0) * x[0] + (group * channels + channel) * x[1];
            long weights = at.index(1) * w[0] + channel * w[1];
            for (long d = 0; d < space.window(0); d++) {
                long depth = space.input(0, at.index(2), d);
                for (long r = 0; r < space.window(1) && space.isInside(0, depth); r++) {
                    long row = space.input(1, at.index(3), r);
                    for (long c = 0; c < space.window(2) && space.isInside(1, row); c++) {
                        double weight = weight(filter, weights, d, r, c);
                        long from = Math.max(block, space.first(2, c, 0));
                        long to = Math.min(end, space.end(2, c, space.in(2)));
                        long place = base + depth * x[2] + row * x[3] + space.input(2, from, c) * x[4];
                        for (long column = from; column < to; column++) {
                            sums[(int) (column - block)] += weight * in.get(place);
                            place += space.stride(2) * x[4];
                        }
                    }
                }
            }
        }
    }

    /** The gradient of the input: {@code dx = alpha * gradient + beta * dx}. */
    void backwardData(Tensor filter, Tensor dy, Tensor dx, double alpha, double beta) {
        long[] rows = {batch, groups * channels, space.in(0), space.in(1)};
        long steps = Sizes.multiply(Sizes.multiply(space.in(2), filters), space.taps());
        Parallel.each(product(rows), steps, (from, to) -> {
            Walk walk = new Walk(rows, x);
            walk.seek(from);
            double[] sums = new double[(int) Math.min(BLOCK, space.in(2))];
            for (long row = from; row < to; row++) {
                for (long block = 0; block < space.in(2); block += BLOCK) {
                    long end = Math.min(block + BLOCK, space.in(2));
                    Arrays.fill(sums, 0);
                    sumBackward(filter, dy, walk, block, end, sums);
                    for (long column = block; column < end; column++) {
                        dx.blend(walk.place(0) + column * x[4], alpha * sums[(int) (column - block)], beta);
                    }
                }
                walk.next();
            }
        });
    }

    private void sumBackward(Tensor filter, Tensor dy, Walk at, long block, long end, double[] sums) {
        long group = at.index(1) / channels;
        for (long k = group * filters; k < (group + 1) * filters; k++) {
            long base = at.index(0) * y[0] + k * y[1];
            long weights = k * w[0] + at.index(1) % channels * w[1];
            for (long d = 0; d < space.window(0); d++) {
                long depth = space.output(0, at.index(2), d);
                for (long r = 0; r < space.window(1) && depth >= 0; r++) {
                    long row = space.output(1, at.index(3), r);
                    for (long c = 0; c < space.window(2) && row >= 0; c++) {
                        double weight = weight(filter, weights, d, r, c);
                        long to = space.end(2, c, end);
                        for (long column = space.first(2, c, block); column < to; column++) {
                            sums[(int) (space.input(2, column, c) - block)] +=
                                weight * dy.get(base + depth * y[2] + row * y[3] + column * y[4]);
                        }
                    }
                }
            }
        }
    }

    /** The gradient of the filter: {@code dw = alpha * gradient + beta * dw}. */
    void backwardFilter(Tensor in, Tensor dy, Tensor dw, double alpha, double beta) {
        long[] taps = {groups * filters, channels, space.window(0), space.window(1), space.window(2)};
        long steps = Sizes.multiply(Sizes.multiply(batch, space.out(0)), Sizes.multiply(space.out(1), space.out(2)));
        Parallel.each(product(taps), steps, (from, to) -> {
            Walk walk = new Walk(taps, w);
            walk.seek(from);
            for (long tap = from; tap < to; tap++) {
                long place = walk.place(0);
                if (isFlipped) {
                    place += (space.window(0) - 1 - 2 * walk.index(2)) * w[2]
                        + (space.window(1) - 1 - 2 * walk.index(3)) * w[3]
                        + (space.window(2) - 1 - 2 * walk.index(4)) * w[4];
                }
                dw.blend(place, alpha * sumFilter(in, dy, walk), beta);
                walk.next();
            }
        });
    }

    private double sumFilter(Tensor in, Tensor dy, Walk at) {
        long channel = at.index(0) / filters * channels + at.index(1);
        long[] first = new long[3];
        long[] end = new long[3];
        for (int dim = 0; dim < 3; dim++) {
            first[dim] = space.first(dim, at.index(2 + dim), 0);
            end[dim] = space.end(dim, at.index(2 + dim), space.in(dim));
        }
        double sum = 0;
        for (long image = 0; image < batch; image++) {
            for (long depth = first[0]; depth < end[0]; depth++) {
                for (long row = first[1]; row < end[1]; row++) {
                    long from = image * x[0] + channel * x[1] + space.input(0, depth, at.index(2)) * x[2]
                        + space.input(1, row, at.index(3)) * x[3];
                    long with = image * y[0] + at.index(0) * y[1] + depth * y[2] + row * y[3];
                    for (long column = first[2]; column < end[2]; column++) {
                        sum += in.get(from + space.input(2, column, at.index(4)) * x[4])
                            * dy.get(with + column * y[4]);
                    }
                }
            }
        }
        return sum;
    }

    private static long product(long[] sizes) {
        return Arrays.stream(sizes).reduce(1, Sizes::multiply);
    }
}

package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import java.util.Arrays;

/** How a window moves over three dimensions of space: depth, rows, columns. Missing ones have size 1. */
final class Spatial {
    private static final int DIMS = 3;

    private final long[] in;
    private final long[] window;
    private final long[] out;
    private final long[] stride;
    private final long[] pad;
    private final long[] dilation;

    private Spatial(long[] in, long[] window, long[] out, long[] stride, long[] pad, long[] dilation) {
        this.in = in;
        this.window = window;
        this.out = out;
        this.stride = stride;
        this.pad = pad;
        this.dilation = dilation;
    }

    /** Numbers of a descriptor, one for each dimension of space. */
    record Numbers(long[] window, long[] prePad, long[] postPad, long[] stride, long[] dilation) {
    }

    /**
     * Checks that the output has one element for each place of the window.
     *
     * @param x the input, as {@link Shape#volume}.
     * @param y the output, as {@link Shape#volume}.
     */
    static Spatial of(Shape x, Shape y, Numbers numbers) throws Refusal {
        int given = numbers.window.length;
        Refusal.support(given > 0 && given <= DIMS, "one to three dimensions of space");
        Refusal.require(numbers.prePad.length == given && numbers.postPad.length == given
            && numbers.stride.length == given && numbers.dilation.length == given, "each dimension has its numbers");
        Spatial made = new Spatial(space(x), filled(numbers.window, 1), space(y), filled(numbers.stride, 1),
            filled(numbers.prePad, 0), filled(numbers.dilation, 1));
        long[] post = filled(numbers.postPad, 0);
        for (int i = 0; i < DIMS; i++) {
            Refusal.require(isSize(made.window[i], 1) && isSize(made.stride[i], 1) && isSize(made.dilation[i], 1),
                "windows, strides and dilations are positive");
            Refusal.support(isSize(made.pad[i], 0) && isSize(post[i], 0), "paddings that are not negative");
            long reach = (made.window[i] - 1) * made.dilation[i] + 1;
            long room = made.in[i] + made.pad[i] + post[i] - reach;
            Refusal.require(room >= 0 && made.out[i] == 1 + room / made.stride[i],
                "the output has a size for each place of the window");
        }
        return made;
    }

    private static long[] space(Shape volume) {
        return Arrays.copyOfRange(volume.sizes(), 2, 2 + DIMS);
    }

    private static boolean isSize(long number, long least) {
        return number >= least && number <= Integer.MAX_VALUE;
    }

    private static long[] filled(long[] numbers, long missing) {
        long[] all = new long[DIMS];
        Arrays.fill(all, missing);
        System.arraycopy(numbers, 0, all, DIMS - numbers.length, numbers.length);
        return all;
    }

    long in(int dim) {
        return in[dim];
    }

    long window(int dim) {
        return window[dim];
    }

    long out(int dim) {
        return out[dim];
    }

    long stride(int dim) {
        return stride[dim];
    }

    long pad(int dim) {
        return pad[dim];
    }

    /** Places of the window. */
    long taps() {
        return Sizes.multiply(Sizes.multiply(window[0], window[1]), window[2]);
    }

    /** The input's index below one of the window at an output's index; it may lie in the padding. */
    long input(int dim, long output, long tap) {
        return output * stride[dim] - pad[dim] + tap * dilation[dim];
    }

    /** The first output whose input at a tap is not below {@code low}. */
    long first(int dim, long tap, long low) {
        return Math.max(0, Math.ceilDiv(low + pad[dim] - tap * dilation[dim], stride[dim]));
    }

    /** The end of the outputs whose input at a tap is below {@code high}. */
    long end(int dim, long tap, long high) {
        return Math.min(out[dim], Math.floorDiv(high - 1 + pad[dim] - tap * dilation[dim], stride[dim]) + 1);
    }

    /** The output that has an input at a tap; -1 for none. */
    long output(int dim, long input, long tap) {
        long from = input + pad[dim] - tap * dilation[dim];
        return from < 0 || from % stride[dim] != 0 || from / stride[dim] >= out[dim] ? -1 : from / stride[dim];
    }

    /** Whether an index lies in the input. */
    boolean isInside(int dim, long input) {
        return input >= 0 && input < in[dim];
    }
}

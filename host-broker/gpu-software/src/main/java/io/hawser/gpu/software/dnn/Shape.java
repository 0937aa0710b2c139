package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.generated.cudnn.cudnnDataType_t;
import java.util.Arrays;
import java.util.Objects;
import java.util.stream.IntStream;

/** Type, sizes and strides (in elements) of a tensor or a filter. The first size is of the outermost dimension. */
final class Shape {
    private static final long MAX_SIZE = Integer.MAX_VALUE; // the older functions count in int
    private static final long MAX_STRIDE = 1L << 40; // so that an offset within a dimension does not wrap
    private static final long MAX_COUNT = 1L << 40; // guest-chosen where strides are 0; bounds a device thread's time
    private static final int MAX_DIMS = 8; // cudnn_graph.h of cuDNN 9.19, CUDNN_DIM_MAX

    private final int type;
    private final long[] sizes;
    private final long[] strides;

    /** Takes numbers of a guest; the arrays become the shape's own. */
    Shape(int type, long[] sizes, long[] strides) throws Refusal {
        Refusal.require(sizes.length > 0 && sizes.length == strides.length, "a tensor has a stride for each size");
        Refusal.support(sizes.length <= MAX_DIMS, "at most " + MAX_DIMS + " dimensions");
        for (int i = 0; i < sizes.length; i++) {
            Refusal.require(sizes[i] > 0 && strides[i] >= 0, "sizes are positive, and strides are not negative");
            Refusal.support(sizes[i] <= MAX_SIZE && strides[i] <= MAX_STRIDE, "sizes in 31 bits");
        }
        this.type = type;
        this.sizes = sizes;
        this.strides = strides;
        Refusal.support(count() <= MAX_COUNT, "tensors that fit into memory");
    }

    /** A shape whose last dimension is the innermost one, without gaps. */
    static Shape packed(int type, long... sizes) throws Refusal {
        long[] strides = new long[sizes.length];
        long next = 1;
        for (int i = sizes.length - 1; i >= 0; i--) {
            strides[i] = next;
            next = Sizes.multiply(next, sizes[i]);
        }
        return new Shape(type, sizes, strides);
    }

    /** A packed shape whose second dimension is the innermost one: NHWC. */
    static Shape channelsLast(int type, long... sizes) throws Refusal {
        long[] strides = new long[sizes.length];
        Refusal.require(sizes.length > 1, "a tensor of NHWC has channels");
        strides[1] = 1;
        long next = sizes[1];
        for (int i = sizes.length - 1; i >= 0; i--) {
            if (i != 1) {
                strides[i] = next;
                next = Sizes.multiply(next, sizes[i]);
            }
        }
        return new Shape(type, sizes, strides);
    }

    int type() {
        return type;
    }

    int dims() {
        return sizes.length;
    }

    long size(int dim) {
        return sizes[dim];
    }

    long stride(int dim) {
        return strides[dim];
    }

    long[] sizes() {
        return sizes.clone();
    }

    long[] strides() {
        return strides.clone();
    }

    boolean isFloat() {
        return type == cudnnDataType_t.CUDNN_DATA_FLOAT;
    }

    /** Number of elements; {@link Sizes#MOST} for more. */
    long count() {
        return Arrays.stream(sizes).reduce(1, Sizes::multiply);
    }

    /** Elements from the first one to the end of the last one. */
    long extent() {
        long last = 0;
        for (int i = 0; i < sizes.length; i++) {
            last = Sizes.add(last, Sizes.multiply(sizes[i] - 1, strides[i]));
        }
        return Sizes.add(last, 1);
    }

    boolean hasSizesOf(Shape other) {
        return Arrays.equals(sizes, other.sizes);
    }

    /** Whether it has the sizes of another shape, or 1 in the place of some. */
    boolean isWithin(Shape other) {
        return dims() == other.dims()
            && IntStream.range(0, dims()).allMatch(i -> sizes[i] == other.sizes[i] || sizes[i] == 1);
    }

    /** Strides by which it is read as a shape that it {@link #isWithin}: an element may repeat. */
    long[] stridesWithin(Shape other) {
        return IntStream.range(0, dims()).mapToLong(i -> sizes[i] == other.sizes[i] ? strides[i] : 0).toArray();
    }

    /** The same elements with batch, channels and three dimensions of space. Missing dimensions have size 1. */
    Shape volume() throws Refusal {
        Refusal.support(dims() >= 3 && dims() <= 5, "one to three dimensions beside batch and channels");
        long[] more = new long[5];
        long[] steps = new long[5];
        for (int i = 0; i < 5; i++) {
            int dim = i < 2 ? i : i - (5 - dims());
            more[i] = dim < 2 && i >= 2 ? 1 : sizes[dim];
            steps[i] = dim < 2 && i >= 2 ? 0 : strides[dim];
        }
        return new Shape(type, more, steps);
    }

    /** Whether each dimension steps over those with smaller strides, so that no element is in two places. */
    boolean isDisjoint() {
        int[] order = IntStream.range(0, dims()).boxed().filter(i -> sizes[i] > 1)
            .sorted((a, b) -> Long.compare(strides[a], strides[b])).mapToInt(i -> i).toArray();
        long reach = 0;
        for (int dim : order) {
            if (strides[dim] <= reach) {
                return false;
            }
            reach = Sizes.add(reach, Sizes.multiply(sizes[dim] - 1, strides[dim]));
        }
        return true;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Shape shape && type == shape.type && Arrays.equals(sizes, shape.sizes)
            && Arrays.equals(strides, shape.strides);
    }

    @Override
    public int hashCode() {
        return Objects.hash(type, Arrays.hashCode(sizes), Arrays.hashCode(strides));
    }

    @Override
    public String toString() {
        return "type=" + type + " sizes=" + Arrays.toString(sizes) + " strides=" + Arrays.toString(strides);
    }
}

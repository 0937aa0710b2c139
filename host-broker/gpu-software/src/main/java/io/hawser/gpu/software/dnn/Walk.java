package io.hawser.gpu.software.dnn;

/** A position in a box of elements, with the place of that element in each of several tensors. One thread. */
final class Walk {
    private final long[] sizes;
    private final long[][] strides;
    private final long[] index;
    private final long[] places;

    /** Begins at the first element. */
    Walk(long[] sizes, long[]... strides) {
        this.sizes = sizes;
        this.strides = strides;
        index = new long[sizes.length];
        places = new long[strides.length];
    }

    /** Moves to the element with a number; the last dimension is the innermost one. */
    void seek(long number) {
        long rest = number;
        for (int dim = sizes.length - 1; dim >= 0; dim--) {
            index[dim] = rest % sizes[dim];
            rest /= sizes[dim];
        }
        for (int tensor = 0; tensor < places.length; tensor++) {
            places[tensor] = 0;
            for (int dim = 0; dim < sizes.length; dim++) {
                places[tensor] += index[dim] * strides[tensor][dim];
            }
        }
    }

    /** Moves to the next element, and from the last one to the first one. */
    void next() {
        for (int dim = sizes.length - 1; dim >= 0; dim--) {
            boolean isEnd = ++index[dim] == sizes[dim];
            long steps = isEnd ? 1 - sizes[dim] : 1;
            for (int tensor = 0; tensor < places.length; tensor++) {
                places[tensor] += steps * strides[tensor][dim];
            }
            if (!isEnd) {
                return;
            }
            index[dim] = 0;
        }
    }

    /** The place in a tensor, in elements. */
    long place(int tensor) {
        return places[tensor];
    }

    /** The index of a dimension. */
    long index(int dim) {
        return index[dim];
    }
}

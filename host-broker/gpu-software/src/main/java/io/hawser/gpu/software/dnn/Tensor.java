package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A tensor of floats in memory, or a part of one. Places are counted in elements. Any thread. */
final class Tensor {
    private final Shape shape;
    private final MemorySegment memory;

    /** Takes memory that holds the extent of the shape. */
    Tensor(Shape shape, MemorySegment memory) {
        this.shape = shape;
        this.memory = memory;
    }

    /** A tensor in device memory. */
    static Tensor at(Shape shape, long address) {
        // SAFETY: the worker has checked that the extent of the shape lies in the session's memory.
        return new Tensor(shape,
            MemorySegment.ofAddress(address).reinterpret(Sizes.multiply(shape.extent(), Float.BYTES)));
    }

    Shape shape() {
        return shape;
    }

    /** The same tensor with the dimensions of {@link Shape#volume}. */
    Tensor volume() throws Refusal {
        return new Tensor(shape.volume(), memory);
    }

    /** Whether two tensors begin at the same place. */
    boolean isAt(Tensor other) {
        return memory.address() == other.memory.address();
    }

    /**
     * Checks that no input begins where the output does.
     *
     * @throws Refusal with "not supported": the work would read what it has written.
     */
    static void supportApart(Tensor output, Tensor... inputs) throws Refusal {
        for (Tensor input : inputs) {
            Refusal.support(!input.isAt(output), "an output in another place than the inputs");
        }
    }

    /**
     * Checks that an input in the place of the output has its elements where the output has them.
     *
     * @throws Refusal with "not supported": the work would read what it has written.
     */
    static void supportInPlace(Tensor output, Tensor... inputs) throws Refusal {
        for (Tensor input : inputs) {
            Refusal.support(!input.isAt(output) || input.shape.equals(output.shape),
                "inputs in the place of the output with its strides");
        }
    }

    double get(long place) {
        return memory.get(ValueLayout.JAVA_FLOAT_UNALIGNED, place * Float.BYTES);
    }

    void set(long place, double value) {
        memory.set(ValueLayout.JAVA_FLOAT_UNALIGNED, place * Float.BYTES, (float) value);
    }

    /** Writes {@code value + beta * old}. As documented, the old value is not read if {@code beta} is 0. */
    void blend(long place, double value, double beta) {
        set(place, beta == 0 ? value : value + beta * get(place));
    }
}

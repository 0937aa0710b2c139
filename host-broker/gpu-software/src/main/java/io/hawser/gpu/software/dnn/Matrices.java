package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import java.util.Arrays;

/** Products of matrices, in the last two dimensions of tensors. */
final class Matrices {
    private Matrices() {
    }

    /** Checks that the sizes fit. A batch of size 1 of {@code a} or {@code b} repeats. */
    static void check(Shape a, Shape b, Shape c) throws Refusal {
        int dims = c.dims();
        Refusal.require(dims >= 2 && a.dims() == dims && b.dims() == dims, "matrices have the same dimensions");
        boolean fits = a.size(dims - 2) == c.size(dims - 2) && b.size(dims - 1) == c.size(dims - 1)
            && a.size(dims - 1) == b.size(dims - 2);
        for (int i = 0; i < dims - 2 && fits; i++) {
            fits = (a.size(i) == c.size(i) || a.size(i) == 1) && (b.size(i) == c.size(i) || b.size(i) == 1);
        }
        Refusal.require(fits, "the sizes of matrices fit each other");
    }

    /** {@code c = a * b}. */
    static void multiply(Tensor a, Tensor b, Tensor c) {
        Shape shape = c.shape();
        int dims = shape.dims();
        long[] left = strides(a.shape(), shape, dims - 1);
        long[] right = strides(b.shape(), shape, dims - 2);
        long inner = a.shape().size(dims - 1);
        long stepA = a.shape().stride(dims - 1);
        long stepB = b.shape().stride(dims - 2);
        Parallel.each(Arrays.stream(shape.sizes()).reduce(1, Sizes::multiply), inner, (from, to) -> {
            Walk walk = new Walk(shape.sizes(), left, right, shape.strides());
            walk.seek(from);
            for (long i = from; i < to; i++) {
                double sum = 0;
                for (long k = 0; k < inner; k++) {
                    sum += a.get(walk.place(0) + k * stepA) * b.get(walk.place(1) + k * stepB);
                }
                c.set(walk.place(2), sum);
                walk.next();
            }
        });
    }

    /** Strides by which the product's elements are walked: none where a batch repeats, or in the summed dimension. */
    private static long[] strides(Shape factor, Shape product, int summed) {
        long[] strides = factor.strides();
        for (int i = 0; i < strides.length; i++) {
            strides[i] = i == summed || factor.size(i) != product.size(i) ? 0 : strides[i];
        }
        return strides;
    }
}

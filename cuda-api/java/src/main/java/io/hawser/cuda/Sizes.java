package io.hawser.cuda;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Sizes from a guest's numbers. All values are unsigned 64-bit numbers in a long. Results saturate at {@link #MOST}
 * instead of wrapping, so that a product of the guest's numbers never becomes small.
 */
public final class Sizes {
    /** Larger than any buffer or allocation. */
    public static final long MOST = Long.MAX_VALUE;

    /** By cudaDataType: floats of 32, 64 and 16 bits, integers, complex types; 0 for types of 4 and 6 bits. */
    private static final byte[] ELEMENTS = {4, 8, 2, 1, 8, 16, 4, 2, 1, 2, 4, 8, 4, 8, 2, 4, 0, 1, 0, 1, 2, 4, 2, 4, 8,
        16, 8, 16, 1, 1, 1, 0, 0, 0};

    private Sizes() {
    }

    /** Sum, at most {@link #MOST}. */
    public static long add(long a, long b) {
        long sum = a + b;
        return a < 0 || b < 0 || sum < 0 ? MOST : sum;
    }

    /** Product, at most {@link #MOST}. */
    public static long multiply(long a, long b) {
        if (a == 0 || b == 0) {
            return 0;
        }
        return a < 0 || b < 0 || Math.multiplyHigh(a, b) != 0 || a * b < 0 ? MOST : a * b;
    }

    /** Span in memory of {@code rows} rows of {@code width} bytes that are {@code pitch} bytes apart. */
    public static long box(long pitch, long rows, long width) {
        return rows == 0 || width == 0 ? 0 : add(multiply(pitch, rows - 1), width);
    }

    /** One of two sizes: {@code ifZero} if the number is 0, as CUBLAS_OP_N and CUBLAS_SIDE_LEFT are. */
    public static long pick(long number, long ifZero, long otherwise) {
        return number == 0 ? ifZero : otherwise;
    }

    /** The smaller one; {@link #MOST} if one is negative. */
    public static long min(long a, long b) {
        return a < 0 || b < 0 ? MOST : Math.min(a, b);
    }

    /** What a letter of LAPACK asks for: all singular vectors, those that the matrix has, or none. */
    public static long job(long letter, long ifA, long ifS) {
        return letter == 'A' ? ifA : letter == 'S' ? ifS : 0;
    }

    /** Span of a matrix of columns that are {@code ld} elements apart. */
    public static long matrix(long ld, long rows, long columns, long elementBytes) {
        return box(multiply(ld, elementBytes), columns, multiply(rows, elementBytes));
    }

    /** Span of a vector; a negative increment reads it backwards. As in BLAS, none for a negative {@code n}. */
    public static long vector(long n, long increment, long elementBytes) {
        return n <= 0 ? 0 : box(multiply(Math.abs(increment), elementBytes), n, elementBytes);
    }

    /** Sum of an array of integers, at most {@link #MOST}; a negative one counts as {@link #MOST}. */
    public static long sum(MemorySegment array, long elementBytes) {
        long sum = 0;
        for (long at = 0; at + elementBytes <= array.byteSize(); at += elementBytes) {
            sum = add(sum, elementBytes == Integer.BYTES ? array.get(ValueLayout.JAVA_INT_UNALIGNED, at)
                : array.get(ValueLayout.JAVA_LONG_UNALIGNED, at));
        }
        return sum;
    }

    /** Elements of a packed triangle of {@code n} rows. */
    public static long triangle(long n) {
        long twice = multiply(n, add(n, 1));
        return twice == MOST ? MOST : twice / 2;
    }

    /** Bytes of an element of a cudaDataType (library_types.h of CUDA 13.0); 0 for a type without whole bytes. */
    public static long element(long type) {
        return type < 0 || type >= ELEMENTS.length ? 0 : ELEMENTS[(int) type];
    }

    /**
     * Bytes of the factors of a product: they have the type of the computation, complex when the matrices are.
     *
     * @param compute a cublasComputeType_t (cublas_api.h of CUDA 13.0).
     * @param type the cudaDataType of a matrix.
     * @return 0 for an unknown computation.
     */
    public static long compute(long compute, long type) {
        long parts = switch ((int) type) {
            case 4, 5, 6, 7, 15 -> 2; // CUDA_C_32F, _64F, _16F, _8I, _16BF
            default -> 1;
        };
        return parts * switch ((int) compute) {
            case 64, 65 -> Short.BYTES; // CUBLAS_COMPUTE_16F and its variants
            case 68, 69, 74, 75, 77, 78, 72, 73 -> Float.BYTES; // _32F, _32I
            case 70, 71, 79 -> Double.BYTES; // _64F
            default -> 0;
        };
    }
}

package io.hawser.gpu.software.math;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Products of matrices in device memory, whose addresses are real addresses that the worker has checked.
 *
 * @param ab type of A and B.
 * @param c type of C: that of A and B, or float.
 */
record Product(OpenBlas blas, Type ab, Type c, Shape shape) {
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    /** cblas.h, CblasNoTrans; CblasTrans and CblasConjTrans follow. */
    static final int NO_TRANSPOSE = 111;

    private static final int COLUMN_MAJOR = 102; // cblas.h, CblasColMajor

    /** Dimensions of a product; {@code transa} and {@code transb} are cblas.h's CBLAS_TRANSPOSE. */
    record Shape(int transa, int transb, int m, int n, int k, int lda, int ldb, int ldc) {
    }

    /** C = alpha * op(A) * op(B) + beta * C, with matrices at addresses; native memory holds the scalars. */
    static void gemm(OpenBlas blas, Type type, Shape s, MemorySegment alpha, long a, long b, MemorySegment beta,
        long c) {
        Object factor = type.isComplex() ? (Object) alpha.address() : type.real(alpha);
        Object addend = type.isComplex() ? (Object) beta.address() : type.real(beta);
        Object _ = blas.call("cblas_" + type.letter() + "gemm", null, COLUMN_MAJOR, s.transa, s.transb, s.m, s.n, s.k,
            factor, a, s.lda, b, s.ldb, addend, c, s.ldc);
    }

    /** Computes one product. */
    void compute(MemorySegment alpha, long a, long b, MemorySegment beta, long result) {
        if (!ab.isShort()) {
            gemm(blas, ab, shape, alpha, a, b, beta, result);
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            int rowsA = isTransposed(shape.transa()) ? shape.k() : shape.m();
            int rowsB = isTransposed(shape.transb()) ? shape.n() : shape.k();
            MemorySegment wideA = widen(arena, ab, a, rowsA, isTransposed(shape.transa()) ? shape.m() : shape.k(),
                shape.lda());
            MemorySegment wideB = widen(arena, ab, b, rowsB, isTransposed(shape.transb()) ? shape.k() : shape.n(),
                shape.ldb());
            MemorySegment wideC = c.isShort() ? widen(arena, c, result, shape.m(), shape.n(), shape.ldc()) : null;
            Shape wide = new Shape(shape.transa(), shape.transb(), shape.m(), shape.n(), shape.k(), Math.max(rowsA, 1),
                Math.max(rowsB, 1), c.isShort() ? Math.max(shape.m(), 1) : shape.ldc());
            gemm(blas, Type.FLOAT, wide, alpha, wideA.address(), wideB.address(), beta,
                c.isShort() ? wideC.address() : result);
            for (long column = 0; c.isShort() && column < shape.n(); column++) {
                for (long row = 0; row < shape.m(); row++) {
                    ALL.set(ValueLayout.JAVA_SHORT, result + (column * shape.ldc() + row) * Short.BYTES,
                        c.narrow(wideC.getAtIndex(ValueLayout.JAVA_FLOAT, column * shape.m() + row)));
                }
            }
        }
    }

    private static boolean isTransposed(int operation) {
        return operation != NO_TRANSPOSE;
    }

    private static MemorySegment widen(Arena arena, Type type, long from, long rows, long columns, long ld) {
        MemorySegment wide = arena.allocate(Math.max(rows * columns, 1) * Float.BYTES, Float.BYTES);
        for (long column = 0; column < columns; column++) {
            for (long row = 0; row < rows; row++) {
                wide.setAtIndex(ValueLayout.JAVA_FLOAT, column * rows + row, type.widen(ALL.get(
                    ValueLayout.JAVA_SHORT, from + (column * ld + row) * Short.BYTES)));
            }
        }
        return wide;
    }
}

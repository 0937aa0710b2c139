package io.hawser.gpu.software.math;

import io.hawser.cuda.generated.cublaslt.HwsLtLayout;
import io.hawser.cuda.generated.cublaslt.cublasLtOrder_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The layout of a matrix of cublasLt, in columns or rows. The worker has checked the addresses that it leads to.
 *
 * @param isRowMajor whether the leading dimension is that of rows.
 * @param stride elements between the matrices of a batch.
 */
record LtMatrix(Type type, boolean isRowMajor, long rows, long cols, long ld, int batch, long stride) {
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    /** The layout with a content; null for one that this GPU lacks. */
    static LtMatrix of(MemorySegment content) {
        Type type = Type.of(content.get(ValueLayout.JAVA_INT, HwsLtLayout.TYPE_OFFSET));
        int order = content.get(ValueLayout.JAVA_INT, HwsLtLayout.ORDER_OFFSET);
        boolean isPlain = content.get(ValueLayout.JAVA_SHORT, HwsLtLayout.BATCH_MODE_OFFSET) == 0
            && content.get(ValueLayout.JAVA_LONG, HwsLtLayout.PLANE_OFFSET_OFFSET) == 0;
        if (type == null || !isPlain || order != cublasLtOrder_t.CUBLASLT_ORDER_COL
            && order != cublasLtOrder_t.CUBLASLT_ORDER_ROW) {
            return null;
        }
        return new LtMatrix(type, order == cublasLtOrder_t.CUBLASLT_ORDER_ROW,
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.ROWS_OFFSET),
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.COLS_OFFSET),
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.LD_OFFSET),
            content.get(ValueLayout.JAVA_INT, HwsLtLayout.BATCH_COUNT_OFFSET),
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.BATCH_STRIDE_OFFSET));
    }

    /** Whether its elements lie apart. OpenBLAS counts in 32 bits, so neither dimension may be longer. */
    boolean isValid() {
        return rows >= 0 && cols >= 0 && batch >= 1 && ld >= Math.max(1, isRowMajor ? cols : rows)
            && Math.max(ld, Math.max(rows, cols)) <= Integer.MAX_VALUE;
    }

    /** Length of a column of memory: the matrix itself or, in row order, its transpose has such columns. */
    long columnRows() {
        return isRowMajor ? cols : rows;
    }

    /** Number of such columns. */
    long columns() {
        return isRowMajor ? rows : cols;
    }

    /** Address of the first element of a matrix of the batch at {@code base}. */
    long matrix(long base, int number) {
        return base + number * stride * type.bytes();
    }

    private long at(long base, long row, long col) {
        return base + (isRowMajor ? row * ld + col : col * ld + row) * type.bytes();
    }

    /** Real part of an element of the matrix at {@code base}. */
    double real(long base, long row, long col) {
        return real(type, ALL, at(base, row, col));
    }

    /** Imaginary part of an element; 0 for real types. */
    double imaginary(long base, long row, long col) {
        return imaginary(type, ALL, at(base, row, col));
    }

    /** Stores an element, rounded to the type. */
    void set(long base, long row, long col, double re, double im) {
        long at = at(base, row, col);
        switch (type) {
            case HALF, BFLOAT -> ALL.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, type.narrow((float) re));
            case FLOAT -> ALL.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, (float) re);
            case DOUBLE -> ALL.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, at, re);
            case COMPLEX -> {
                ALL.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, (float) re);
                ALL.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at + Float.BYTES, (float) im);
            }
            default -> {
                ALL.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, at, re);
                ALL.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, at + Double.BYTES, im);
            }
        }
    }

    /** Real part of a number of a type. */
    static double real(Type type, MemorySegment memory, long at) {
        return switch (type) {
            case HALF, BFLOAT -> type.widen(memory.get(ValueLayout.JAVA_SHORT_UNALIGNED, at));
            case FLOAT, COMPLEX -> memory.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
            default -> memory.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, at);
        };
    }

    /** Imaginary part of a number of a type; 0 for real types. */
    static double imaginary(Type type, MemorySegment memory, long at) {
        return switch (type) {
            case COMPLEX -> memory.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at + Float.BYTES);
            case DOUBLE_COMPLEX -> memory.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, at + Double.BYTES);
            default -> 0;
        };
    }

    /** A matrix of the batch with elements of 16 bits as columns of floats, without gaps, in {@code wide}. */
    void widen(long base, MemorySegment wide) {
        for (long column = 0; column < columns(); column++) {
            for (long row = 0; row < columnRows(); row++) {
                wide.setAtIndex(ValueLayout.JAVA_FLOAT, column * columnRows() + row, type.widen(
                    ALL.get(ValueLayout.JAVA_SHORT_UNALIGNED, base + (column * ld + row) * Short.BYTES)));
            }
        }
    }
}

package io.hawser.gpu.software.math;

import io.hawser.cuda.backend.SparseContent;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cusparse.HwsSparseContent;
import io.hawser.cuda.generated.cusparse.HwsSparseKind;
import io.hawser.cuda.generated.cusparse.cusparseFormat_t;
import io.hawser.cuda.generated.cusparse.cusparseIndexType_t;
import io.hawser.cuda.generated.cusparse.cusparseOrder_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A vector or matrix in device memory, whose content is copied. Indices in device memory are the guest's: an access
 * outside of an array throws {@link IndexOutOfBoundsException}. Any thread.
 */
final class SparseMatrix {
    private final SparseContent content;
    private final boolean isDouble;
    private final boolean isComplex;
    private final MemorySegment offsets;
    private final MemorySegment indices;
    private final MemorySegment values;

    SparseMatrix(SparseContent given) {
        content = new SparseContent(Arena.ofAuto().allocate(HwsSparseContent.BYTES, Long.BYTES)
            .copyFrom(given.struct()));
        int type = content.valueType();
        isDouble = type == cudaDataType_t.CUDA_R_64F || type == cudaDataType_t.CUDA_C_64F;
        isComplex = type == cudaDataType_t.CUDA_C_32F || type == cudaDataType_t.CUDA_C_64F;
        offsets = memory(content.offsets(), content.offsetBytes());
        indices = memory(content.indices(), content.indexBytes());
        values = memory(content.values(), content.valueBytes());
    }

    private static MemorySegment memory(long address, long bytes) {
        // SAFETY: the worker has checked that these bytes lie in the session's memory, if there is an address.
        return address == 0 ? MemorySegment.NULL : MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    /** Whether the software GPU computes with a content: one batch of float, double or complex numbers. */
    static boolean isServed(SparseContent content) {
        boolean isNumber = switch (content.valueType()) {
            case cudaDataType_t.CUDA_R_32F, cudaDataType_t.CUDA_R_64F, cudaDataType_t.CUDA_C_32F,
                cudaDataType_t.CUDA_C_64F -> true;
            default -> false;
        };
        return isNumber && content.batches() == 1 && (content.kind() != HwsSparseKind.HWS_SPARSE_SP_MAT
            || (content.format() == cusparseFormat_t.CUSPARSE_FORMAT_CSR
                || content.format() == cusparseFormat_t.CUSPARSE_FORMAT_COO)
                && isIndex(content.offsetType()) && isIndex(content.indexType()));
    }

    private static boolean isIndex(int type) {
        return type == cusparseIndexType_t.CUSPARSE_INDEX_32I || type == cusparseIndexType_t.CUSPARSE_INDEX_64I;
    }

    long rows() {
        return content.rows();
    }

    long cols() {
        return content.cols();
    }

    long nnz() {
        return content.nnz();
    }

    boolean isComplex() {
        return isComplex;
    }

    /** Receives the elements of a sparse matrix. */
    interface Visitor {
        /** An element: its place in the matrix, and its number among the values. */
        void visit(long row, long col, long at);
    }

    /** Visits each element of a sparse matrix. */
    void visit(Visitor visitor) {
        if (content.format() == cusparseFormat_t.CUSPARSE_FORMAT_COO) {
            for (long at = 0; at < content.nnz(); at++) {
                visitor.visit(index(offsets, at, content.indexType()), index(indices, at, content.indexType()), at);
            }
            return;
        }
        for (long row = 0; row < content.rows(); row++) {
            long end = index(offsets, row + 1, content.offsetType());
            for (long at = index(offsets, row, content.offsetType()); at < end; at++) {
                visitor.visit(row, index(indices, at, content.indexType()), at);
            }
        }
    }

    /** An index, counted from 0. */
    private long index(MemorySegment array, long at, int type) {
        long index = type == cusparseIndexType_t.CUSPARSE_INDEX_32I
            ? array.get(ValueLayout.JAVA_INT_UNALIGNED, at * Integer.BYTES)
            : array.get(ValueLayout.JAVA_LONG_UNALIGNED, at * Long.BYTES);
        return index - content.indexBase();
    }

    private void setIndex(MemorySegment array, long at, int type, long index) {
        long based = index + content.indexBase();
        if (type == cusparseIndexType_t.CUSPARSE_INDEX_32I) {
            array.set(ValueLayout.JAVA_INT_UNALIGNED, at * Integer.BYTES, (int) based);
        } else {
            array.set(ValueLayout.JAVA_LONG_UNALIGNED, at * Long.BYTES, based);
        }
    }

    /** Writes element {@code at} of a sparse matrix, which comes after those of earlier rows and columns. */
    void setElement(long at, long row, long col) {
        if (content.format() == cusparseFormat_t.CUSPARSE_FORMAT_COO) {
            setIndex(offsets, at, content.indexType(), row);
        }
        setIndex(indices, at, content.indexType(), col);
    }

    /** Writes where a row of a sparse matrix begins; the row after the last one is the end. */
    void setRow(long row, long at) {
        if (content.format() == cusparseFormat_t.CUSPARSE_FORMAT_CSR) {
            setIndex(offsets, row, content.offsetType(), at);
        }
    }

    /** The place of an element of a dense matrix or vector among its values. */
    long place(long row, long col) {
        if (content.kind() == HwsSparseKind.HWS_SPARSE_DN_VEC) {
            return row;
        }
        return content.order() == cusparseOrder_t.CUSPARSE_ORDER_COL ? col * content.extent() + row
            : row * content.extent() + col;
    }

    /** A part of a value: 0 is the real one, 1 the imaginary one. */
    double part(long at, int part) {
        return !isComplex && part == 1 ? 0 : number(values, isComplex ? 2 * at + part : at, isDouble);
    }

    /** A number of memory. */
    static double number(MemorySegment memory, long at, boolean isDouble) {
        return isDouble ? memory.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, at * Double.BYTES)
            : memory.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at * Float.BYTES);
    }

    /** Writes a value. */
    void set(long at, double real, double imaginary) {
        setNumber(isComplex ? 2 * at : at, real);
        if (isComplex) {
            setNumber(2 * at + 1, imaginary);
        }
    }

    private void setNumber(long at, double number) {
        setNumber(values, at, isDouble, number);
    }

    /** Writes a number of memory. */
    static void setNumber(MemorySegment memory, long at, boolean isDouble, double number) {
        if (isDouble) {
            memory.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, at * Double.BYTES, number);
        } else {
            memory.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at * Float.BYTES, (float) number);
        }
    }
}

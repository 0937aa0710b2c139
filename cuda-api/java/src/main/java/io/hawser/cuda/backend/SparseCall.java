package io.hawser.cuda.backend;

import io.hawser.cuda.generated.cusparse.HwsSparseOperation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A call of one of cuSPARSE's generic functions.
 *
 * @param handle of the library.
 * @param operation the struct HwsSparseOperation.
 * @param alpha the first number, or the result of a product of vectors; its bytes, or a segment without bytes at its
 *     address on the device.
 * @param beta the second number, likewise.
 * @param a the library's descriptor of what is read; 0 for none, as the next two.
 * @param b that of the second operand.
 * @param c that of what is written.
 * @param contentA the content of {@code a}; the struct has the kind HWS_SPARSE_NONE for none, as the next two.
 * @param contentB that of {@code b}.
 * @param contentC that of {@code c}.
 * @param state the library's descriptor of the operation; 0 for none.
 * @param buffers addresses of three buffers; 0 for none.
 * @param sizes three 64-bit numbers in native memory: sizes of the buffers, which the library reads and writes.
 */
public record SparseCall(long handle, MemorySegment operation, MemorySegment alpha, MemorySegment beta, long a, long b,
    long c, SparseContent contentA, SparseContent contentB, SparseContent contentC, long state, long[] buffers,
    MemorySegment sizes) {

    private int number(long offset) {
        return operation.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    /** Of HwsSparseFunction. */
    public int function() {
        return number(HwsSparseOperation.FUNCTION_OFFSET);
    }

    /** Of cusparseOperation_t; any number. */
    public int opA() {
        return number(HwsSparseOperation.OP_A_OFFSET);
    }

    /** Of cusparseOperation_t; any number. */
    public int opB() {
        return number(HwsSparseOperation.OP_B_OFFSET);
    }

    /** Of cudaDataType; any number. */
    public int computeType() {
        return number(HwsSparseOperation.COMPUTE_TYPE_OFFSET);
    }

    /** The algorithm, or the part that an update changes; any number. */
    public int alg() {
        return number(HwsSparseOperation.ALG_OFFSET);
    }

    /** Of cusparseSpGEMM_estimateMemory; any number. */
    public float chunkFraction() {
        return operation.get(ValueLayout.JAVA_FLOAT_UNALIGNED, HwsSparseOperation.CHUNK_FRACTION_OFFSET);
    }

    /** A buffer's address as C's pointer. */
    public MemorySegment buffer(int index) {
        return MemorySegment.ofAddress(buffers[index]);
    }

    /** The place of a buffer's size. */
    public MemorySegment size(int index) {
        return sizes.asSlice((long) index * Long.BYTES, Long.BYTES);
    }
}

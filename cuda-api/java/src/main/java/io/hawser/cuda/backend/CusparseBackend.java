package io.hawser.cuda.backend;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cusparse.CusparseDriver;
import java.lang.foreign.MemorySegment;

/**
 * cuSPARSE of a GPU. Results are of cusparseStatus_t; no method throws for any input of a guest. The thread and the
 * current context are those of {@link GpuBackend#driver}.
 */
public interface CusparseBackend extends MathHandles, MatDescriptions {
    /** Descriptors of operations. */
    enum Operation { SPSV, SPSM, SPGEMM }

    /** The older functions. Handles and descriptors are pointers with the library's values. */
    CusparseDriver driver();

    /** As cusparseGetVersion; {@code out} receives an int. */
    int version(MemorySegment out);

    /** As cusparseSetStream and cusparseSetPointerMode. */
    int apply(long handle, int pointerMode, long stream);

    /** Makes a descriptor of a content that is {@link SparseContent#isWhole}; {@code out} receives it (8 bytes). */
    int make(SparseContent content, MemorySegment out);

    /** Sets what a program can change in a descriptor of {@link #make}: addresses, batches, attributes. */
    int update(long descriptor, SparseContent content);

    /** Destroys a descriptor of {@link #make}, of a content's kind. */
    void destroy(int kind, long descriptor);

    /** The number of elements of a sparse matrix of {@link #make}, as cusparseSpMatGetSize; negative for none. */
    long elements(long descriptor);

    /** Makes a descriptor of an operation; {@code out} receives it (8 bytes). */
    int makeOperation(Operation kind, MemorySegment out);

    /** Destroys a descriptor of {@link #makeOperation}. */
    void destroyOperation(Operation kind, long descriptor);

    /** Calls a function; its memory is checked. */
    int run(SparseCall call);

    /** Asks for the size of the buffer that a function needs; {@code size} receives 8 bytes. */
    int bufferSize(SparseCall call, MemorySegment size);

    /** As cusparseSpGEMM_getNumProducts; {@code products} receives 8 bytes. */
    int products(long operation, MemorySegment products);

    /**
     * As cusparseXcsric02_zeroPivot and its relatives, of a kind of info, with the position on the host.
     *
     * @param position receives an int: -1 for no zero pivot.
     * @return also CUSPARSE_STATUS_ZERO_PIVOT.
     */
    int zeroPivot(HandleKind kind, long handle, long info, MemorySegment position);
}

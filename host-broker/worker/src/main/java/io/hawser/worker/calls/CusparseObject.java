package io.hawser.worker.calls;

import io.hawser.cuda.backend.CusparseBackend;
import io.hawser.cuda.backend.CusparseBackend.Operation;
import io.hawser.cuda.backend.SparseContent;
import io.hawser.cuda.generated.cusparse.HwsSparseContent;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A descriptor of cuSPARSE that has state: of a matrix, or of an operation. Session thread. */
final class CusparseObject {
    private final Operation operation; // null: a matrix
    private final long made;
    private final MemorySegment known; // the content that the library has, or the matrix of an operation; null for none

    private CusparseObject(Operation operation, long made, MemorySegment known) {
        this.operation = operation;
        this.made = made;
        this.known = known;
    }

    /** A matrix with a content, which is copied. */
    static CusparseObject ofMatrix(long made, SparseContent content) {
        return new CusparseObject(null, made, Arena.ofAuto().allocate(HwsSparseContent.BYTES, Long.BYTES)
            .copyFrom(content.struct()));
    }

    /** An operation, whose matrix is known after its analysis. */
    static CusparseObject ofOperation(Operation operation, long made) {
        return new CusparseObject(operation, made, Arena.ofAuto().allocate(HwsSparseContent.BYTES, Long.BYTES));
    }

    Operation operation() {
        return operation;
    }

    long made() {
        return made;
    }

    /** The content that the library has; of an operation that of its matrix, of kind HWS_SPARSE_NONE before. */
    SparseContent content() {
        return new SparseContent(known);
    }

    /** Whether a content differs at most in what programs can change: addresses, batches and attributes. */
    boolean hasShapeOf(SparseContent content) {
        return isEqual(content, HwsSparseContent.KIND_OFFSET, HwsSparseContent.OFFSETS_OFFSET)
            && isEqual(content, HwsSparseContent.VALUE_TYPE_OFFSET, HwsSparseContent.FILL_MODE_OFFSET);
    }

    private boolean isEqual(SparseContent content, long from, long to) {
        return MemorySegment.mismatch(known, from, to, content.struct(), from, to) < 0;
    }

    /** Gives the library what a program has changed. */
    int update(CusparseBackend library, SparseContent content) {
        if (known.mismatch(content.struct()) < 0) {
            return 0;
        }
        int status = library.update(made, content);
        if (status == 0) {
            known.copyFrom(content.struct());
        }
        return status;
    }

    /** Keeps the matrix of an operation. */
    void setMatrix(SparseContent content) {
        known.copyFrom(content.struct());
    }

    /** Keeps the number of elements that the library has found. */
    void setElements(long count) {
        known.set(ValueLayout.JAVA_LONG, HwsSparseContent.NNZ_OFFSET, count);
    }

    /** Destroys the library's descriptor. */
    void destroy(CusparseBackend library) {
        if (operation != null) {
            library.destroyOperation(operation, made);
        } else {
            library.destroy(content().kind(), made);
        }
    }
}

package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_BLOCKED_ELL;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_BSR;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_COO;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_CSC;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_CSR;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_SLICED_ELLPACK;

import io.hawser.cuda.backend.CusparseBackend;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.backend.SparseCall;
import io.hawser.cuda.backend.SparseContent;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cusparse.CusparseDriver;
import io.hawser.cuda.generated.cusparse.CusparseForeign;
import io.hawser.cuda.generated.cusparse.CusparseNative;
import io.hawser.cuda.generated.cusparse.HwsSparseKind;
import io.hawser.cuda.generated.cusparse.cusparsePointerMode_t;
import io.hawser.cuda.generated.cusparse.cusparseSpMatAttribute_t;
import io.hawser.cuda.generated.cusparse.cusparseStatus_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** NVIDIA's cuSPARSE. Session thread. */
final class NvidiaCusparse implements CusparseBackend {
    /** An assumption: the library documents no number. */
    private static final long HANDLE_BYTES = 8 << 20;

    private final CusparseNative library;
    private final CusparseForeign driver;
    private final NvidiaSparseCalls calls;
    private final MemorySegment value = Arena.ofAuto().allocate(3 * Long.BYTES, Long.BYTES);

    NvidiaCusparse(NativeLibrary library) {
        this.library = new CusparseNative(library);
        driver = new CusparseForeign(library);
        calls = new NvidiaSparseCalls(this.library);
    }

    @Override
    public CusparseDriver driver() {
        return driver;
    }

    @Override
    public int create(MemorySegment out) {
        return library.cusparseCreate(out);
    }

    @Override
    public int destroy(long handle) {
        return library.cusparseDestroy(handle);
    }

    @Override
    public long handleBytes() {
        return HANDLE_BYTES;
    }

    @Override
    public int version(MemorySegment out) {
        int status = library.cusparseCreate(value); // the function needs a handle
        if (status != 0) {
            return status;
        }
        long handle = value.get(ValueLayout.JAVA_LONG, 0);
        status = library.cusparseGetVersion(handle, out);
        library.cusparseDestroy(handle);
        return status;
    }

    @Override
    public int apply(long handle, int pointerMode, long stream) {
        int status = library.cusparseSetStream(handle, stream);
        return status != 0 ? status : library.cusparseSetPointerMode(handle, pointerMode);
    }

    @Override
    public int describe(int type, int fillMode, int diagType, int indexBase, MemorySegment out) {
        return describe(library, type, fillMode, diagType, indexBase, out);
    }

    /** Makes a cusparseMatDescr_t, which cuSOLVER takes as well. */
    static int describe(CusparseNative library, int type, int fillMode, int diagType, int indexBase,
        MemorySegment out) {
        int status = library.cusparseCreateMatDescr(out);
        if (status != 0) {
            return status;
        }
        long descriptor = out.get(ValueLayout.JAVA_LONG, 0);
        status = library.cusparseSetMatType(descriptor, type);
        status = status != 0 ? status : library.cusparseSetMatFillMode(descriptor, fillMode);
        status = status != 0 ? status : library.cusparseSetMatDiagType(descriptor, diagType);
        return status != 0 ? status : library.cusparseSetMatIndexBase(descriptor, indexBase);
    }

    @Override
    public int make(SparseContent content, MemorySegment out) {
        MemorySegment values = MemorySegment.ofAddress(content.values());
        int status = switch (content.kind()) {
            case HwsSparseKind.HWS_SPARSE_SP_VEC -> library.cusparseCreateSpVec(out, content.rows(), content.nnz(),
                MemorySegment.ofAddress(content.indices()), values, content.indexType(), content.indexBase(),
                content.valueType());
            case HwsSparseKind.HWS_SPARSE_DN_VEC ->
                library.cusparseCreateDnVec(out, content.rows(), values, content.valueType());
            case HwsSparseKind.HWS_SPARSE_DN_MAT -> library.cusparseCreateDnMat(out, content.rows(), content.cols(),
                content.extent(), values, content.valueType(), content.order());
            default -> makeSparse(content, values, out);
        };
        if (status != 0) {
            return status;
        }
        long made = out.get(ValueLayout.JAVA_LONG, 0);
        status = content.batches() == 1 ? 0 : setBatches(made, content);
        status = status != 0 ? status : setAttributes(made, content);
        if (status != 0) {
            destroy(content.kind(), made);
        }
        return status;
    }

    private int makeSparse(SparseContent content, MemorySegment values, MemorySegment out) {
        MemorySegment offsets = MemorySegment.ofAddress(content.offsets());
        MemorySegment indices = MemorySegment.ofAddress(content.indices());
        return switch (content.format()) {
            case CUSPARSE_FORMAT_CSR -> library.cusparseCreateCsr(out, content.rows(), content.cols(), content.nnz(),
                offsets, indices, values, content.offsetType(), content.indexType(), content.indexBase(),
                content.valueType());
            case CUSPARSE_FORMAT_CSC -> library.cusparseCreateCsc(out, content.rows(), content.cols(), content.nnz(),
                offsets, indices, values, content.offsetType(), content.indexType(), content.indexBase(),
                content.valueType());
            case CUSPARSE_FORMAT_COO -> library.cusparseCreateCoo(out, content.rows(), content.cols(), content.nnz(),
                offsets, indices, values, content.indexType(), content.indexBase(), content.valueType());
            case CUSPARSE_FORMAT_BSR -> library.cusparseCreateBsr(out, content.rows(), content.cols(), content.nnz(),
                content.extent(), content.extent2(), offsets, indices, values, content.offsetType(),
                content.indexType(), content.indexBase(), content.valueType(), content.order());
            case CUSPARSE_FORMAT_BLOCKED_ELL -> library.cusparseCreateBlockedEll(out, content.rows(), content.cols(),
                content.extent(), content.extent2(), indices, values, content.indexType(), content.indexBase(),
                content.valueType());
            case CUSPARSE_FORMAT_SLICED_ELLPACK -> library.cusparseCreateSlicedEll(out, content.rows(),
                content.cols(), content.nnz(), content.extent(), content.extent2(), offsets, indices, values,
                content.offsetType(), content.indexType(), content.indexBase(), content.valueType());
            default -> cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;
        };
    }

    private int setBatches(long made, SparseContent content) {
        if (content.kind() == HwsSparseKind.HWS_SPARSE_DN_MAT) {
            return library.cusparseDnMatSetStridedBatch(made, content.batches(), content.stride());
        }
        return switch (content.kind() == HwsSparseKind.HWS_SPARSE_SP_MAT ? content.format() : 0) {
            case CUSPARSE_FORMAT_CSR ->
                library.cusparseCsrSetStridedBatch(made, content.batches(), content.stride(), content.stride2());
            case CUSPARSE_FORMAT_COO -> library.cusparseCooSetStridedBatch(made, content.batches(), content.stride());
            case CUSPARSE_FORMAT_BSR -> library.cusparseBsrSetStridedBatch(made, content.batches(), content.stride(),
                content.stride2(), content.stride3());
            default -> cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;
        };
    }

    private int setAttributes(long made, SparseContent content) {
        if (content.kind() != HwsSparseKind.HWS_SPARSE_SP_MAT) {
            return 0;
        }
        int status = setAttribute(made, cusparseSpMatAttribute_t.CUSPARSE_SPMAT_FILL_MODE, content.fillMode());
        return status != 0 ? status
            : setAttribute(made, cusparseSpMatAttribute_t.CUSPARSE_SPMAT_DIAG_TYPE, content.diagType());
    }

    private int setAttribute(long made, int attribute, int wanted) {
        if (wanted == 0) {
            return 0;
        }
        value.set(ValueLayout.JAVA_INT, 0, wanted - 1);
        return library.cusparseSpMatSetAttribute(made, attribute, value, Integer.BYTES);
    }

    @Override
    public int update(long descriptor, SparseContent content) {
        MemorySegment offsets = MemorySegment.ofAddress(content.offsets());
        MemorySegment indices = MemorySegment.ofAddress(content.indices());
        MemorySegment values = MemorySegment.ofAddress(content.values());
        int status = switch (content.format()) {
            case CUSPARSE_FORMAT_CSR -> library.cusparseCsrSetPointers(descriptor, offsets, indices, values);
            case CUSPARSE_FORMAT_CSC -> library.cusparseCscSetPointers(descriptor, offsets, indices, values);
            case CUSPARSE_FORMAT_COO -> library.cusparseCooSetPointers(descriptor, offsets, indices, values);
            default -> library.cusparseSpMatSetValues(descriptor, values); // no other address can change
        };
        status = status != 0 || content.batches() == 1 ? status : setBatches(descriptor, content);
        return status != 0 ? status : setAttributes(descriptor, content);
    }

    @Override
    public void destroy(int kind, long descriptor) {
        switch (kind) {
            case HwsSparseKind.HWS_SPARSE_SP_VEC -> library.cusparseDestroySpVec(descriptor);
            case HwsSparseKind.HWS_SPARSE_DN_VEC -> library.cusparseDestroyDnVec(descriptor);
            case HwsSparseKind.HWS_SPARSE_DN_MAT -> library.cusparseDestroyDnMat(descriptor);
            default -> library.cusparseDestroySpMat(descriptor);
        }
    }

    @Override
    public long elements(long descriptor) {
        int status = library.cusparseSpMatGetSize(descriptor, value, value.asSlice(Long.BYTES),
            value.asSlice(2 * Long.BYTES));
        return status != 0 ? -1 : value.get(ValueLayout.JAVA_LONG, 2 * Long.BYTES);
    }

    @Override
    public int makeOperation(Operation kind, MemorySegment out) {
        return switch (kind) {
            case SPSV -> library.cusparseSpSV_createDescr(out);
            case SPSM -> library.cusparseSpSM_createDescr(out);
            case SPGEMM -> library.cusparseSpGEMM_createDescr(out);
        };
    }

    @Override
    public void destroyOperation(Operation kind, long descriptor) {
        switch (kind) {
            case SPSV -> library.cusparseSpSV_destroyDescr(descriptor);
            case SPSM -> library.cusparseSpSM_destroyDescr(descriptor);
            case SPGEMM -> library.cusparseSpGEMM_destroyDescr(descriptor);
        }
    }

    @Override
    public int run(SparseCall call) {
        return calls.run(call);
    }

    @Override
    public int bufferSize(SparseCall call, MemorySegment size) {
        return calls.bufferSize(call, size);
    }

    @Override
    public int products(long operation, MemorySegment products) {
        return library.cusparseSpGEMM_getNumProducts(operation, products);
    }

    @Override
    public int zeroPivot(HandleKind kind, long handle, long info, MemorySegment position) {
        int status = library.cusparseSetPointerMode(handle, cusparsePointerMode_t.CUSPARSE_POINTER_MODE_HOST);
        if (status != 0) {
            return status;
        }
        return switch (kind) {
            case CSRIC02 -> library.cusparseXcsric02_zeroPivot(handle, info, position);
            case CSRILU02 -> library.cusparseXcsrilu02_zeroPivot(handle, info, position);
            case BSRIC02 -> library.cusparseXbsric02_zeroPivot(handle, info, position);
            case BSRILU02 -> library.cusparseXbsrilu02_zeroPivot(handle, info, position);
            case BSRSV2 -> library.cusparseXbsrsv2_zeroPivot(handle, info, position);
            default -> library.cusparseXbsrsm2_zeroPivot(handle, info, position);
        };
    }
}

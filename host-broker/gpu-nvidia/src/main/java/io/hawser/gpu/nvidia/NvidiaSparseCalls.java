package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;

import io.hawser.cuda.backend.SparseCall;
import io.hawser.cuda.generated.cusparse.CusparseNative;
import io.hawser.cuda.generated.cusparse.HwsSparseFunction;
import java.lang.foreign.MemorySegment;

/** The generic functions of NVIDIA's cuSPARSE. Session thread. */
final class NvidiaSparseCalls {
    private final CusparseNative library;

    NvidiaSparseCalls(CusparseNative library) {
        this.library = library;
    }

    /** Calls the function of a call. */
    int run(SparseCall call) {
        return switch (call.function()) {
            case HwsSparseFunction.HWS_SPARSE_AXPBY ->
                library.cusparseAxpby(call.handle(), call.alpha(), call.a(), call.beta(), call.c());
            case HwsSparseFunction.HWS_SPARSE_GATHER -> library.cusparseGather(call.handle(), call.a(), call.c());
            case HwsSparseFunction.HWS_SPARSE_SCATTER -> library.cusparseScatter(call.handle(), call.a(), call.c());
            case HwsSparseFunction.HWS_SPARSE_ROT ->
                library.cusparseRot(call.handle(), call.alpha(), call.beta(), call.a(), call.c());
            case HwsSparseFunction.HWS_SPARSE_SPVV ->
                library.cusparseSpVV(call.handle(), call.opA(), call.a(), call.b(), call.alpha(), call.computeType(),
                    call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPMV ->
                library.cusparseSpMV(call.handle(), call.opA(), call.alpha(), call.a(), call.b(), call.beta(), call.c(),
                    call.computeType(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPMV_PREPROCESS ->
                library.cusparseSpMV_preprocess(call.handle(), call.opA(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPMM ->
                library.cusparseSpMM(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPMM_PREPROCESS ->
                library.cusparseSpMM_preprocess(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SDDMM ->
                library.cusparseSDDMM(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SDDMM_PREPROCESS ->
                library.cusparseSDDMM_preprocess(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(),
                    call.b(), call.beta(), call.c(), call.computeType(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPSV_ANALYSIS ->
                library.cusparseSpSV_analysis(call.handle(), call.opA(), call.alpha(), call.a(), call.b(), call.c(),
                    call.computeType(), call.alg(), call.state(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPSV_SOLVE ->
                library.cusparseSpSV_solve(call.handle(), call.opA(), call.alpha(), call.a(), call.b(), call.c(),
                    call.computeType(), call.alg(), call.state());
            case HwsSparseFunction.HWS_SPARSE_SPSV_UPDATE ->
                library.cusparseSpSV_updateMatrix(call.handle(), call.state(), call.buffer(0), call.alg());
            case HwsSparseFunction.HWS_SPARSE_SPSM_ANALYSIS ->
                library.cusparseSpSM_analysis(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.c(), call.computeType(), call.alg(), call.state(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPSM_SOLVE ->
                library.cusparseSpSM_solve(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.c(), call.computeType(), call.alg(), call.state());
            case HwsSparseFunction.HWS_SPARSE_SPSM_UPDATE ->
                library.cusparseSpSM_updateMatrix(call.handle(), call.state(), call.buffer(0), call.alg());
            case HwsSparseFunction.HWS_SPARSE_SPARSE_TO_DENSE ->
                library.cusparseSparseToDense(call.handle(), call.a(), call.c(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_DENSE_TO_SPARSE_ANALYSIS ->
                library.cusparseDenseToSparse_analysis(call.handle(), call.a(), call.c(), call.alg(), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_DENSE_TO_SPARSE_CONVERT ->
                library.cusparseDenseToSparse_convert(call.handle(), call.a(), call.c(), call.alg(), call.buffer(0));
            default -> runProduct(call);
        };
    }

    /** The functions of a product of two sparse matrices. */
    private int runProduct(SparseCall call) {
        return switch (call.function()) {
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_WORK_ESTIMATION ->
                library.cusparseSpGEMM_workEstimation(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(),
                    call.b(), call.beta(), call.c(), call.computeType(), call.alg(), call.state(), call.size(0),
                    call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_ESTIMATE_MEMORY ->
                library.cusparseSpGEMM_estimateMemory(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(),
                    call.b(), call.beta(), call.c(), call.computeType(), call.alg(), call.state(), call.chunkFraction(),
                    call.size(0), call.buffer(0), call.size(1));
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_COMPUTE ->
                library.cusparseSpGEMM_compute(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), call.state(), call.size(0), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_COPY ->
                library.cusparseSpGEMM_copy(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), call.state());
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_REUSE_WORK_ESTIMATION ->
                library.cusparseSpGEMMreuse_workEstimation(call.handle(), call.opA(), call.opB(), call.a(), call.b(),
                    call.c(), call.alg(), call.state(), call.size(0), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_REUSE_NNZ ->
                library.cusparseSpGEMMreuse_nnz(call.handle(), call.opA(), call.opB(), call.a(), call.b(), call.c(),
                    call.alg(), call.state(), call.size(0), call.buffer(0), call.size(1), call.buffer(1), call.size(2),
                    call.buffer(2));
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_REUSE_COPY ->
                library.cusparseSpGEMMreuse_copy(call.handle(), call.opA(), call.opB(), call.a(), call.b(), call.c(),
                    call.alg(), call.state(), call.size(0), call.buffer(0));
            case HwsSparseFunction.HWS_SPARSE_SPGEMM_REUSE_COMPUTE ->
                library.cusparseSpGEMMreuse_compute(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(),
                    call.b(), call.beta(), call.c(), call.computeType(), call.alg(), call.state());
            default -> CUSPARSE_STATUS_NOT_SUPPORTED;
        };
    }

    /** Asks for the size of a call's buffer. */
    int bufferSize(SparseCall call, MemorySegment size) {
        return switch (call.function()) {
            case HwsSparseFunction.HWS_SPARSE_SPVV ->
                library.cusparseSpVV_bufferSize(call.handle(), call.opA(), call.a(), call.b(), call.alpha(),
                    call.computeType(), size);
            case HwsSparseFunction.HWS_SPARSE_SPMV ->
                library.cusparseSpMV_bufferSize(call.handle(), call.opA(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), size);
            case HwsSparseFunction.HWS_SPARSE_SPMM ->
                library.cusparseSpMM_bufferSize(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.beta(), call.c(), call.computeType(), call.alg(), size);
            case HwsSparseFunction.HWS_SPARSE_SDDMM ->
                library.cusparseSDDMM_bufferSize(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(),
                    call.b(), call.beta(), call.c(), call.computeType(), call.alg(), size);
            case HwsSparseFunction.HWS_SPARSE_SPSV_ANALYSIS ->
                library.cusparseSpSV_bufferSize(call.handle(), call.opA(), call.alpha(), call.a(), call.b(), call.c(),
                    call.computeType(), call.alg(), call.state(), size);
            case HwsSparseFunction.HWS_SPARSE_SPSM_ANALYSIS ->
                library.cusparseSpSM_bufferSize(call.handle(), call.opA(), call.opB(), call.alpha(), call.a(), call.b(),
                    call.c(), call.computeType(), call.alg(), call.state(), size);
            case HwsSparseFunction.HWS_SPARSE_SPARSE_TO_DENSE ->
                library.cusparseSparseToDense_bufferSize(call.handle(), call.a(), call.c(), call.alg(), size);
            case HwsSparseFunction.HWS_SPARSE_DENSE_TO_SPARSE_ANALYSIS ->
                library.cusparseDenseToSparse_bufferSize(call.handle(), call.a(), call.c(), call.alg(), size);
            default -> CUSPARSE_STATUS_NOT_SUPPORTED;
        };
    }
}

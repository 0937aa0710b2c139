/*
 * Generic functions that find something out, for which the caller waits: the worker keeps what they find out in an
 * object of its own for the matrix or the operation.
 */
#include "hws_cusparse_calls.h"
#include "hws_cusparse_generic.h"

/* From here on the worker has an object for the matrix. */
static void keep(HwsSparseContent *matrix) {
    if (matrix->id == 0) {
        matrix->id = hws_sparse_new_id();
    }
}

/* A size counts only together with a buffer. */
static void set_buffer(HwsSparseBuffer *buffer, const void *address, const size_t *size) {
    buffer->address = (uintptr_t) address;
    buffer->bytes = address == NULL ? 0 : *size;
}

static cusparseStatus_t analyse(hws_sparse_call_t *call, HwsSparseResult *result) {
    HWS_TRY(hws_call_hwsSparseAnalyse(call->handle, &call->operation, &call->alpha, &call->beta, call->a, call->b,
                                      call->c, &call->buffers[0], &call->buffers[1], &call->buffers[2], result));
    if (result->nnz >= 0) {
        call->c->nnz = result->nnz;
    }
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t opA, const void *alpha,
                                                    cusparseConstSpMatDescr_t matA, cusparseConstDnVecDescr_t vecX,
                                                    const void *beta, cusparseDnVecDescr_t vecY,
                                                    cudaDataType computeType, cusparseSpMVAlg_t alg,
                                                    void *externalBuffer) {
    CALL(SPMV_PREPROCESS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, vecX, HWS_SPARSE_DN_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opA;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    call.buffers[0].address = (uintptr_t) externalBuffer;
    keep(call.a);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t handle, cusparseOperation_t opA,
                                                    cusparseOperation_t opB, const void *alpha,
                                                    cusparseConstSpMatDescr_t matA, cusparseConstDnMatDescr_t matB,
                                                    const void *beta, cusparseDnMatDescr_t matC,
                                                    cudaDataType computeType, cusparseSpMMAlg_t alg,
                                                    void *externalBuffer) {
    CALL(SPMM_PREPROCESS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_DN_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    call.buffers[0].address = (uintptr_t) externalBuffer;
    keep(call.a);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSDDMM_preprocess(cusparseHandle_t handle, cusparseOperation_t opA,
                                                     cusparseOperation_t opB, const void *alpha,
                                                     cusparseConstDnMatDescr_t matA, cusparseConstDnMatDescr_t matB,
                                                     const void *beta, cusparseSpMatDescr_t matC,
                                                     cudaDataType computeType, cusparseSDDMMAlg_t alg,
                                                     void *externalBuffer) {
    CALL(SDDMM_PREPROCESS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    call.buffers[0].address = (uintptr_t) externalBuffer;
    keep(call.c);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpSV_analysis(cusparseHandle_t handle, cusparseOperation_t opA, const void *alpha,
                                                  cusparseConstSpMatDescr_t matA, cusparseConstDnVecDescr_t vecX,
                                                  cusparseDnVecDescr_t vecY, cudaDataType computeType,
                                                  cusparseSpSVAlg_t alg, cusparseSpSVDescr_t spsvDescr,
                                                  void *externalBuffer) {
    CALL(SPSV_ANALYSIS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, vecX, HWS_SPARSE_DN_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opA;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(use(&call, spsvDescr, HWS_SPARSE_STATE_SV));
    call.buffers[0].address = (uintptr_t) externalBuffer;
    keep(call.a);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpSM_analysis(cusparseHandle_t handle, cusparseOperation_t opA,
                                                  cusparseOperation_t opB, const void *alpha,
                                                  cusparseConstSpMatDescr_t matA, cusparseConstDnMatDescr_t matB,
                                                  cusparseDnMatDescr_t matC, cudaDataType computeType,
                                                  cusparseSpSMAlg_t alg, cusparseSpSMDescr_t spsmDescr,
                                                  void *externalBuffer) {
    CALL(SPSM_ANALYSIS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_DN_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(use(&call, spsmDescr, HWS_SPARSE_STATE_SM));
    call.buffers[0].address = (uintptr_t) externalBuffer;
    keep(call.a);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMM_workEstimation(cusparseHandle_t handle, cusparseOperation_t opA,
                                                          cusparseOperation_t opB, const void *alpha,
                                                          cusparseConstSpMatDescr_t matA,
                                                          cusparseConstSpMatDescr_t matB, const void *beta,
                                                          cusparseSpMatDescr_t matC, cudaDataType computeType,
                                                          cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t spgemmDescr,
                                                          size_t *bufferSize1, void *externalBuffer1) {
    CALL(SPGEMM_WORK_ESTIMATION);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    HWS_TRY(use(&call, spgemmDescr, HWS_SPARSE_STATE_GEMM));
    keep(call.a);
    keep(call.b);
    keep(call.c);
    HWS_REQUIRE(bufferSize1 != NULL);
    set_buffer(&call.buffers[0], externalBuffer1, bufferSize1);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    *bufferSize1 = result.bytes[0];
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMM_estimateMemory(
    cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB, const void *alpha,
    cusparseConstSpMatDescr_t matA, cusparseConstSpMatDescr_t matB, const void *beta, cusparseSpMatDescr_t matC,
    cudaDataType computeType, cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t spgemmDescr, float chunk_fraction,
    size_t *bufferSize3, void *externalBuffer3, size_t *bufferSize2) {
    CALL(SPGEMM_ESTIMATE_MEMORY);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    HWS_TRY(use(&call, spgemmDescr, HWS_SPARSE_STATE_GEMM));
    call.operation.chunkFraction = chunk_fraction;
    keep(call.a);
    keep(call.b);
    keep(call.c);
    HWS_REQUIRE(bufferSize3 != NULL);
    set_buffer(&call.buffers[0], externalBuffer3, bufferSize3);
    HWS_REQUIRE(bufferSize2 != NULL);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    *bufferSize3 = result.bytes[0];
    *bufferSize2 = result.bytes[1];
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMM_compute(cusparseHandle_t handle, cusparseOperation_t opA,
                                                   cusparseOperation_t opB, const void *alpha,
                                                   cusparseConstSpMatDescr_t matA, cusparseConstSpMatDescr_t matB,
                                                   const void *beta, cusparseSpMatDescr_t matC,
                                                   cudaDataType computeType, cusparseSpGEMMAlg_t alg,
                                                   cusparseSpGEMMDescr_t spgemmDescr, size_t *bufferSize2,
                                                   void *externalBuffer2) {
    CALL(SPGEMM_COMPUTE);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    HWS_TRY(use(&call, spgemmDescr, HWS_SPARSE_STATE_GEMM));
    keep(call.a);
    keep(call.b);
    keep(call.c);
    HWS_REQUIRE(bufferSize2 != NULL);
    set_buffer(&call.buffers[0], externalBuffer2, bufferSize2);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    *bufferSize2 = result.bytes[0];
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMMreuse_workEstimation(cusparseHandle_t handle, cusparseOperation_t opA,
                                                               cusparseOperation_t opB, cusparseConstSpMatDescr_t matA,
                                                               cusparseConstSpMatDescr_t matB,
                                                               cusparseSpMatDescr_t matC, cusparseSpGEMMAlg_t alg,
                                                               cusparseSpGEMMDescr_t spgemmDescr, size_t *bufferSize1,
                                                               void *externalBuffer1) {
    CALL(SPGEMM_REUSE_WORK_ESTIMATION);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    HWS_TRY(use(&call, spgemmDescr, HWS_SPARSE_STATE_GEMM));
    keep(call.a);
    keep(call.b);
    keep(call.c);
    HWS_REQUIRE(bufferSize1 != NULL);
    set_buffer(&call.buffers[0], externalBuffer1, bufferSize1);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    *bufferSize1 = result.bytes[0];
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMMreuse_nnz(cusparseHandle_t handle, cusparseOperation_t opA,
                                                    cusparseOperation_t opB, cusparseConstSpMatDescr_t matA,
                                                    cusparseConstSpMatDescr_t matB, cusparseSpMatDescr_t matC,
                                                    cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t spgemmDescr,
                                                    size_t *bufferSize2, void *externalBuffer2, size_t *bufferSize3,
                                                    void *externalBuffer3, size_t *bufferSize4, void *externalBuffer4) {
    CALL(SPGEMM_REUSE_NNZ);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    HWS_TRY(use(&call, spgemmDescr, HWS_SPARSE_STATE_GEMM));
    keep(call.a);
    keep(call.b);
    keep(call.c);
    HWS_REQUIRE(bufferSize2 != NULL);
    set_buffer(&call.buffers[0], externalBuffer2, bufferSize2);
    HWS_REQUIRE(bufferSize3 != NULL);
    set_buffer(&call.buffers[1], externalBuffer3, bufferSize3);
    HWS_REQUIRE(bufferSize4 != NULL);
    set_buffer(&call.buffers[2], externalBuffer4, bufferSize4);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    *bufferSize2 = result.bytes[0];
    *bufferSize3 = result.bytes[1];
    *bufferSize4 = result.bytes[2];
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMMreuse_copy(cusparseHandle_t handle, cusparseOperation_t opA,
                                                     cusparseOperation_t opB, cusparseConstSpMatDescr_t matA,
                                                     cusparseConstSpMatDescr_t matB, cusparseSpMatDescr_t matC,
                                                     cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t spgemmDescr,
                                                     size_t *bufferSize5, void *externalBuffer5) {
    CALL(SPGEMM_REUSE_COPY);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    HWS_TRY(use(&call, spgemmDescr, HWS_SPARSE_STATE_GEMM));
    keep(call.a);
    keep(call.b);
    keep(call.c);
    HWS_REQUIRE(bufferSize5 != NULL);
    set_buffer(&call.buffers[0], externalBuffer5, bufferSize5);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    *bufferSize5 = result.bytes[0];
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDenseToSparse_analysis(cusparseHandle_t handle, cusparseConstDnMatDescr_t matA,
                                                           cusparseSpMatDescr_t matB, cusparseDenseToSparseAlg_t alg,
                                                           void *externalBuffer) {
    CALL(DENSE_TO_SPARSE_ANALYSIS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matB, HWS_SPARSE_SP_MAT));
    call.operation.alg = (int32_t) alg;
    call.buffers[0].address = (uintptr_t) externalBuffer;
    keep(call.c);
    HwsSparseResult result;
    HWS_TRY(analyse(&call, &result));
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMM_getNumProducts(cusparseSpGEMMDescr_t spgemmDescr, int64_t *num_prods) {
    static const HwsSparseHandle no_handle; /* the function has none */
    HWS_REQUIRE(num_prods != NULL);
    HWS_NEED(hws_math_need_context(), CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_ENTER();
    HWS_NEED(hws_math_may_issue(NULL) == CUDA_SUCCESS, CUSPARSE_STATUS_EXECUTION_FAILED);
    hws_sparse_call_t call = {.handle = &no_handle,
                              .operation = {.function = HWS_SPARSE_SPGEMM_PRODUCTS},
                              .a = &hws_sparse_none,
                              .b = &hws_sparse_none,
                              .c = &hws_sparse_none};
    HWS_TRY(use(&call, spgemmDescr, HWS_SPARSE_STATE_GEMM));
    HwsSparseResult result;
    HWS_TRY(hws_call_hwsSparseAnalyse(call.handle, &call.operation, &call.alpha, &call.beta, call.a, call.b, call.c,
                                      &call.buffers[0], &call.buffers[1], &call.buffers[2], &result));
    *num_prods = result.products;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpVV(cusparseHandle_t handle, cusparseOperation_t opX,
                                         cusparseConstSpVecDescr_t vecX, cusparseConstDnVecDescr_t vecY, void *result,
                                         cudaDataType computeType, void *externalBuffer) {
    CALL(SPVV);
    HWS_TRY(take(&call.a, vecX, HWS_SPARSE_SP_VEC));
    HWS_TRY(take(&call.b, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opX;
    call.operation.computeType = (int32_t) computeType;
    call.buffers[0].address = (uintptr_t) externalBuffer;
    bool on_device = call.handle->pointerMode == CUSPARSE_POINTER_MODE_DEVICE;
    uint64_t bytes = hws_size_element((uint64_t) computeType);
    HWS_REQUIRE(hws_math_scalar(on_device, result, bytes, false, &call.alpha, sizeof call.alpha.value) != NULL);
    if (on_device) {
        return hws_call_hwsSparseRun(call.handle, &call.operation, &call.alpha, &call.beta, call.a, call.b, call.c,
                                     &call.buffers[0]);
    }
    HwsSparseResult found;
    HWS_TRY(hws_call_hwsSparseAnalyse(call.handle, &call.operation, &call.alpha, &call.beta, call.a, call.b, call.c,
                                      &call.buffers[0], &call.buffers[1], &call.buffers[2], &found));
    memcpy(result, found.value, bytes);
    return CUSPARSE_STATUS_SUCCESS;
}

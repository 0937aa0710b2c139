/* Generic functions that put work into the handle's stream, and the sizes of their buffers. */
#include "hws_cusparse_calls.h"
#include "hws_cusparse_generic.h"

HwsSparseContent hws_sparse_none;

/* As NVIDIA documents: 16-bit numbers are computed in 32 bits. */
static cudaDataType compute_type(const void *vector) {
    cudaDataType type = (cudaDataType) ((const HwsSparseContent *) vector)->valueType;
    return type == CUDA_R_16F || type == CUDA_R_16BF ? CUDA_R_32F
        : type == CUDA_C_16F || type == CUDA_C_16BF  ? CUDA_C_32F
                                                     : type;
}

static cusparseStatus_t run(const hws_sparse_call_t *call) {
    return hws_call_hwsSparseRun(call->handle, &call->operation, &call->alpha, &call->beta, call->a, call->b, call->c,
                                 &call->buffers[0]);
}

/* Asks once for equal contents. */
static cusparseStatus_t ask(const hws_sparse_call_t *call, size_t *size) {
    HWS_REQUIRE(size != NULL);
    unsigned long long bytes = 0;
    HWS_TRY(hws_call_hwsSparseBufferSize(call->handle, &call->operation, &call->alpha, &call->beta, call->a, call->b,
                                         call->c, &bytes));
    *size = bytes;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseAxpby(cusparseHandle_t handle, const void *alpha, cusparseConstSpVecDescr_t vecX,
                                          const void *beta, cusparseDnVecDescr_t vecY) {
    CALL(AXPBY);
    HWS_TRY(take(&call.a, vecX, HWS_SPARSE_SP_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    const cudaDataType computeType = compute_type(vecX);
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    call.operation.computeType = (int32_t) computeType;
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseGather(cusparseHandle_t handle, cusparseConstDnVecDescr_t vecY,
                                           cusparseSpVecDescr_t vecX) {
    CALL(GATHER);
    HWS_TRY(take(&call.a, vecY, HWS_SPARSE_DN_VEC));
    HWS_TRY(take(&call.c, vecX, HWS_SPARSE_SP_VEC));
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t vecX,
                                            cusparseDnVecDescr_t vecY) {
    CALL(SCATTER);
    HWS_TRY(take(&call.a, vecX, HWS_SPARSE_SP_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseRot(cusparseHandle_t handle, const void *c_coeff, const void *s_coeff,
                                        cusparseSpVecDescr_t vecX, cusparseDnVecDescr_t vecY) {
    CALL(ROT);
    HWS_TRY(take(&call.a, vecX, HWS_SPARSE_SP_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    const cudaDataType computeType = compute_type(vecX);
    HWS_TRY(number(&call, &call.alpha, c_coeff, computeType));
    HWS_TRY(number(&call, &call.beta, s_coeff, computeType));
    call.operation.computeType = (int32_t) computeType;
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpVV_bufferSize(cusparseHandle_t handle, cusparseOperation_t opX,
                                                    cusparseConstSpVecDescr_t vecX, cusparseConstDnVecDescr_t vecY,
                                                    const void *result, cudaDataType computeType, size_t *bufferSize) {
    CALL(SPVV);
    HWS_TRY(take(&call.a, vecX, HWS_SPARSE_SP_VEC));
    HWS_TRY(take(&call.b, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opX;
    call.operation.computeType = (int32_t) computeType;
    (void) result; /* only its place counts, which the handle has */
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA, const void *alpha,
                                                    cusparseConstSpMatDescr_t matA, cusparseConstDnVecDescr_t vecX,
                                                    const void *beta, cusparseDnVecDescr_t vecY,
                                                    cudaDataType computeType, cusparseSpMVAlg_t alg,
                                                    size_t *bufferSize) {
    CALL(SPMV);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, vecX, HWS_SPARSE_DN_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opA;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t opA, const void *alpha,
                                         cusparseConstSpMatDescr_t matA, cusparseConstDnVecDescr_t vecX,
                                         const void *beta, cusparseDnVecDescr_t vecY, cudaDataType computeType,
                                         cusparseSpMVAlg_t alg, void *externalBuffer) {
    CALL(SPMV);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, vecX, HWS_SPARSE_DN_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opA;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    call.buffers[0].address = (uintptr_t) externalBuffer;
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA,
                                                    cusparseOperation_t opB, const void *alpha,
                                                    cusparseConstSpMatDescr_t matA, cusparseConstDnMatDescr_t matB,
                                                    const void *beta, cusparseDnMatDescr_t matC,
                                                    cudaDataType computeType, cusparseSpMMAlg_t alg,
                                                    size_t *bufferSize) {
    CALL(SPMM);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_DN_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                         const void *alpha, cusparseConstSpMatDescr_t matA,
                                         cusparseConstDnMatDescr_t matB, const void *beta, cusparseDnMatDescr_t matC,
                                         cudaDataType computeType, cusparseSpMMAlg_t alg, void *externalBuffer) {
    CALL(SPMM);
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
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA,
                                                     cusparseOperation_t opB, const void *alpha,
                                                     cusparseConstDnMatDescr_t matA, cusparseConstDnMatDescr_t matB,
                                                     const void *beta, cusparseSpMatDescr_t matC,
                                                     cudaDataType computeType, cusparseSDDMMAlg_t alg,
                                                     size_t *bufferSize) {
    CALL(SDDMM);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_SP_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(number(&call, &call.beta, beta, computeType));
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                          const void *alpha, cusparseConstDnMatDescr_t matA,
                                          cusparseConstDnMatDescr_t matB, const void *beta, cusparseSpMatDescr_t matC,
                                          cudaDataType computeType, cusparseSDDMMAlg_t alg, void *externalBuffer) {
    CALL(SDDMM);
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
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpSV_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA, const void *alpha,
                                                    cusparseConstSpMatDescr_t matA, cusparseConstDnVecDescr_t vecX,
                                                    cusparseDnVecDescr_t vecY, cudaDataType computeType,
                                                    cusparseSpSVAlg_t alg, cusparseSpSVDescr_t spsvDescr,
                                                    size_t *bufferSize) {
    CALL(SPSV_ANALYSIS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, vecX, HWS_SPARSE_DN_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opA;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(use(&call, spsvDescr, HWS_SPARSE_STATE_SV));
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseSpSV_solve(cusparseHandle_t handle, cusparseOperation_t opA, const void *alpha,
                                               cusparseConstSpMatDescr_t matA, cusparseConstDnVecDescr_t vecX,
                                               cusparseDnVecDescr_t vecY, cudaDataType computeType,
                                               cusparseSpSVAlg_t alg, cusparseSpSVDescr_t spsvDescr) {
    CALL(SPSV_SOLVE);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, vecX, HWS_SPARSE_DN_VEC));
    HWS_TRY(take(&call.c, vecY, HWS_SPARSE_DN_VEC));
    call.operation.opA = (int32_t) opA;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(use(&call, spsvDescr, HWS_SPARSE_STATE_SV));
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA,
                                                    cusparseOperation_t opB, const void *alpha,
                                                    cusparseConstSpMatDescr_t matA, cusparseConstDnMatDescr_t matB,
                                                    cusparseDnMatDescr_t matC, cudaDataType computeType,
                                                    cusparseSpSMAlg_t alg, cusparseSpSMDescr_t spsmDescr,
                                                    size_t *bufferSize) {
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
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseSpSM_solve(cusparseHandle_t handle, cusparseOperation_t opA,
                                               cusparseOperation_t opB, const void *alpha,
                                               cusparseConstSpMatDescr_t matA, cusparseConstDnMatDescr_t matB,
                                               cusparseDnMatDescr_t matC, cudaDataType computeType,
                                               cusparseSpSMAlg_t alg, cusparseSpSMDescr_t spsmDescr) {
    CALL(SPSM_SOLVE);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.b, matB, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matC, HWS_SPARSE_DN_MAT));
    call.operation.opA = (int32_t) opA;
    call.operation.opB = (int32_t) opB;
    call.operation.alg = (int32_t) alg;
    call.operation.computeType = (int32_t) computeType;
    HWS_TRY(number(&call, &call.alpha, alpha, computeType));
    HWS_TRY(use(&call, spsmDescr, HWS_SPARSE_STATE_SM));
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpSV_updateMatrix(cusparseHandle_t handle, cusparseSpSVDescr_t spsvDescr,
                                                      void *newValues, cusparseSpSVUpdate_t updatePart) {
    CALL(SPSV_UPDATE);
    call.operation.alg = (int32_t) updatePart;
    HWS_TRY(use(&call, spsvDescr, HWS_SPARSE_STATE_SV));
    HWS_REQUIRE(newValues != NULL);
    call.buffers[0].address = (uintptr_t) newValues;
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpSM_updateMatrix(cusparseHandle_t handle, cusparseSpSMDescr_t spsmDescr,
                                                      void *newValues, cusparseSpSMUpdate_t updatePart) {
    CALL(SPSM_UPDATE);
    call.operation.alg = (int32_t) updatePart;
    HWS_TRY(use(&call, spsmDescr, HWS_SPARSE_STATE_SM));
    HWS_REQUIRE(newValues != NULL);
    call.buffers[0].address = (uintptr_t) newValues;
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSparseToDense_bufferSize(cusparseHandle_t handle, cusparseConstSpMatDescr_t matA,
                                                             cusparseDnMatDescr_t matB, cusparseSparseToDenseAlg_t alg,
                                                             size_t *bufferSize) {
    CALL(SPARSE_TO_DENSE);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matB, HWS_SPARSE_DN_MAT));
    call.operation.alg = (int32_t) alg;
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseSparseToDense(cusparseHandle_t handle, cusparseConstSpMatDescr_t matA,
                                                  cusparseDnMatDescr_t matB, cusparseSparseToDenseAlg_t alg,
                                                  void *externalBuffer) {
    CALL(SPARSE_TO_DENSE);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_SP_MAT));
    HWS_TRY(take(&call.c, matB, HWS_SPARSE_DN_MAT));
    call.operation.alg = (int32_t) alg;
    call.buffers[0].address = (uintptr_t) externalBuffer;
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseDenseToSparse_bufferSize(cusparseHandle_t handle, cusparseConstDnMatDescr_t matA,
                                                             cusparseSpMatDescr_t matB, cusparseDenseToSparseAlg_t alg,
                                                             size_t *bufferSize) {
    CALL(DENSE_TO_SPARSE_ANALYSIS);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matB, HWS_SPARSE_SP_MAT));
    call.operation.alg = (int32_t) alg;
    return ask(&call, bufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseDenseToSparse_convert(cusparseHandle_t handle, cusparseConstDnMatDescr_t matA,
                                                          cusparseSpMatDescr_t matB, cusparseDenseToSparseAlg_t alg,
                                                          void *externalBuffer) {
    CALL(DENSE_TO_SPARSE_CONVERT);
    HWS_TRY(take(&call.a, matA, HWS_SPARSE_DN_MAT));
    HWS_TRY(take(&call.c, matB, HWS_SPARSE_SP_MAT));
    call.operation.alg = (int32_t) alg;
    call.buffers[0].address = (uintptr_t) externalBuffer;
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMM_copy(cusparseHandle_t handle, cusparseOperation_t opA,
                                                cusparseOperation_t opB, const void *alpha,
                                                cusparseConstSpMatDescr_t matA, cusparseConstSpMatDescr_t matB,
                                                const void *beta, cusparseSpMatDescr_t matC, cudaDataType computeType,
                                                cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t spgemmDescr) {
    CALL(SPGEMM_COPY);
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
    return run(&call);
}

HWS_EXPORT cusparseStatus_t cusparseSpGEMMreuse_compute(cusparseHandle_t handle, cusparseOperation_t opA,
                                                        cusparseOperation_t opB, const void *alpha,
                                                        cusparseConstSpMatDescr_t matA, cusparseConstSpMatDescr_t matB,
                                                        const void *beta, cusparseSpMatDescr_t matC,
                                                        cudaDataType computeType, cusparseSpGEMMAlg_t alg,
                                                        cusparseSpGEMMDescr_t spgemmDescr) {
    CALL(SPGEMM_REUSE_COMPUTE);
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
    return run(&call);
}

/* The matrix with structure: pruning, checks, and compression. */
#include "hws_cusparselt.h"

#include "hws_cusparselt_calls.h"

/* Sends work on a matrix with structure. `algorithm` is that of a plan; NULL without one. */
static cusparseStatus_t change(HwsSltHandle handle, const hws_slt_product_t *product, const HwsSltAlgorithm *algorithm,
                               const HwsSltWork *work, const void *input, const void *output, const void *buffer,
                               CUstream stream) {
    static const HwsSltAlgorithm none;
    HWS_ENTER();
    HWS_REQUIRE(input != NULL && output != NULL);
    HWS_NEED(hws_math_may_issue(stream) == CUDA_SUCCESS, CUSPARSE_STATUS_EXECUTION_FAILED);
    HwsSltTarget target = {.handle = (uintptr_t) handle, .streams = {(uintptr_t) stream}, .streamCount = 1};
    const HwsSltMatrix *matrices = product->matrices;
    return hws_call_hwsSltChange(&target, &product->matmul, &matrices[0], &matrices[1], &matrices[2], &matrices[3],
                                 algorithm == NULL ? &none : algorithm, work, input, output, buffer);
}

/* The same for a matrix alone. */
static cusparseStatus_t change_matrix(HwsSltHandle handle, const hws_slt_kept_matrix_t *matrix, const HwsSltWork *work,
                                      const void *input, const void *output, const void *buffer, CUstream stream) {
    HWS_REQUIRE(matrix->content.isStructured != 0);
    hws_slt_product_t product = {.matrices = {matrix->content}};
    return change(handle, &product, NULL, work, input, output, buffer, stream);
}

HWS_EXPORT cusparseStatus_t cusparseLtSpMMAPrune(const cusparseLtHandle_t *handle,
                                                 const cusparseLtMatmulDescriptor_t *matmulDescr, const void *d_in,
                                                 void *d_out, cusparseLtPruneAlg_t pruneAlg, CUstream stream) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HwsSltWork work = {.function = HWS_SLT_PRUNE, .pruneAlg = (int32_t) pruneAlg};
    return change(id, &HWS_MATMUL(matmulDescr)->product, NULL, &work, d_in, d_out, NULL, stream);
}

HWS_EXPORT cusparseStatus_t cusparseLtSpMMAPrune2(const cusparseLtHandle_t *handle,
                                                  const cusparseLtMatDescriptor_t *sparseMatDescr, int isSparseA,
                                                  cusparseOperation_t op, const void *d_in, void *d_out,
                                                  cusparseLtPruneAlg_t pruneAlg, CUstream stream) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HwsSltWork work = {
        .function = HWS_SLT_PRUNE2, .isSparseA = isSparseA, .op = (int32_t) op, .pruneAlg = (int32_t) pruneAlg};
    return change_matrix(id, HWS_MATRIX(sparseMatDescr), &work, d_in, d_out, NULL, stream);
}

/* As natively, the result is a number on the device. */
HWS_EXPORT cusparseStatus_t cusparseLtSpMMAPruneCheck(const cusparseLtHandle_t *handle,
                                                      const cusparseLtMatmulDescriptor_t *matmulDescr, const void *d_in,
                                                      int *valid, CUstream stream) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HwsSltWork work = {.function = HWS_SLT_CHECK};
    return change(id, &HWS_MATMUL(matmulDescr)->product, NULL, &work, d_in, valid, NULL, stream);
}

HWS_EXPORT cusparseStatus_t cusparseLtSpMMAPruneCheck2(const cusparseLtHandle_t *handle,
                                                       const cusparseLtMatDescriptor_t *sparseMatDescr, int isSparseA,
                                                       cusparseOperation_t op, const void *d_in, int *d_valid,
                                                       CUstream stream) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HwsSltWork work = {.function = HWS_SLT_CHECK2, .isSparseA = isSparseA, .op = (int32_t) op};
    return change_matrix(id, HWS_MATRIX(sparseMatDescr), &work, d_in, d_valid, NULL, stream);
}

/* Returns the sizes of what the library has made of a content. */
static cusparseStatus_t sizes(const HwsSltFacts *facts, size_t *compressed, size_t *buffer) {
    HWS_REQUIRE(compressed != NULL && buffer != NULL);
    HWS_TRY((cusparseStatus_t) facts->compressedStatus);
    *compressed = facts->compressedBytes;
    *buffer = facts->compressBufferBytes;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtSpMMACompressedSize(const cusparseLtHandle_t *handle,
                                                          const cusparseLtMatmulPlan_t *plan, size_t *compressedSize,
                                                          size_t *compressedBufferSize) {
    (void) HWS_HANDLE(handle);
    return sizes(&HWS_PLAN(plan)->facts, compressedSize, compressedBufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseLtSpMMACompressedSize2(const cusparseLtHandle_t *handle,
                                                           const cusparseLtMatDescriptor_t *sparseMatDescr,
                                                           size_t *compressedSize, size_t *compressedBufferSize) {
    HwsSltHandle id = HWS_HANDLE(handle);
    const hws_slt_kept_matrix_t *kept = HWS_MATRIX(sparseMatDescr);
    HWS_REQUIRE(kept->content.isStructured != 0);
    HwsSltFacts facts;
    HWS_TRY(hws_slt_make(id, HWS_SLT_MATRIX, NULL, &kept->content, NULL, &facts)); /* also with its batches */
    return sizes(&facts, compressedSize, compressedBufferSize);
}

HWS_EXPORT cusparseStatus_t cusparseLtSpMMACompress(const cusparseLtHandle_t *handle,
                                                    const cusparseLtMatmulPlan_t *plan, const void *d_dense,
                                                    void *d_compressed, void *d_compressed_buffer, CUstream stream) {
    HwsSltHandle id = HWS_HANDLE(handle);
    const hws_slt_kept_plan_t *kept = HWS_PLAN(plan);
    HwsSltWork work = {.function = HWS_SLT_COMPRESS};
    hws_slt_product_t product = hws_slt_product(kept);
    return change(id, &product, &kept->algorithm, &work, d_dense, d_compressed, d_compressed_buffer, stream);
}

HWS_EXPORT cusparseStatus_t cusparseLtSpMMACompress2(const cusparseLtHandle_t *handle,
                                                     const cusparseLtMatDescriptor_t *sparseMatDescr, int isSparseA,
                                                     cusparseOperation_t op, const void *d_dense, void *d_compressed,
                                                     void *d_compressed_buffer, CUstream stream) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HwsSltWork work = {.function = HWS_SLT_COMPRESS2, .isSparseA = isSparseA, .op = (int32_t) op};
    return change_matrix(id, HWS_MATRIX(sparseMatDescr), &work, d_dense, d_compressed, d_compressed_buffer, stream);
}

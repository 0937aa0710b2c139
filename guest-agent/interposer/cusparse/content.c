/* What programs read and change in descriptors. */
#include "hws_cusparse.h"

/* The content of a descriptor; leaves the calling function for one of another kind. */
#define CONTENT(descriptor, kind)                                                                                      \
    (__extension__({                                                                                                   \
        HwsSparseContent *hws_found = hws_sparse_content((descriptor), (kind));                                        \
        HWS_REQUIRE(hws_found != NULL);                                                                                \
        hws_found;                                                                                                     \
    }))

/* The content of a sparse matrix of a format. */
#define FORMAT(descriptor, wanted)                                                                                     \
    (__extension__({                                                                                                   \
        HwsSparseContent *hws_matrix = CONTENT(descriptor, HWS_SPARSE_SP_MAT);                                         \
        HWS_REQUIRE(hws_matrix->format == (int32_t) (wanted));                                                         \
        hws_matrix;                                                                                                    \
    }))

/* Rows or columns: BSR counts blocks. */
static int64_t size_of(int32_t format, int64_t count, int64_t block) {
    return format == CUSPARSE_FORMAT_BSR ? count * block : count;
}

#define GIVE(target, value)                                                                                            \
    do {                                                                                                               \
        HWS_REQUIRE((target) != NULL);                                                                                 \
        *(target) = (value);                                                                                           \
    } while (0)

HWS_EXPORT cusparseStatus_t cusparseBlockedEllGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols,
                                                  int64_t *ellBlockSize, int64_t *ellCols, void **ellColInd,
                                                  void **ellValue, cusparseIndexType_t *ellIdxType,
                                                  cusparseIndexBase_t *idxBase, cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_BLOCKED_ELL);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(ellBlockSize, content->extent);
    GIVE(ellCols, content->extent2);
    GIVE(ellColInd, (void *) (uintptr_t) content->indices);
    GIVE(ellValue, (void *) (uintptr_t) content->values);
    GIVE(ellIdxType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseBsrSetStridedBatch(cusparseSpMatDescr_t spMatDescr, int batchCount,
                                                       int64_t offsetsBatchStride, int64_t columnsBatchStride,
                                                       int64_t ValuesBatchStride) {
    HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_BSR);
    HWS_REQUIRE(batchCount > 0 && offsetsBatchStride >= 0 && columnsBatchStride >= 0 && ValuesBatchStride >= 0);
    content->batches = batchCount;
    content->stride = offsetsBatchStride;
    content->stride2 = columnsBatchStride;
    content->stride3 = ValuesBatchStride;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstBlockedEllGet(cusparseConstSpMatDescr_t spMatDescr, int64_t *rows,
                                                       int64_t *cols, int64_t *ellBlockSize, int64_t *ellCols,
                                                       const void **ellColInd, const void **ellValue,
                                                       cusparseIndexType_t *ellIdxType, cusparseIndexBase_t *idxBase,
                                                       cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_BLOCKED_ELL);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(ellBlockSize, content->extent);
    GIVE(ellCols, content->extent2);
    GIVE(ellColInd, (const void *) (uintptr_t) content->indices);
    GIVE(ellValue, (const void *) (uintptr_t) content->values);
    GIVE(ellIdxType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstCooGet(cusparseConstSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols,
                                                int64_t *nnz, const void **cooRowInd, const void **cooColInd,
                                                const void **cooValues, cusparseIndexType_t *idxType,
                                                cusparseIndexBase_t *idxBase, cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_COO);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(nnz, content->nnz);
    GIVE(cooRowInd, (const void *) (uintptr_t) content->offsets);
    GIVE(cooColInd, (const void *) (uintptr_t) content->indices);
    GIVE(cooValues, (const void *) (uintptr_t) content->values);
    GIVE(idxType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstCscGet(cusparseConstSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols,
                                                int64_t *nnz, const void **cscColOffsets, const void **cscRowInd,
                                                const void **cscValues, cusparseIndexType_t *cscColOffsetsType,
                                                cusparseIndexType_t *cscRowIndType, cusparseIndexBase_t *idxBase,
                                                cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_CSC);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(nnz, content->nnz);
    GIVE(cscColOffsets, (const void *) (uintptr_t) content->offsets);
    GIVE(cscRowInd, (const void *) (uintptr_t) content->indices);
    GIVE(cscValues, (const void *) (uintptr_t) content->values);
    GIVE(cscColOffsetsType, (cusparseIndexType_t) content->offsetType);
    GIVE(cscRowIndType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstCsrGet(cusparseConstSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols,
                                                int64_t *nnz, const void **csrRowOffsets, const void **csrColInd,
                                                const void **csrValues, cusparseIndexType_t *csrRowOffsetsType,
                                                cusparseIndexType_t *csrColIndType, cusparseIndexBase_t *idxBase,
                                                cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_CSR);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(nnz, content->nnz);
    GIVE(csrRowOffsets, (const void *) (uintptr_t) content->offsets);
    GIVE(csrColInd, (const void *) (uintptr_t) content->indices);
    GIVE(csrValues, (const void *) (uintptr_t) content->values);
    GIVE(csrRowOffsetsType, (cusparseIndexType_t) content->offsetType);
    GIVE(csrColIndType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstDnMatGet(cusparseConstDnMatDescr_t dnMatDescr, int64_t *rows, int64_t *cols,
                                                  int64_t *ld, const void **values, cudaDataType *type_,
                                                  cusparseOrder_t *order) {
    const HwsSparseContent *content = CONTENT(dnMatDescr, HWS_SPARSE_DN_MAT);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(ld, content->extent);
    GIVE(values, (const void *) (uintptr_t) content->values);
    GIVE(type_, (cudaDataType) content->valueType);
    GIVE(order, (cusparseOrder_t) content->order);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstDnMatGetValues(cusparseConstDnMatDescr_t dnMatDescr, const void **values) {
    const HwsSparseContent *content = CONTENT(dnMatDescr, HWS_SPARSE_DN_MAT);
    GIVE(values, (const void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstDnVecGet(cusparseConstDnVecDescr_t dnVecDescr, int64_t *size,
                                                  const void **values, cudaDataType *valueType) {
    const HwsSparseContent *content = CONTENT(dnVecDescr, HWS_SPARSE_DN_VEC);
    GIVE(size, content->rows);
    GIVE(values, (const void *) (uintptr_t) content->values);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstDnVecGetValues(cusparseConstDnVecDescr_t dnVecDescr, const void **values) {
    const HwsSparseContent *content = CONTENT(dnVecDescr, HWS_SPARSE_DN_VEC);
    GIVE(values, (const void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstSpMatGetValues(cusparseConstSpMatDescr_t spMatDescr, const void **values) {
    const HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    GIVE(values, (const void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstSpVecGet(cusparseConstSpVecDescr_t spVecDescr, int64_t *size, int64_t *nnz,
                                                  const void **indices, const void **values,
                                                  cusparseIndexType_t *idxType, cusparseIndexBase_t *idxBase,
                                                  cudaDataType *valueType) {
    const HwsSparseContent *content = CONTENT(spVecDescr, HWS_SPARSE_SP_VEC);
    GIVE(size, content->rows);
    GIVE(nnz, content->nnz);
    GIVE(indices, (const void *) (uintptr_t) content->indices);
    GIVE(values, (const void *) (uintptr_t) content->values);
    GIVE(idxType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseConstSpVecGetValues(cusparseConstSpVecDescr_t spVecDescr, const void **values) {
    const HwsSparseContent *content = CONTENT(spVecDescr, HWS_SPARSE_SP_VEC);
    GIVE(values, (const void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCooGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols, int64_t *nnz,
                                           void **cooRowInd, void **cooColInd, void **cooValues,
                                           cusparseIndexType_t *idxType, cusparseIndexBase_t *idxBase,
                                           cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_COO);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(nnz, content->nnz);
    GIVE(cooRowInd, (void *) (uintptr_t) content->offsets);
    GIVE(cooColInd, (void *) (uintptr_t) content->indices);
    GIVE(cooValues, (void *) (uintptr_t) content->values);
    GIVE(idxType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCooSetPointers(cusparseSpMatDescr_t spMatDescr, void *cooRows, void *cooColumns,
                                                   void *cooValues) {
    HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_COO);
    content->offsets = (uintptr_t) cooRows;
    content->indices = (uintptr_t) cooColumns;
    content->values = (uintptr_t) cooValues;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCooSetStridedBatch(cusparseSpMatDescr_t spMatDescr, int batchCount,
                                                       int64_t batchStride) {
    HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_COO);
    HWS_REQUIRE(batchCount > 0 && batchStride >= 0);
    content->batches = batchCount;
    content->stride = batchStride;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCscGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols, int64_t *nnz,
                                           void **cscColOffsets, void **cscRowInd, void **cscValues,
                                           cusparseIndexType_t *cscColOffsetsType, cusparseIndexType_t *cscRowIndType,
                                           cusparseIndexBase_t *idxBase, cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_CSC);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(nnz, content->nnz);
    GIVE(cscColOffsets, (void *) (uintptr_t) content->offsets);
    GIVE(cscRowInd, (void *) (uintptr_t) content->indices);
    GIVE(cscValues, (void *) (uintptr_t) content->values);
    GIVE(cscColOffsetsType, (cusparseIndexType_t) content->offsetType);
    GIVE(cscRowIndType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCscSetPointers(cusparseSpMatDescr_t spMatDescr, void *cscColOffsets,
                                                   void *cscRowInd, void *cscValues) {
    HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_CSC);
    content->offsets = (uintptr_t) cscColOffsets;
    content->indices = (uintptr_t) cscRowInd;
    content->values = (uintptr_t) cscValues;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCsrGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols, int64_t *nnz,
                                           void **csrRowOffsets, void **csrColInd, void **csrValues,
                                           cusparseIndexType_t *csrRowOffsetsType, cusparseIndexType_t *csrColIndType,
                                           cusparseIndexBase_t *idxBase, cudaDataType *valueType) {
    const HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_CSR);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(nnz, content->nnz);
    GIVE(csrRowOffsets, (void *) (uintptr_t) content->offsets);
    GIVE(csrColInd, (void *) (uintptr_t) content->indices);
    GIVE(csrValues, (void *) (uintptr_t) content->values);
    GIVE(csrRowOffsetsType, (cusparseIndexType_t) content->offsetType);
    GIVE(csrColIndType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t spMatDescr, void *csrRowOffsets,
                                                   void *csrColInd, void *csrValues) {
    HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_CSR);
    content->offsets = (uintptr_t) csrRowOffsets;
    content->indices = (uintptr_t) csrColInd;
    content->values = (uintptr_t) csrValues;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseCsrSetStridedBatch(cusparseSpMatDescr_t spMatDescr, int batchCount,
                                                       int64_t offsetsBatchStride, int64_t columnsValuesBatchStride) {
    HwsSparseContent *content = FORMAT(spMatDescr, CUSPARSE_FORMAT_CSR);
    HWS_REQUIRE(batchCount > 0 && offsetsBatchStride >= 0 && columnsValuesBatchStride >= 0);
    content->batches = batchCount;
    content->stride = offsetsBatchStride;
    content->stride2 = columnsValuesBatchStride;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnMatGet(cusparseDnMatDescr_t dnMatDescr, int64_t *rows, int64_t *cols, int64_t *ld,
                                             void **values, cudaDataType *type_, cusparseOrder_t *order) {
    const HwsSparseContent *content = CONTENT(dnMatDescr, HWS_SPARSE_DN_MAT);
    GIVE(rows, content->rows);
    GIVE(cols, content->cols);
    GIVE(ld, content->extent);
    GIVE(values, (void *) (uintptr_t) content->values);
    GIVE(type_, (cudaDataType) content->valueType);
    GIVE(order, (cusparseOrder_t) content->order);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnMatGetStridedBatch(cusparseConstDnMatDescr_t dnMatDescr, int *batchCount,
                                                         int64_t *batchStride) {
    const HwsSparseContent *content = CONTENT(dnMatDescr, HWS_SPARSE_DN_MAT);
    GIVE(batchCount, content->batches);
    GIVE(batchStride, content->stride);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnMatGetValues(cusparseDnMatDescr_t dnMatDescr, void **values) {
    const HwsSparseContent *content = CONTENT(dnMatDescr, HWS_SPARSE_DN_MAT);
    GIVE(values, (void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t dnMatDescr, int batchCount,
                                                         int64_t batchStride) {
    HwsSparseContent *content = CONTENT(dnMatDescr, HWS_SPARSE_DN_MAT);
    HWS_REQUIRE(batchCount > 0 && batchStride >= 0);
    content->batches = batchCount;
    content->stride = batchStride;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t dnMatDescr, void *values) {
    HwsSparseContent *content = CONTENT(dnMatDescr, HWS_SPARSE_DN_MAT);
    content->values = (uintptr_t) values;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnVecGet(cusparseDnVecDescr_t dnVecDescr, int64_t *size, void **values,
                                             cudaDataType *valueType) {
    const HwsSparseContent *content = CONTENT(dnVecDescr, HWS_SPARSE_DN_VEC);
    GIVE(size, content->rows);
    GIVE(values, (void *) (uintptr_t) content->values);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnVecGetValues(cusparseDnVecDescr_t dnVecDescr, void **values) {
    const HwsSparseContent *content = CONTENT(dnVecDescr, HWS_SPARSE_DN_VEC);
    GIVE(values, (void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t dnVecDescr, void *values) {
    HwsSparseContent *content = CONTENT(dnVecDescr, HWS_SPARSE_DN_VEC);
    content->values = (uintptr_t) values;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatGetFormat(cusparseConstSpMatDescr_t spMatDescr, cusparseFormat_t *format) {
    const HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    GIVE(format, (cusparseFormat_t) content->format);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t spMatDescr,
                                                      cusparseIndexBase_t *idxBase) {
    const HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols,
                                                 int64_t *nnz) {
    const HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    GIVE(rows, size_of(content->format, content->rows, content->extent));
    GIVE(cols, size_of(content->format, content->cols, content->extent2));
    GIVE(nnz, content->nnz);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatGetStridedBatch(cusparseConstSpMatDescr_t spMatDescr, int *batchCount) {
    const HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    GIVE(batchCount, content->batches);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatGetValues(cusparseSpMatDescr_t spMatDescr, void **values) {
    const HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    GIVE(values, (void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t spMatDescr, void *values) {
    HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    content->values = (uintptr_t) values;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpVecGet(cusparseSpVecDescr_t spVecDescr, int64_t *size, int64_t *nnz,
                                             void **indices, void **values, cusparseIndexType_t *idxType,
                                             cusparseIndexBase_t *idxBase, cudaDataType *valueType) {
    const HwsSparseContent *content = CONTENT(spVecDescr, HWS_SPARSE_SP_VEC);
    GIVE(size, content->rows);
    GIVE(nnz, content->nnz);
    GIVE(indices, (void *) (uintptr_t) content->indices);
    GIVE(values, (void *) (uintptr_t) content->values);
    GIVE(idxType, (cusparseIndexType_t) content->indexType);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    GIVE(valueType, (cudaDataType) content->valueType);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpVecGetIndexBase(cusparseConstSpVecDescr_t spVecDescr,
                                                      cusparseIndexBase_t *idxBase) {
    const HwsSparseContent *content = CONTENT(spVecDescr, HWS_SPARSE_SP_VEC);
    GIVE(idxBase, (cusparseIndexBase_t) content->indexBase);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpVecGetValues(cusparseSpVecDescr_t spVecDescr, void **values) {
    const HwsSparseContent *content = CONTENT(spVecDescr, HWS_SPARSE_SP_VEC);
    GIVE(values, (void *) (uintptr_t) content->values);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpVecSetValues(cusparseSpVecDescr_t spVecDescr, void *values) {
    HwsSparseContent *content = CONTENT(spVecDescr, HWS_SPARSE_SP_VEC);
    content->values = (uintptr_t) values;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t spMatDescr,
                                                      cusparseSpMatAttribute_t attribute, void *data, size_t dataSize) {
    const HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    HWS_REQUIRE(data != NULL && dataSize == sizeof(int));
    HWS_REQUIRE(attribute == CUSPARSE_SPMAT_FILL_MODE || attribute == CUSPARSE_SPMAT_DIAG_TYPE);
    int set = attribute == CUSPARSE_SPMAT_FILL_MODE ? content->fillMode : content->diagType;
    int value = set == 0 ? 0 : set - 1;
    memcpy(data, &value, sizeof value);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t spMatDescr,
                                                      cusparseSpMatAttribute_t attribute, void *data, size_t dataSize) {
    HwsSparseContent *content = CONTENT(spMatDescr, HWS_SPARSE_SP_MAT);
    HWS_REQUIRE(data != NULL && dataSize == sizeof(int));
    HWS_REQUIRE(attribute == CUSPARSE_SPMAT_FILL_MODE || attribute == CUSPARSE_SPMAT_DIAG_TYPE);
    int value;
    memcpy(&value, data, sizeof value);
    HWS_REQUIRE(value == 0 || value == 1); /* both enumerations have two values */
    *(attribute == CUSPARSE_SPMAT_FILL_MODE ? &content->fillMode : &content->diagType) = value + 1;
    return CUSPARSE_STATUS_SUCCESS;
}

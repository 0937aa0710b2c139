/* Descriptors: objects of the guest, which hold their content. */
#include "hws_cusparse.h"

#include <stdlib.h>

/* ---- vectors and matrices of the generic functions ---- */

static bool is_index(cusparseIndexType_t type) {
    return type >= CUSPARSE_INDEX_16U && type <= CUSPARSE_INDEX_64I;
}

static bool is_base(cusparseIndexBase_t base) {
    return base == CUSPARSE_INDEX_BASE_ZERO || base == CUSPARSE_INDEX_BASE_ONE;
}

static bool is_order(cusparseOrder_t order) {
    return order == CUSPARSE_ORDER_COL || order == CUSPARSE_ORDER_ROW;
}

/* Makes a descriptor with a content; *descriptor_p is C's pointer to it. */
static cusparseStatus_t make(void *descriptor_p, const HwsSparseContent *content) {
    HWS_REQUIRE(descriptor_p != NULL && content->rows >= 0 && content->cols >= 0 && content->nnz >= 0);
    HWS_REQUIRE(content->extent >= 0 && content->extent2 >= 0 && hws_size_element((uint64_t) content->valueType) != 0);
    HwsSparseContent *made = malloc(sizeof *made);
    HWS_NEED(made != NULL, CUSPARSE_STATUS_ALLOC_FAILED);
    *made = *content;
    made->batches = 1;
    memcpy(descriptor_p, &made, sizeof made);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t destroy(const void *descriptor, uint32_t kind) {
    HwsSparseContent *content = hws_sparse_content(descriptor, kind);
    HWS_REQUIRE(content != NULL);
    uint64_t id = content->id;
    content->kind = HWS_SPARSE_NONE;
    free(content);
    return hws_sparse_drop(id);
}

static cusparseStatus_t make_sp_vec(void *descriptor_p, int64_t size, int64_t nnz, const void *indices,
                                    const void *values, cusparseIndexType_t type, cusparseIndexBase_t base,
                                    cudaDataType value_type) {
    HWS_REQUIRE(is_index(type) && is_base(base) && nnz <= size);
    return make(descriptor_p,
                &(HwsSparseContent) {.kind = HWS_SPARSE_SP_VEC,
                                     .rows = size,
                                     .nnz = nnz,
                                     .indices = (uintptr_t) indices,
                                     .values = (uintptr_t) values,
                                     .indexType = (int32_t) type,
                                     .indexBase = (int32_t) base,
                                     .valueType = (int32_t) value_type});
}

static cusparseStatus_t make_dn_vec(void *descriptor_p, int64_t size, const void *values, cudaDataType value_type) {
    return make(
        descriptor_p,
        &(HwsSparseContent) {
            .kind = HWS_SPARSE_DN_VEC, .rows = size, .values = (uintptr_t) values, .valueType = (int32_t) value_type});
}

static cusparseStatus_t make_dn_mat(void *descriptor_p, int64_t rows, int64_t cols, int64_t ld, const void *values,
                                    cudaDataType value_type, cusparseOrder_t order) {
    HWS_REQUIRE(is_order(order) && ld >= (order == CUSPARSE_ORDER_COL ? rows : cols));
    return make(descriptor_p,
                &(HwsSparseContent) {.kind = HWS_SPARSE_DN_MAT,
                                     .rows = rows,
                                     .cols = cols,
                                     .extent = ld,
                                     .values = (uintptr_t) values,
                                     .order = (int32_t) order,
                                     .valueType = (int32_t) value_type});
}

/* The arguments that all sparse formats have; the others are those of the content. */
static cusparseStatus_t make_sp_mat(void *descriptor_p, HwsSparseContent content, const void *offsets,
                                    const void *indices, const void *values, cusparseIndexType_t offset_type,
                                    cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType value_type) {
    HWS_REQUIRE(is_index(offset_type) && is_index(index_type) && is_base(base));
    content.kind = HWS_SPARSE_SP_MAT;
    content.offsets = (uintptr_t) offsets;
    content.indices = (uintptr_t) indices;
    content.values = (uintptr_t) values;
    content.offsetType = (int32_t) offset_type;
    content.indexType = (int32_t) index_type;
    content.indexBase = (int32_t) base;
    content.valueType = (int32_t) value_type;
    return make(descriptor_p, &content);
}

/* Each function has a form for constant memory. */
#define CREATE_SP_VEC(prefix, data)                                                                                    \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##SpVec(                                                         \
        cusparse##prefix##SpVecDescr_t *spVecDescr, int64_t size, int64_t nnz, data *indices, data *values,            \
        cusparseIndexType_t idxType, cusparseIndexBase_t idxBase, cudaDataType valueType) {                            \
        return make_sp_vec(spVecDescr, size, nnz, indices, values, idxType, idxBase, valueType);                       \
    }
#define CREATE_DN_VEC(prefix, data)                                                                                    \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##DnVec(cusparse##prefix##DnVecDescr_t *dnVecDescr,              \
                                                              int64_t size, data *values, cudaDataType valueType) {    \
        return make_dn_vec(dnVecDescr, size, values, valueType);                                                       \
    }
#define CREATE_DN_MAT(prefix, data)                                                                                    \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##DnMat(cusparse##prefix##DnMatDescr_t *dnMatDescr,              \
                                                              int64_t rows, int64_t cols, int64_t ld, data *values,    \
                                                              cudaDataType valueType, cusparseOrder_t order) {         \
        return make_dn_mat(dnMatDescr, rows, cols, ld, values, valueType, order);                                      \
    }
#define CREATE_CSR(prefix, data)                                                                                       \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##Csr(                                                           \
        cusparse##prefix##SpMatDescr_t *spMatDescr, int64_t rows, int64_t cols, int64_t nnz, data *csrRowOffsets,      \
        data *csrColInd, data *csrValues, cusparseIndexType_t csrRowOffsetsType, cusparseIndexType_t csrColIndType,    \
        cusparseIndexBase_t idxBase, cudaDataType valueType) {                                                         \
        HwsSparseContent content = {.format = CUSPARSE_FORMAT_CSR, .rows = rows, .cols = cols, .nnz = nnz};            \
        return make_sp_mat(spMatDescr, content, csrRowOffsets, csrColInd, csrValues, csrRowOffsetsType, csrColIndType, \
                           idxBase, valueType);                                                                        \
    }
#define CREATE_CSC(prefix, data)                                                                                       \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##Csc(                                                           \
        cusparse##prefix##SpMatDescr_t *spMatDescr, int64_t rows, int64_t cols, int64_t nnz, data *cscColOffsets,      \
        data *cscRowInd, data *cscValues, cusparseIndexType_t cscColOffsetsType, cusparseIndexType_t cscRowIndType,    \
        cusparseIndexBase_t idxBase, cudaDataType valueType) {                                                         \
        HwsSparseContent content = {.format = CUSPARSE_FORMAT_CSC, .rows = rows, .cols = cols, .nnz = nnz};            \
        return make_sp_mat(spMatDescr, content, cscColOffsets, cscRowInd, cscValues, cscColOffsetsType, cscRowIndType, \
                           idxBase, valueType);                                                                        \
    }
#define CREATE_COO(prefix, data)                                                                                       \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##Coo(                                                           \
        cusparse##prefix##SpMatDescr_t *spMatDescr, int64_t rows, int64_t cols, int64_t nnz, data *cooRowInd,          \
        data *cooColInd, data *cooValues, cusparseIndexType_t cooIdxType, cusparseIndexBase_t idxBase,                 \
        cudaDataType valueType) {                                                                                      \
        HwsSparseContent content = {.format = CUSPARSE_FORMAT_COO, .rows = rows, .cols = cols, .nnz = nnz};            \
        return make_sp_mat(spMatDescr, content, cooRowInd, cooColInd, cooValues, cooIdxType, cooIdxType, idxBase,      \
                           valueType);                                                                                 \
    }
#define CREATE_BSR(prefix, data, block_rows, block_cols)                                                               \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##Bsr(                                                           \
        cusparse##prefix##SpMatDescr_t *spMatDescr, int64_t brows, int64_t bcols, int64_t bnnz, int64_t block_rows,    \
        int64_t block_cols, data *bsrRowOffsets, data *bsrColInd, data *bsrValues,                                     \
        cusparseIndexType_t bsrRowOffsetsType, cusparseIndexType_t bsrColIndType, cusparseIndexBase_t idxBase,         \
        cudaDataType valueType, cusparseOrder_t order) {                                                               \
        HWS_REQUIRE(is_order(order) && block_rows > 0 && block_cols > 0);                                              \
        HwsSparseContent content = {.format = CUSPARSE_FORMAT_BSR,                                                     \
                                    .rows = brows,                                                                     \
                                    .cols = bcols,                                                                     \
                                    .nnz = bnnz,                                                                       \
                                    .extent = block_rows,                                                              \
                                    .extent2 = block_cols,                                                             \
                                    .order = (int32_t) order};                                                         \
        return make_sp_mat(spMatDescr, content, bsrRowOffsets, bsrColInd, bsrValues, bsrRowOffsetsType, bsrColIndType, \
                           idxBase, valueType);                                                                        \
    }
#define CREATE_BLOCKED_ELL(prefix, data)                                                                               \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##BlockedEll(                                                    \
        cusparse##prefix##SpMatDescr_t *spMatDescr, int64_t rows, int64_t cols, int64_t ellBlockSize, int64_t ellCols, \
        data *ellColInd, data *ellValue, cusparseIndexType_t ellIdxType, cusparseIndexBase_t idxBase,                  \
        cudaDataType valueType) {                                                                                      \
        HWS_REQUIRE(ellBlockSize > 0);                                                                                 \
        HwsSparseContent content = {.format = CUSPARSE_FORMAT_BLOCKED_ELL,                                             \
                                    .rows = rows,                                                                      \
                                    .cols = cols,                                                                      \
                                    .extent = ellBlockSize,                                                            \
                                    .extent2 = ellCols};                                                               \
        return make_sp_mat(spMatDescr, content, NULL, ellColInd, ellValue, ellIdxType, ellIdxType, idxBase,            \
                           valueType);                                                                                 \
    }
#define CREATE_SLICED_ELL(prefix, data)                                                                                \
    HWS_EXPORT cusparseStatus_t cusparseCreate##prefix##SlicedEll(                                                     \
        cusparse##prefix##SpMatDescr_t *spMatDescr, int64_t rows, int64_t cols, int64_t nnz, int64_t sellValuesSize,   \
        int64_t sliceSize, data *sellSliceOffsets, data *sellColInd, data *sellValues,                                 \
        cusparseIndexType_t sellSliceOffsetsType, cusparseIndexType_t sellColIndType, cusparseIndexBase_t idxBase,     \
        cudaDataType valueType) {                                                                                      \
        HWS_REQUIRE(sliceSize > 0);                                                                                    \
        HwsSparseContent content = {.format = CUSPARSE_FORMAT_SLICED_ELLPACK,                                          \
                                    .rows = rows,                                                                      \
                                    .cols = cols,                                                                      \
                                    .nnz = nnz,                                                                        \
                                    .extent = sellValuesSize,                                                          \
                                    .extent2 = sliceSize};                                                             \
        return make_sp_mat(spMatDescr, content, sellSliceOffsets, sellColInd, sellValues, sellSliceOffsetsType,        \
                           sellColIndType, idxBase, valueType);                                                        \
    }

CREATE_SP_VEC(, void)
CREATE_SP_VEC(Const, const void)
CREATE_DN_VEC(, void)
CREATE_DN_VEC(Const, const void)
CREATE_DN_MAT(, void)
CREATE_DN_MAT(Const, const void)
CREATE_CSR(, void)
CREATE_CSR(Const, const void)
CREATE_CSC(, void)
CREATE_CSC(Const, const void)
CREATE_COO(, void)
CREATE_COO(Const, const void)
CREATE_BSR(, void, rowBlockSize, colBlockSize)
CREATE_BSR(Const, const void, rowBlockDim, colBlockDim)
CREATE_BLOCKED_ELL(, void)
CREATE_BLOCKED_ELL(Const, const void)
CREATE_SLICED_ELL(, void)
CREATE_SLICED_ELL(Const, const void)

HWS_EXPORT cusparseStatus_t cusparseDestroySpVec(cusparseConstSpVecDescr_t spVecDescr) {
    return destroy(spVecDescr, HWS_SPARSE_SP_VEC);
}

HWS_EXPORT cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t dnVecDescr) {
    return destroy(dnVecDescr, HWS_SPARSE_DN_VEC);
}

HWS_EXPORT cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t dnMatDescr) {
    return destroy(dnMatDescr, HWS_SPARSE_DN_MAT);
}

HWS_EXPORT cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t spMatDescr) {
    return destroy(spMatDescr, HWS_SPARSE_SP_MAT);
}

/* ---- descriptors of operations ---- */

static cusparseStatus_t make_state(void *descriptor_p, uint32_t tag) {
    HWS_REQUIRE(descriptor_p != NULL);
    hws_sparse_state_t *state = malloc(sizeof *state);
    HWS_NEED(state != NULL, CUSPARSE_STATUS_ALLOC_FAILED);
    *state = (hws_sparse_state_t) {.tag = tag, .id = hws_sparse_new_id()};
    memcpy(descriptor_p, &state, sizeof state);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t destroy_state(void *descriptor, uint32_t tag) {
    hws_sparse_state_t *state = descriptor;
    HWS_REQUIRE(state != NULL && state->tag == tag);
    uint64_t id = state->id;
    state->tag = 0;
    free(state);
    return hws_sparse_drop(id);
}

#define STATE(name, tag)                                                                                               \
    HWS_EXPORT cusparseStatus_t cusparse##name##_createDescr(cusparse##name##Descr_t *descr) {                         \
        return make_state(descr, tag);                                                                                 \
    }                                                                                                                  \
    HWS_EXPORT cusparseStatus_t cusparse##name##_destroyDescr(cusparse##name##Descr_t descr) {                         \
        return destroy_state(descr, tag);                                                                              \
    }

STATE(SpSV, HWS_SPARSE_STATE_SV)
STATE(SpSM, HWS_SPARSE_STATE_SM)
STATE(SpGEMM, HWS_SPARSE_STATE_GEMM)

/* ---- cusparseMatDescr_t of the older functions ---- */

HWS_EXPORT cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t *descrA) {
    HWS_REQUIRE(descrA != NULL);
    HwsSparseMatDescr *made = calloc(1, sizeof *made);
    HWS_NEED(made != NULL, CUSPARSE_STATUS_ALLOC_FAILED);
    *descrA = (cusparseMatDescr_t) (void *) made;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t descrA) {
    free(descrA);
    return CUSPARSE_STATUS_SUCCESS;
}

#define ATTRIBUTE(name, kind, argument, field, most)                                                                   \
    HWS_EXPORT cusparseStatus_t cusparseSet##name(cusparseMatDescr_t descrA, kind argument) {                          \
        HWS_REQUIRE(descrA != NULL && (uint32_t) argument <= (most));                                                  \
        ((HwsSparseMatDescr *) (void *) descrA)->field = (uint32_t) argument;                                          \
        return CUSPARSE_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    HWS_EXPORT kind cusparseGet##name(cusparseMatDescr_t descrA) {                                                     \
        return descrA == NULL ? (kind) 0 : (kind) ((const HwsSparseMatDescr *) (void *) descrA)->field;                \
    }

ATTRIBUTE(MatType, cusparseMatrixType_t, matrixType, type, CUSPARSE_MATRIX_TYPE_TRIANGULAR)
ATTRIBUTE(MatFillMode, cusparseFillMode_t, fillMode, fillMode, CUSPARSE_FILL_MODE_UPPER)
ATTRIBUTE(MatDiagType, cusparseDiagType_t, diagType, diagType, CUSPARSE_DIAG_TYPE_UNIT)
ATTRIBUTE(MatIndexBase, cusparseIndexBase_t, base, indexBase, CUSPARSE_INDEX_BASE_ONE)

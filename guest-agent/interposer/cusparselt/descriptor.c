/*
 * Descriptors of matrices and products. The library judges a content when a descriptor is initialized, and again with
 * the attributes when a selection or a plan is.
 */
#include "hws_cusparselt.h"

#include "hws_cusparselt_calls.h"

#include <math.h>
#include <string.h>

/* Where an attribute lies in the content, and its bytes; 0 for a number that is no attribute. */
typedef struct attribute {
    uint16_t offset, bytes;
} attribute_t;

#define ATTRIBUTE(type, field) {offsetof(type, field), sizeof(((type *) NULL)->field)}
#define SCALE_MODE(index) {offsetof(HwsSltMatmul, scaleModes[index]), sizeof(int32_t)}

static const attribute_t matrix_attributes[] = {
    [CUSPARSELT_MAT_NUM_BATCHES] = ATTRIBUTE(HwsSltMatrix, numBatches),
    [CUSPARSELT_MAT_BATCH_STRIDE] = ATTRIBUTE(HwsSltMatrix, batchStride),
};

static const attribute_t matmul_attributes[] = {
    [CUSPARSELT_MATMUL_ACTIVATION_RELU] = ATTRIBUTE(HwsSltMatmul, relu),
    [CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND] = ATTRIBUTE(HwsSltMatmul, reluUpperBound),
    [CUSPARSELT_MATMUL_ACTIVATION_RELU_THRESHOLD] = ATTRIBUTE(HwsSltMatmul, reluThreshold),
    [CUSPARSELT_MATMUL_ACTIVATION_GELU] = ATTRIBUTE(HwsSltMatmul, gelu),
    [CUSPARSELT_MATMUL_ACTIVATION_GELU_SCALING] = ATTRIBUTE(HwsSltMatmul, geluScaling),
    [CUSPARSELT_MATMUL_ALPHA_VECTOR_SCALING] = ATTRIBUTE(HwsSltMatmul, alphaVector),
    [CUSPARSELT_MATMUL_BETA_VECTOR_SCALING] = ATTRIBUTE(HwsSltMatmul, betaVector),
    [CUSPARSELT_MATMUL_BIAS_STRIDE] = ATTRIBUTE(HwsSltMatmul, biasStride),
    [CUSPARSELT_MATMUL_BIAS_POINTER] = ATTRIBUTE(HwsSltMatmul, bias),
    [CUSPARSELT_MATMUL_SPARSE_MAT_POINTER] = ATTRIBUTE(HwsSltMatmul, sparseMatrix),
    [CUSPARSELT_MATMUL_A_SCALE_MODE] = SCALE_MODE(0),
    [CUSPARSELT_MATMUL_B_SCALE_MODE] = SCALE_MODE(1),
    [CUSPARSELT_MATMUL_C_SCALE_MODE] = SCALE_MODE(2),
    [CUSPARSELT_MATMUL_D_SCALE_MODE] = SCALE_MODE(3),
    [CUSPARSELT_MATMUL_D_OUT_SCALE_MODE] = SCALE_MODE(4),
    [CUSPARSELT_MATMUL_A_SCALE_POINTER] = ATTRIBUTE(HwsSltMatmul, aScale),
    [CUSPARSELT_MATMUL_B_SCALE_POINTER] = ATTRIBUTE(HwsSltMatmul, bScale),
    [CUSPARSELT_MATMUL_C_SCALE_POINTER] = ATTRIBUTE(HwsSltMatmul, cScale),
    [CUSPARSELT_MATMUL_D_SCALE_POINTER] = ATTRIBUTE(HwsSltMatmul, dScale),
    [CUSPARSELT_MATMUL_D_OUT_SCALE_POINTER] = ATTRIBUTE(HwsSltMatmul, dOutScale),
};

cusparseStatus_t hws_slt_make(HwsSltHandle handle, HwsSltStage stage, const HwsSltMatmul *matmul,
                              const HwsSltMatrix *matrices, const HwsSltAlgorithm *algorithm, HwsSltFacts *facts) {
    static const HwsSltMatmul no_matmul;
    static const HwsSltMatrix no_matrix;
    static const HwsSltAlgorithm no_algorithm;
    HWS_NEED(hws_math_need_context(), CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_ENTER();
    bool whole = stage != HWS_SLT_MATRIX;
    HwsSltOwner owner = {(uintptr_t) handle};
    return hws_call_hwsSltMake(&owner, stage, whole ? matmul : &no_matmul, matrices, whole ? matrices + 1 : &no_matrix,
                               whole ? matrices + 2 : &no_matrix, whole ? matrices + 3 : &no_matrix,
                               stage >= HWS_SLT_SELECTION ? algorithm : &no_algorithm, facts);
}

/* Initializes a matrix descriptor if the library accepts its content. */
static cusparseStatus_t init_matrix(const cusparseLtHandle_t *handle, cusparseLtMatDescriptor_t *descr,
                                    const HwsSltMatrix *content) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HWS_REQUIRE(descr != NULL);
    HwsSltFacts facts;
    HWS_TRY(hws_slt_make(id, HWS_SLT_MATRIX, NULL, content, NULL, &facts));
    hws_slt_kept_matrix_t *kept = (void *) descr->data;
    *kept = (hws_slt_kept_matrix_t) {HWS_SLT_MATRIX_MARK, *content};
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtDenseDescriptorInit(const cusparseLtHandle_t *handle,
                                                          cusparseLtMatDescriptor_t *matDescr, int64_t rows,
                                                          int64_t cols, int64_t ld, uint32_t alignment,
                                                          cudaDataType valueType, cusparseOrder_t order) {
    HwsSltMatrix content = {.rows = rows,
                            .cols = cols,
                            .ld = ld,
                            .type = (int32_t) valueType,
                            .order = (int32_t) order,
                            .alignment = alignment,
                            .numBatches = 1};
    return init_matrix(handle, matDescr, &content);
}

HWS_EXPORT cusparseStatus_t cusparseLtStructuredDescriptorInit(const cusparseLtHandle_t *handle,
                                                               cusparseLtMatDescriptor_t *matDescr, int64_t rows,
                                                               int64_t cols, int64_t ld, uint32_t alignment,
                                                               cudaDataType valueType, cusparseOrder_t order,
                                                               cusparseLtSparsity_t sparsity) {
    HwsSltMatrix content = {.rows = rows,
                            .cols = cols,
                            .ld = ld,
                            .type = (int32_t) valueType,
                            .order = (int32_t) order,
                            .alignment = alignment,
                            .numBatches = 1,
                            .isStructured = 1,
                            .sparsity = (int32_t) sparsity};
    return init_matrix(handle, matDescr, &content);
}

HWS_EXPORT cusparseStatus_t cusparseLtMatDescriptorDestroy(const cusparseLtMatDescriptor_t *matDescr) {
    const hws_slt_kept_matrix_t *kept = HWS_MATRIX(matDescr);
    ((hws_slt_kept_matrix_t *) (uintptr_t) kept)->mark = 0; /* the program has initialized it, so it is no constant */
    return CUSPARSE_STATUS_SUCCESS;
}

/* The attribute with a number; NULL for none, and for a value of another size. */
static const attribute_t *find(const attribute_t *table, size_t count, int number, const void *data, size_t bytes) {
    bool known = number >= 0 && (size_t) number < count && data != NULL && bytes == table[number].bytes;
    return known ? &table[number] : NULL;
}

#define FIND(table, number, data, bytes) find(table, sizeof(table) / sizeof *(table), (int) (number), data, bytes)

HWS_EXPORT cusparseStatus_t cusparseLtMatDescSetAttribute(const cusparseLtHandle_t *handle,
                                                          cusparseLtMatDescriptor_t *matmulDescr,
                                                          cusparseLtMatDescAttribute_t matAttribute, const void *data,
                                                          size_t dataSize) {
    (void) HWS_HANDLE(handle);
    HwsSltMatrix changed = HWS_MATRIX(matmulDescr)->content;
    const attribute_t *attribute = FIND(matrix_attributes, matAttribute, data, dataSize);
    HWS_REQUIRE(attribute != NULL);
    memcpy((char *) &changed + attribute->offset, data, dataSize);
    HWS_REQUIRE(changed.numBatches > 0 && changed.batchStride >= 0);
    ((hws_slt_kept_matrix_t *) (void *) matmulDescr->data)->content = changed;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatDescGetAttribute(const cusparseLtHandle_t *handle,
                                                          const cusparseLtMatDescriptor_t *matmulDescr,
                                                          cusparseLtMatDescAttribute_t matAttribute, void *data,
                                                          size_t dataSize) {
    (void) HWS_HANDLE(handle);
    const hws_slt_kept_matrix_t *kept = HWS_MATRIX(matmulDescr);
    const attribute_t *attribute = FIND(matrix_attributes, matAttribute, data, dataSize);
    HWS_REQUIRE(attribute != NULL);
    memcpy(data, (const char *) &kept->content + attribute->offset, dataSize);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulDescriptorInit(
    const cusparseLtHandle_t *handle, cusparseLtMatmulDescriptor_t *matmulDescr, cusparseOperation_t opA,
    cusparseOperation_t opB, const cusparseLtMatDescriptor_t *matA, const cusparseLtMatDescriptor_t *matB,
    const cusparseLtMatDescriptor_t *matC, const cusparseLtMatDescriptor_t *matD, cusparseComputeType computeType) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HWS_REQUIRE(matmulDescr != NULL);
    hws_slt_product_t product = {.matmul = {.opA = (int32_t) opA,
                                            .opB = (int32_t) opB,
                                            .computeType = (int32_t) computeType,
                                            .reluUpperBound = INFINITY, /* this and the scaling: documented defaults */
                                            .geluScaling = 1},
                                 .matrices = {HWS_MATRIX(matA)->content, HWS_MATRIX(matB)->content,
                                              HWS_MATRIX(matC)->content, HWS_MATRIX(matD)->content}};
    HwsSltFacts facts;
    HWS_TRY(hws_slt_make(id, HWS_SLT_MATMUL, &product.matmul, product.matrices, NULL, &facts));
    hws_slt_kept_matmul_t *kept = (void *) matmulDescr->data;
    *kept = (hws_slt_kept_matmul_t) {HWS_SLT_MATMUL_MARK, hws_slt_next_number(), product};
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulDescSetAttribute(const cusparseLtHandle_t *handle,
                                                             cusparseLtMatmulDescriptor_t *matmulDescr,
                                                             cusparseLtMatmulDescAttribute_t matmulAttribute,
                                                             const void *data, size_t dataSize) {
    (void) HWS_HANDLE(handle);
    HwsSltMatmul changed = HWS_MATMUL(matmulDescr)->product.matmul;
    const attribute_t *attribute = FIND(matmul_attributes, matmulAttribute, data, dataSize);
    HWS_REQUIRE(attribute != NULL);
    memcpy((char *) &changed + attribute->offset, data, dataSize);
    for (size_t i = 0; i < sizeof changed.scaleModes / sizeof *changed.scaleModes; i++) {
        HWS_REQUIRE(changed.scaleModes[i] >= CUSPARSELT_MATMUL_SCALE_NONE
                    && changed.scaleModes[i] <= CUSPARSELT_MATMUL_MATRIX_SCALE_VEC64_UE8M0);
    }
    hws_slt_kept_matmul_t *kept = (void *) matmulDescr->data;
    kept->product.matmul = changed;
    hws_slt_tell_plans((hws_slt_origin_t) {kept->number, (uintptr_t) kept}, &changed);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulDescGetAttribute(const cusparseLtHandle_t *handle,
                                                             const cusparseLtMatmulDescriptor_t *matmulDescr,
                                                             cusparseLtMatmulDescAttribute_t matmulAttribute,
                                                             void *data, size_t dataSize) {
    (void) HWS_HANDLE(handle);
    const hws_slt_kept_matmul_t *kept = HWS_MATMUL(matmulDescr);
    const attribute_t *attribute = FIND(matmul_attributes, matmulAttribute, data, dataSize);
    HWS_REQUIRE(attribute != NULL);
    memcpy(data, (const char *) &kept->product.matmul + attribute->offset, dataSize);
    return CUSPARSE_STATUS_SUCCESS;
}

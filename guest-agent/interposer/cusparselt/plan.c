/* Selections of algorithms, and plans. */
#include "hws_cusparselt.h"

#include <string.h>

HWS_EXPORT cusparseStatus_t cusparseLtMatmulAlgSelectionInit(const cusparseLtHandle_t *handle,
                                                             cusparseLtMatmulAlgSelection_t *algSelection,
                                                             const cusparseLtMatmulDescriptor_t *matmulDescr,
                                                             cusparseLtMatmulAlg_t alg) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HWS_REQUIRE(algSelection != NULL);
    const hws_slt_product_t *product = &HWS_MATMUL(matmulDescr)->product;
    hws_slt_kept_selection_t made = {.mark = HWS_SLT_SELECTION_MARK, .algorithm = {.alg = (int32_t) alg}};
    HWS_TRY(hws_slt_make(id, HWS_SLT_SELECTION, &product->matmul, product->matrices, &made.algorithm, &made.facts));
    made.number = hws_slt_next_number();
    *(hws_slt_kept_selection_t *) (void *) algSelection->data = made;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulAlgSelectionDestroy(const cusparseLtMatmulAlgSelection_t *algSelection) {
    const hws_slt_kept_selection_t *kept = HWS_SELECTION(algSelection);
    ((hws_slt_kept_selection_t *) (uintptr_t) kept)->mark = 0; /* the program has initialized it: it is no constant */
    return CUSPARSE_STATUS_SUCCESS;
}

/* Whether an attribute may get a value. The library judges the value when a plan is initialized. */
static bool may_set(const HwsSltFacts *facts, cusparseLtMatmulAlgAttribute_t attribute, int32_t value) {
    switch (attribute) {
        case CUSPARSELT_MATMUL_ALG_CONFIG_ID:
            return value >= 0 && value < facts->values[CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID];
        case CUSPARSELT_MATMUL_SEARCH_ITERATIONS:
        case CUSPARSELT_MATMUL_SPLIT_K:
            return value > 0;
        case CUSPARSELT_MATMUL_SPLIT_K_MODE:
            return value >= CUSPARSELT_INVALID_MODE && value <= CUSPARSELT_STREAMK;
        case CUSPARSELT_MATMUL_SPLIT_K_BUFFERS:
            return value >= 0;
        case CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID: /* is only read */
        default:
            return false;
    }
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulAlgSetAttribute(const cusparseLtHandle_t *handle,
                                                            cusparseLtMatmulAlgSelection_t *algSelection,
                                                            cusparseLtMatmulAlgAttribute_t attribute, const void *data,
                                                            size_t dataSize) {
    (void) HWS_HANDLE(handle);
    hws_slt_kept_selection_t changed = *HWS_SELECTION(algSelection);
    int32_t value;
    HWS_REQUIRE(data != NULL && dataSize == sizeof value);
    memcpy(&value, data, sizeof value);
    HWS_REQUIRE(may_set(&changed.facts, attribute, value));
    changed.algorithm = hws_slt_algorithm(&changed);
    changed.algorithm.isSet |= 1u << attribute;
    changed.algorithm.values[attribute] = value;
    changed.number = hws_slt_next_number(); /* a search with an earlier plan does not change it any more */
    *(hws_slt_kept_selection_t *) (void *) algSelection->data = changed;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulAlgGetAttribute(const cusparseLtHandle_t *handle,
                                                            const cusparseLtMatmulAlgSelection_t *algSelection,
                                                            cusparseLtMatmulAlgAttribute_t attribute, void *data,
                                                            size_t dataSize) {
    (void) HWS_HANDLE(handle);
    const hws_slt_kept_selection_t *kept = HWS_SELECTION(algSelection);
    HwsSltAlgorithm algorithm = hws_slt_algorithm(kept);
    HWS_REQUIRE(data != NULL && dataSize == sizeof *algorithm.values);
    HWS_REQUIRE(attribute >= CUSPARSELT_MATMUL_ALG_CONFIG_ID && attribute <= CUSPARSELT_MATMUL_SPLIT_K_BUFFERS);
    bool is_set = (algorithm.isSet >> attribute & 1) != 0;
    HWS_NEED(is_set || (kept->facts.hasValues >> attribute & 1) != 0, CUSPARSE_STATUS_NOT_SUPPORTED);
    memcpy(data, is_set ? &algorithm.values[attribute] : &kept->facts.values[attribute], dataSize);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulPlanInit(const cusparseLtHandle_t *handle, cusparseLtMatmulPlan_t *plan,
                                                     const cusparseLtMatmulDescriptor_t *matmulDescr,
                                                     const cusparseLtMatmulAlgSelection_t *algSelection) {
    HwsSltHandle id = HWS_HANDLE(handle);
    HWS_REQUIRE(plan != NULL);
    const hws_slt_kept_matmul_t *matmul = HWS_MATMUL(matmulDescr);
    const hws_slt_kept_selection_t *selection = HWS_SELECTION(algSelection);
    hws_slt_kept_plan_t made = {.mark = HWS_SLT_PLAN_MARK,
                                .descriptor = {matmul->number, (uintptr_t) matmul},
                                .selection = selection->number,
                                .product = matmul->product,
                                .algorithm = hws_slt_algorithm(selection)};
    HWS_TRY(hws_slt_make(id, HWS_SLT_PLAN, &made.product.matmul, made.product.matrices, &made.algorithm, &made.facts));
    HWS_NEED(hws_slt_follow(made.descriptor), CUSPARSE_STATUS_ALLOC_FAILED);
    *(hws_slt_kept_plan_t *) (void *) plan->data = made;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulPlanDestroy(const cusparseLtMatmulPlan_t *plan) {
    const hws_slt_kept_plan_t *kept = HWS_PLAN(plan);
    hws_slt_end_following(kept->descriptor);
    ((hws_slt_kept_plan_t *) (uintptr_t) kept)->mark = 0; /* as that of a selection */
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulGetWorkspace(const cusparseLtHandle_t *handle,
                                                         const cusparseLtMatmulPlan_t *plan, size_t *workspaceSize) {
    (void) HWS_HANDLE(handle);
    const hws_slt_kept_plan_t *kept = HWS_PLAN(plan);
    HWS_REQUIRE(workspaceSize != NULL);
    HWS_TRY((cusparseStatus_t) kept->facts.workspaceStatus);
    *workspaceSize = kept->facts.workspaceBytes;
    return CUSPARSE_STATUS_SUCCESS;
}

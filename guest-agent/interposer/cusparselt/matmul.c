/* Products: a record carries the content of the plan and the numbers behind pointers. */
#include "hws_cusparselt.h"

#include "hws_cusparselt_calls.h"

#include <string.h>

#define MAX_STREAMS (sizeof((HwsSltTarget *) NULL)->streams / sizeof(uint64_t))

/* The arguments that cusparseLtMatmul and cusparseLtMatmulSearch share. */
typedef struct arguments {
    const void *alpha, *a, *b, *beta, *c;
    void *d;
    void *workspace;
    CUstream *streams;
    int32_t stream_count;
} arguments_t;

/* Fills a number, or the address of a vector on the device. */
static void scalar(HwsScalar *scalar, const void *pointer, bool is_vector) {
    memset(scalar, 0, sizeof *scalar);
    scalar->valueBytes = sizeof(float); /* for every type of computation */
    if (is_vector) {
        scalar->onDevice = 1;
        scalar->address = (uintptr_t) pointer;
    } else {
        memcpy(scalar->value, pointer, sizeof(float));
    }
}

static bool is_zero(const HwsScalar *scalar) {
    float value;
    memcpy(&value, scalar->value, sizeof value);
    return !scalar->onDevice && value == 0;
}

/* Checks the streams, and fills the target. A captured call is a node of one stream. */
static cusparseStatus_t aim(const char *function, HwsSltHandle handle, const arguments_t *given, HwsSltTarget *target) {
    const hws_service_t *service = hws_math_service();
    HWS_REQUIRE(given->stream_count >= 0 && (given->streams != NULL || given->stream_count == 0));
    if ((uint32_t) given->stream_count > MAX_STREAMS) {
        return hws_unsupported(function);
    }
    *target = (HwsSltTarget) {.handle = (uintptr_t) handle,
                              .workspace = (uintptr_t) given->workspace,
                              .streamCount = (uint32_t) given->stream_count};
    for (int32_t i = 0; i < given->stream_count; i++) {
        target->streams[i] = (uintptr_t) given->streams[i];
        if (given->stream_count > 1 && service->captures(target->streams[i])) {
            return hws_unsupported(function);
        }
    }
    CUstream first = given->stream_count > 0 ? given->streams[0] : NULL;
    return hws_math_may_issue(first) == CUDA_SUCCESS ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}

/* Checks the arguments, and fills the target and the numbers. */
static cusparseStatus_t prepare(const char *function, HwsSltHandle handle, const HwsSltMatmul *matmul,
                                const arguments_t *given, HwsSltTarget *target, HwsScalar *alpha, HwsScalar *beta) {
    HWS_ENTER();
    HWS_REQUIRE(given->alpha != NULL && given->beta != NULL);
    HWS_REQUIRE(given->a != NULL && given->b != NULL && given->d != NULL);
    scalar(alpha, given->alpha, matmul->alphaVector != 0);
    scalar(beta, given->beta, matmul->betaVector != 0);
    /* Checked here, because calls that differ in the value of beta are of one kind. */
    HWS_REQUIRE(given->c != NULL || is_zero(beta));
    return aim(function, handle, given, target);
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmul(const cusparseLtHandle_t *handle, const cusparseLtMatmulPlan_t *plan,
                                             const void *alpha, const void *d_A, const void *d_B, const void *beta,
                                             const void *d_C, void *d_D, void *workspace, CUstream *streams,
                                             int32_t numStreams) {
    HwsSltHandle id = HWS_HANDLE(handle);
    const hws_slt_kept_plan_t *kept = HWS_PLAN(plan);
    arguments_t given = {alpha, d_A, d_B, beta, d_C, d_D, workspace, streams, numStreams};
    HwsSltTarget target;
    HwsScalar first, second;
    hws_slt_product_t product = hws_slt_product(kept);
    HWS_REQUIRE(workspace != NULL || kept->facts.workspaceBytes == 0);
    HWS_TRY(prepare(__func__, id, &product.matmul, &given, &target, &first, &second));
    const HwsSltMatrix *matrices = product.matrices;
    return hws_call_hwsSltMatmul(&target, &product.matmul, &matrices[0], &matrices[1], &matrices[2], &matrices[3],
                                 &kept->algorithm, &first, &second, d_A, d_B, d_C, d_D);
}

HWS_EXPORT cusparseStatus_t cusparseLtMatmulSearch(const cusparseLtHandle_t *handle, cusparseLtMatmulPlan_t *plan,
                                                   const void *alpha, const void *d_A, const void *d_B,
                                                   const void *beta, const void *d_C, void *d_D, void *workspace,
                                                   CUstream *streams, int32_t numStreams) {
    HwsSltHandle id = HWS_HANDLE(handle);
    hws_slt_kept_plan_t changed = *HWS_PLAN(plan);
    hws_slt_product_t product = hws_slt_product(&changed);
    arguments_t given = {alpha, d_A, d_B, beta, d_C, d_D, workspace, streams, numStreams};
    HwsSltTarget target;
    HwsScalar first, second;
    HWS_TRY(prepare(__func__, id, &product.matmul, &given, &target, &first, &second));
    CUstream stream = numStreams > 0 ? streams[0] : NULL;
    if (hws_math_service()->captures((uintptr_t) stream)) { /* a search measures time */
        return hws_unsupported(__func__);
    }
    const HwsSltMatrix *matrices = product.matrices;
    HwsSltAlgorithm found;
    HwsSltFacts facts;
    HWS_TRY(hws_call_hwsSltSearch(&target, &product.matmul, &matrices[0], &matrices[1], &matrices[2], &matrices[3],
                                  &changed.algorithm, &first, &second, d_A, d_B, d_C, d_D, &found, &facts));
    changed.algorithm = found;
    changed.facts = facts;
    *(hws_slt_kept_plan_t *) (void *) plan->data = changed;
    hws_slt_remember_found(changed.selection, &found);
    return CUSPARSE_STATUS_SUCCESS;
}

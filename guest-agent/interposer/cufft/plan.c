/* Plans. A record carries the arguments of any function that makes one, and the caller waits for the work size. */
#include "hws_cufft.h"

#include "hws_cufft_calls.h"

/* Makes the plan of a handle; `work_size` may be NULL. */
static cufftResult make(cufftHandle handle, const HwsFftPlan *content, size_t *work_size) {
    hws_fft_plan_t *plan = hws_fft_find(handle);
    if (plan == NULL || plan->id != 0) {
        return CUFFT_INVALID_PLAN; /* documented: a handle gets a plan once */
    }
    if (!hws_math_need_context()) {
        return CUFFT_SETUP_FAILED;
    }
    HWS_ENTER();
    uint64_t id = hws_math_service()->handle_new(HWS_KIND_CUFFT);
    if (id == 0) {
        return CUFFT_ALLOC_FAILED;
    }
    unsigned long long bytes = 0;
    cufftResult status =
        hws_call_hwsFftMakePlan((HwsFftPlanId) (uintptr_t) id, content, plan->auto_allocate ? 1 : 0, &bytes);
    if (status != CUFFT_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUFFT, id);
        return status;
    }
    plan->id = id;
    plan->work_size = bytes;
    if (work_size != NULL) {
        *work_size = bytes;
    }
    return CUFFT_SUCCESS;
}

/* Makes a handle and its plan. */
static cufftResult create(cufftHandle *handle, const HwsFftPlan *content) {
    HWS_REQUIRE(handle != NULL);
    cufftHandle created;
    HWS_TRY(hws_fft_create(&created));
    cufftResult status = make(created, content, NULL);
    if (status != CUFFT_SUCCESS) {
        hws_fft_destroy(created);
        return status;
    }
    *handle = created;
    return CUFFT_SUCCESS;
}

HWS_EXPORT cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch) {
    HwsFftPlan content = hws_fft_simple(1, (int[]) {nx}, type, batch);
    return create(plan, &content);
}

HWS_EXPORT cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type) {
    HwsFftPlan content = hws_fft_simple(2, (int[]) {nx, ny}, type, 1);
    return create(plan, &content);
}

HWS_EXPORT cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type) {
    HwsFftPlan content = hws_fft_simple(3, (int[]) {nx, ny, nz}, type, 1);
    return create(plan, &content);
}

HWS_EXPORT cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist,
                                     int *onembed, int ostride, int odist, cufftType type, int batch) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_many(&content, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch));
    return create(plan, &content);
}

HWS_EXPORT cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(1, (int[]) {nx}, type, batch);
    return make(plan, &content, workSize);
}

HWS_EXPORT cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(2, (int[]) {nx, ny}, type, 1);
    return make(plan, &content, workSize);
}

HWS_EXPORT cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(3, (int[]) {nx, ny, nz}, type, 1);
    return make(plan, &content, workSize);
}

HWS_EXPORT cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist,
                                         int *onembed, int ostride, int odist, cufftType type, int batch,
                                         size_t *workSize) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_many(&content, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch));
    return make(plan, &content, workSize);
}

HWS_EXPORT cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *inembed,
                                           long long istride, long long idist, long long *onembed, long long ostride,
                                           long long odist, cufftType type, long long batch, size_t *workSize) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_many64(&content, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch));
    return make(plan, &content, workSize);
}

HWS_EXPORT cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed,
                                           long long istride, long long idist, cudaDataType inputtype,
                                           long long *onembed, long long ostride, long long odist,
                                           cudaDataType outputtype, long long batch, size_t *workSize,
                                           cudaDataType executiontype) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_xt(&content, rank, n, inembed, istride, idist, inputtype, onembed, ostride, odist, outputtype,
                       batch, executiontype));
    return make(plan, &content, workSize);
}

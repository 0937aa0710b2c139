/* Sizes of work areas. The machine's library computes them; a plan's own is known since it was made. */
#include "hws_cufft.h"

#include "hws_cufft_calls.h"

static cufftResult size(const HwsFftPlan *content, bool is_estimate, size_t *work_size) {
    HWS_REQUIRE(work_size != NULL);
    if (!hws_math_need_context()) {
        return CUFFT_SETUP_FAILED;
    }
    HWS_ENTER();
    unsigned long long bytes = 0;
    HWS_TRY(hws_call_hwsFftGetSize(content, is_estimate ? 1 : 0, &bytes));
    *work_size = bytes;
    return CUFFT_SUCCESS;
}

/* The size that a handle's plan would have. The state of a handle does not change it. */
static cufftResult size_of(cufftHandle handle, const HwsFftPlan *content, size_t *work_size) {
    return hws_fft_find(handle) == NULL ? CUFFT_INVALID_PLAN : size(content, false, work_size);
}

HWS_EXPORT cufftResult cufftGetSize(cufftHandle handle, size_t *workSize) {
    const hws_fft_plan_t *plan = hws_fft_find(handle);
    if (plan == NULL || plan->id == 0) {
        return CUFFT_INVALID_PLAN;
    }
    HWS_REQUIRE(workSize != NULL);
    *workSize = plan->work_size;
    return CUFFT_SUCCESS;
}

HWS_EXPORT cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(1, (int[]) {nx}, type, batch);
    return size(&content, true, workSize);
}

HWS_EXPORT cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(2, (int[]) {nx, ny}, type, 1);
    return size(&content, true, workSize);
}

HWS_EXPORT cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(3, (int[]) {nx, ny, nz}, type, 1);
    return size(&content, true, workSize);
}

HWS_EXPORT cufftResult cufftEstimateMany(int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                                         int ostride, int odist, cufftType type, int batch, size_t *workSize) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_many(&content, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch));
    return size(&content, true, workSize);
}

HWS_EXPORT cufftResult cufftGetSize1d(cufftHandle handle, int nx, cufftType type, int batch, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(1, (int[]) {nx}, type, batch);
    return size_of(handle, &content, workSize);
}

HWS_EXPORT cufftResult cufftGetSize2d(cufftHandle handle, int nx, int ny, cufftType type, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(2, (int[]) {nx, ny}, type, 1);
    return size_of(handle, &content, workSize);
}

HWS_EXPORT cufftResult cufftGetSize3d(cufftHandle handle, int nx, int ny, int nz, cufftType type, size_t *workSize) {
    HwsFftPlan content = hws_fft_simple(3, (int[]) {nx, ny, nz}, type, 1);
    return size_of(handle, &content, workSize);
}

HWS_EXPORT cufftResult cufftGetSizeMany(cufftHandle handle, int rank, int *n, int *inembed, int istride, int idist,
                                        int *onembed, int ostride, int odist, cufftType type, int batch,
                                        size_t *workArea) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_many(&content, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch));
    return size_of(handle, &content, workArea);
}

HWS_EXPORT cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long *n, long long *inembed,
                                          long long istride, long long idist, long long *onembed, long long ostride,
                                          long long odist, cufftType type, long long batch, size_t *workSize) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_many64(&content, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch));
    return size_of(plan, &content, workSize);
}

HWS_EXPORT cufftResult cufftXtGetSizeMany(cufftHandle plan, int rank, long long *n, long long *inembed,
                                          long long istride, long long idist, cudaDataType inputtype,
                                          long long *onembed, long long ostride, long long odist,
                                          cudaDataType outputtype, long long batch, size_t *workSize,
                                          cudaDataType executiontype) {
    HwsFftPlan content;
    HWS_TRY(hws_fft_xt(&content, rank, n, inembed, istride, idist, inputtype, onembed, ostride, odist, outputtype,
                       batch, executiontype));
    return size_of(plan, &content, workSize);
}

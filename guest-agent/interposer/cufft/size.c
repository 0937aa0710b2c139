/* Sizes of work areas. The machine's library computes them; a plan's own is known since it was made. */
#include "hws_cufft.h"

#include "hws_cufft_calls.h"

#include <pthread.h>
#include <string.h>

#define ANSWERS 64 /* that are remembered; a power of two */

/* What a size depends on: the arguments, the function, and the context for its GPU. */
typedef struct question {
    HwsFftPlan content;
    uint64_t context;
    uint64_t is_estimate;
} question_t;

static struct {
    question_t question;
    size_t bytes;
    bool is_set;
} answers[ANSWERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the answers */

_Static_assert(sizeof(question_t) % sizeof(uint64_t) == 0, "the hash reads whole numbers");

static unsigned int place_of(const question_t *question) {
    uint64_t numbers[sizeof *question / sizeof(uint64_t)], sum = 0;
    memcpy(numbers, question, sizeof *question);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sum = (sum ^ numbers[i]) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return (unsigned int) (sum % ANSWERS);
}

/* Asks once for equal arguments. A failure is not remembered. */
static cufftResult size(const HwsFftPlan *content, bool is_estimate, size_t *work_size) {
    HWS_REQUIRE(work_size != NULL);
    CUcontext context = NULL;
    if (!hws_math_need_context() || cuCtxGetCurrent(&context) != CUDA_SUCCESS) {
        return CUFFT_SETUP_FAILED;
    }
    HWS_ENTER();
    const question_t question = {*content, (uintptr_t) context, is_estimate};
    unsigned int place = place_of(&question);
    pthread_mutex_lock(&lock);
    bool is_known = answers[place].is_set && memcmp(&answers[place].question, &question, sizeof question) == 0;
    unsigned long long bytes = answers[place].bytes;
    pthread_mutex_unlock(&lock);
    if (!is_known) {
        HWS_TRY(hws_call_hwsFftGetSize(content, is_estimate ? 1 : 0, &bytes));
        pthread_mutex_lock(&lock);
        answers[place].question = question;
        answers[place].bytes = bytes;
        answers[place].is_set = true;
        pthread_mutex_unlock(&lock);
    }
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

/* Facts about the library, its errors, and memory. */
#include "hws_nccl.h"

#include "hws_nccl_calls.h"
#include "hws_nccl_functions.h"

#include <stdatomic.h>

static atomic_int last_error;

ncclResult_t hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return hws_nccl_note(ncclInvalidUsage);
}

ncclResult_t hws_nccl_note(ncclResult_t result) {
    if (__builtin_expect(result != ncclSuccess, 0)) {
        atomic_store_explicit(&last_error, result, memory_order_relaxed);
    }
    return result;
}

bool hws_nccl_begin(void) {
    return cuInit(0) == CUDA_SUCCESS && hws_math_gate() == 0;
}

HWS_EXPORT ncclResult_t ncclGetVersion(int *version) {
    HWS_REQUIRE(version != NULL);
    HWS_NEED(hws_nccl_begin(), hws_nccl_note(ncclSystemError));
    return hws_nccl_note(hws_call_ncclGetVersion(version));
}

HWS_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId) {
    HWS_REQUIRE(uniqueId != NULL);
    HWS_NEED(hws_nccl_begin(), hws_nccl_note(ncclSystemError));
    return hws_nccl_note(hws_call_ncclGetUniqueId(uniqueId));
}

HWS_EXPORT const char *ncclGetErrorString(ncclResult_t result) {
    switch ((int) result) {
#define HWS_RESULT(name, value, text)                                                                                  \
    case value:                                                                                                        \
        return text;
#include "hws_nccl_results.inc"
#undef HWS_RESULT
        default:
            return "unknown result code";
    }
}

/* The text of the process's last error: the worker's log has more. Empty before the first one, as NVIDIA's. */
HWS_EXPORT const char *ncclGetLastError(ncclComm_t comm) {
    (void) comm;
    int error = atomic_load_explicit(&last_error, memory_order_relaxed);
    return error == ncclSuccess ? "" : ncclGetErrorString((ncclResult_t) error);
}

HWS_EXPORT ncclResult_t ncclMemAlloc(void **ptr, size_t size) {
    HWS_REQUIRE(ptr != NULL && size > 0);
    HWS_NEED(hws_math_need_context(), hws_nccl_note(ncclUnhandledCudaError));
    CUdeviceptr address = 0;
    HWS_NEED(cuMemAlloc_v2(&address, size) == CUDA_SUCCESS, hws_nccl_note(ncclUnhandledCudaError));
    *ptr = (void *) (uintptr_t) address;
    return ncclSuccess;
}

HWS_EXPORT ncclResult_t ncclMemFree(void *ptr) {
    if (ptr == NULL) {
        return ncclSuccess;
    }
    return hws_nccl_note(cuMemFree_v2((uintptr_t) ptr) == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError);
}

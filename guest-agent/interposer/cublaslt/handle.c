/* Handles. cublasLt keeps no state in them: a call names its stream and workspace. */
#include "hws_cublaslt.h"

#include "hws_cublaslt_calls.h"

#define CACHE_ENTRIES 8192 /* NVIDIA's default (CUBLASLT_HEURISTICS_CACHE_CAPACITY) */

static _Atomic size_t cache_capacity = CACHE_ENTRIES;

cublasStatus_t hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

uint64_t hws_lt_handle(cublasLtHandle_t handle) {
    uint64_t id = (uintptr_t) handle;
    const hws_service_t *service = hws_math_service();
    return service->handle_data(HWS_KIND_CUBLASLT, id) != NULL || service->handle_data(HWS_KIND_CUBLAS, id) != NULL ? id
                                                                                                                    : 0;
}

HWS_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle) {
    HWS_REQUIRE(lightHandle != NULL);
    if (!hws_math_need_context()) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_ENTER();
    uint64_t id;
    /* Its data tell a live handle from a dropped one. */
    uint64_t *data = hws_math_new_handle(HWS_KIND_CUBLASLT, sizeof *data, &id);
    HWS_NEED(data != NULL, CUBLAS_STATUS_ALLOC_FAILED);
    *data = id;
    cublasStatus_t status = hws_call_cublasLtCreate((cublasLtHandle_t) (uintptr_t) id);
    if (status != CUBLAS_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUBLASLT, id);
        return status;
    }
    *lightHandle = (cublasLtHandle_t) (uintptr_t) id;
    return CUBLAS_STATUS_SUCCESS;
}

size_t hws_lt_cache_capacity(void) {
    return atomic_load_explicit(&cache_capacity, memory_order_relaxed);
}

HWS_EXPORT cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *capacity) {
    HWS_REQUIRE(capacity != NULL);
    *capacity = hws_lt_cache_capacity();
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity) {
    atomic_store_explicit(&cache_capacity, capacity, memory_order_relaxed);
    return CUBLAS_STATUS_SUCCESS;
}

/* The mask has no effect here: the library whose instructions it restricts runs on the other machine. */
HWS_EXPORT unsigned int cublasLtDisableCpuInstructionsSetMask(unsigned int mask) {
    static _Atomic unsigned int current;
    return atomic_exchange(&current, mask);
}

/* Handles: their state stays in the guest, and travels with each call that uses it. */
#include "hws_cublas.h"

#include "hws_cublas_calls.h"

HwsCublasHandle *hws_cublas_state(cublasHandle_t handle) {
    const hws_service_t *service = hws_math_service();
    return service == NULL ? NULL : service->handle_data(HWS_KIND_CUBLAS, (uintptr_t) handle);
}

cublasStatus_t hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

HWS_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    HWS_REQUIRE(handle != NULL);
    if (!hws_math_need_context()) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_ENTER();
    uint64_t id;
    HwsCublasHandle *state = hws_math_new_handle(HWS_KIND_CUBLAS, sizeof *state, &id);
    HWS_NEED(state != NULL, CUBLAS_STATUS_ALLOC_FAILED);
    state->id = id;
    cublasStatus_t status = hws_call_cublasCreate_v2((cublasHandle_t) (uintptr_t) id);
    if (status != CUBLAS_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUBLAS, id);
        return status;
    }
    *handle = (cublasHandle_t) (uintptr_t) id;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
    HWS_REQUIRE(version != NULL);
    if (handle != NULL) {
        HWS_ENTER_CONTEXT();
        HWS_CHECK_HANDLE(HWS_KIND_CUBLAS, handle);
        return hws_call_cublasGetVersion_v2(handle, version);
    }
    int parts[PATCH_LEVEL + 1] = {0};
    for (int part = MAJOR_VERSION; part <= PATCH_LEVEL; part++) {
        cublasStatus_t status = cublasGetProperty((libraryPropertyType) part, &parts[part]);
        if (status != CUBLAS_STATUS_SUCCESS) {
            return status;
        }
    }
    *version = parts[MAJOR_VERSION] * 10000 + parts[MINOR_VERSION] * 100 + parts[PATCH_LEVEL]; /* CUBLAS_VERSION */
    return CUBLAS_STATUS_SUCCESS;
}

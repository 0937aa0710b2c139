/* Handles, and facts about the library. A handle's id lies in the program's memory. */
#include "hws_cusparselt.h"

#include "hws_cusparse_status.h"
#include "hws_cusparselt_calls.h"

#include <stdatomic.h>

cusparseStatus_t hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return CUSPARSE_STATUS_NOT_SUPPORTED;
}

HwsSltHandle hws_slt_id(const cusparseLtHandle_t *handle) {
    const hws_slt_kept_handle_t *kept = (const void *) handle->data;
    const hws_service_t *service = hws_math_service();
    bool valid = kept->mark == HWS_SLT_HANDLE_MARK && service != NULL
        && service->handle_data(HWS_KIND_CUSPARSELT, kept->id) != NULL;
    return valid ? (HwsSltHandle) (uintptr_t) kept->id : NULL;
}

HWS_EXPORT cusparseStatus_t cusparseLtInit(cusparseLtHandle_t *handle) {
    HWS_REQUIRE(handle != NULL);
    HWS_NEED(hws_math_need_context(), CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_ENTER();
    uint64_t id;
    /* Its data tell a live handle from a dropped one. */
    uint64_t *data = hws_math_new_handle(HWS_KIND_CUSPARSELT, sizeof *data, &id);
    HWS_NEED(data != NULL, CUSPARSE_STATUS_ALLOC_FAILED);
    *data = id;
    cusparseStatus_t status = hws_call_hwsSltCreate((HwsSltHandle) (uintptr_t) id);
    if (status != CUSPARSE_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUSPARSELT, id);
        return status;
    }
    hws_slt_kept_handle_t *kept = (void *) handle->data;
    *kept = (hws_slt_kept_handle_t) {HWS_SLT_HANDLE_MARK, id};
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtDestroy(const cusparseLtHandle_t *handle) {
    HwsSltHandle id = HWS_HANDLE(handle);
    cusparseStatus_t status = hws_math_gate() != 0 ? CUSPARSE_STATUS_SUCCESS : hws_call_hwsSltDestroy(id);
    hws_handle_drop(HWS_KIND_CUSPARSELT, (uintptr_t) id);
    return status;
}

/* The library's version, major * 1000 + minor * 100 + patch: asked once. */
static cusparseStatus_t version_of(int *version) {
    static atomic_int known;
    int number = atomic_load_explicit(&known, memory_order_relaxed);
    if (number == 0) {
        HWS_NEED(cuInit(0) == CUDA_SUCCESS, CUSPARSE_STATUS_NOT_INITIALIZED);
        HWS_ENTER();
        HWS_TRY(hws_call_hwsSltVersion(&number));
        atomic_store_explicit(&known, number, memory_order_relaxed);
    }
    *version = number;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLtGetVersion(const cusparseLtHandle_t *handle, int *version) {
    (void) HWS_HANDLE(handle);
    HWS_REQUIRE(version != NULL);
    return version_of(version);
}

HWS_EXPORT cusparseStatus_t cusparseLtGetProperty(libraryPropertyType propertyType, int *value) {
    HWS_REQUIRE(value != NULL && propertyType >= MAJOR_VERSION && propertyType <= PATCH_LEVEL);
    int number;
    HWS_TRY(version_of(&number));
    *value = propertyType == MAJOR_VERSION ? number / 1000
        : propertyType == MINOR_VERSION    ? number / 100 % 10
                                           : number % 100;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT const char *cusparseLtGetErrorName(cusparseStatus_t status) {
    return hws_cusparse_status_name(status);
}

HWS_EXPORT const char *cusparseLtGetErrorString(cusparseStatus_t status) {
    return hws_cusparse_status_text(status);
}

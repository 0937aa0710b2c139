/* Handles: their state stays in the guest, and travels with each call that uses it. Facts about the library. */
#include "hws_cusparse.h"

#include "hws_cusparse_calls.h"
#include "hws_cusparse_status.h"

#include <stdatomic.h>

HwsSparseHandle *hws_sparse_handle(cusparseHandle_t handle) {
    const hws_service_t *service = hws_math_service();
    return service == NULL ? NULL : service->handle_data(HWS_KIND_CUSPARSE, (uintptr_t) handle);
}

uint64_t hws_sparse_new_id(void) {
    static atomic_uint_fast64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

cusparseStatus_t hws_sparse_drop(uint64_t id) {
    return id == 0 || hws_math_gate() != 0 ? CUSPARSE_STATUS_SUCCESS : hws_call_hwsSparseDrop(id);
}

cusparseStatus_t hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return CUSPARSE_STATUS_NOT_SUPPORTED;
}

HWS_EXPORT cusparseStatus_t cusparseCreate(cusparseHandle_t *handle) {
    HWS_REQUIRE(handle != NULL);
    HWS_NEED(hws_math_need_context(), CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_ENTER();
    uint64_t id;
    HwsSparseHandle *state = hws_math_new_handle(HWS_KIND_CUSPARSE, sizeof *state, &id);
    HWS_NEED(state != NULL, CUSPARSE_STATUS_ALLOC_FAILED);
    state->id = id;
    cusparseStatus_t status = hws_call_cusparseCreate((cusparseHandle_t) (uintptr_t) id);
    if (status != CUSPARSE_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUSPARSE, id);
        return status;
    }
    *handle = (cusparseHandle_t) (uintptr_t) id;
    return CUSPARSE_STATUS_SUCCESS;
}

/* The state of a handle; leaves the calling function without one. */
#define HWS_STATE(handle)                                                                                              \
    (__extension__({                                                                                                   \
        HwsSparseHandle *hws_found = hws_sparse_handle(handle);                                                        \
        HWS_NEED(hws_found != NULL, CUSPARSE_STATUS_NOT_INITIALIZED);                                                  \
        hws_found;                                                                                                     \
    }))

HWS_EXPORT cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, CUstream streamId) {
    HWS_STATE(handle)->stream = (uintptr_t) streamId;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, CUstream *streamId) {
    const HwsSparseHandle *state = HWS_STATE(handle);
    HWS_REQUIRE(streamId != NULL);
    *streamId = (CUstream) (uintptr_t) state->stream;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode) {
    HwsSparseHandle *state = HWS_STATE(handle);
    HWS_REQUIRE(mode == CUSPARSE_POINTER_MODE_HOST || mode == CUSPARSE_POINTER_MODE_DEVICE);
    state->pointerMode = (uint32_t) mode;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseGetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t *mode) {
    const HwsSparseHandle *state = HWS_STATE(handle);
    HWS_REQUIRE(mode != NULL);
    *mode = (cusparsePointerMode_t) state->pointerMode;
    return CUSPARSE_STATUS_SUCCESS;
}

/* The library's version, major * 1000 + minor * 100 + patch: asked once. */
static cusparseStatus_t version(int *number) {
    static atomic_int known;
    HWS_ENTER();
    *number = atomic_load_explicit(&known, memory_order_relaxed);
    if (*number == 0) {
        HWS_TRY(hws_call_hwsSparseVersion(number));
        atomic_store_explicit(&known, *number, memory_order_relaxed);
    }
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *number) {
    (void) HWS_STATE(handle);
    HWS_REQUIRE(number != NULL);
    return version(number);
}

HWS_EXPORT cusparseStatus_t cusparseGetProperty(libraryPropertyType type_, int *value) {
    HWS_REQUIRE(value != NULL && type_ >= MAJOR_VERSION && type_ <= PATCH_LEVEL);
    HWS_NEED(hws_math_need_context(), CUSPARSE_STATUS_NOT_INITIALIZED);
    int number;
    HWS_TRY(version(&number));
    *value = type_ == MAJOR_VERSION ? number / 1000 : type_ == MINOR_VERSION ? number / 100 % 10 : number % 100;
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT const char *cusparseGetErrorName(cusparseStatus_t status) {
    return hws_cusparse_status_name(status);
}

HWS_EXPORT const char *cusparseGetErrorString(cusparseStatus_t status) {
    return hws_cusparse_status_text(status);
}

/* The library logs nothing in the guest. */
HWS_EXPORT cusparseStatus_t cusparseLoggerForceDisable(void) {
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLoggerSetLevel(int level) {
    HWS_REQUIRE(level >= 0);
    return CUSPARSE_STATUS_SUCCESS;
}

HWS_EXPORT cusparseStatus_t cusparseLoggerSetMask(int mask) {
    (void) mask;
    return CUSPARSE_STATUS_SUCCESS;
}

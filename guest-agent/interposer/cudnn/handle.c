/* Handles, and facts about the machine's library. */
#include "hws_cudnn.h"

#include "hws_cudnn_calls.h"

HwsDnnHandle *hws_dnn_handle(cudnnHandle_t handle) {
    const hws_service_t *service = hws_math_service();
    return service == NULL ? NULL : service->handle_data(HWS_KIND_CUDNN, (uintptr_t) handle);
}

cudnnStatus_t hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t hws_dnn_may_issue(const HwsDnnHandle *handle) {
    CUresult asked = hws_math_may_issue((CUstream) (uintptr_t) handle->stream);
    return asked == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

HWS_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    HWS_REQUIRE(handle != NULL);
    if (!hws_math_need_context()) {
        return CUDNN_STATUS_NOT_INITIALIZED;
    }
    HWS_ENTER();
    uint64_t id;
    HwsDnnHandle *state = hws_math_new_handle(HWS_KIND_CUDNN, sizeof *state, &id);
    HWS_NEED(state != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    state->id = id;
    cudnnStatus_t status = hws_call_cudnnCreate((cudnnHandle_t) (uintptr_t) id);
    if (status != CUDNN_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUDNN, id);
        return status;
    }
    *handle = (cudnnHandle_t) (uintptr_t) id;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream streamId) {
    HwsDnnHandle *state = hws_dnn_handle(handle);
    HWS_REQUIRE(state != NULL);
    state->stream = (uintptr_t) streamId;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, CUstream *streamId) {
    const HwsDnnHandle *state = hws_dnn_handle(handle);
    HWS_REQUIRE(state != NULL && streamId != NULL);
    *streamId = (CUstream) (uintptr_t) state->stream;
    return CUDNN_STATUS_SUCCESS;
}

/* Versions of the machine's library. Programs refuse to start with a library that is older than their header. */
static struct {
    unsigned long long library, cudart, device;
} versions = {CUDNN_VERSION, 13000, CUDNN_MAX_DEVICE_VERSION}; /* of the description, where nothing answers */

static void ask_versions(void) {
    static _Atomic int asked;
    if (atomic_load_explicit(&asked, memory_order_acquire)) {
        return;
    }
    unsigned long long library, cudart, device;
    if (cuInit(0) == CUDA_SUCCESS && hws_math_gate() == 0
        && hws_call_hwsDnnVersion(&library, &cudart, &device) == CUDNN_STATUS_SUCCESS) {
        versions.library = library;
        versions.cudart = cudart;
        versions.device = device;
    }
    atomic_store_explicit(&asked, 1, memory_order_release);
}

HWS_EXPORT size_t cudnnGetVersion(void) {
    ask_versions();
    return versions.library;
}

HWS_EXPORT size_t cudnnGetCudartVersion(void) {
    ask_versions();
    return versions.cudart;
}

HWS_EXPORT size_t cudnnGetMaxDeviceVersion(void) {
    ask_versions();
    return versions.device;
}

HWS_EXPORT cudnnStatus_t cudnnGetProperty(libraryPropertyType type_, int *value) {
    HWS_REQUIRE(value != NULL && type_ >= MAJOR_VERSION && type_ <= PATCH_LEVEL);
    int version = (int) cudnnGetVersion(); /* 9.19.0 is 91900 */
    *value = type_ == MAJOR_VERSION ? version / 10000 : type_ == MINOR_VERSION ? version / 100 % 100 : version % 100;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
#define HWS_RESULT(name, value, text)                                                                                  \
    case value:                                                                                                        \
        return text;
#include "hws_cudnn_results.inc"
#undef HWS_RESULT
        default:
            return "CUDNN_UNKNOWN_STATUS";
    }
}

HWS_EXPORT void cudnnGetLastErrorString(char *message, size_t max_size) {
    if (message == NULL || max_size == 0) {
        return;
    }
    uint32_t bytes = 0, most = max_size > 4096 ? 4096 : (uint32_t) max_size;
    if (hws_math_gate() != 0 || hws_call_hwsDnnLastError(most, message, &bytes) != CUDNN_STATUS_SUCCESS) {
        bytes = 0;
    }
    message[bytes < most ? bytes : most - 1] = '\0';
}

/* A kernel's error ends the session's context, which other calls report. */
HWS_EXPORT cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t *rstatus, cudnnErrQueryMode_t mode,
                                                void *tag) {
    (void) mode;
    (void) tag;
    HWS_REQUIRE(hws_dnn_handle(handle) != NULL && rstatus != NULL);
    *rstatus = CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_SUCCESS;
}

/* The library logs nothing in the guest, so the callback is kept and never called. */
static struct {
    unsigned int mask;
    void *data;
    cudnnCallback_t function;
} callback;

HWS_EXPORT cudnnStatus_t cudnnSetCallback(unsigned int mask, void *udata, cudnnCallback_t fptr) {
    callback.mask = mask;
    callback.data = udata;
    callback.function = fptr;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnGetCallback(unsigned int *mask, void **udata, cudnnCallback_t *fptr) {
    HWS_REQUIRE(mask != NULL && udata != NULL && fptr != NULL);
    *mask = callback.mask;
    *udata = callback.data;
    *fptr = callback.function;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnGraphVersionCheck(void) {
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnOpsVersionCheck(void) {
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnCnnVersionCheck(void) {
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnAdvVersionCheck(void) {
    return CUDNN_STATUS_SUCCESS;
}

/* Setters and getters of a handle's state, and the names of results. */
#include "hws_cublas.h"

/* Defines the setter and the getter of a number: the names, its type, its field, the largest value. */
#define HWS_STATE(set, get, type, name, field, most)                                                                   \
    HWS_EXPORT cublasStatus_t set(cublasHandle_t handle, type name) {                                                  \
        HwsCublasHandle *state = hws_cublas_state(handle);                                                             \
        if (state == NULL) {                                                                                           \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        }                                                                                                              \
        HWS_REQUIRE((uint32_t) name <= (uint32_t) (most));                                                             \
        state->field = name;                                                                                           \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    HWS_EXPORT cublasStatus_t get(cublasHandle_t handle, type *name) {                                                 \
        const HwsCublasHandle *state = hws_cublas_state(handle);                                                       \
        if (state == NULL) {                                                                                           \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        }                                                                                                              \
        HWS_REQUIRE(name != NULL);                                                                                     \
        *name = (type) state->field;                                                                                   \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }

HWS_STATE(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t, mode, pointerMode,
          CUBLAS_POINTER_MODE_DEVICE)
HWS_STATE(cublasSetMathMode, cublasGetMathMode, cublasMath_t, mode, mathMode,
          2 * CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION - 1)
HWS_STATE(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t, mode, atomicsMode, CUBLAS_ATOMICS_ALLOWED)
HWS_STATE(cublasSetSmCountTarget, cublasGetSmCountTarget, int, smCountTarget, smCountTarget, INT32_MAX)
HWS_STATE(cublasSetEmulationStrategy, cublasGetEmulationStrategy, cublasEmulationStrategy_t, emulationStrategy,
          emulationStrategy, CUBLAS_EMULATION_STRATEGY_EAGER)

HWS_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream streamId) {
    HwsCublasHandle *state = hws_cublas_state(handle);
    if (state == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    state->stream = (uintptr_t) streamId;
    state->workspace = 0; /* documented: the call resets the workspace to the library's own */
    state->workspaceBytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, CUstream *streamId) {
    const HwsCublasHandle *state = hws_cublas_state(handle);
    if (state == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_REQUIRE(streamId != NULL);
    *streamId = (CUstream) (uintptr_t) state->stream;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes) {
    HwsCublasHandle *state = hws_cublas_state(handle);
    if (state == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_REQUIRE((uintptr_t) workspace % 256 == 0); /* documented */
    state->workspace = (uintptr_t) workspace;
    state->workspaceBytes = workspaceSizeInBytes;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT const char *cublasGetStatusName(cublasStatus_t status) {
    return hws_math_status_name(status);
}

HWS_EXPORT const char *cublasGetStatusString(cublasStatus_t status) {
    return hws_math_status_text(status);
}

HWS_EXPORT size_t cublasGetCudartVersion(void) {
    return HWS_CUDART_VERSION;
}

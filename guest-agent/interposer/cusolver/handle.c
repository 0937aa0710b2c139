/* Handles: their state stays in the guest, and travels with each call that uses it. */
#include "hws_cusolver.h"

#include "hws_cusolver_calls.h"

#include <string.h>

void *hws_solver_state(hws_kind_t kind, const void *handle) {
    const hws_service_t *service = hws_math_service();
    return service == NULL ? NULL : service->handle_data(kind, (uintptr_t) handle);
}

static HwsSolverHandle *state_of(cusolverDnHandle_t handle) {
    return hws_solver_state(HWS_KIND_CUSOLVER, handle);
}

cusolverStatus_t hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return CUSOLVER_STATUS_NOT_SUPPORTED;
}

cusolverStatus_t hws_solver_make(hws_kind_t kind, size_t bytes, uint64_t *id_p) {
    HWS_NEED(hws_math_need_context(), CUSOLVER_STATUS_NOT_INITIALIZED);
    HWS_ENTER();
    void *state = hws_math_new_handle(kind, bytes, id_p);
    HWS_NEED(state != NULL, CUSOLVER_STATUS_ALLOC_FAILED);
    memcpy(state, id_p, sizeof *id_p);
    return CUSOLVER_STATUS_SUCCESS;
}

HWS_EXPORT cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle) {
    HWS_REQUIRE(handle != NULL);
    uint64_t id = 0;
    cusolverStatus_t status = hws_solver_make(HWS_KIND_CUSOLVER, sizeof(HwsSolverHandle), &id);
    if (status != CUSOLVER_STATUS_SUCCESS) {
        return status;
    }
    cusolverDnHandle_t made = (cusolverDnHandle_t) (uintptr_t) id;
    CUdevice device = 0;
    status =
        cuCtxGetDevice(&device) != CUDA_SUCCESS ? CUSOLVER_STATUS_NOT_INITIALIZED : hws_call_cusolverDnCreate(made);
    if (status != CUSOLVER_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUSOLVER, id);
        return status;
    }
    state_of(made)->device = device;
    *handle = made;
    return CUSOLVER_STATUS_SUCCESS;
}

HWS_EXPORT cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, CUstream streamId) {
    HwsSolverHandle *state = state_of(handle);
    HWS_NEED(state != NULL, CUSOLVER_STATUS_NOT_INITIALIZED);
    state->stream = (uintptr_t) streamId;
    return CUSOLVER_STATUS_SUCCESS;
}

HWS_EXPORT cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, CUstream *streamId) {
    const HwsSolverHandle *state = state_of(handle);
    HWS_NEED(state != NULL, CUSOLVER_STATUS_NOT_INITIALIZED);
    HWS_REQUIRE(streamId != NULL);
    *streamId = (CUstream) (uintptr_t) state->stream;
    return CUSOLVER_STATUS_SUCCESS;
}

/* Setter and getter of a mode. A field of 0 is the library's default, the first mode. */
#define HWS_MODE(name, type, first, last, argument, field)                                                             \
    HWS_EXPORT cusolverStatus_t cusolverDnSet##name(cusolverDnHandle_t handle, type argument) {                        \
        HwsSolverHandle *state = state_of(handle);                                                                     \
        HWS_NEED(state != NULL, CUSOLVER_STATUS_NOT_INITIALIZED);                                                      \
        HWS_REQUIRE((int) (argument) >= (int) (first) && (int) (argument) <= (int) (last));                            \
        state->field = (uint32_t) (argument);                                                                          \
        return CUSOLVER_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    HWS_EXPORT cusolverStatus_t cusolverDnGet##name(cusolverDnHandle_t handle, type *argument) {                       \
        const HwsSolverHandle *state = state_of(handle);                                                               \
        HWS_NEED(state != NULL, CUSOLVER_STATUS_NOT_INITIALIZED);                                                      \
        HWS_REQUIRE((argument) != NULL);                                                                               \
        *(argument) = state->field == 0 ? (first) : (type) state->field;                                               \
        return CUSOLVER_STATUS_SUCCESS;                                                                                \
    }

HWS_MODE(DeterministicMode, cusolverDeterministicMode_t, CUSOLVER_DETERMINISTIC_RESULTS,
         CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS, mode, deterministicMode)
HWS_MODE(MathMode, cusolverMathMode_t, CUSOLVER_DEFAULT_MATH, CUSOLVER_FP32_EMULATED_BF16X9_MATH, mode, mathMode)
HWS_MODE(EmulationStrategy, cudaEmulationStrategy_t, CUDA_EMULATION_STRATEGY_DEFAULT, CUDA_EMULATION_STRATEGY_EAGER,
         strategy, emulationStrategy)

const HwsScalar *hws_solver_number(const void *pointer, uint64_t bytes, HwsScalar *scalar) {
    if (bytes == 0 || bytes > sizeof scalar->value) {
        return NULL;
    }
    scalar->valueBytes = (uint32_t) bytes;
    if (pointer != NULL) {
        memcpy(scalar->value, pointer, bytes);
    }
    return scalar;
}

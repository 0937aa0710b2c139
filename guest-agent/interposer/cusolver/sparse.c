/* Sparse systems: handles, and the descriptions of matrices, which are objects of libcusparse.so.12. */
#include "hws_cusolver.h"

#include "hws_cusolver_calls.h"

#include <dlfcn.h>

static HwsSolverSparse *state_of(cusolverSpHandle_t handle) {
    return hws_solver_state(HWS_KIND_CUSOLVER_SP, handle);
}

HWS_EXPORT cusolverStatus_t cusolverSpCreate(cusolverSpHandle_t *handle) {
    HWS_REQUIRE(handle != NULL);
    uint64_t id = 0;
    cusolverStatus_t status = hws_solver_make(HWS_KIND_CUSOLVER_SP, sizeof(HwsSolverSparse), &id);
    if (status != CUSOLVER_STATUS_SUCCESS) {
        return status;
    }
    status = hws_call_cusolverSpCreate((cusolverSpHandle_t) (uintptr_t) id);
    if (status != CUSOLVER_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CUSOLVER_SP, id);
        return status;
    }
    *handle = (cusolverSpHandle_t) (uintptr_t) id;
    return CUSOLVER_STATUS_SUCCESS;
}

HWS_EXPORT cusolverStatus_t cusolverSpSetStream(cusolverSpHandle_t handle, CUstream streamId) {
    HwsSolverSparse *state = state_of(handle);
    HWS_NEED(state != NULL, CUSOLVER_STATUS_NOT_INITIALIZED);
    state->stream = (uintptr_t) streamId;
    return CUSOLVER_STATUS_SUCCESS;
}

HWS_EXPORT cusolverStatus_t cusolverSpGetStream(cusolverSpHandle_t handle, CUstream *streamId) {
    const HwsSolverSparse *state = state_of(handle);
    HWS_NEED(state != NULL, CUSOLVER_STATUS_NOT_INITIALIZED);
    HWS_REQUIRE(streamId != NULL);
    *streamId = (CUstream) (uintptr_t) state->stream;
    return CUSOLVER_STATUS_SUCCESS;
}

/* Reads a part of a description; `false` if the library lacks the getter. */
#define HWS_READ(library, name, descr, field)                                                                          \
    (__extension__({                                                                                                   \
        __typeof__(name) *hws_get = NULL;                                                                              \
        *(void **) &hws_get = dlsym(library, #name);                                                                   \
        if (hws_get != NULL) {                                                                                         \
            (field) = (uint32_t) hws_get(descr);                                                                       \
        }                                                                                                              \
        hws_get != NULL;                                                                                               \
    }))

/* Only libcusparse.so.12 knows how it keeps a description. The program has made one, so it has loaded the library. */
const HwsSparseMatDescr *hws_solver_description(cusparseMatDescr_t descr, HwsSparseMatDescr *content) {
    void *library = descr == NULL ? NULL : dlopen("libcusparse.so.12", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) {
        return NULL;
    }
    bool is_whole = HWS_READ(library, cusparseGetMatType, descr, content->type)
        && HWS_READ(library, cusparseGetMatFillMode, descr, content->fillMode)
        && HWS_READ(library, cusparseGetMatDiagType, descr, content->diagType)
        && HWS_READ(library, cusparseGetMatIndexBase, descr, content->indexBase);
    dlclose(library);
    return is_whole ? content : NULL;
}

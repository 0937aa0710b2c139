/* Included by every file of libcusolver.so: the entry of a call, handles and settings. */
#ifndef HWS_CUSOLVER_H
#define HWS_CUSOLVER_H

#include "hws_cusolver_types.h"
#include "hws_math.h"
#include "hws_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CUSOLVER_STATUS_NOT_INITIALIZED)

#define HWS_ENTER_CONTEXT() HWS_ENTER()

/* Returns CUSOLVER_STATUS_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CUSOLVER_STATUS_INVALID_VALUE)

/* The state of a handle of this kind; NULL for an invalid one. */
void *hws_solver_state(hws_kind_t kind, const void *handle);

#define HWS_CHECK_HANDLE(kind, handle) HWS_NEED(hws_solver_state(kind, handle) != NULL, CUSOLVER_STATUS_NOT_INITIALIZED)

/* Makes a handle, whose state has `bytes` bytes, the id first. Its record has not been sent. */
cusolverStatus_t hws_solver_make(hws_kind_t kind, size_t bytes, uint64_t *id_p);

/* The structure that travels for an argument. */
#define HWS_DESCRIPTOR(type, argument) HWS_DESCRIPTOR_##type(argument)

/* The state of a handle. Leaves the calling function when no work can be issued to its stream. */
#define HWS_STATE(type, kind, handle)                                                                                  \
    (__extension__({                                                                                                   \
        const type *hws_state = hws_solver_state(kind, handle);                                                        \
        HWS_NEED(hws_state != NULL, CUSOLVER_STATUS_NOT_INITIALIZED);                                                  \
        HWS_NEED(hws_math_may_issue((CUstream) (uintptr_t) hws_state->stream) == CUDA_SUCCESS,                         \
                 CUSOLVER_STATUS_EXECUTION_FAILED);                                                                    \
        hws_state;                                                                                                     \
    }))
#define HWS_DESCRIPTOR_HwsSolverHandle(handle) HWS_STATE(HwsSolverHandle, HWS_KIND_CUSOLVER, handle)
#define HWS_DESCRIPTOR_HwsSolverSparse(handle) HWS_STATE(HwsSolverSparse, HWS_KIND_CUSOLVER_SP, handle)

/* The content of a description of a matrix; NULL for none. */
#define HWS_DESCRIPTOR_HwsSparseMatDescr(descr) hws_solver_description((descr), &(HwsSparseMatDescr) {0})
const HwsSparseMatDescr *hws_solver_description(cusparseMatDescr_t descr, HwsSparseMatDescr *content);

#define HWS_DESCRIPTOR_HwsSolverParams(params) hws_solver_params(params)
#define HWS_DESCRIPTOR_HwsSolverJacobi(info) hws_solver_jacobi(info)

/* A number in host memory that the call reads. NULL, which is legal where the call needs no number, is 0. */
#define HWS_SCALAR(type, pointer, bytes, is_read) hws_solver_number((pointer), (bytes), &(type) {0})

const HwsScalar *hws_solver_number(const void *pointer, uint64_t bytes, HwsScalar *scalar);

/* The settings of an object; those of NULL for NULL. */
const HwsSolverParams *hws_solver_params(cusolverDnParams_t params);
const HwsSolverJacobi *hws_solver_jacobi(const void *info);

cusolverStatus_t hws_unsupported(const char *name);

#endif

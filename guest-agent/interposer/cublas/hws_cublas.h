/* Included by every file of libcublas.so: the entry of a call and the state of a handle. */
#ifndef HWS_CUBLAS_H
#define HWS_CUBLAS_H

#include "hws_cublas_types.h"
#include "hws_math.h"
#include "hws_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CUBLAS_STATUS_NOT_INITIALIZED)

#define HWS_ENTER_CONTEXT() HWS_ENTER()

/* Returns CUBLAS_STATUS_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CUBLAS_STATUS_INVALID_VALUE)

/* The state of a handle; NULL for an invalid one. */
HwsCublasHandle *hws_cublas_state(cublasHandle_t handle);

#define HWS_CHECK_HANDLE(kind, handle) HWS_NEED(hws_cublas_state(handle) != NULL, CUBLAS_STATUS_NOT_INITIALIZED)

/* The state as a call's record carries it. Leaves the calling function when no work can be issued to its stream. */
#define HWS_DESCRIPTOR(type, handle)                                                                                   \
    (__extension__({                                                                                                   \
        const type *hws_state = hws_cublas_state(handle);                                                              \
        HWS_NEED(hws_state != NULL, CUBLAS_STATUS_NOT_INITIALIZED);                                                    \
        HWS_NEED(hws_math_may_issue((CUstream) (uintptr_t) hws_state->stream) == CUDA_SUCCESS,                         \
                 CUBLAS_STATUS_EXECUTION_FAILED);                                                                      \
        hws_state;                                                                                                     \
    }))

/*
 * A number behind a pointer, by the handle's pointer mode, as the structure `type` that travels: NULL for a NULL
 * pointer and for a type of unknown size. A number that the call only writes is not read.
 */
#define HWS_SCALAR(type, pointer, bytes, is_read)                                                                      \
    (type *) hws_math_scalar(hws_handle->pointerMode == CUBLAS_POINTER_MODE_DEVICE, (pointer), (bytes), (is_read),     \
                             &(type) {0}, sizeof(type) - offsetof(type, value))

/* Gives the program a number that the call has returned; the device's numbers are there already. */
#define HWS_RESULT(pointer, scalar, bytes)                                                                             \
    do {                                                                                                               \
        if (hws_handle->pointerMode != CUBLAS_POINTER_MODE_DEVICE) {                                                   \
            memcpy((pointer), (scalar)->value, (bytes));                                                               \
        }                                                                                                              \
    } while (0)

cublasStatus_t hws_unsupported(const char *name);

#endif

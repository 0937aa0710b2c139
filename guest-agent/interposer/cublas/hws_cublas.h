/* Included by every file of libcublas.so: the entry of a call and the state of a handle. */
#ifndef HWS_CUBLAS_H
#define HWS_CUBLAS_H

#include "hws_cublas_types.h"
#include "hws_math.h"

/* First line of every exported function that sends a record. */
#define HWS_ENTER()                                                                                                    \
    do {                                                                                                               \
        if (__builtin_expect(hws_math_gate() != 0, 0)) {                                                               \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        }                                                                                                              \
    } while (0)

#define HWS_ENTER_CONTEXT() HWS_ENTER()

/* Returns CUBLAS_STATUS_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition)                                                                                         \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0)) {                                                                       \
            return CUBLAS_STATUS_INVALID_VALUE;                                                                        \
        }                                                                                                              \
    } while (0)

/* The state of a handle; NULL for an invalid one. */
HwsCublasHandle *hws_cublas_state(cublasHandle_t handle);

#define HWS_CHECK_HANDLE(kind, handle)                                                                                 \
    do {                                                                                                               \
        if (__builtin_expect(hws_cublas_state(handle) == NULL, 0)) {                                                   \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        }                                                                                                              \
    } while (0)

/* The state as a call's record carries it. Leaves the calling function when no work can be issued to its stream. */
#define HWS_DESCRIPTOR(type, handle)                                                                                   \
    (__extension__({                                                                                                   \
        const type *hws_state = hws_cublas_state(handle);                                                              \
        if (__builtin_expect(hws_state == NULL, 0)) {                                                                  \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        }                                                                                                              \
        cublasStatus_t hws_asked = hws_cublas_may_issue(hws_state, __func__);                                          \
        if (__builtin_expect(hws_asked != CUBLAS_STATUS_SUCCESS, 0)) {                                                 \
            return hws_asked;                                                                                          \
        }                                                                                                              \
        hws_state;                                                                                                     \
    }))

cublasStatus_t hws_cublas_may_issue(const HwsCublasHandle *state, const char *function);

/* A number behind a pointer, by the handle's pointer mode: NULL for a NULL pointer and for a type of unknown size. */
#define HWS_SCALAR(pointer, bytes) hws_cublas_scalar(hws_handle->pointerMode, (pointer), (bytes), &(HwsScalar) {0})

const HwsScalar *hws_cublas_scalar(uint32_t pointer_mode, const void *pointer, uint32_t bytes, HwsScalar *scalar);

/* Bytes of a number of a type; 0 for an unknown type. */
uint32_t hws_type_bytes(cudaDataType type);

/* Bytes of alpha and beta of a product: they have the type of the computation, complex when the matrices are. */
uint32_t hws_compute_bytes(cublasComputeType_t compute, cudaDataType matrix);

cublasStatus_t hws_unsupported(const char *name);

#endif

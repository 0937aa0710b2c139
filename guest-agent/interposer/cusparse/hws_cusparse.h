/* Included by every file of libcusparse.so: the entry of a call, the state of a handle, and contents of descriptors. */
#ifndef HWS_CUSPARSE_H
#define HWS_CUSPARSE_H

#include "hws_cublas_types.h"
#include "hws_cusparse_types.h"
#include "hws_math.h"
#include "hws_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CUSPARSE_STATUS_NOT_INITIALIZED)

#define HWS_ENTER_CONTEXT() HWS_ENTER()

/* Returns CUSPARSE_STATUS_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CUSPARSE_STATUS_INVALID_VALUE)

/* Leaves the calling function with a status that is not CUSPARSE_STATUS_SUCCESS. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        cusparseStatus_t hws_tried = (call);                                                                           \
        HWS_NEED(hws_tried == CUSPARSE_STATUS_SUCCESS, hws_tried);                                                     \
    } while (0)

/* The state of a handle; NULL for an invalid one. */
HwsSparseHandle *hws_sparse_handle(cusparseHandle_t handle);

/* Makes a number for a further object of the worker. */
uint64_t hws_sparse_new_id(void);

/* Ends an object of the worker, if `id` is one. */
cusparseStatus_t hws_sparse_drop(uint64_t id);

/* A descriptor of an operation: SpSV, SpSM, SpGEMM. The worker has its state. */
typedef struct hws_sparse_state {
    uint32_t tag;
    uint64_t id;
} hws_sparse_state_t;

enum { HWS_SPARSE_STATE_SV = 101, HWS_SPARSE_STATE_SM, HWS_SPARSE_STATE_GEMM };

/* The content of a vector or matrix; NULL for a descriptor of another kind. */
static inline HwsSparseContent *hws_sparse_content(const void *descriptor, uint32_t kind) {
    HwsSparseContent *content = (HwsSparseContent *) (uintptr_t) descriptor;
    return content != NULL && content->kind == kind ? content : NULL;
}

/* Logs once that a function has no implementation. Returns CUSPARSE_STATUS_NOT_SUPPORTED. */
cusparseStatus_t hws_unsupported(const char *name);

#define HWS_CHECK_HANDLE(kind, handle)                                                                                 \
    HWS_NEED((kind) == HWS_KIND_CUSPARSE ? hws_sparse_handle((cusparseHandle_t) (void *) (handle)) != NULL             \
                                         : (handle) != NULL,                                                           \
             CUSPARSE_STATUS_NOT_INITIALIZED)

/* A handle's state as a call's record carries it, or the content of a cusparseMatDescr_t. */
#define HWS_DESCRIPTOR(type, name) HWS_DESCRIPTOR_##type(name)
#define HWS_DESCRIPTOR_HwsSparseHandle(handle)                                                                         \
    (__extension__({                                                                                                   \
        const HwsSparseHandle *hws_state = hws_sparse_handle(handle);                                                  \
        HWS_NEED(hws_state != NULL, CUSPARSE_STATUS_NOT_INITIALIZED);                                                  \
        HWS_NEED(hws_math_may_issue((CUstream) (uintptr_t) hws_state->stream) == CUDA_SUCCESS,                         \
                 CUSPARSE_STATUS_EXECUTION_FAILED);                                                                    \
        hws_state;                                                                                                     \
    }))
#define HWS_DESCRIPTOR_HwsSparseMatDescr(name) ((const HwsSparseMatDescr *) (const void *) (name))

/* A number behind a pointer, by the handle's pointer mode. */
#define HWS_SCALAR(type, pointer, bytes, is_read)                                                                      \
    (type *) hws_math_scalar(hws_handle->pointerMode == CUSPARSE_POINTER_MODE_DEVICE, (pointer), (bytes), (is_read),   \
                             &(type) {0}, sizeof(type) - offsetof(type, value))

/* Gives the program a number that the call has returned; the device's numbers are there already. */
#define HWS_RESULT(pointer, scalar, bytes)                                                                             \
    do {                                                                                                               \
        if (hws_handle->pointerMode != CUSPARSE_POINTER_MODE_DEVICE) {                                                 \
            memcpy((pointer), (scalar)->value, (bytes));                                                               \
        }                                                                                                              \
    } while (0)

/* Ids of the objects whose creation a generated function sends. */
static inline uint64_t hws_handle_new(hws_kind_t kind) {
    return hws_math_service()->handle_new(kind);
}

#endif

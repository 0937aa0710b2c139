/* A call of a generic function: the descriptors that it uses, and how it travels. */
#ifndef HWS_CUSPARSE_GENERIC_H
#define HWS_CUSPARSE_GENERIC_H

#include "hws_cusparse.h"

#define HWS_SPARSE_BUFFERS 3

typedef struct hws_sparse_call {
    const HwsSparseHandle *handle;
    HwsSparseOperation operation;
    HwsScalar alpha, beta;
    HwsSparseContent *a, *b, *c; /* what the function reads, and what it writes */
    HwsSparseBuffer buffers[HWS_SPARSE_BUFFERS];
} hws_sparse_call_t;

/* Begins a call of the exported function around it, whose handle has the name `handle`. */
#define CALL(name)                                                                                                     \
    HWS_ENTER();                                                                                                       \
    hws_sparse_call_t call = {.handle = HWS_DESCRIPTOR(HwsSparseHandle, handle),                                       \
                              .operation = {.function = HWS_SPARSE_##name},                                            \
                              .a = &hws_sparse_none,                                                                   \
                              .b = &hws_sparse_none,                                                                   \
                              .c = &hws_sparse_none}

extern HwsSparseContent hws_sparse_none; /* never written */

static inline cusparseStatus_t take(HwsSparseContent **content_p, const void *descriptor, uint32_t kind) {
    *content_p = hws_sparse_content(descriptor, kind);
    return *content_p != NULL ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

/* A factor, which has the type of the computation. */
static inline cusparseStatus_t number(hws_sparse_call_t *call, HwsScalar *scalar, const void *pointer,
                                      cudaDataType type) {
    return hws_math_scalar(call->handle->pointerMode == CUSPARSE_POINTER_MODE_DEVICE, pointer,
                           hws_size_element((uint64_t) type), true, scalar, sizeof scalar->value)
            != NULL
        ? CUSPARSE_STATUS_SUCCESS
        : CUSPARSE_STATUS_INVALID_VALUE;
}

static inline cusparseStatus_t use(hws_sparse_call_t *call, const void *descriptor, uint32_t tag) {
    const hws_sparse_state_t *state = descriptor;
    HWS_REQUIRE(state != NULL && state->tag == tag);
    call->operation.state = state->id;
    return CUSPARSE_STATUS_SUCCESS;
}

#endif

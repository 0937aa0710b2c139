/* Shared by the files of copies. */
#ifndef HWS_CUDART_COPY_H
#define HWS_CUDART_COPY_H

#include "runtime.h"

/* The stream of a copy or fill, and whether the call waits. */
typedef enum {
    HWS_COPY_SYNC,            /* the legacy default stream; waits */
    HWS_COPY_SYNC_PER_THREAD, /* the calling thread's default stream; waits */
    HWS_COPY_ASYNC            /* a given stream; does not wait */
} hws_copy_mode_t;

/* Copies count bytes; records and returns the error. Only HWS_COPY_ASYNC uses stream. */
cudaError_t hws_copy_linear(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, hws_copy_mode_t mode,
                            cudaStream_t stream);

/*
 * Translates the parameters of cudaMemcpy3D for the driver; the width is 0 when there is nothing to copy. Records
 * nothing. The calling thread must have entered a context.
 */
cudaError_t hws_copy_3d_params(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy);

#endif

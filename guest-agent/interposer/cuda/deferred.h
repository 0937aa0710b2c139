/*
 * Copies to the device whose bytes the guest reads when the stream reaches the copy, as the driver does. They serve
 * pinned memory that the worker cannot read itself.
 *
 * Each stream has a buffer in the worker's copy area. A part of a copy is a host function, which fills the buffer, and
 * a copy from the buffer. The stream reaches the host function when it has done the copy of the part before. The bytes
 * travel without credit and need no other stream. Streams beyond a few can share one queue of the GPU, so a copy in
 * another stream could wait for the one that waits for its bytes (seen with 8 streams, driver 580, H200).
 */
#ifndef HWS_DEFERRED_H
#define HWS_DEFERRED_H

#include "hws_cuda_types.h"

#include "shm/hws_bulk.h"

#include <stdint.h>

/*
 * Issues a copy to the device. Only `send` of its functions is called, with parts in the copy area. Returns
 * CUDA_ERROR_NOT_READY, with nothing issued, when no buffer is free: about 70 streams use one. Any thread.
 */
CUresult hws_deferred_issue(const hws_bulk_copy_t *copy, CUstream stream);

/* Ends all reading of host memory that the program is about to lose. All work has ended or failed before. Any thread. */
void hws_deferred_forget(const void *base, uint64_t bytes);

#endif

/*
 * Copies to the device whose bytes are read when the stream reaches the copy, as the driver does. They serve pinned
 * memory outside a region.
 *
 * Each stream has a buffer in the worker's copy area. Over RDMA the worker reads registered memory to that buffer. In
 * all other cases a part of a copy is a host function, which fills the buffer, and a copy from the buffer. The stream
 * reaches the host function when it has done the copy of the part before. The bytes travel without credit and need no
 * other stream. Streams beyond a few can share one queue of the GPU, so a copy in another stream could wait for the one
 * that waits for its bytes (seen with 8 streams, driver 580, H200).
 */
#ifndef HWS_DEFERRED_H
#define HWS_DEFERRED_H

#include "hws_cuda_types.h"

#include "shm/hws_bulk.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Issues a copy to the device. Only `send` of its functions is called, with parts in the copy area. Returns
 * CUDA_ERROR_NOT_READY, with nothing issued, when no buffer is free: about 70 streams use one. Any thread.
 */
CUresult hws_deferred_issue(const hws_bulk_copy_t *copy, CUstream stream);

/*
 * Issues a copy to the device that the worker's adapter reads by itself, over RDMA. `at_once`: the stream has no work.
 * Returns CUDA_ERROR_NOT_READY, with nothing issued, where that is not possible: over another carrier, for memory that is
 * not registered (direct.h), while many copies are unfinished, or when no buffer is free. It is not possible either when
 * a device could take the bytes over before the stream reaches the copy: only this process then knows where they are.
 * Any thread.
 */
CUresult hws_deferred_read(CUdeviceptr dst, const void *src, uint64_t bytes, CUstream stream, bool at_once);

/* Ends all reading of host memory that the program is about to lose. All work has ended or failed before. Any thread. */
void hws_deferred_forget(const void *base, uint64_t bytes);

#endif

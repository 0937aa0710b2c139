/* Shared by plain copies and copies of boxes: which side an address is on, and which memory may be copied. */
#ifndef HWS_COPY_H
#define HWS_COPY_H

#include "hws_driver.h"
#include "hws_interval.h"

#include "shm/hws_bulk.h"

/*
 * Whether a unified address means device memory. An address of our host memory does not count as the device's, unless
 * the device has the bytes: shadow.h.
 */
bool hws_copy_is_device(CUdeviceptr address);

/* The kinds of the process's memory in a copy. */
typedef enum hws_host {
    HWS_HOST_PAGEABLE,
    HWS_HOST_PINNED, /* registered, or allocated without a region: a copy to it may outlast the call */
    HWS_HOST_SHARED, /* allocated in the region's heap: the worker reads and writes it in stream order */
} hws_host_t;

/*
 * The kind of host memory that contains the bytes. Bytes that only begin in pinned memory are pageable: the memory
 * after the pinned allocation is not the program's to copy. For HWS_HOST_SHARED *region_offset_p receives their offset
 * in the region.
 */
hws_host_t hws_copy_host(const void *host, uint64_t bytes, uint64_t *region_offset_p);

/* Whether a copy of pageable memory uses chunks: there is a region, and the copy is long enough. */
bool hws_copy_in_chunks(uint64_t bytes, bool to_device);

/* Sends the bytes of a copy to the device in records. Returns when they have been read. */
typedef CUresult hws_copy_now_t(const hws_bulk_copy_t *copy);

/*
 * Copies memory that the worker cannot read to the device. Pageable bytes are read before the call returns; pinned
 * bytes (`host`) when the stream reaches the copy. `now` serves copies that use no chunks.
 */
CUresult hws_copy_to_device(const hws_bulk_copy_t *copy, CUdeviceptr dst, hws_host_t host, CUstream stream,
                            hws_copy_now_t *now, bool wait);

/*
 * CUDA_ERROR_INVALID_VALUE unless the bytes, at least 1, lie in one allocation of a device. Exposes pinned memory at
 * its first use: shadow.h.
 */
CUresult hws_copy_check_device(CUdeviceptr address, uint64_t bytes);

/* cuMemcpy3D of any kind; without waiting, cuMemcpy3DAsync. */
CUresult hws_copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, bool wait);

/*
 * Copies device memory to pageable memory, and returns when the bytes have arrived. / The other way: returns when they
 * have been read. Neither checks its arguments, nor waits for more than its stream.
 */
CUresult hws_copy_fetch(void *dst, CUdeviceptr src, uint64_t bytes, CUstream stream);
CUresult hws_copy_send(CUdeviceptr dst, const void *src, uint64_t bytes, CUstream stream);

/*
 * Begins to fetch bytes to memory of the library, in one record. hws_channel_wait_for_target() waits for them. For threads
 * that move pages; returns CUDA_ERROR_NOT_READY when too many copies are unfinished.
 */
CUresult hws_copy_begin_fetch(void *dst, CUdeviceptr src, uint64_t bytes, CUstream stream);

/*
 * Ends a blocking copy or fill on the device with this result, at up to two places (0: none). The host sees managed
 * memory, so the call then waits for its stream.
 */
CUresult hws_copy_settle(CUresult result, CUdeviceptr dst, CUdeviceptr src, CUstream stream);

/*
 * Waits for a stream by this call, or queries it. After success the host may look at the results of the stream's work.
 * Returns the call's result.
 */
CUresult hws_copy_wait_by(CUresult (*call)(CUstream), CUstream stream);

/* Waits for the stream before the guest itself copies from host to host. */
CUresult hws_copy_wait(CUstream stream);

/*
 * Ends a blocking copy to this place on the device whose bytes have been sent. Programs expect the copy to be complete,
 * also in streams that do not wait for the copy's stream, and for the host, which sees managed memory. In these cases
 * this waits. Work of all other streams comes later anyway.
 */
CUresult hws_copy_end(CUdeviceptr dst, CUstream stream);

#endif

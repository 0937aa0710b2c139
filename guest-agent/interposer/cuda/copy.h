/* What plain copies and copies of boxes share: which side an address is on, and what may be copied. */
#ifndef HWS_COPY_H
#define HWS_COPY_H

#include "hws_driver.h"
#include "hws_interval.h"

/* Whether a unified address means device memory. What we gave out as host memory is never taken for the device's. */
bool hws_copy_is_device(CUdeviceptr address);

/* What kind of memory of the process a copy has to do with. */
typedef enum hws_host {
    HWS_HOST_PAGEABLE,
    HWS_HOST_PINNED, /* registered, or allocated where there was no region: a copy to it may go on after the call */
    HWS_HOST_SHARED, /* allocated in the region's heap: the worker reads and writes it in stream order */
} hws_host_t;

/*
 * What kind of host memory the bytes lie in. Bytes that only begin in pinned memory are pageable: what is behind it is
 * not the program's to copy by. For HWS_HOST_SHARED *region_offset_p receives their offset in the region.
 */
hws_host_t hws_copy_host(const void *host, uint64_t bytes, uint64_t *region_offset_p);

/* Whether a copy of pageable memory goes through chunks: there is a region, and the copy is long enough. */
bool hws_copy_in_chunks(uint64_t bytes, bool to_device);

/* CUDA_ERROR_INVALID_VALUE unless the bytes, at least 1, lie in one allocation of a device. */
CUresult hws_copy_check_device(CUdeviceptr address, uint64_t bytes);

/* cuMemcpy3D of any kind; without waiting, cuMemcpy3DAsync. */
CUresult hws_copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, bool wait);

/* Waits for the stream: before the host copies from host to host in its stead. */
CUresult hws_copy_wait(CUstream stream);

/*
 * Ends a blocking copy to the device whose bytes have been sent. Programs take it for done, also in streams that do not
 * wait for the copy's: where such exist, this waits. All other streams' work comes behind it anyway.
 */
CUresult hws_copy_end(CUstream stream);

#endif

/* What plain copies and copies of boxes share: which side an address is on, and what may be copied. */
#ifndef HWS_COPY_H
#define HWS_COPY_H

#include "hws_driver.h"
#include "hws_interval.h"

/* Whether a unified address means device memory. What we gave out as host memory is never taken for the device's. */
bool hws_copy_is_device(CUdeviceptr address);

/* Whether the bytes lie in pinned host memory, so that a copy to them may go on after the call. */
bool hws_copy_is_pinned(const void *host, uint64_t bytes);

/* CUDA_ERROR_INVALID_VALUE unless the bytes lie in one allocation of a device. */
CUresult hws_copy_check_device(CUdeviceptr address, uint64_t bytes);

/* Waits for the stream: before the host copies from host to host in its stead. */
CUresult hws_copy_wait(CUstream stream);

#endif

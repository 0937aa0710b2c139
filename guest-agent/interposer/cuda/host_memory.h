/* Host memory of pools: it lies in the region's heap, at one address for the host and for kernels. */
#ifndef HWS_HOST_MEMORY_H
#define HWS_HOST_MEMORY_H

#include "hws_driver.h"

/*
 * Allocates at least 1 byte for a pool. Needs a current context. Any thread, as the next. Errors:
 * CUDA_ERROR_OUT_OF_MEMORY when the heap is full, CUDA_ERROR_NOT_SUPPORTED when kernels see it at another address.
 */
CUresult hws_host_memory_allocate(uint64_t bytes, uint64_t pool, CUdeviceptr *address_p);

/* Frees such memory after all work. CUDA_ERROR_INVALID_VALUE for other memory. */
CUresult hws_host_memory_free(uint64_t address);

#endif

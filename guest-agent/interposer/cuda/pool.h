/* Memory pools in the guest: the current pool, and the memory in use of each. */
#ifndef HWS_POOL_H
#define HWS_POOL_H

#include "hws_driver.h"

/* The pool from which a device allocates in stream order. */
CUresult hws_pool_current(CUdevice device, CUmemoryPool *pool_p);

#define HWS_POOL_DEVICE_NONE (-2)
#define HWS_POOL_DEVICE_MANAGED (-3)

/*
 * Begins an allocation from a pool that lives in the guest: counts it against the pool's limit, and sets the device of
 * the arena to allocate from, CU_DEVICE_CPU or HWS_POOL_DEVICE_MANAGED. For other pools it sets HWS_POOL_DEVICE_NONE.
 * Errors: CUDA_ERROR_INVALID_VALUE for an imported pool, CUDA_ERROR_OUT_OF_MEMORY beyond the limit.
 */
CUresult hws_pool_begin(CUmemoryPool pool, uint64_t bytes, CUdevice *device_p);

/* The device of a pool that other processes can import, or -1. */
CUdevice hws_pool_exported(uint64_t pool);

/* The device of an imported pool, or -1. */
CUdevice hws_pool_imported(uint64_t pool);

/* Makes an imported pool. */
CUresult hws_pool_import(CUdevice device, CUmemoryPool *pool_p);

/* Adds bytes to the memory in use, or (negative) subtracts them. Ignores a handle that is no pool. */
void hws_pool_charge(uint64_t pool, int64_t bytes);

#endif

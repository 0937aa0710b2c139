/* Memory pools in the guest: the current pool, and the memory in use of each. */
#ifndef HWS_POOL_H
#define HWS_POOL_H

#include "hws_driver.h"

/* The pool from which a device allocates in stream order. */
CUresult hws_pool_current(CUdevice device, CUmemoryPool *pool_p);

/* Adds bytes to the memory in use, or (negative) subtracts them. Ignores a handle that is no pool. */
void hws_pool_charge(uint64_t pool, int64_t bytes);

#endif

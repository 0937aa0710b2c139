/* Memory pools as the guest keeps them: which is current, and how much of each is in use. */
#ifndef HWS_POOL_H
#define HWS_POOL_H

#include "hws_driver.h"

/* The pool that a device allocates from in stream order. */
CUresult hws_pool_current(CUdevice device, CUmemoryPool *pool_p);

/* Counts bytes as in use, or (negative) as no longer. A handle that is no pool's is ignored. */
void hws_pool_charge(uint64_t pool, int64_t bytes);

#endif

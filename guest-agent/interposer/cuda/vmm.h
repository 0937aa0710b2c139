/* Memory of the virtual memory management, for the files that share it with other processes. */
#ifndef HWS_VMM_H
#define HWS_VMM_H

#include "hws_driver.h"
#include "hws_share.h"

#include <pthread.h>

/* Memory without an address; kept with its handle. Lock held. */
typedef struct hws_allocation {
    uint64_t bytes;
    CUmemAllocationProp prop;
    uint64_t references;
    uint64_t mappings;
    uint64_t descriptors;
    bool named; /* it has been exported or imported */
    uint64_t name[HWS_SHARE_NAME_WORDS];
} hws_allocation_t;

/* Guards all tables. Never held during a call to the worker, because unmapping waits for running work. */
extern pthread_mutex_t hws_vmm_lock;

/* The memory of a handle; NULL for an invalid one. Lock held. */
hws_allocation_t *hws_allocation_get(uint64_t handle);

/* The memory that the program names by the handle; NULL when it has no reference. Lock held. */
hws_allocation_t *hws_allocation_named(CUmemGenericAllocationHandle handle);

/* Whether nothing needs the allocation any more. Lock held. */
bool hws_allocation_unused(const hws_allocation_t *allocation);

/* Frees an unused allocation. Lock not held. */
CUresult hws_allocation_release(uint64_t handle);

/* Frees memory that only closed descriptors have kept. Lock not held. */
void hws_vmm_free_forgotten(void);

#endif

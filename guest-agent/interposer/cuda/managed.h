/* Managed memory: pinned memory of the region that devices see at the process's address. */
#ifndef HWS_MANAGED_H
#define HWS_MANAGED_H

#include "hws_driver.h"

/* Finds out whether this session can have such memory. Once, at the start. */
CUresult hws_managed_find(bool *possible_p);

/* Frees the memory that begins at the address, after earlier work has ended. */
CUresult hws_managed_free(CUdeviceptr address);

#endif

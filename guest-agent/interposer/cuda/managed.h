/* Managed memory: pinned memory of the region that devices see at the address where the process does. */
#ifndef HWS_MANAGED_H
#define HWS_MANAGED_H

#include "hws_driver.h"

/* Asks whether there can be such memory in this session. Once, at the start. */
CUresult hws_managed_find(bool *possible_p);

/* Frees what begins at the address, when work that was issued before has ended. */
CUresult hws_managed_free(CUdeviceptr address);

#endif

/* Memory of other processes' pools. It is opened like memory of IPC handles, but freed like memory of a pool. */
#ifndef HWS_IPC_H
#define HWS_IPC_H

#include "hws_driver.h"

/* Opens memory by its name, or counts a further opening. Needs a current context. Any thread, as the next. */
CUresult hws_ipc_open_pooled(const uint64_t name[2], CUdevice device, uint64_t pool, CUdeviceptr *address_p);

/* Ends one opening; the last waits for all work. Other memory is CUDA_ERROR_INVALID_VALUE. */
CUresult hws_ipc_close_pooled(CUdeviceptr address);

#endif

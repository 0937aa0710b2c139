/* Host functions that wait for their turn in a stream. */
#ifndef HWS_CALLBACK_H
#define HWS_CALLBACK_H

#include "hws_cuda_types.h"

#include <stdint.h>

/* Runs the function that the id names and forgets it; on the channel's callback thread. An unknown id is ignored. */
void hws_hostcall_run(uint64_t id, int status);

#endif

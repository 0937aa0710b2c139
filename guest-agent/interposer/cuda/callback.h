/* Host functions that wait in a stream. */
#ifndef HWS_CALLBACK_H
#define HWS_CALLBACK_H

#include "hws_cuda_types.h"

#include <stdint.h>

/* Runs the host function with that id and removes it. Callback thread of the channel. Ignores an unknown id. */
void hws_hostcall_run(uint64_t id, int status);

#endif

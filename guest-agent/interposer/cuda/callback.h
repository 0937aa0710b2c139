/* Host functions that wait in a stream. */
#ifndef HWS_CALLBACK_H
#define HWS_CALLBACK_H

#include "hws_cuda_types.h"

#include <stdint.h>

/* Runs the host function with that id and removes it. A callback's thread of the channel. Ignores an unknown id. */
void hws_hostcall_run(uint64_t id, int status);

/* A function of the library. It may make calls that never wait for work. `status`: the stream's error, else 0. */
typedef void hws_hostcall_copy_t(void *argument, int status);

/*
 * Makes the stream wait for such a function, which runs once when the stream reaches it or has failed. The program's
 * host functions do not delay it.
 */
CUresult hws_hostcall_issue_copy(CUstream stream, hws_hostcall_copy_t *run, void *argument);

#endif

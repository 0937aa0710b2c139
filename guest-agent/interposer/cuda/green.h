/* Green contexts, for the end of their primary context. */
#ifndef HWS_GREEN_H
#define HWS_GREEN_H

#include "hws_cuda_types.h"

/* Ends all green contexts of a primary context that is about to end. Any thread. */
void hws_green_end_all(CUcontext primary);

#endif

/* Kept answers about occupancy. Any thread. */
#ifndef HWS_OCCUPANCY_H
#define HWS_OCCUPANCY_H

#include "hws_driver.h"

/* Discards all answers: an attribute or a preference that they depend on has changed. */
void hws_occupancy_forget(void);

/*
 * Whether `blocks` exceeds the number of the kernel's blocks that the device holds at a time, without clusters. The
 * first question goes to the worker. False when the worker does not know.
 */
bool hws_occupancy_is_too_large(CUfunction function, int block_size, size_t dynamic_bytes, uint64_t blocks);

#endif

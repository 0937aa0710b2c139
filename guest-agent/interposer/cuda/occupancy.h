/* Answers about occupancy that this process keeps. Any thread. */
#ifndef HWS_OCCUPANCY_H
#define HWS_OCCUPANCY_H

#include "hws_driver.h"

/* Forgets all answers: an attribute or a preference that they depend on has changed. */
void hws_occupancy_forget(void);

/*
 * Whether more blocks are wanted at a time than the device holds of the kernel, without clusters. Travels at the first
 * question; false when the worker does not know.
 */
bool hws_occupancy_is_too_large(CUfunction function, int block_size, size_t dynamic_bytes, uint64_t blocks);

#endif

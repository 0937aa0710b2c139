/* Pinned memory in the region's heap. Devices access it directly. */
#ifndef HWS_PINNED_H
#define HWS_PINNED_H

#include "hws_driver.h"

#include "shm/hws_heap.h"

/*
 * Allocates at least 1 byte of the heap and maps it for devices where possible. *memory_p receives the address; the
 * bytes are 0. Returns HWS_HEAP_FULL when the heap has no room or the session no region, or the worker's error.
 */
int hws_pinned_allocate(uint64_t bytes, hws_heap_block_t *block_p, void **memory_p);

/* Frees memory of hws_pinned_allocate() when earlier work cannot use it any more. */
CUresult hws_pinned_free(void *memory, uint64_t bytes);

/* Waits for the work of all contexts, as CUDA does before it frees host memory. Returns their error, if any. */
CUresult hws_pinned_settle(void);

/* Logs once that the heap is full; does nothing without a heap. Returns whether the session has one. */
bool hws_pinned_log_full(void);

/* Free bytes of the heap, and its size: for messages. */
void hws_pinned_usage(uint64_t *available_p, uint64_t *total_p);

#endif

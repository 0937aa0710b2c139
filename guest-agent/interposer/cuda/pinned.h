/* Pinned memory in the region's heap, which devices reach without a copy. */
#ifndef HWS_PINNED_H
#define HWS_PINNED_H

#include "hws_driver.h"

#include "shm/hws_heap.h"

/*
 * Allocates in the heap, at least 1 byte, and lets devices see it where they can. *memory_p receives the address, its
 * bytes 0. Returns HWS_HEAP_FULL when the heap has no room or the session no region, or the worker's refusal.
 */
int hws_pinned_allocate(uint64_t bytes, hws_heap_block_t *block_p, void **memory_p);

/* Gives back what hws_pinned_allocate() gave, when no work that was issued before can use it any more. */
CUresult hws_pinned_free(void *memory, uint64_t bytes);

/* Waits for the work of all contexts, as CUDA does before it takes host memory back. Returns their error, if any. */
CUresult hws_pinned_settle(void);

/* Says once on stderr that the heap is full; nothing when the session has none. Returns whether it has one. */
bool hws_pinned_say_full(void);

/* Bytes of the heap that nobody has, and all of them: for messages. */
void hws_pinned_usage(uint64_t *available_p, uint64_t *total_p);

#endif

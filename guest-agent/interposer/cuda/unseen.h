/*
 * Pinned memory that devices do not see yet: registered memory, and over TCP all of it. Unified addressing lets a program pass the host's
 * address without requesting a device pointer. A launch therefore exposes the blocks to which the kernel's arguments
 * point (shadow.h). For memory that cannot be exposed, the kernel ends with error 700; the guest reports the cause once,
 * at the launch.
 */
#ifndef HWS_UNSEEN_H
#define HWS_UNSEEN_H

#include "module.h"

/* Whether such memory exists. */
extern _Atomic bool hws_unseen_watched;

/* Adds and removes a range. Ranges do not overlap. Any thread. A range for which memory is short is not watched. */
void hws_unseen_add(uint64_t base, uint64_t bytes);
void hws_unseen_remove(uint64_t base);

/* The slow half of hws_unseen_look(). Takes no lock unless a word points into such memory, or the list changes. */
CUresult hws_unseen_search(const hws_function_t *function, const uint8_t *packed);

/*
 * Exposes the memory to which the 8-byte aligned words of a kernel's packed arguments point. Returns an error when device
 * memory is short. Costs one load without such memory.
 */
static inline CUresult hws_unseen_look(const hws_function_t *function, const uint8_t *packed) {
    return __builtin_expect(atomic_load_explicit(&hws_unseen_watched, memory_order_relaxed), 0)
        ? hws_unseen_search(function, packed)
        : CUDA_SUCCESS;
}

#endif

/*
 * Pinned memory that devices cannot see: over TCP all of it. Unified addressing lets a program pass the host's address
 * without requesting a device pointer; the kernel then ends with error 700. The guest reports the cause once, at the
 * launch.
 */
#ifndef HWS_UNSEEN_H
#define HWS_UNSEEN_H

#include "module.h"

/* Whether such memory exists and the line has not been printed. */
extern _Atomic bool hws_unseen_watched;

/*
 * Adds and removes a range in a session over TCP; without effect in another. Ranges do not overlap. Any thread. A range
 * for which memory is short is not watched.
 */
void hws_unseen_add(uint64_t base, uint64_t bytes);
void hws_unseen_remove(uint64_t base);

/* The slow half of hws_unseen_look(). Takes no lock unless a word points into such memory. */
void hws_unseen_search(const hws_function_t *function, const uint8_t *packed);

/*
 * Checks the 8-byte aligned words of a kernel's packed arguments for such addresses. The first one prints a line. Over
 * shared memory the call costs one load.
 */
static inline void hws_unseen_look(const hws_function_t *function, const uint8_t *packed) {
    if (__builtin_expect(atomic_load_explicit(&hws_unseen_watched, memory_order_relaxed), 0)) {
        hws_unseen_search(function, packed);
    }
}

#endif

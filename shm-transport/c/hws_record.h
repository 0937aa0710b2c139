/*
 * The record as the C side uses it. What both languages must agree on, header and numbers, is generated from
 * shm-transport/layout (hws_layout.h); here is only what C adds.
 */
#ifndef HWS_RECORD_H
#define HWS_RECORD_H

#include "hws_layout.h"

/* A length rounded up to the 8 bytes that every part of a payload is aligned to. */
static inline uint64_t hws_pad8(uint64_t bytes) {
    return (bytes + HWS_ALIGNMENT_BYTES - 1) & ~(uint64_t) (HWS_ALIGNMENT_BYTES - 1);
}

#endif

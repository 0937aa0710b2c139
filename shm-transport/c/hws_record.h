/*
 * The record in C. The header and the numbers that both languages share are generated from shm-transport/layout
 * (hws_layout.h). This file adds only what C needs besides.
 */
#ifndef HWS_RECORD_H
#define HWS_RECORD_H

#include "hws_layout.h"

/* Rounds a length up to 8, the alignment of every part of a payload. */
static inline uint64_t hws_pad8(uint64_t bytes) {
    return (bytes + HWS_ALIGNMENT_BYTES - 1) & ~(uint64_t) (HWS_ALIGNMENT_BYTES - 1);
}

#endif

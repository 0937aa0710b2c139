/* The mirrored bytes of pages that hold managed variables. Other bytes of such pages are zeros that never travel. */
#ifndef HWS_MIRROR_SPANS_H
#define HWS_MIRROR_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of one variable. */
typedef struct hws_span {
    uint64_t address, bytes;
    uint32_t context; /* in which they travel */
} hws_span_t;

/* Spans by address; they do not overlap. */
typedef struct hws_spans {
    hws_span_t *items;
    size_t count, capacity;
} hws_spans_t;

/* Adds a span. Returns false when it is empty or overlaps another, or when memory is short. */
bool hws_spans_add(hws_spans_t *spans, hws_span_t span);

/* Removes the spans that lie in the range. */
void hws_spans_remove(hws_spans_t *spans, uint64_t address, uint64_t bytes);

/*
 * Stores the part of span `at` or of a later one that lies in the range of at least 1 byte, and the index after it. Returns false when
 * there is none. Begin with at = 0.
 */
bool hws_spans_next(const hws_spans_t *spans, size_t *at, uint64_t address, uint64_t bytes, hws_span_t *part_p);

void hws_spans_free(hws_spans_t *spans);

#endif

#include "mirror_spans.h"

#include <stdlib.h>
#include <string.h>

/* Index of the first span that ends above the address. */
static size_t ending_above(const hws_spans_t *spans, uint64_t address) {
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (spans->items[middle].address + spans->items[middle].bytes <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool hws_spans_add(hws_spans_t *spans, hws_span_t span) {
    size_t at = ending_above(spans, span.address);
    if (span.bytes == 0 || (at < spans->count && spans->items[at].address - span.address < span.bytes)
        || (at < spans->count && spans->items[at].address < span.address)) {
        return false;
    }
    if (spans->count == spans->capacity) {
        size_t wanted = spans->capacity == 0 ? 4 : 2 * spans->capacity;
        hws_span_t *larger = realloc(spans->items, wanted * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        spans->items = larger;
        spans->capacity = wanted;
    }
    memmove(spans->items + at + 1, spans->items + at, (spans->count - at) * sizeof *spans->items);
    spans->items[at] = span;
    spans->count++;
    return true;
}

void hws_spans_remove(hws_spans_t *spans, uint64_t address, uint64_t bytes) {
    size_t kept = 0;
    for (size_t i = 0; i < spans->count; i++) {
        const hws_span_t *span = &spans->items[i];
        bool is_inside = span->address >= address && span->address - address < bytes
            && span->bytes <= bytes - (span->address - address);
        if (!is_inside) {
            spans->items[kept++] = *span;
        }
    }
    spans->count = kept;
}

bool hws_spans_next(const hws_spans_t *spans, size_t *at, uint64_t address, uint64_t bytes, hws_span_t *part_p) {
    size_t first = ending_above(spans, address), next = *at > first ? *at : first;
    if (next == spans->count || spans->items[next].address >= address + bytes) {
        return false;
    }
    const hws_span_t *span = &spans->items[next];
    uint64_t from = span->address > address ? span->address : address;
    uint64_t span_end = span->address + span->bytes, end = address + bytes;
    *part_p =
        (hws_span_t) {.address = from, .bytes = (span_end < end ? span_end : end) - from, .context = span->context};
    *at = next + 1;
    return true;
}

void hws_spans_free(hws_spans_t *spans) {
    free(spans->items);
    *spans = (hws_spans_t) {0};
}

/* Spans of variables, against a plain list of bytes. */
#include "mirror_spans.h"

#include "hws_test.h"

#include <stdlib.h>

#define BASE 0x7f0000000000ull
#define BYTES 4096u
#define ROUNDS 20000

static hws_spans_t spans;
static uint32_t owner[BYTES]; /* 0: no span; else the context of the span that has the byte */
static uint32_t last_context;

static bool is_free(unsigned first, unsigned bytes) {
    for (unsigned i = first; i < first + bytes; i++) {
        if (owner[i] != 0) {
            return false;
        }
    }
    return true;
}

static void set_owner(unsigned first, unsigned bytes, uint32_t context) {
    for (unsigned i = first; i < first + bytes; i++) {
        owner[i] = context;
    }
}

/* Adds a span exactly where the model has room for it. */
static void add(unsigned first, unsigned bytes) {
    last_context++;
    bool fits = bytes != 0 && is_free(first, bytes);
    HWS_CHECK(hws_spans_add(&spans, (hws_span_t) {BASE + first, bytes, last_context}) == fits);
    if (fits) {
        set_owner(first, bytes, last_context);
    }
}

/* Removes the spans that lie in the range as a whole; others keep all their bytes. */
static void remove_in(unsigned first, unsigned bytes) {
    hws_spans_remove(&spans, BASE + first, bytes);
    for (unsigned at = 0; at < BYTES;) {
        unsigned end = at + 1;
        while (end < BYTES && owner[end] == owner[at]) {
            end++;
        }
        if (at >= first && end <= first + bytes) {
            set_owner(at, end - at, 0);
        }
        at = end;
    }
}

static void check(unsigned first, unsigned bytes) {
    unsigned at_byte = first;
    hws_span_t part;
    for (size_t at = 0; hws_spans_next(&spans, &at, BASE + first, bytes, &part);) {
        unsigned from = (unsigned) (part.address - BASE);
        HWS_CHECK(part.bytes != 0 && from >= at_byte && from + part.bytes <= first + bytes);
        HWS_CHECK(is_free(at_byte, from - at_byte));
        for (unsigned i = from; i < from + part.bytes; i++) {
            HWS_CHECK(owner[i] == part.context);
        }
        at_byte = from + (unsigned) part.bytes;
    }
    HWS_CHECK(is_free(at_byte, first + bytes - at_byte));
}

static void shouldAgreeWithAListOfBytes(void) {
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned first = (unsigned) rand() % BYTES,
                 bytes = (unsigned) rand() % (BYTES - first < 90 ? BYTES - first : 90);
        if (rand() % 3 == 0) {
            remove_in(first, bytes);
        } else {
            add(first, bytes);
        }
        check(first, bytes + 1);
        check(0, BYTES);
    }
    HWS_CHECK(spans.count > 10);
    remove_in(0, BYTES);
    HWS_CHECK(spans.count == 0);
    hws_spans_free(&spans);
}

int main(void) {
    HWS_RUN(shouldAgreeWithAListOfBytes);
    return 0;
}

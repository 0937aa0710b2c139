/*
 * Helpers of generated calls: they put values into a payload, get values out of it, and compute sizes that saturate at
 * the largest value instead of wrapping.
 */
#ifndef HWS_WIRE_H
#define HWS_WIRE_H

#include "hws_channel.h"
#include "hws_layout.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reports the stream of a call whose record has been sent. Costs one load while nothing watches. */
static inline void hws_watch_stream(uint64_t stream) {
    hws_stream_watcher_t *watcher = atomic_load_explicit(&hws_stream_watcher, memory_order_relaxed);
    if (__builtin_expect(watcher != NULL, 0)) {
        watcher(stream);
    }
}

/* memcpy, because a payload's values need not be aligned for the compiler; it compiles to a single store. */
#define HWS_PUT(payload, offset, type, value)                                                                          \
    do {                                                                                                               \
        type hws_value = (type) (value);                                                                               \
        memcpy((payload) + (offset), &hws_value, sizeof hws_value);                                                    \
    } while (0)

#define HWS_GET(payload, offset, type)                                                                                 \
    (__extension__({                                                                                                   \
        type hws_value;                                                                                                \
        memcpy(&hws_value, (payload) + (offset), sizeof hws_value);                                                    \
        hws_value;                                                                                                     \
    }))

/* Bytes that a buffer occupies after the fixed part; 0 for a NULL. */
static inline uint64_t hws_padded(uint64_t bytes) {
    return bytes == HWS_NULL_LENGTH ? 0 : (bytes + 7) & ~(uint64_t) 7;
}

/* Appends a buffer and zeroes up to the next multiple of 8. Returns the offset for the next buffer. */
static inline uint32_t hws_put_bytes(uint8_t *payload, uint32_t at, const void *bytes, uint64_t length) {
    if (length == 0 || length == HWS_NULL_LENGTH) {
        return at;
    }
    uint32_t next = at + (uint32_t) hws_padded(length);
    memset(payload + next - 8, 0, 8);
    memcpy(payload + at, bytes, length);
    return next;
}

static inline uint64_t hws_size_add(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t hws_size_multiply(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Span in memory of `rows` rows of `width` bytes that are `pitch` bytes apart. */
static inline uint64_t hws_size_box(uint64_t pitch, uint64_t rows, uint64_t width) {
    return rows == 0 || width == 0 ? 0 : hws_size_add(hws_size_multiply(pitch, rows - 1), width);
}

/* Bytes of a number of a cudaDataType; 0 for an unknown type, and for one without whole bytes. */
uint64_t hws_size_element(uint64_t type);

/* Bytes of the factors of a product: they have the type of the computation, complex when the matrices are. */
uint64_t hws_size_compute(uint64_t compute, uint64_t type);

/* A part of a payload in which calls may differ and still be equal to hws_probe(). */
typedef struct hws_vary {
    uint32_t offset;
    uint32_t bytes;
    bool address; /* of device memory: its alignment counts, and whether it is NULL */
} hws_vary_t;

/*
 * Sends a call without outputs. The first call with a content waits for the worker's answer. Once it is 0, calls with
 * the same content, apart from `varies`, are sent without waiting, and a later call reports their errors. Returns 0,
 * the worker's answer, or why the record was not sent.
 */
int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count);

/*
 * As hws_call() for a question whose answer depends on the payload without the ranges and the current context only: an
 * equal question gets the first one's reply. Failures are not remembered.
 */
int hws_ask(uint32_t opcode, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges, uint32_t count,
            void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p);

/* Removes from a payload what does not belong to its kind. */
static inline void hws_reduce(uint8_t *payload, const hws_vary_t *ranges, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = payload + ranges[i].offset;
        if (!ranges[i].address) {
            memset(at, 0, ranges[i].bytes);
            continue;
        }
        uint64_t address;
        memcpy(&address, at, sizeof address);
        address = (address & 0xff) | (address != 0 ? 0x100 : 0); /* cudaMalloc aligns to 256 */
        memcpy(at, &address, sizeof address);
    }
}

/* Ends the session: the reply's length contradicts its fields, so the worker is not one of Hawser's. */
__attribute__((cold)) static inline int hws_bad_reply(const char *function, uint32_t reply_bytes) {
    return hws_channel_fail(HWS_LOST_STATUS, "the reply to %s has a wrong length: replyBytes=%u", function,
                            reply_bytes);
}

#endif

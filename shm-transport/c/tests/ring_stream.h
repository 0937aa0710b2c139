/*
 * A stream of records that its reader can check with the seed alone. Record n begins with its length and n; the
 * following words are hashes of their places. The same in Java: io.hawser.interop.RecordStream.
 */
#ifndef HWS_RING_STREAM_H
#define HWS_RING_STREAM_H

#include "../shm/hws_ring.h"
#include "../shm/hws_wait.h"
#include "hws_test.h"

#include <string.h>

#define STREAM_LARGEST_BYTES (1u << 20)
#define STREAM_LARGEST_WORDS (STREAM_LARGEST_BYTES / 8)
#define STREAM_TIMEOUT_NS 3600000000000u /* a lost wake-up makes a test hang, not slow */

/* One direction: the ring's end, and the words for waiting for the other end and waking it. */
typedef struct stream_end {
    hws_ring_t ring;
    hws_spin_t spin;
    uint32_t *own_waiting; /* set here before sleeping */
    uint32_t *own_signal;  /* slept on here */
    uint32_t *peer_waiting;
    uint32_t *peer_signal;
    uint64_t sleeps;
} stream_end_t;

static inline uint64_t stream_hash(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Length of record n in words of 8 bytes: mostly small, sometimes longer than a ring. */
static inline uint64_t stream_words(uint64_t seed, uint64_t n, uint64_t most) {
    uint64_t hash = stream_hash(seed ^ n);
    uint64_t bound = (hash & 0xff) == 0 ? most : (hash & 0xf) == 0 ? 512 : 16;
    return 1 + (hash >> 8) % (bound < most ? bound : most);
}

static inline uint64_t stream_now(stream_end_t *end, bool writer) {
    uint64_t now = writer ? hws_ring_room(&end->ring) : hws_ring_available(&end->ring);
    HWS_CHECK(now != HWS_RING_CORRUPT);
    return now;
}

/* Waits until there is room or something to read, and returns the number of bytes. */
static inline uint64_t stream_wait(stream_end_t *end, bool writer) {
    uint64_t now = stream_now(end, writer);
    if (now != 0) {
        return now;
    }
    hws_spin_begin(&end->spin);
    while ((now = stream_now(end, writer)) == 0 && hws_spin_once(&end->spin)) {
    }
    bool slept = now == 0;
    while (now == 0) {
        uint32_t seen = hws_wait_prepare(end->own_waiting, end->own_signal);
        now = stream_now(end, writer);
        if (now == 0) {
            end->sleeps++;
            hws_wait_sleep(end->own_signal, seen, STREAM_TIMEOUT_NS);
            now = stream_now(end, writer);
        }
    }
    hws_spin_end(&end->spin, slept);
    return now;
}

static inline void stream_send(stream_end_t *end, const void *bytes, uint64_t count) {
    const uint8_t *from = bytes;
    while (count != 0) {
        uint64_t room = hws_ring_has_room(&end->ring, count) ? count : stream_wait(end, true);
        uint64_t part = room < count ? room : count;
        hws_ring_put(&end->ring, from, part);
        hws_ring_commit(&end->ring);
        hws_wake(end->peer_waiting, end->peer_signal);
        from += part;
        count -= part;
    }
}

static inline void stream_receive(stream_end_t *end, void *bytes, uint64_t count) {
    uint8_t *to = bytes;
    while (count != 0) {
        uint64_t available = stream_wait(end, false);
        uint64_t part = available < count ? available : count;
        hws_ring_take(&end->ring, to, part);
        hws_ring_release(&end->ring);
        hws_wake(end->peer_waiting, end->peer_signal);
        to += part;
        count -= part;
    }
}

static inline void stream_send_all(stream_end_t *end, uint64_t seed, uint64_t records, uint64_t most) {
    uint64_t *record = malloc(most * 8);
    HWS_CHECK(record != NULL);
    for (uint64_t n = 0; n < records; n++) {
        uint64_t words = stream_words(seed, n, most);
        record[0] = words * 8 | n << 32;
        for (uint64_t i = 1; i < words; i++) {
            record[i] = stream_hash(seed + n * STREAM_LARGEST_WORDS + i);
        }
        stream_send(end, record, words * 8);
    }
    free(record);
}

static inline void stream_receive_all(stream_end_t *end, uint64_t seed, uint64_t records, uint64_t most) {
    uint64_t *record = malloc(most * 8);
    HWS_CHECK(record != NULL);
    for (uint64_t n = 0; n < records; n++) {
        uint64_t words = stream_words(seed, n, most);
        stream_receive(end, record, 8);
        HWS_CHECK(record[0] == (words * 8 | n << 32));
        stream_receive(end, record + 1, (words - 1) * 8);
        for (uint64_t i = 1; i < words; i++) {
            HWS_CHECK(record[i] == stream_hash(seed + n * STREAM_LARGEST_WORDS + i));
        }
    }
    free(record);
}

#endif

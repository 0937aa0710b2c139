/* The ring: explanation/wire.md, "Rings". The same in Java: io.hawser.shm.ring.RingWriter and RingReader. */
#include "hws_ring.h"

#include <assert.h>
#include <string.h>

/*
 * How far ahead of its position a writer asks for the ring's memory. The reader's processor has these lines from the
 * last round. A writer that came to them without having asked would wait for each.
 */
#define AHEAD_BYTES 512u
#define LINE_BYTES 64u

#define VISIBLE(position) ((position) & ~(uint64_t) 7)

static void attach(hws_ring_t *ring, void *bytes, uint64_t size, uint64_t *own_word, uint64_t *peer_word) {
    assert(size >= 8 && (size & (size - 1)) == 0);
    *ring = (hws_ring_t) {.bytes = bytes, .size = size, .own_word = own_word, .peer_word = peer_word};
}

void hws_ring_attach_writer(hws_ring_t *ring, void *bytes, uint64_t size, uint64_t *head, uint64_t *tail) {
    attach(ring, bytes, size, tail, head);
}

void hws_ring_attach_reader(hws_ring_t *ring, void *bytes, uint64_t size, uint64_t *head, uint64_t *tail) {
    attach(ring, bytes, size, head, tail);
}

/* Bytes from the position to the end of the ring, at most `bytes`: the first of a copy's two pieces. */
static uint64_t first_piece(const hws_ring_t *ring, uint64_t at, uint64_t bytes) {
    return bytes < ring->size - at ? bytes : ring->size - at;
}

uint64_t hws_ring_room(hws_ring_t *ring) {
    uint64_t head = __atomic_load_n(ring->peer_word, __ATOMIC_ACQUIRE); /* pairs with hws_ring_release() */
    if (head - ring->peer_cached > ring->published - ring->peer_cached || (head & 7) != 0) {
        return HWS_RING_CORRUPT;
    }
    ring->peer_cached = head;
    return ring->size - (ring->own_position - head);
}

/* Fetches a line for writing. Without the instruction, processors since 2005 ignore it. */
static void prefetch_for_write(const void *line) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const uint8_t *) line));
#else
    __builtin_prefetch(line, 1);
#endif
}

static void prefetch_ahead(const hws_ring_t *ring, uint64_t bytes) {
    uint64_t from = (ring->own_position + AHEAD_BYTES) & ~(uint64_t) (LINE_BYTES - 1);
    uint64_t to = ring->own_position + AHEAD_BYTES + bytes;
    for (; from < to && bytes <= AHEAD_BYTES; from += LINE_BYTES) {
        prefetch_for_write(ring->bytes + (from & (ring->size - 1)));
    }
}

void hws_ring_put(hws_ring_t *ring, const void *source, uint64_t bytes) {
    assert(hws_ring_has_room(ring, bytes));
    prefetch_ahead(ring, bytes);
    /* SAFETY: at < size and bytes <= size, so the first piece ends in the ring and the second begins at its start. */
    uint64_t at = ring->own_position & (ring->size - 1);
    uint64_t first = first_piece(ring, at, bytes);
    memcpy(ring->bytes + at, source, first);
    if (first != bytes) {
        memcpy(ring->bytes, (const uint8_t *) source + first, bytes - first);
    }
    ring->own_position += bytes;
}

void hws_ring_commit(hws_ring_t *ring) {
    ring->published = VISIBLE(ring->own_position);
    __atomic_store_n(ring->own_word, ring->published, __ATOMIC_RELEASE); /* pairs with hws_ring_available() */
}

void hws_ring_abort(hws_ring_t *ring) {
    ring->own_position = ring->published;
}

uint64_t hws_ring_available(hws_ring_t *ring) {
    uint64_t tail = __atomic_load_n(ring->peer_word, __ATOMIC_ACQUIRE); /* pairs with hws_ring_commit() */
    /* Since the tail seen last, the writer can have advanced by at most the room that was released to it. */
    if (tail - ring->peer_cached > ring->size - (ring->peer_cached - ring->published) || (tail & 7) != 0) {
        return HWS_RING_CORRUPT;
    }
    ring->peer_cached = tail;
    return tail - ring->own_position;
}

void hws_ring_take(hws_ring_t *ring, void *target, uint64_t bytes) {
    assert(bytes <= ring->peer_cached - ring->own_position);
    /* SAFETY: at < size and bytes <= size, as in hws_ring_put(). */
    uint64_t at = ring->own_position & (ring->size - 1);
    uint64_t first = first_piece(ring, at, bytes);
    memcpy(target, ring->bytes + at, first);
    if (first != bytes) {
        memcpy((uint8_t *) target + first, ring->bytes, bytes - first);
    }
    ring->own_position += bytes;
}

void hws_ring_release(hws_ring_t *ring) {
    ring->published = VISIBLE(ring->own_position);
    __atomic_store_n(ring->own_word, ring->published, __ATOMIC_RELEASE); /* pairs with hws_ring_room() */
}

/*
 * One end of a byte stream through shared memory: wire.md, "Region". The other end may be hostile: each of
 * its words is read once, into a local, and checked. A position counts all bytes since the start; its low bits are the
 * place in the ring. Positions that the other end sees are multiples of 8, as records are.
 *
 * The caller passes addresses of memory that it has mapped. These functions never allocate, lock or make a system call.
 * One thread at a time at each end. hws_wait.h waits for the other end.
 */
#ifndef HWS_RING_H
#define HWS_RING_H

#include <stdbool.h>
#include <stdint.h>

/* Result of hws_ring_room() and hws_ring_available() for an impossible position of the other end: end the session. */
#define HWS_RING_CORRUPT UINT64_MAX

/* One end of a ring; private memory. Only the ring uses the fields; tests may read them. */
typedef struct hws_ring {
    uint8_t *bytes;
    uint64_t size;         /* a power of two */
    uint64_t *own_word;    /* a writer's tail, a reader's head: this end writes it and never reads it back */
    uint64_t *peer_word;   /* the other end's word */
    uint64_t own_position; /* this end has put or taken bytes up to here */
    uint64_t published;    /* the value of own_word */
    uint64_t peer_cached;  /* the last valid peer_word */
} hws_ring_t;

/*
 * Attaches the writing end to a fresh ring, whose positions the caller has set to 0. bytes: size bytes of shared
 * memory; size: a power of two, at least 8; head and tail: aligned words of shared memory.
 */
void hws_ring_attach_writer(hws_ring_t *ring, void *bytes, uint64_t size, uint64_t *head, uint64_t *tail);

/* Attaches the reading end to a fresh ring in the same way. */
void hws_ring_attach_reader(hws_ring_t *ring, void *bytes, uint64_t size, uint64_t *head, uint64_t *tail);

/*
 * Writer: bytes that can be put now; HWS_RING_CORRUPT when the reader's head went back, or beyond the committed bytes.
 */
uint64_t hws_ring_room(hws_ring_t *ring);

/*
 * Writer: whether `bytes` can be put, by the head seen last. Cheaper, because it does not touch the reader's cache
 * line.
 */
static inline bool hws_ring_has_room(const hws_ring_t *ring, uint64_t bytes) {
    return bytes <= ring->size - (ring->own_position - ring->peer_cached);
}

/* Writer: copies bytes in, at most the result of hws_ring_room(). The reader sees them after a commit. */
void hws_ring_put(hws_ring_t *ring, const void *source, uint64_t bytes);

/* Writer: makes the put bytes visible, in multiples of 8; a remainder stays for the next commit. */
void hws_ring_commit(hws_ring_t *ring);

/* Writer: discards the bytes that were put since the last commit. */
void hws_ring_abort(hws_ring_t *ring);

/* Reader: bytes that can be taken now; HWS_RING_CORRUPT when the writer's tail went back, or beyond the ring's size. */
uint64_t hws_ring_available(hws_ring_t *ring);

/* Reader: copies bytes out to private memory, at most the result of hws_ring_available(). */
void hws_ring_take(hws_ring_t *ring, void *target, uint64_t bytes);

/* Reader: returns the room of taken bytes to the writer, in multiples of 8 as hws_ring_commit() does. */
void hws_ring_release(hws_ring_t *ring);

#endif

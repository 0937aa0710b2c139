/*
 * One end of a byte stream through shared memory: architecture.md, section 2.6. The other end may be hostile: whatever
 * it writes is read once, into a local, and checked. A position counts all bytes ever; its low bits are the place in
 * the ring. Positions that the other end can see are multiples of 8, as records are.
 *
 * The caller gives addresses inside memory that it has mapped; nothing here allocates, locks or makes a system call.
 * One thread at a time at each end. Waiting for the other end is hws_wait.h's job.
 */
#ifndef HWS_RING_H
#define HWS_RING_H

#include <stdbool.h>
#include <stdint.h>

/* What hws_ring_room() and hws_ring_available() answer when the other end's position is none: end the session. */
#define HWS_RING_CORRUPT UINT64_MAX

/* One end of a ring; private memory. The fields are the ring's own: tests may look at them. */
typedef struct hws_ring {
    uint8_t *bytes;
    uint64_t size;         /* a power of two */
    uint64_t *own_word;    /* tail of a writer, head of a reader: written here, never read back */
    uint64_t *peer_word;   /* the other one */
    uint64_t own_position; /* put or taken up to here */
    uint64_t published;    /* what own_word says */
    uint64_t peer_cached;  /* the last good peer_word */
} hws_ring_t;

/*
 * Attaches the writing end to a fresh ring: both positions 0, which this does not store. bytes: size bytes of shared
 * memory; size: a power of two, at least 8; head and tail: aligned words of shared memory.
 */
void hws_ring_attach_writer(hws_ring_t *ring, void *bytes, uint64_t size, uint64_t *head, uint64_t *tail);

/* Attaches the reading end to a fresh ring, in the same way. */
void hws_ring_attach_reader(hws_ring_t *ring, void *bytes, uint64_t size, uint64_t *head, uint64_t *tail);

/* Writer: bytes that can be put now; HWS_RING_CORRUPT when the reader's head went back, or past what was committed. */
uint64_t hws_ring_room(hws_ring_t *ring);

/* Writer: whether `bytes` can be put, by the head seen last: cheaper, as it leaves the reader's cache line alone. */
static inline bool hws_ring_has_room(const hws_ring_t *ring, uint64_t bytes) {
    return bytes <= ring->size - (ring->own_position - ring->peer_cached);
}

/* Writer: copies bytes in, at most what hws_ring_room() answered; not visible until committed. */
void hws_ring_put(hws_ring_t *ring, const void *source, uint64_t bytes);

/* Writer: makes what was put visible; where that is no multiple of 8, the bytes behind the last one stay for later. */
void hws_ring_commit(hws_ring_t *ring);

/* Writer: forgets what was put since the last commit. */
void hws_ring_abort(hws_ring_t *ring);

/* Reader: bytes that can be taken now; HWS_RING_CORRUPT when the writer's tail went back, or past the ring's size. */
uint64_t hws_ring_available(hws_ring_t *ring);

/* Reader: copies bytes out to private memory. At most what hws_ring_available() answered. */
void hws_ring_take(hws_ring_t *ring, void *target, uint64_t bytes);

/* Reader: gives the room of what was taken back to the writer, in multiples of 8 as hws_ring_commit() does. */
void hws_ring_release(hws_ring_t *ring);

#endif

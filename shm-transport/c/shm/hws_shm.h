/*
 * The shm carrier: a session through a slot of a region of shared memory (architecture, section 2.6), and what the
 * copies need of that region.
 *
 * A process has at most one. Its memory stays mapped as long as the process lives, also after the session is lost:
 * pinned allocations lie in it. A forked child has neither the mapping (MADV_DONTFORK) nor the slot.
 */
#ifndef HWS_SHM_H
#define HWS_SHM_H

#include "../hws_carrier.h"
#include "../hws_config.h"
#include "../hws_handshake.h"
#include "hws_region.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A region whose broker does not count its beat up for so long is not waited for: another carrier may do. */
#define HWS_SHM_STILL_MS 2500u

/* The region as the session uses it. Constant while the session is open. */
typedef struct hws_shm_view {
    uint8_t *base;                      /* of the mapping; header->region_bytes long */
    const hws_region_header_t *header;  /* a private copy, checked: all areas lie inside the mapping, apart */
    uint32_t slot;                      /* ours, 0..header->slot_count - 1 */
    uint32_t kind;                      /* HWS_KIND_PROCESS or HWS_KIND_MACHINE */
    uint8_t *heap;                      /* base + header->heap_offset; header->heap_bytes long */
    _Atomic uint8_t *heap_table;        /* a byte a granule: 0, or its owner's slot + 1 */
    uint8_t *bulk;                      /* our chunks: header->chunk_count times header->chunk_bytes */
} hws_shm_view_t;

/*
 * Finds a region, claims a slot of it, and waits for the worker's WELCOME. The region is that of config->region, else
 * of the first ivshmem device that carries our magic. Each wait is bounded: by config->connect_timeout_ms until the
 * broker takes the claim up, by HWS_SHM_STILL_MS when the region's broker shows no life, and by six times the timeout
 * for the worker. Returns the carrier, or NULL with a sentence in error_p; *found_p says whether there was a region at
 * all. Once in a process.
 */
hws_carrier_t *hws_shm_connect(const hws_config_t *config, uint64_t description_hash, hws_welcome_t *welcome_p,
                               bool *found_p, char *error_p, size_t error_capacity);

/* The region of the session; NULL when its carrier is another, in a forked child, and after exit. Any thread. */
const hws_shm_view_t *hws_shm_current(void);

/* First byte of a chunk of our slot. The chunk must be one: 0..chunk_count - 1. */
static inline uint8_t *hws_shm_chunk(const hws_shm_view_t *view, uint32_t chunk) {
    return view->bulk + chunk * view->header->chunk_bytes;
}

/* Offset of a byte of the mapping in the region, as records name it. */
static inline uint64_t hws_shm_offset(const hws_shm_view_t *view, const void *byte) {
    return (uint64_t) ((const uint8_t *) byte - view->base);
}

/* Marks a chunk as used by a copy, before the record that names it is sent. The caller owns the chunk. */
void hws_shm_chunk_begin(uint32_t chunk);

/* Takes the mark back when the record could not be sent. */
void hws_shm_chunk_cancel(uint32_t chunk);

/* Whether the copy that uses the chunk is done, so that hws_shm_chunk_wait() returns at once. */
bool hws_shm_chunk_ready(uint32_t chunk);

/*
 * Waits until the worker has done with a chunk: spins, then sleeps, and sees a lost session. Returns the CUresult that
 * the worker stored, with all bytes of the chunk visible; or the channel's failure, and then the chunk must not be used
 * again. Any thread, several at a time, each for its own chunk. Does not flush: over this carrier nothing waits to be
 * sent.
 */
int hws_shm_chunk_wait(uint32_t chunk);

/*
 * Frees the heap's granules of processes that are gone: slots that are free at the host, so that no worker and no GPU
 * uses them, and whose lock can be had, which is held meanwhile so that nobody claims the slot. For an allocator that
 * finds the heap full. Returns how many granules were freed. Any thread.
 */
uint64_t hws_shm_reclaim(void);

#endif

/*
 * The shm carrier: a session through a slot of a region of shared memory (wire.md, "Region"), and the parts of
 * that region that copies need.
 *
 * A process has at most one. Its memory stays mapped for the life of the process, also after the session is lost,
 * because pinned allocations lie in it. A forked child has neither the mapping (MADV_DONTFORK) nor the slot.
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

/* A region whose broker has not incremented its beat for this long is not waited for: another carrier may work. */
#define HWS_SHM_STILL_MS 2500u

/* The region as the session uses it. Constant while the session is open. */
typedef struct hws_shm_view {
    uint8_t *base;                     /* of the mapping; header->region_bytes long */
    const hws_region_header_t *header; /* a private copy, checked: all areas lie inside the mapping, apart */
    uint32_t slot;                     /* this process's slot, 0..header->slot_count - 1 */
    uint32_t kind;                     /* HWS_KIND_PROCESS or HWS_KIND_MACHINE */
    uint8_t *heap;                     /* base + header->heap_offset; header->heap_bytes long */
    _Atomic uint8_t *heap_table;       /* one byte for each granule: 0, or its owner's slot + 1 */
    uint8_t *bulk;                     /* the slot's chunks: header->chunk_count times header->chunk_bytes */
} hws_shm_view_t;

/*
 * Finds a region, claims a slot of it, and waits for the worker's WELCOME. The region is that of config->region, else
 * the first ivshmem device that carries our magic. Each wait is limited. The broker has config->connect_timeout_ms to
 * accept the claim, or HWS_SHM_STILL_MS when it shows no life. The worker has six times the timeout. Returns the
 * carrier, or NULL with a message in error_p. *found_p: whether there was a region at all. Once in a process.
 */
hws_carrier_t *hws_shm_connect(const hws_config_t *config, uint64_t description_hash, hws_welcome_t *welcome_p,
                               bool *found_p, char *error_p, size_t error_capacity);

/* The region of the session; NULL with another carrier, in a forked child, and after exit. Any thread. */
const hws_shm_view_t *hws_shm_current(void);

/* Offset in the region of a byte of the mapping. Records name memory by it. */
static inline uint64_t hws_shm_offset(const hws_shm_view_t *view, const void *byte) {
    return (uint64_t) ((const uint8_t *) byte - view->base);
}

/*
 * Frees the heap's granules of dead processes. It takes those of slots that are free at the host, so that no worker and
 * no GPU uses them, and whose lock it can get. It holds the lock meanwhile, so that no process claims the slot. For an
 * allocator that finds the heap full. Returns the number of freed granules. Any thread.
 */
uint64_t hws_shm_reclaim(void);

#endif

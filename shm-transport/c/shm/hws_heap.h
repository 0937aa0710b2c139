/*
 * The heap of a region: memory that programs pin. Its table has a byte a granule: 0, or the owner's slot + 1. All
 * processes of a guest allocate from it at the same time, and one may die at any point, so there is no lock: a granule
 * is taken by compare-and-swap and given back by storing 0. What is smaller than half a granule shares one, inside the
 * process.
 */
#ifndef HWS_HEAP_H
#define HWS_HEAP_H

#include "hws_region.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Parts of a granule that small allocations are made of: as CUDA aligns what it gives out. */
#define HWS_HEAP_UNIT_BYTES 512u

/*
 * What the owner of a view does for it. Each returns 0 or an error, which hws_heap_allocate() and hws_heap_free() pass
 * on.
 */
typedef struct hws_heap_hooks {
    /* Makes granules that were just taken known to the devices; *address_p is where these see them, or 0. */
    int (*map)(uint64_t offset, uint64_t bytes, uint64_t *address_p);
    /* Takes that back, by the same offset. When it returns 0, nothing issued before uses the granules any more. */
    int (*unmap)(uint64_t offset);
    /* Waits until nothing that was issued before uses the heap: when a part of a granule is freed. */
    int (*settle)(void);
    /* Frees granules of processes that are gone, and says how many. */
    uint64_t (*reclaim)(void);
} hws_heap_hooks_t;

/* One process's view of the heap. */
typedef struct hws_heap {
    _Atomic uint8_t *table;
    uint64_t granules;
    uint8_t owner; /* slot + 1 */
    const hws_heap_hooks_t *hooks;
    _Atomic uint64_t next; /* where the next search begins */

    pthread_mutex_t lock; /* of what follows: small allocations; held over the hooks */
    uint8_t *units;       /* a bit for each unit in use, a byte for each granule; 0: not one for small ones */
    uint64_t *addresses;  /* what `map` answered, for each granule for small ones */
    uint64_t *partial;    /* granules for small ones that have a free unit */
    uint64_t partial_count, partial_capacity;
} hws_heap_t;

/* What hws_heap_allocate() answers when the heap has no such run of free granules: no CUresult. */
#define HWS_HEAP_FULL (-1)

/*
 * Prepares a view. The table must have `granules` bytes at a multiple of 8 and stay mapped. Returns false when memory
 * is short. One thread, once.
 */
bool hws_heap_open(hws_heap_t *heap, _Atomic uint8_t *table, uint64_t granules, uint32_t slot,
                   const hws_heap_hooks_t *hooks);

/* Frees the view's own memory; what is allocated stays so. */
void hws_heap_close(hws_heap_t *heap);

/* An allocation. */
typedef struct hws_heap_block {
    uint64_t offset;  /* of its first byte in the heap, a multiple of HWS_HEAP_UNIT_BYTES */
    uint64_t bytes;   /* as asked for */
    uint64_t address; /* where devices see it; 0: they do not */
} hws_heap_block_t;

/*
 * Allocates `bytes`, at least 1; from half a granule on the offset is a multiple of HWS_GRANULE_BYTES. Returns 0,
 * HWS_HEAP_FULL, or what `map` answered. Any thread.
 */
int hws_heap_allocate(hws_heap_t *heap, uint64_t bytes, hws_heap_block_t *block_p);

/*
 * Gives back what hws_heap_allocate() gave, when no device uses it any more. Returns 0 or what `unmap` or `settle`
 * answered; the memory then stays taken for good, since something may still use it. Once for a block. Any thread.
 */
int hws_heap_free(hws_heap_t *heap, const hws_heap_block_t *block);

/* Granules that nobody has: a snapshot, for messages. */
uint64_t hws_heap_available(const hws_heap_t *heap);

#endif

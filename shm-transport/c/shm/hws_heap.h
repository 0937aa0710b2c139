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

/* One process's view of the heap. */
typedef struct hws_heap {
    _Atomic uint8_t *table;
    uint64_t granules;
    uint8_t owner;             /* slot + 1 */
    uint64_t (*reclaim)(void); /* frees granules of processes that are gone, and says how many; may be NULL */
    _Atomic uint64_t next;     /* where the next search begins */

    pthread_mutex_t lock;      /* of what follows: small allocations */
    uint8_t *units;            /* a bit for each unit in use, a byte for each granule; 0: not one for small ones */
    uint64_t *partial;         /* granules for small allocations that have a free unit */
    uint64_t partial_count, partial_capacity;
} hws_heap_t;

/*
 * Prepares a view. The table must have `granules` bytes at a multiple of 8 and stay mapped. Returns false when memory
 * is short. One thread, once.
 */
bool hws_heap_open(hws_heap_t *heap, _Atomic uint8_t *table, uint64_t granules, uint32_t slot,
                   uint64_t (*reclaim)(void));

/* Frees the view's own memory; what is allocated stays so. */
void hws_heap_close(hws_heap_t *heap);

/*
 * Allocates `bytes`, at least 1. Returns true and the offset of the first byte in the heap, a multiple of
 * HWS_HEAP_UNIT_BYTES, and of HWS_GRANULE_BYTES from half a granule on. False when the heap has no such run of free
 * granules, also after `reclaim`. Any thread.
 */
bool hws_heap_allocate(hws_heap_t *heap, uint64_t bytes, uint64_t *offset_p);

/* Gives back what hws_heap_allocate() gave for as many bytes. Nothing may use it any more. Any thread. */
void hws_heap_free(hws_heap_t *heap, uint64_t offset, uint64_t bytes);

/* Granules that nobody has: a snapshot, for messages. */
uint64_t hws_heap_available(const hws_heap_t *heap);

#endif

/*
 * The heap of a region: memory that programs pin. Its table has one byte for each granule: 0, or the owner's slot + 1.
 * All processes of a guest allocate from it at the same time, and any of them may die at any point. So there is no
 * lock: a process takes a granule by compare-and-swap and frees it by storing 0. Allocations below half a granule share
 * one inside the process.
 */
#ifndef HWS_HEAP_H
#define HWS_HEAP_H

#include "hws_region.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Small allocations consist of these units. CUDA aligns its allocations to the same size. */
#define HWS_HEAP_UNIT_BYTES 512u

/*
 * Callbacks to the owner of a view. Each returns 0 or an error, which hws_heap_allocate() and hws_heap_free() pass on.
 */
typedef struct hws_heap_hooks {
    /* Makes newly taken granules known to the devices. *address_p is the devices' address of them, or 0. */
    int (*map)(uint64_t offset, uint64_t bytes, uint64_t *address_p);
    /* Undoes `map` for the same offset. When it returns 0, no earlier work uses the granules any more. */
    int (*unmap)(uint64_t offset);
    /* Waits until no earlier work uses the heap. Called when a part of a granule is freed. */
    int (*settle)(void);
    /* Frees granules of dead processes and returns their number. */
    uint64_t (*reclaim)(void);
} hws_heap_hooks_t;

/* One process's view of the heap. */
typedef struct hws_heap {
    _Atomic uint8_t *table;
    uint64_t granules;
    uint8_t owner; /* slot + 1 */
    const hws_heap_hooks_t *hooks;
    _Atomic uint64_t next; /* where the next search begins */

    pthread_mutex_t lock; /* of the fields below, for small allocations; held during the hooks */
    uint8_t *units;       /* for each granule one bit for each used unit; 0: no granule of small allocations */
    uint64_t *addresses;  /* result of `map` for each granule of small allocations */
    uint64_t *partial;    /* granules of small allocations that have a free unit */
    uint64_t partial_count, partial_capacity;
} hws_heap_t;

/* Result of hws_heap_allocate() when the heap has no such run of free granules. Not a CUresult. */
#define HWS_HEAP_FULL (-1)

/*
 * Prepares a view. The table must have `granules` bytes at a multiple of 8 and stay mapped. Returns false when memory
 * is short. One thread, once.
 */
bool hws_heap_open(hws_heap_t *heap, _Atomic uint8_t *table, uint64_t granules, uint32_t slot,
                   const hws_heap_hooks_t *hooks);

/* Frees the view's own memory; allocations stay. */
void hws_heap_close(hws_heap_t *heap);

/* An allocation. */
typedef struct hws_heap_block {
    uint64_t offset;  /* of its first byte in the heap, a multiple of HWS_HEAP_UNIT_BYTES */
    uint64_t bytes;   /* as requested */
    uint64_t address; /* the devices' address; 0: none */
} hws_heap_block_t;

/*
 * Allocates `bytes`, at least 1. From half a granule on, the offset is a multiple of HWS_GRANULE_BYTES. Returns 0,
 * HWS_HEAP_FULL, or the error of `map`. Any thread.
 */
int hws_heap_allocate(hws_heap_t *heap, uint64_t bytes, hws_heap_block_t *block_p);

/*
 * Frees a block of hws_heap_allocate() that no device uses any more. Returns 0, or the error of `unmap` or `settle`. On
 * an error the memory stays taken for good, because a device may still use it. Once for each block. Any thread.
 */
int hws_heap_free(hws_heap_t *heap, const hws_heap_block_t *block);

/* Number of free granules: a snapshot, for messages. */
uint64_t hws_heap_available(const hws_heap_t *heap);

#endif

/* Takes granules from a table that other processes change at the same time. */
#include "hws_heap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_PER_GRANULE (HWS_GRANULE_BYTES / HWS_HEAP_UNIT_BYTES)
#define ALL_UNITS 0xffu
#define SMALL_BYTES (HWS_GRANULE_BYTES / 2)
/*
 * After this many searches that collided with another process the heap counts as full. Of two processes that want
 * overlapping runs one always succeeds, because all take granules from low to high. The limit stops only a neighbour
 * that takes and frees without end.
 */
#define MAX_CONTENDED_SEARCHES 1000

_Static_assert(UNITS_PER_GRANULE == 8, "a byte has a bit for each unit of a granule");

typedef enum hws_search { HWS_SEARCH_FOUND, HWS_SEARCH_FULL, HWS_SEARCH_CONTENDED } hws_search_t;

bool hws_heap_open(hws_heap_t *heap, _Atomic uint8_t *table, uint64_t granules, uint32_t slot,
                   const hws_heap_hooks_t *hooks) {
    *heap = (hws_heap_t) {.table = table, .granules = granules, .owner = (uint8_t) (slot + 1), .hooks = hooks};
    pthread_mutex_init(&heap->lock, NULL);
    /* Processes start in different parts of the heap, so that they seldom collide. */
    atomic_init(&heap->next, granules / HWS_MAX_SLOTS * (slot % HWS_MAX_SLOTS));
    heap->units = calloc(granules, sizeof *heap->units);
    /* Pages that no small allocation touches cost nothing. */
    heap->addresses = calloc(granules, sizeof *heap->addresses);
    return heap->units != NULL && heap->addresses != NULL;
}

void hws_heap_close(hws_heap_t *heap) {
    free(heap->units);
    free(heap->addresses);
    free(heap->partial);
    pthread_mutex_destroy(&heap->lock);
}

static uint8_t owner_of(const hws_heap_t *heap, uint64_t granule) {
    return atomic_load_explicit(&heap->table[granule], memory_order_relaxed);
}

/* Reads eight granules at once; each byte is a snapshot. */
static uint64_t owners_of_eight(const hws_heap_t *heap, uint64_t granule) {
    /* SAFETY: granule is a multiple of 8 and granule + 8 <= granules, checked by the caller. */
    return __atomic_load_n((const uint64_t *) (const void *) (heap->table + granule), __ATOMIC_RELAXED);
}

static bool has_zero_byte(uint64_t word) {
    return ((word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull) != 0;
}

/*
 * Takes granules [first, first + count). On failure it frees what it took, and *lost_p is a granule of another owner.
 */
static bool take(hws_heap_t *heap, uint64_t first, uint64_t count, uint64_t *lost_p) {
    for (uint64_t i = 0; i < count; i++) {
        uint8_t nobody = 0;
        /* Acquire pairs with the release store in give_run(): the last owner's accesses are over. */
        if (!atomic_compare_exchange_strong_explicit(&heap->table[first + i], &nobody, heap->owner,
                                                     memory_order_acquire, memory_order_relaxed)) {
            *lost_p = first + i;
            while (i-- > 0) {
                atomic_store_explicit(&heap->table[first + i], 0, memory_order_release);
            }
            return false;
        }
    }
    return true;
}

/* Searches runs that begin in [from, end) and takes the first that is long enough. */
static hws_search_t search(hws_heap_t *heap, uint64_t from, uint64_t end, uint64_t count, uint64_t *first_p) {
    bool contended = false;
    uint64_t run = 0, at = from;
    /* A run that begins below `end` may extend above it. */
    while (at < heap->granules && at - run < end) {
        uint64_t eight = at % 8 == 0 && heap->granules - at >= 8 ? owners_of_eight(heap, at) : 1;
        if (eight == 0 && count - run >= 8) {
            run += 8;
            at += 8;
        } else if (!has_zero_byte(eight)) {
            run = 0;
            at += 8;
        } else {
            run = owner_of(heap, at) == 0 ? run + 1 : 0;
            at++;
        }
        if (run == count) {
            uint64_t lost, first = at - run;
            if (take(heap, first, count, &lost)) {
                *first_p = first;
                return HWS_SEARCH_FOUND;
            }
            contended = true;
            at = lost + 1;
            run = 0;
        }
    }
    return contended ? HWS_SEARCH_CONTENDED : HWS_SEARCH_FULL;
}

/* Searches the whole heap, starting where the last search ended. */
static hws_search_t search_round(hws_heap_t *heap, uint64_t count, uint64_t *first_p) {
    uint64_t from = atomic_load_explicit(&heap->next, memory_order_relaxed);
    if (from >= heap->granules) {
        from = 0;
    }
    hws_search_t upper = search(heap, from, heap->granules, count, first_p);
    if (upper == HWS_SEARCH_FOUND) {
        return upper;
    }
    hws_search_t lower = search(heap, 0, from, count, first_p);
    return lower == HWS_SEARCH_FULL ? upper : lower;
}

static bool take_run(hws_heap_t *heap, uint64_t count, uint64_t *first_p) {
    if (count > heap->granules) {
        return false;
    }
    bool reclaimed = false;
    for (int contended = 0; contended < MAX_CONTENDED_SEARCHES;) {
        switch (search_round(heap, count, first_p)) {
            case HWS_SEARCH_FOUND:
                atomic_store_explicit(&heap->next, *first_p + count, memory_order_relaxed);
                return true;
            case HWS_SEARCH_CONTENDED:
                contended++;
                sched_yield();
                break;
            case HWS_SEARCH_FULL:
                if (reclaimed || heap->hooks->reclaim() == 0) {
                    return false;
                }
                reclaimed = true;
                break;
        }
    }
    return false;
}

static void give_run(hws_heap_t *heap, uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        atomic_store_explicit(&heap->table[first + i], 0, memory_order_release); /* pairs with take() */
    }
}

static uint8_t units_mask(unsigned at, uint64_t bytes) {
    unsigned count = (unsigned) ((bytes + HWS_HEAP_UNIT_BYTES - 1) / HWS_HEAP_UNIT_BYTES);
    return (uint8_t) (((1u << count) - 1) << at);
}

/* Finds adjacent free units of a granule for `bytes`; -1 when there are none. */
static int find_units(uint8_t used, uint64_t bytes) {
    unsigned count = (unsigned) ((bytes + HWS_HEAP_UNIT_BYTES - 1) / HWS_HEAP_UNIT_BYTES);
    for (unsigned at = 0; at + count <= UNITS_PER_GRANULE; at++) {
        if ((used & units_mask(at, bytes)) == 0) {
            return (int) at;
        }
    }
    return -1;
}

static bool add_partial(hws_heap_t *heap, uint64_t granule) {
    if (heap->partial_count == heap->partial_capacity) {
        uint64_t capacity = heap->partial_capacity == 0 ? 64 : 2 * heap->partial_capacity;
        uint64_t *larger = realloc(heap->partial, capacity * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        heap->partial = larger;
        heap->partial_capacity = capacity;
    }
    heap->partial[heap->partial_count++] = granule;
    return true;
}

static void remove_partial(hws_heap_t *heap, uint64_t granule) {
    for (uint64_t i = 0; i < heap->partial_count; i++) {
        if (heap->partial[i] == granule) {
            heap->partial[i] = heap->partial[--heap->partial_count];
            return;
        }
    }
}

/* Takes granules and maps them. Returns 0 or an error. */
static int take_mapped(hws_heap_t *heap, uint64_t count, uint64_t *first_p, uint64_t *address_p) {
    if (!take_run(heap, count, first_p)) {
        return HWS_HEAP_FULL;
    }
    int status = heap->hooks->map(*first_p * HWS_GRANULE_BYTES, count * HWS_GRANULE_BYTES, address_p);
    if (status != 0) {
        give_run(heap, *first_p, count);
    }
    return status;
}

/* Unmaps granules and frees them. Returns 0, or the error because of which they stay taken. */
static int give_mapped(hws_heap_t *heap, uint64_t first, uint64_t count) {
    int status = heap->hooks->unmap(first * HWS_GRANULE_BYTES);
    if (status == 0) {
        give_run(heap, first, count);
    }
    return status;
}

static int allocate_small(hws_heap_t *heap, uint64_t bytes, hws_heap_block_t *block_p) {
    uint64_t granule = 0;
    int at = -1;
    for (uint64_t i = heap->partial_count; i-- > 0 && at < 0;) {
        granule = heap->partial[i];
        at = find_units(heap->units[granule], bytes);
    }
    if (at < 0) {
        uint64_t address;
        int status = take_mapped(heap, 1, &granule, &address);
        if (status != 0) {
            return status;
        }
        if (!add_partial(heap, granule)) {
            give_mapped(heap, granule, 1);
            return HWS_HEAP_FULL;
        }
        heap->addresses[granule] = address;
        at = 0;
    }
    heap->units[granule] |= units_mask((unsigned) at, bytes);
    if (heap->units[granule] == ALL_UNITS) {
        remove_partial(heap, granule);
    }
    uint64_t inside = (uint64_t) at * HWS_HEAP_UNIT_BYTES, address = heap->addresses[granule];
    *block_p = (hws_heap_block_t) {granule * HWS_GRANULE_BYTES + inside, bytes, address == 0 ? 0 : address + inside};
    return 0;
}

static int free_small(hws_heap_t *heap, const hws_heap_block_t *block) {
    uint64_t granule = block->offset / HWS_GRANULE_BYTES;
    uint8_t used = heap->units[granule];
    uint8_t left = used & (uint8_t) ~units_mask(block->offset % HWS_GRANULE_BYTES / HWS_HEAP_UNIT_BYTES, block->bytes);
    int status = left == 0 ? give_mapped(heap, granule, 1) : heap->hooks->settle();
    if (status != 0) {
        /* Whether it is still mapped is unknown, so no further allocation may share it. */
        left = left == 0 ? ALL_UNITS : used;
    }
    heap->units[granule] = left;
    bool was_partial = used != ALL_UNITS, is_partial = left != 0 && left != ALL_UNITS;
    if (was_partial && !is_partial) {
        remove_partial(heap, granule);
    } else if (!was_partial && is_partial) {
        /* If memory is short for this note, the granule's free units stay unused until it is empty. */
        add_partial(heap, granule);
    }
    return status;
}

static uint64_t granules_of(uint64_t bytes) {
    return bytes / HWS_GRANULE_BYTES + (bytes % HWS_GRANULE_BYTES != 0);
}

int hws_heap_allocate(hws_heap_t *heap, uint64_t bytes, hws_heap_block_t *block_p) {
    if (bytes < SMALL_BYTES) {
        pthread_mutex_lock(&heap->lock);
        int status = allocate_small(heap, bytes, block_p);
        pthread_mutex_unlock(&heap->lock);
        return status;
    }
    uint64_t first, address;
    int status = take_mapped(heap, granules_of(bytes), &first, &address);
    if (status == 0) {
        *block_p = (hws_heap_block_t) {first * HWS_GRANULE_BYTES, bytes, address};
    }
    return status;
}

int hws_heap_free(hws_heap_t *heap, const hws_heap_block_t *block) {
    if (block->bytes < SMALL_BYTES) {
        pthread_mutex_lock(&heap->lock);
        int status = free_small(heap, block);
        pthread_mutex_unlock(&heap->lock);
        return status;
    }
    return give_mapped(heap, block->offset / HWS_GRANULE_BYTES, granules_of(block->bytes));
}

uint64_t hws_heap_available(const hws_heap_t *heap) {
    uint64_t free_granules = 0;
    for (uint64_t i = 0; i < heap->granules; i++) {
        free_granules += owner_of(heap, i) == 0;
    }
    return free_granules;
}

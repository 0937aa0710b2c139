#include "hws_arena.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY 2   /* CUDA_ERROR_OUT_OF_MEMORY */
#define MAX_KEPT_SLABS 64 /* limits a search */
#define GRANULES 4096u    /* of a page */
#define USED 0x8000u      /* in a length */
#define NONE UINT32_MAX
#define BINS 64
#define MAX_SEARCH 32 /* runs of one bin that may be too short */

_Static_assert(GRANULES *HWS_ARENA_GRANULE_BYTES == HWS_ARENA_PAGE_BYTES, "granules of a page");
_Static_assert(HWS_ARENA_MAX_BYTES / HWS_ARENA_PAGE_BYTES <= 1u << 20, "a run's number has 32 bits");

/* The neighbours of a free run in its bin: numbers of runs, page number * GRANULES + first granule. */
typedef struct hws_links {
    uint32_t next, previous;
} hws_links_t;

/* A slab of one page that is divided into runs of granules. */
typedef struct hws_page {
    uint32_t used_granules;
    uint16_t length[GRANULES];   /* at a run's first and last granule: its granules, with USED when it is a block */
    hws_links_t links[GRANULES]; /* at a free run's first granule */
} hws_page_t;

typedef struct hws_slab {
    uint64_t address, bytes;
} hws_slab_t;

struct hws_arena {
    uint64_t base, bytes, kept_limit;
    hws_arena_owner_t owner;
    pthread_mutex_t lock;

    hws_slab_t *gaps; /* unmapped parts of the window, sorted, without neighbours that touch */
    size_t gap_count, gap_capacity;
    size_t slab_count; /* outside the gaps */

    hws_slab_t kept[MAX_KEPT_SLABS]; /* the oldest first */
    size_t kept_count;
    uint64_t kept_bytes;
    _Atomic uint64_t changes;

    hws_page_t **pages;  /* by number in the window; NULL for a page that is not divided */
    uint32_t bins[BINS]; /* first free run by class of length */
    uint64_t filled;     /* bit n: bin n has a run */
};

/* The bin of runs of this length. A longer run never has a lower bin. */
static unsigned bin_of(uint32_t granules) {
    if (granules < 8) {
        return granules;
    }
    unsigned high = 31u - (unsigned) __builtin_clz(granules);
    return 8 + (high - 3) * 4 + (granules >> (high - 2) & 3);
}

/* The lowest bin whose runs all have at least this length. */
static unsigned sure_bin_of(uint32_t granules) {
    return granules < 8 ? granules : bin_of(granules + (1u << (29 - (unsigned) __builtin_clz(granules))) - 1);
}

static uint32_t page_number(const hws_arena_t *arena, uint64_t address) {
    return (uint32_t) ((address - arena->base) / HWS_ARENA_PAGE_BYTES);
}

static hws_links_t *links_of(const hws_arena_t *arena, uint32_t run) {
    return &arena->pages[run / GRANULES]->links[run % GRANULES];
}

static void set_length(hws_page_t *page, uint32_t first, uint32_t granules, uint32_t used) {
    page->length[first] = page->length[first + granules - 1] = (uint16_t) (granules | used);
}

static void add_run(hws_arena_t *arena, uint32_t number, uint32_t first, uint32_t granules) {
    unsigned bin = bin_of(granules);
    uint32_t run = number * GRANULES + first, next = arena->bins[bin];
    set_length(arena->pages[number], first, granules, 0);
    *links_of(arena, run) = (hws_links_t) {.next = next, .previous = NONE};
    if (next != NONE) {
        links_of(arena, next)->previous = run;
    }
    arena->bins[bin] = run;
    arena->filled |= 1ull << bin;
}

static void remove_run(hws_arena_t *arena, uint32_t run) {
    unsigned bin = bin_of(arena->pages[run / GRANULES]->length[run % GRANULES]);
    const hws_links_t links = *links_of(arena, run);
    if (links.next != NONE) {
        links_of(arena, links.next)->previous = links.previous;
    }
    if (links.previous != NONE) {
        links_of(arena, links.previous)->next = links.next;
    } else {
        arena->bins[bin] = links.next;
        if (links.next == NONE) {
            arena->filled &= ~(1ull << bin);
        }
    }
}

/* A free run of at least this length; NONE when there is none, or when a bounded search does not find it. */
static uint32_t find_run(const hws_arena_t *arena, uint32_t granules) {
    uint64_t sure = arena->filled >> sure_bin_of(granules) << sure_bin_of(granules);
    if (sure != 0) {
        return arena->bins[__builtin_ctzll(sure)];
    }
    uint32_t run = arena->bins[bin_of(granules)];
    for (int i = 0; i < MAX_SEARCH && run != NONE; i++) {
        if (arena->pages[run / GRANULES]->length[run % GRANULES] >= granules) {
            return run;
        }
        run = links_of(arena, run)->next;
    }
    return NONE;
}

/* Takes a block from the free runs, at a multiple of `alignment` granules. Returns its address, 0 for none. Lock held. */
static uint64_t take_small(hws_arena_t *arena, uint32_t granules, uint32_t alignment) {
    uint32_t run = find_run(arena, granules + alignment - 1);
    if (run == NONE) {
        return 0;
    }
    uint32_t number = run / GRANULES, begin = run % GRANULES;
    hws_page_t *page = arena->pages[number];
    uint32_t end = begin + page->length[begin], first = (begin + alignment - 1) / alignment * alignment;
    remove_run(arena, run);
    set_length(page, first, granules, USED);
    if (first > begin) {
        add_run(arena, number, begin, first - begin);
    }
    if (end > first + granules) {
        add_run(arena, number, first + granules, end - first - granules);
    }
    page->used_granules += granules;
    return arena->base + number * HWS_ARENA_PAGE_BYTES + first * HWS_ARENA_GRANULE_BYTES;
}

/* Returns a block to its page. Returns whether the page is empty, and then no longer divided. Lock held. */
static bool give_small(hws_arena_t *arena, uint64_t address, uint32_t granules) {
    uint32_t number = page_number(arena, address);
    hws_page_t *page = arena->pages[number];
    uint32_t first = (uint32_t) (address % HWS_ARENA_PAGE_BYTES / HWS_ARENA_GRANULE_BYTES), end = first + granules;
    page->used_granules -= granules;
    if (first > 0 && (page->length[first - 1] & USED) == 0) {
        first -= page->length[first - 1];
        remove_run(arena, number * GRANULES + first);
    }
    if (end < GRANULES && (page->length[end] & USED) == 0) {
        remove_run(arena, number * GRANULES + end);
        end += page->length[end];
    }
    if (page->used_granules > 0) {
        add_run(arena, number, first, end - first);
        return false;
    }
    arena->pages[number] = NULL;
    free(page);
    return true;
}

/* Index of the first gap above the address. */
static size_t gap_above(const hws_arena_t *arena, uint64_t address) {
    size_t low = 0, high = arena->gap_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (arena->gaps[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void remove_gap(hws_arena_t *arena, size_t at) {
    arena->gap_count--;
    memmove(arena->gaps + at, arena->gaps + at + 1, (arena->gap_count - at) * sizeof *arena->gaps);
}

/* Makes room for the gaps that can arise with one slab more, so that giving addresses back cannot fail. Lock held. */
static bool make_gap_room(hws_arena_t *arena) {
    if (arena->gap_capacity >= arena->slab_count + 2) {
        return true;
    }
    size_t wanted = 2 * (arena->slab_count + 2);
    hws_slab_t *larger = realloc(arena->gaps, wanted * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    arena->gaps = larger;
    arena->gap_capacity = wanted;
    return true;
}

/* Takes the lowest addresses that are free. Lock held. */
static bool take_addresses(hws_arena_t *arena, uint64_t bytes, uint64_t *address_p) {
    size_t at = 0;
    while (at < arena->gap_count && arena->gaps[at].bytes < bytes) {
        at++;
    }
    if (at == arena->gap_count || !make_gap_room(arena)) {
        return false;
    }
    *address_p = arena->gaps[at].address;
    arena->slab_count++;
    if (arena->gaps[at].bytes == bytes) {
        remove_gap(arena, at);
    } else {
        arena->gaps[at].address += bytes;
        arena->gaps[at].bytes -= bytes;
    }
    return true;
}

static void give_addresses(hws_arena_t *arena, hws_slab_t slab) {
    arena->slab_count--;
    size_t at = gap_above(arena, slab.address);
    if (at > 0 && arena->gaps[at - 1].address + arena->gaps[at - 1].bytes == slab.address) {
        at--;
        arena->gaps[at].bytes += slab.bytes;
    } else {
        memmove(arena->gaps + at + 1, arena->gaps + at, (arena->gap_count - at) * sizeof *arena->gaps);
        arena->gaps[at] = slab;
        arena->gap_count++;
    }
    if (at + 1 < arena->gap_count && arena->gaps[at].address + arena->gaps[at].bytes == arena->gaps[at + 1].address) {
        arena->gaps[at].bytes += arena->gaps[at + 1].bytes;
        remove_gap(arena, at + 1);
    }
}

/* Unmaps slabs that no list has any more. Lock not held. */
static void unmap(hws_arena_t *arena, const hws_slab_t *slabs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        arena->owner.unmap(arena->owner.owner, slabs[i].address);
    }
    pthread_mutex_lock(&arena->lock);
    for (size_t i = 0; i < count; i++) {
        give_addresses(arena, slabs[i]); /* only now: another thread may map these addresses again at once */
    }
    pthread_mutex_unlock(&arena->lock);
}

/* Takes a kept slab of exactly this size, the youngest. Returns its address, 0 for none. Lock held. */
static uint64_t take_kept(hws_arena_t *arena, uint64_t bytes) {
    for (size_t i = arena->kept_count; i-- > 0;) {
        if (arena->kept[i].bytes == bytes) {
            uint64_t address = arena->kept[i].address;
            arena->kept_count--;
            memmove(arena->kept + i, arena->kept + i + 1, (arena->kept_count - i) * sizeof *arena->kept);
            arena->kept_bytes -= bytes;
            atomic_fetch_add_explicit(&arena->changes, 1, memory_order_relaxed);
            return address;
        }
    }
    return 0;
}

/* Removes the oldest kept slabs until at most `bytes` are left. Returns their number. Lock held. */
static size_t drop_kept(hws_arena_t *arena, uint64_t bytes, hws_slab_t *dropped) {
    size_t count = 0;
    while (arena->kept_bytes > bytes) {
        arena->kept_bytes -= arena->kept[count].bytes;
        dropped[count] = arena->kept[count];
        count++;
    }
    arena->kept_count -= count;
    memmove(arena->kept, arena->kept + count, arena->kept_count * sizeof *arena->kept);
    return count;
}

void hws_arena_release(hws_arena_t *arena) {
    hws_slab_t dropped[MAX_KEPT_SLABS];
    pthread_mutex_lock(&arena->lock);
    size_t count = drop_kept(arena, 0, dropped);
    pthread_mutex_unlock(&arena->lock);
    unmap(arena, dropped, count);
}

/* Maps a slab. Lock held, and released meanwhile. */
static int map_slab(hws_arena_t *arena, uint64_t bytes, bool last, uint64_t *address_p) {
    uint64_t address;
    if (!take_addresses(arena, bytes, &address)) {
        return OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&arena->lock);
    int result = arena->owner.map(arena->owner.owner, address, bytes, last);
    pthread_mutex_lock(&arena->lock);
    if (result != 0) {
        give_addresses(arena, (hws_slab_t) {address, bytes});
        return result;
    }
    *address_p = address;
    return 0;
}

/* A slab of this size: a kept one, or a new one. Lock held, and released meanwhile. */
static int take_slab(hws_arena_t *arena, uint64_t bytes, uint64_t *address_p) {
    for (bool last = false;; last = true) {
        *address_p = take_kept(arena, bytes);
        if (*address_p != 0) {
            return 0;
        }
        last |= arena->kept_count == 0;
        int result = map_slab(arena, bytes, last, address_p);
        if (result != OUT_OF_MEMORY || last) {
            return result;
        }
        pthread_mutex_unlock(&arena->lock);
        hws_arena_release(arena);
        pthread_mutex_lock(&arena->lock);
    }
}

/* Divides a slab of one page. Lock held. */
static bool divide(hws_arena_t *arena, uint64_t address) {
    hws_page_t *page = malloc(sizeof *page); /* lengths and links are read only where a run begins or ends */
    if (page == NULL) {
        return false;
    }
    page->used_granules = 0;
    uint32_t number = page_number(arena, address);
    arena->pages[number] = page;
    add_run(arena, number, 0, GRANULES);
    return true;
}

/* Keeps a free slab. Returns the number of slabs that the caller must unmap. Lock held. */
static size_t keep(hws_arena_t *arena, hws_slab_t slab, hws_slab_t *dropped) {
    if (slab.bytes > arena->kept_limit) {
        dropped[0] = slab;
        return 1;
    }
    uint64_t limit = arena->kept_limit - slab.bytes;
    if (arena->kept_count == MAX_KEPT_SLABS && arena->kept_bytes <= limit) {
        limit = arena->kept_bytes - arena->kept[0].bytes;
    }
    size_t count = drop_kept(arena, limit, dropped);
    arena->kept[arena->kept_count++] = slab;
    arena->kept_bytes += slab.bytes;
    atomic_fetch_add_explicit(&arena->changes, 1, memory_order_relaxed);
    return count;
}

/* Keeps or unmaps a free slab. Lock held, and released. */
static void give_slab(hws_arena_t *arena, hws_slab_t slab) {
    hws_slab_t dropped[MAX_KEPT_SLABS];
    size_t count = keep(arena, slab, dropped);
    pthread_mutex_unlock(&arena->lock);
    if (count > 0) {
        unmap(arena, dropped, count);
    }
}

static uint32_t granules_of(uint64_t bytes) {
    return (uint32_t) ((bytes + HWS_ARENA_GRANULE_BYTES - 1) / HWS_ARENA_GRANULE_BYTES);
}

static uint64_t slab_bytes(uint64_t bytes) {
    return (bytes + HWS_ARENA_PAGE_BYTES - 1) / HWS_ARENA_PAGE_BYTES * HWS_ARENA_PAGE_BYTES;
}

static int allocate_small(hws_arena_t *arena, uint32_t granules, uint32_t alignment, uint64_t *address_p) {
    for (;;) {
        *address_p = take_small(arena, granules, alignment);
        if (*address_p != 0) {
            return 0;
        }
        uint64_t address;
        int result = take_slab(arena, HWS_ARENA_PAGE_BYTES, &address);
        if (result != 0) {
            return result;
        }
        if (!divide(arena, address)) {
            give_slab(arena, (hws_slab_t) {address, HWS_ARENA_PAGE_BYTES});
            pthread_mutex_lock(&arena->lock);
            return OUT_OF_MEMORY;
        }
    }
}

int hws_arena_allocate(hws_arena_t *arena, uint64_t bytes, uint64_t alignment, uint64_t *address_p) {
    if (bytes > arena->bytes) {
        return OUT_OF_MEMORY;
    }
    uint64_t address;
    pthread_mutex_lock(&arena->lock);
    int result = bytes <= HWS_ARENA_SMALL_BYTES
        ? allocate_small(arena, granules_of(bytes), granules_of(alignment), &address)
        : take_slab(arena, slab_bytes(bytes), &address);
    pthread_mutex_unlock(&arena->lock);
    if (result == 0) {
        *address_p = address;
    }
    return result;
}

void hws_arena_free(hws_arena_t *arena, uint64_t address, uint64_t bytes) {
    hws_slab_t slab = {address, slab_bytes(bytes)};
    pthread_mutex_lock(&arena->lock);
    if (bytes <= HWS_ARENA_SMALL_BYTES) {
        if (!give_small(arena, address, granules_of(bytes))) {
            pthread_mutex_unlock(&arena->lock);
            return;
        }
        slab.address = address / HWS_ARENA_PAGE_BYTES * HWS_ARENA_PAGE_BYTES;
    }
    give_slab(arena, slab);
}

bool hws_arena_contains(const hws_arena_t *arena, uint64_t address) {
    return address - arena->base < arena->bytes;
}

uint64_t hws_arena_kept_bytes(hws_arena_t *arena) {
    pthread_mutex_lock(&arena->lock);
    uint64_t bytes = arena->kept_bytes;
    pthread_mutex_unlock(&arena->lock);
    return bytes;
}

uint64_t hws_arena_changes(const hws_arena_t *arena) {
    return atomic_load_explicit(&arena->changes, memory_order_relaxed);
}

hws_arena_t *hws_arena_new(uint64_t base, uint64_t bytes, uint64_t kept_limit, const hws_arena_owner_t *owner) {
    hws_arena_t *arena = calloc(1, sizeof *arena);
    if (arena == NULL) {
        return NULL;
    }
    *arena = (hws_arena_t) {.base = base, .bytes = bytes, .kept_limit = kept_limit, .owner = *owner};
    pthread_mutex_init(&arena->lock, NULL);
    arena->pages = calloc(bytes / HWS_ARENA_PAGE_BYTES, sizeof *arena->pages); /* the system commits it when used */
    memset(arena->bins, 0xff, sizeof arena->bins);
    if (arena->pages == NULL || !make_gap_room(arena)) {
        hws_arena_delete(arena);
        return NULL;
    }
    arena->gaps[0] = (hws_slab_t) {base, bytes};
    arena->gap_count = 1;
    return arena;
}

void hws_arena_delete(hws_arena_t *arena) {
    for (uint64_t i = 0; arena->pages != NULL && i < arena->bytes / HWS_ARENA_PAGE_BYTES; i++) {
        free(arena->pages[i]);
    }
    free(arena->pages);
    free(arena->gaps);
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

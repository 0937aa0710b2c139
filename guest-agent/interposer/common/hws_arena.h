/*
 * An arena: the device memory of one GPU from which cuMemAlloc takes its blocks. It consists of slabs inside one window
 * of addresses. A block of more than HWS_ARENA_SMALL_BYTES has a slab of its own. Smaller blocks share slabs of one
 * page, as with NVIDIA's driver, so that both take the same amount of memory.
 *
 * The arena keeps the slabs of freed blocks up to a limit, for the next blocks of the same size. It calls its owner to
 * map and unmap slabs, and holds no lock meanwhile. Any thread.
 */
#ifndef HWS_ARENA_H
#define HWS_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#define HWS_ARENA_PAGE_BYTES (2ull << 20)  /* slabs begin and end at multiples of this */
#define HWS_ARENA_SMALL_BYTES (1ull << 20) /* largest block that shares a slab */
#define HWS_ARENA_GRANULE_BYTES 512ull     /* blocks begin at multiples of this */
#define HWS_ARENA_MAX_BYTES (1ull << 41)   /* largest window */

typedef struct hws_arena hws_arena_t;

/* Calls to the owner of an arena. */
typedef struct hws_arena_owner {
    /* Maps a slab. Returns 0 or a CUresult. `last`: the arena does not try again. */
    int (*map)(void *owner, uint64_t address, uint64_t bytes, bool last);
    /* Unmaps a slab. Work that was issued before no longer uses it. */
    void (*unmap)(void *owner, uint64_t address);
    void *owner;
} hws_arena_owner_t;

/*
 * Creates an arena without slabs. The window has whole pages, at most HWS_ARENA_MAX_BYTES. The arena keeps at most
 * kept_limit bytes of free slabs. Returns NULL when memory is short. An arena lives as long as the process.
 */
hws_arena_t *hws_arena_new(uint64_t base, uint64_t bytes, uint64_t kept_limit, const hws_arena_owner_t *owner);

/* Frees an arena, without unmapping anything. For tests. */
void hws_arena_delete(hws_arena_t *arena);

/*
 * Allocates a block of at least 1 byte, at a multiple of the alignment: HWS_ARENA_GRANULE_BYTES, or a larger power of two
 * up to HWS_ARENA_SMALL_BYTES. Returns 0, the owner's error, or CUDA_ERROR_OUT_OF_MEMORY (2) when the window
 * or the process's memory is full. Before that error of the owner it unmaps all kept slabs and tries again.
 */
int hws_arena_allocate(hws_arena_t *arena, uint64_t bytes, uint64_t alignment, uint64_t *address_p);

/*
 * Frees a block of this address and size. Work that was issued before no longer uses it. The next allocation may return
 * the same address.
 */
void hws_arena_free(hws_arena_t *arena, uint64_t address, uint64_t bytes);

/* Whether the address lies in the window. */
bool hws_arena_contains(const hws_arena_t *arena, uint64_t address);

/* Bytes of kept slabs. */
uint64_t hws_arena_kept_bytes(hws_arena_t *arena);

/* Unmaps all kept slabs. */
void hws_arena_release(hws_arena_t *arena);

/* Counts the slabs that were taken from the kept ones or added to them. */
uint64_t hws_arena_changes(const hws_arena_t *arena);

#endif

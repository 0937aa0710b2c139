/* The arena against a model of the worker: it maps slabs up to a quota and knows which addresses are mapped. */
#include "hws_arena.h"
#include "hws_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x200000000000ull
#define PAGE HWS_ARENA_PAGE_BYTES
#define WINDOW_PAGES 4096u
#define QUOTA_PAGES 512u
#define MAX_BLOCKS 3000
#define OPERATIONS 100000
#define THREADS 4
#define OUT_OF_MEMORY 2

typedef struct block {
    uint64_t address, bytes;
} block_t;

/* By page: 0 for unmapped, else the number of the slab. */
static uint32_t slab_of[WINDOW_PAGES];
static bool was_last; /* of the last call of map() */
static uint32_t last_slab, mapped_pages, maps;
static pthread_mutex_t model_lock = PTHREAD_MUTEX_INITIALIZER;

static int map(void *owner, uint64_t address, uint64_t bytes, bool last) {
    (void) owner;
    HWS_CHECK(address % PAGE == 0 && bytes % PAGE == 0 && bytes != 0);
    HWS_CHECK(address >= BASE && address + bytes <= BASE + WINDOW_PAGES * PAGE);
    pthread_mutex_lock(&model_lock);
    bool fits = mapped_pages + bytes / PAGE <= QUOTA_PAGES;
    last_slab++;
    maps++;
    for (uint64_t i = (address - BASE) / PAGE; fits && i < (address - BASE + bytes) / PAGE; i++) {
        HWS_CHECK(slab_of[i] == 0);
        slab_of[i] = last_slab;
        mapped_pages++;
    }
    was_last = last;
    pthread_mutex_unlock(&model_lock);
    return fits ? 0 : OUT_OF_MEMORY;
}

static void unmap(void *owner, uint64_t address) {
    (void) owner;
    pthread_mutex_lock(&model_lock);
    uint64_t i = (address - BASE) / PAGE;
    uint32_t slab = slab_of[i];
    HWS_CHECK(slab != 0 && (i == 0 || slab_of[i - 1] != slab)); /* a slab's first address */
    for (; i < WINDOW_PAGES && slab_of[i] == slab; i++) {
        slab_of[i] = 0;
        mapped_pages--;
    }
    pthread_mutex_unlock(&model_lock);
}

static hws_arena_t *arena_with(uint64_t kept_limit) {
    static const hws_arena_owner_t owner = {.map = map, .unmap = unmap};
    memset(slab_of, 0, sizeof slab_of);
    mapped_pages = maps = 0;
    hws_arena_t *arena = hws_arena_new(BASE, WINDOW_PAGES * PAGE, kept_limit, &owner);
    HWS_CHECK(arena != NULL);
    return arena;
}

static uint32_t next_random(uint32_t *state, uint32_t limit) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % limit;
}

/* Small and large sizes, often at the borders of both. */
static uint64_t random_bytes(uint32_t *state) {
    switch (next_random(state, 6)) {
        case 0:
            return 1 + next_random(state, 2000);
        case 1:
            return 1 + next_random(state, (uint32_t) HWS_ARENA_SMALL_BYTES);
        case 2:
            return HWS_ARENA_SMALL_BYTES - 2 + next_random(state, 5);
        case 3:
            return (1 + next_random(state, 4)) * PAGE - 1 + next_random(state, 3);
        case 4:
            return 512u << next_random(state, 12);
        default:
            return 1 + next_random(state, (uint32_t) (40 * PAGE));
    }
}

static uint64_t pages_of(uint64_t bytes) {
    return (bytes + PAGE - 1) / PAGE;
}

/* A block must lie in one slab and must not overlap another block. */
static void check_block(const block_t *blocks, int count, uint64_t address, uint64_t bytes) {
    HWS_CHECK(address % HWS_ARENA_GRANULE_BYTES == 0);
    HWS_CHECK(bytes <= HWS_ARENA_SMALL_BYTES || address % PAGE == 0);
    uint64_t first = (address - BASE) / PAGE, last = (address - BASE + bytes - 1) / PAGE;
    HWS_CHECK(last < WINDOW_PAGES && slab_of[first] != 0 && slab_of[first] == slab_of[last]);
    for (int i = 0; i < count; i++) {
        HWS_CHECK(address + bytes <= blocks[i].address || blocks[i].address + blocks[i].bytes <= address);
    }
}

static void shouldAgreeWithAModelOverManyOperations(void) {
    static block_t blocks[MAX_BLOCKS];
    static const uint64_t limits[] = {0, PAGE, 16 * PAGE, 200 * PAGE};
    for (size_t round = 0; round < sizeof limits / sizeof *limits; round++) {
        hws_arena_t *arena = arena_with(limits[round]);
        uint32_t state = 7 + (uint32_t) round;
        uint64_t large_pages = 0;
        int count = 0, refused = 0;
        for (int step = 0; step < OPERATIONS / 4; step++) {
            if (count < MAX_BLOCKS && next_random(&state, 100) < 55) {
                uint64_t bytes = random_bytes(&state), address = 0;
                uint64_t alignment = HWS_ARENA_GRANULE_BYTES << next_random(&state, 5);
                int result = hws_arena_allocate(arena, bytes, alignment, &address);
                if (result == 0) {
                    HWS_CHECK(address % alignment == 0);
                    check_block(blocks, count, address, bytes);
                    blocks[count++] = (block_t) {address, bytes};
                    large_pages += bytes > HWS_ARENA_SMALL_BYTES ? pages_of(bytes) : 0;
                } else {
                    HWS_CHECK(result == OUT_OF_MEMORY && hws_arena_kept_bytes(arena) == 0);
                    HWS_CHECK(bytes <= HWS_ARENA_SMALL_BYTES || mapped_pages + pages_of(bytes) > QUOTA_PAGES);
                    refused++;
                }
            } else if (count > 0) {
                int at = (int) next_random(&state, (uint32_t) count);
                hws_arena_free(arena, blocks[at].address, blocks[at].bytes);
                large_pages -= blocks[at].bytes > HWS_ARENA_SMALL_BYTES ? pages_of(blocks[at].bytes) : 0;
                blocks[at] = blocks[--count];
            }
            HWS_CHECK(hws_arena_kept_bytes(arena) <= limits[round]);
            HWS_CHECK(large_pages + hws_arena_kept_bytes(arena) / PAGE <= mapped_pages);
        }
        HWS_CHECK(refused > 0);
        while (count > 0) {
            hws_arena_free(arena, blocks[count - 1].address, blocks[count - 1].bytes);
            count--;
        }
        HWS_CHECK(mapped_pages == hws_arena_kept_bytes(arena) / PAGE);
        hws_arena_release(arena);
        HWS_CHECK(mapped_pages == 0 && hws_arena_kept_bytes(arena) == 0);
        hws_arena_delete(arena);
    }
}

static uint64_t allocate(hws_arena_t *arena, uint64_t bytes) {
    uint64_t address = 0;
    HWS_CHECK(hws_arena_allocate(arena, bytes, HWS_ARENA_GRANULE_BYTES, &address) == 0);
    return address;
}

static void shouldTakeAsManyPagesAsTheDriver(void) {
    /* Driver 580 on an H200: 64 blocks of each size. */
    static const struct {
        uint64_t bytes;
        uint32_t pages;
    } cases[] = {{1, 1},
                 {512, 1},
                 {4096, 1},
                 {600 * 1024, 22},
                 {1023 * 1024, 32},
                 {1 << 20, 32},
                 {(1 << 20) + 1, 64},
                 {2 << 20, 64},
                 {(2 << 20) + 1, 128},
                 {3 << 20, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hws_arena_t *arena = arena_with(0);
        for (int n = 0; n < 64; n++) {
            allocate(arena, cases[i].bytes);
        }
        HWS_CHECK(mapped_pages == cases[i].pages);
        hws_arena_delete(arena);
    }
}

static void shouldMapNothingWhileFreedSlabsAreKept(void) {
    hws_arena_t *arena = arena_with(64 * PAGE);
    static const uint64_t sizes[] = {1000, HWS_ARENA_SMALL_BYTES, PAGE, 5 * PAGE, 32 * PAGE};
    for (int i = 0; i < 100; i++) {
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            hws_arena_free(arena, allocate(arena, sizes[j]), sizes[j]);
        }
    }
    HWS_CHECK(maps == 3); /* one page for the first three sizes */
    HWS_CHECK(hws_arena_changes(arena) > 0);
    hws_arena_delete(arena);
}

static void shouldUnmapSlabsOverTheLimitAtOnce(void) {
    hws_arena_t *arena = arena_with(32 * PAGE);
    hws_arena_free(arena, allocate(arena, 32 * PAGE), 32 * PAGE);
    HWS_CHECK(mapped_pages == 32);
    hws_arena_free(arena, allocate(arena, 33 * PAGE), 33 * PAGE);
    HWS_CHECK(mapped_pages == 32);
    hws_arena_delete(arena);
}

static void shouldGiveKeptSlabsBackBeforeItRefuses(void) {
    hws_arena_t *arena = arena_with(QUOTA_PAGES * PAGE);
    uint64_t kept = allocate(arena, 30 * PAGE);
    uint64_t most = allocate(arena, (QUOTA_PAGES - 30) * PAGE);
    hws_arena_free(arena, kept, 30 * PAGE);
    allocate(arena, 29 * PAGE);
    HWS_CHECK(was_last); /* the kept slab was given back for it */
    uint64_t address = 77;
    HWS_CHECK(hws_arena_allocate(arena, 2 * PAGE, HWS_ARENA_GRANULE_BYTES, &address) == OUT_OF_MEMORY && address == 77);
    HWS_CHECK(hws_arena_allocate(arena, (WINDOW_PAGES + 1) * PAGE, HWS_ARENA_GRANULE_BYTES, &address) == OUT_OF_MEMORY);
    HWS_CHECK(hws_arena_allocate(arena, UINT64_MAX, HWS_ARENA_GRANULE_BYTES, &address) == OUT_OF_MEMORY
              && address == 77);
    allocate(arena, PAGE);
    hws_arena_free(arena, most, (QUOTA_PAGES - 30) * PAGE);
    hws_arena_delete(arena);
}

static void shouldContainItsWindowOnly(void) {
    hws_arena_t *arena = arena_with(0);
    HWS_CHECK(hws_arena_contains(arena, BASE) && hws_arena_contains(arena, BASE + WINDOW_PAGES * PAGE - 1));
    HWS_CHECK(!hws_arena_contains(arena, BASE - 1) && !hws_arena_contains(arena, BASE + WINDOW_PAGES * PAGE));
    hws_arena_delete(arena);
}

static void *allocate_and_free(void *argument) {
    hws_arena_t *arena = argument;
    static _Atomic uint32_t seed;
    uint32_t state = ++seed;
    block_t blocks[32] = {{0, 0}};
    for (int step = 0; step < 5000; step++) {
        block_t *block = &blocks[next_random(&state, 32)];
        if (block->bytes != 0) {
            hws_arena_free(arena, block->address, block->bytes);
            block->bytes = 0;
        } else {
            block->bytes = random_bytes(&state) / 8 + 1;
            if (hws_arena_allocate(arena, block->bytes, HWS_ARENA_GRANULE_BYTES, &block->address) != 0) {
                block->bytes = 0;
            }
        }
        if (step % 500 == 0) {
            hws_arena_release(arena);
        }
    }
    for (int i = 0; i < 32; i++) {
        if (blocks[i].bytes != 0) {
            hws_arena_free(arena, blocks[i].address, blocks[i].bytes);
        }
    }
    return NULL;
}

static void shouldServeSeveralThreads(void) {
    hws_arena_t *arena = arena_with(20 * PAGE);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, allocate_and_free, arena) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    hws_arena_release(arena);
    HWS_CHECK(mapped_pages == 0);
    hws_arena_delete(arena);
}

int main(void) {
    HWS_RUN(shouldAgreeWithAModelOverManyOperations);
    HWS_RUN(shouldTakeAsManyPagesAsTheDriver);
    HWS_RUN(shouldMapNothingWhileFreedSlabsAreKept);
    HWS_RUN(shouldUnmapSlabsOverTheLimitAtOnce);
    HWS_RUN(shouldGiveKeptSlabsBackBeforeItRefuses);
    HWS_RUN(shouldContainItsWindowOnly);
    HWS_RUN(shouldServeSeveralThreads);
    return 0;
}

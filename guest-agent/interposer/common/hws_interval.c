#include "hws_interval.h"

#include "hws_addresses.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Sorted by base. The map holds pointers, so that an insertion moves 8 bytes for each range: 10,000 ranges cost 2 us,
 * well below an allocation's round trip. A look-up is one binary search under a read lock.
 */
typedef struct hws_map {
    hws_range_t **ranges;
    size_t count, capacity;
    pthread_rwlock_t lock;
} hws_map_t;

static hws_map_t maps[2] = {{.lock = PTHREAD_RWLOCK_INITIALIZER}, {.lock = PTHREAD_RWLOCK_INITIALIZER}};
static _Atomic uint64_t last_id;

/* Index of the first range that starts above the address. */
static size_t above(const hws_map_t *map, uint64_t address) {
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (map->ranges[middle]->base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static hws_range_t *find_locked(const hws_map_t *map, uint64_t address) {
    size_t next = above(map, address);
    if (next == 0) {
        return NULL;
    }
    hws_range_t *range = map->ranges[next - 1];
    return address - range->base < range->bytes ? range : NULL;
}

static bool make_room(hws_map_t *map) {
    if (map->count < map->capacity) {
        return true;
    }
    size_t wanted = map->capacity == 0 ? 64 : 2 * map->capacity;
    hws_range_t **larger = realloc(map->ranges, wanted * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    map->ranges = larger;
    map->capacity = wanted;
    return true;
}

bool hws_interval_insert(const hws_range_t *range) {
    hws_map_t *map = &maps[hws_memory_side(range->memory)];
    uint64_t last;
    if (range->bytes == 0 || __builtin_add_overflow(range->base, range->bytes - 1, &last)) {
        return false;
    }
    hws_range_t *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return false;
    }
    *copy = *range;
    copy->id = atomic_fetch_add(&last_id, 1) + 1;
    pthread_rwlock_wrlock(&map->lock);
    size_t at = above(map, range->base);
    bool fits = (at == 0 || range->base - map->ranges[at - 1]->base >= map->ranges[at - 1]->bytes)
        && (at == map->count || map->ranges[at]->base > last) && make_room(map);
    if (fits) {
        memmove(map->ranges + at + 1, map->ranges + at, (map->count - at) * sizeof *map->ranges);
        map->ranges[at] = copy;
        map->count++;
    }
    pthread_rwlock_unlock(&map->lock);
    if (!fits) {
        free(copy);
    }
    return fits;
}

/* Removes the range at an index and frees it. */
static void remove_at(hws_map_t *map, size_t at) {
    free(map->ranges[at]);
    map->count--;
    memmove(map->ranges + at, map->ranges + at + 1, (map->count - at) * sizeof *map->ranges);
}

bool hws_interval_remove(hws_side_t side, uint64_t base, hws_range_t *range_p) {
    hws_map_t *map = &maps[side];
    pthread_rwlock_wrlock(&map->lock);
    size_t next = above(map, base);
    bool found = next > 0 && map->ranges[next - 1]->base == base;
    if (found) {
        *range_p = *map->ranges[next - 1];
        remove_at(map, next - 1);
    }
    pthread_rwlock_unlock(&map->lock);
    return found;
}

bool hws_interval_find(hws_side_t side, uint64_t address, hws_range_t *range_p) {
    hws_map_t *map = &maps[side];
    pthread_rwlock_rdlock(&map->lock);
    hws_range_t *range = find_locked(map, address);
    if (range != NULL) {
        *range_p = *range;
    }
    pthread_rwlock_unlock(&map->lock);
    return range != NULL;
}

bool hws_interval_is_managed(uint64_t address, uint64_t bytes) {
    hws_range_t range;
    return hws_interval_find(HWS_SIDE_DEVICE, address, &range) && range.memory == HWS_MEMORY_MANAGED && bytes != 0
        && bytes <= range.bytes - (address - range.base);
}

bool hws_interval_is_mirrored(uint64_t address) {
    hws_range_t range;
    return hws_interval_find(HWS_SIDE_DEVICE, address, &range)
        && (range.memory == HWS_MEMORY_MANAGED || range.mirrored);
}

void hws_interval_set_mirrored(uint64_t base, bool mirrored) {
    hws_map_t *map = &maps[HWS_SIDE_HOST];
    pthread_rwlock_wrlock(&map->lock);
    hws_range_t *range = find_locked(map, base);
    if (range != NULL && range->base == base) {
        range->mirrored = mirrored;
        range->twin = mirrored ? base : 0;
    }
    pthread_rwlock_unlock(&map->lock);
}

/* Whether copies may touch the range, if there is one. */
static bool is_open(const hws_range_t *range) {
    return range != NULL && (range->memory != HWS_MEMORY_VIRTUAL || range->flags != 0);
}

bool hws_interval_covers(uint64_t address, uint64_t bytes) {
    hws_map_t *map = &maps[HWS_SIDE_DEVICE];
    pthread_rwlock_rdlock(&map->lock);
    hws_range_t *range = find_locked(map, address);
    size_t next = above(map, address);
    /* Bytes of the range from the address on. A range never wraps. */
    uint64_t here = range == NULL ? 0 : range->bytes - (address - range->base);
    range = is_open(range) ? range : NULL;
    while (range != NULL && here < bytes) {
        hws_range_t *follower = next < map->count ? map->ranges[next++] : NULL;
        bool goes_on = is_open(follower) && range->memory == HWS_MEMORY_VIRTUAL
            && follower->memory == HWS_MEMORY_VIRTUAL && range->base + range->bytes == follower->base;
        bytes -= here;
        range = goes_on ? follower : NULL;
        here = goes_on ? follower->bytes : 0;
    }
    pthread_rwlock_unlock(&map->lock);
    return range != NULL;
}

bool hws_interval_set_sync_memops(hws_side_t side, uint64_t address, bool value) {
    hws_map_t *map = &maps[side];
    pthread_rwlock_wrlock(&map->lock);
    hws_range_t *range = find_locked(map, address);
    if (range != NULL) {
        range->sync_memops = value;
    }
    pthread_rwlock_unlock(&map->lock);
    return range != NULL;
}

void hws_interval_set_flags(hws_side_t side, uint64_t base, unsigned flags) {
    hws_map_t *map = &maps[side];
    pthread_rwlock_wrlock(&map->lock);
    hws_range_t *range = find_locked(map, base);
    if (range != NULL && range->base == base) {
        range->flags = flags;
    }
    pthread_rwlock_unlock(&map->lock);
}

void hws_interval_set_owner(hws_side_t side, uint64_t base, uint64_t owner) {
    hws_map_t *map = &maps[side];
    pthread_rwlock_wrlock(&map->lock);
    hws_range_t *range = find_locked(map, base);
    if (range != NULL && range->base == base) {
        range->owner = owner;
    }
    pthread_rwlock_unlock(&map->lock);
}

void hws_interval_remove_all(uint64_t owner, uint64_t context) {
    hws_map_t *map = &maps[HWS_SIDE_DEVICE];
    pthread_rwlock_wrlock(&map->lock);
    size_t kept = 0;
    for (size_t i = 0; i < map->count; i++) {
        hws_range_t *range = map->ranges[i];
        if (!range->arena && (owner != 0 ? range->owner == owner : range->context == context)) {
            free(range);
        } else {
            map->ranges[kept++] = range;
        }
    }
    map->count = kept;
    pthread_rwlock_unlock(&map->lock);
}

bool hws_interval_take_block(uint64_t context, hws_range_t *range_p) {
    hws_map_t *map = &maps[HWS_SIDE_DEVICE];
    pthread_rwlock_wrlock(&map->lock);
    size_t at = map->count;
    while (at > 0 && !(map->ranges[at - 1]->arena && map->ranges[at - 1]->context == context)) {
        at--;
    }
    if (at > 0) {
        *range_p = *map->ranges[at - 1];
        remove_at(map, at - 1);
    }
    pthread_rwlock_unlock(&map->lock);
    return at > 0;
}

#define RESERVED_UNIT (2ull << 20) /* devices allocate in this unit; limits the number of mappings */
#define MAX_RESERVED_BYTES (1ull << 40)

static bool reserve(uint64_t from, uint64_t to) {
    return hws_addresses_reserve(from, to - from);
}

void hws_interval_reserve(uint64_t base, uint64_t bytes) {
    /* The worker chooses the address. Without limits it could take our whole address space. */
    if (bytes > MAX_RESERVED_BYTES || base > (1ull << 47) - MAX_RESERVED_BYTES - RESERVED_UNIT) {
        return;
    }
    uint64_t from = base / RESERVED_UNIT * RESERVED_UNIT;
    uint64_t to = (base + bytes + RESERVED_UNIT - 1) / RESERVED_UNIT * RESERVED_UNIT;
    if (reserve(from, to) || to - from == RESERVED_UNIT) {
        return;
    }
    /*
     * Part of it is taken, mostly by an earlier reservation. An address of the program in that part stays ambiguous:
     * hws_interval_find().
     */
    for (; from < to; from += RESERVED_UNIT) {
        reserve(from, from + RESERVED_UNIT);
    }
}

/* The map of memory against a model that has one byte for each address. */
#include "hws_interval.h"
#include "hws_test.h"

#include <string.h>

#define SPACE 4096
#define BASE 0x7f0000000000ull

static uint32_t random_state = 12345;

static uint32_t next_random(uint32_t limit) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

static hws_range_t range_of(uint64_t base, uint64_t bytes, hws_memory_t memory, uint64_t owner) {
    return (hws_range_t) {.base = base, .bytes = bytes, .memory = memory, .owner = owner, .context = 1};
}

static void shouldAgreeWithAByteMap(void) {
    static uint16_t owner_of[SPACE]; /* number of the range at each address, 0 for none */
    static uint32_t start_of[65536], bytes_of[65536];
    uint16_t last = 0;
    for (int step = 0; step < 20000; step++) {
        uint32_t at = next_random(SPACE), bytes = 1 + next_random(64);
        if (next_random(2) == 0) {
            bool free_space = at + bytes <= SPACE;
            for (uint32_t i = at; free_space && i < at + bytes; i++) {
                free_space = owner_of[i] == 0;
            }
            if (at + bytes <= SPACE) {
                hws_range_t range = range_of(BASE + at, bytes, HWS_MEMORY_DEVICE, 0);
                HWS_CHECK(hws_interval_insert(&range) == free_space);
            }
            if (free_space && at + bytes <= SPACE) {
                last++;
                start_of[last] = at;
                bytes_of[last] = bytes;
                for (uint32_t i = at; i < at + bytes; i++) {
                    owner_of[i] = last;
                }
            }
        } else {
            hws_range_t range;
            uint16_t owner = owner_of[at];
            bool starts = owner != 0 && start_of[owner] == at;
            HWS_CHECK(hws_interval_remove(HWS_SIDE_DEVICE, BASE + at, &range) == starts);
            if (starts) {
                HWS_CHECK(range.bytes == bytes_of[owner]);
                memset(owner_of + at, 0, bytes_of[owner] * sizeof *owner_of);
            }
        }
        uint32_t probe = next_random(SPACE);
        hws_range_t found;
        uint16_t owner = owner_of[probe];
        HWS_CHECK(hws_interval_find(HWS_SIDE_DEVICE, BASE + probe, &found) == (owner != 0));
        HWS_CHECK(owner == 0 || (found.base == BASE + start_of[owner] && found.bytes == bytes_of[owner]));
    }
    hws_interval_remove_all(0, 1);
    hws_range_t found;
    for (uint32_t i = 0; i < SPACE; i++) {
        HWS_CHECK(!hws_interval_find(HWS_SIDE_DEVICE, BASE + i, &found));
    }
}

static void shouldRefuseEmptyAndWrappingRanges(void) {
    hws_range_t range = range_of(BASE, 0, HWS_MEMORY_DEVICE, 0);
    HWS_CHECK(!hws_interval_insert(&range));
    range = range_of(UINT64_MAX - 7, 9, HWS_MEMORY_DEVICE, 0);
    HWS_CHECK(!hws_interval_insert(&range));
    range = range_of(UINT64_MAX - 7, 8, HWS_MEMORY_DEVICE, 0);
    HWS_CHECK(hws_interval_insert(&range));
    hws_range_t found;
    HWS_CHECK(hws_interval_find(HWS_SIDE_DEVICE, UINT64_MAX, &found) && found.bytes == 8);
    HWS_CHECK(!hws_interval_find(HWS_SIDE_DEVICE, UINT64_MAX - 8, &found));
    HWS_CHECK(hws_interval_remove(HWS_SIDE_DEVICE, UINT64_MAX - 7, &found));
}

static void shouldKeepHostAndDeviceApart(void) {
    hws_range_t device = range_of(BASE, 100, HWS_MEMORY_DEVICE, 0), host = range_of(BASE + 50, 100, HWS_MEMORY_HOST, 0);
    hws_range_t found;
    HWS_CHECK(hws_interval_insert(&device) && hws_interval_insert(&host));
    HWS_CHECK(hws_interval_find(HWS_SIDE_HOST, BASE + 60, &found) && found.memory == HWS_MEMORY_HOST);
    HWS_CHECK(hws_interval_find(HWS_SIDE_DEVICE, BASE + 60, &found) && found.memory == HWS_MEMORY_DEVICE);
    HWS_CHECK(!hws_interval_find(HWS_SIDE_DEVICE, BASE + 100, &found));
    HWS_CHECK(hws_interval_remove(HWS_SIDE_HOST, BASE + 50, &found)
              && hws_interval_remove(HWS_SIDE_DEVICE, BASE, &found));
}

static void shouldRemoveWhatBelongsToAModule(void) {
    hws_range_t ranges[] = {range_of(BASE, 8, HWS_MEMORY_VARIABLE, 7), range_of(BASE + 8, 8, HWS_MEMORY_VARIABLE, 8),
                            range_of(BASE + 16, 8, HWS_MEMORY_VARIABLE, 7)};
    hws_range_t found;
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(hws_interval_insert(&ranges[i]));
    }
    hws_interval_remove_all(7, 0);
    HWS_CHECK(!hws_interval_find(HWS_SIDE_DEVICE, BASE, &found)
              && !hws_interval_find(HWS_SIDE_DEVICE, BASE + 16, &found));
    HWS_CHECK(hws_interval_remove(HWS_SIDE_DEVICE, BASE + 8, &found));
}

static void shouldGoOnFromMappingToMapping(void) {
    hws_range_t ranges[] = {range_of(BASE, 10, HWS_MEMORY_VIRTUAL, 1), range_of(BASE + 10, 10, HWS_MEMORY_VIRTUAL, 2),
                            range_of(BASE + 20, 10, HWS_MEMORY_DEVICE, 0),
                            range_of(BASE + 40, 10, HWS_MEMORY_VIRTUAL, 1)};
    hws_range_t found;
    for (int i = 0; i < 4; i++) {
        HWS_CHECK(hws_interval_insert(&ranges[i]));
    }
    HWS_CHECK(!hws_interval_covers(BASE, 1)); /* no device has access so far */
    for (int i = 0; i < 4; i++) {
        hws_interval_set_flags(HWS_SIDE_DEVICE, ranges[i].base, 3);
    }
    HWS_CHECK(hws_interval_covers(BASE, 20) && hws_interval_covers(BASE + 5, 15) && hws_interval_covers(BASE + 20, 10));
    HWS_CHECK(!hws_interval_covers(BASE, 21)); /* an allocation is no mapping */
    HWS_CHECK(!hws_interval_covers(BASE + 20, 11) && !hws_interval_covers(BASE + 30, 1));
    HWS_CHECK(!hws_interval_covers(BASE + 45, 6) && !hws_interval_covers(BASE + 5, UINT64_MAX));
    hws_interval_set_flags(HWS_SIDE_DEVICE, BASE + 10, 0);
    HWS_CHECK(hws_interval_covers(BASE, 10) && !hws_interval_covers(BASE, 11));
    for (int i = 0; i < 4; i++) {
        HWS_CHECK(hws_interval_remove(HWS_SIDE_DEVICE, ranges[i].base, &found));
    }
}

static void shouldKnowMemoryThatADeviceHasForTheHost(void) {
    hws_range_t host = range_of(BASE, 4096, HWS_MEMORY_HOST, 0), found;
    hws_range_t mapped = range_of(BASE, 4096, HWS_MEMORY_MAPPED, 0);
    hws_range_t managed = range_of(2 * BASE, 4096, HWS_MEMORY_MANAGED, 0);
    mapped.mirrored = true;
    HWS_CHECK(hws_interval_insert(&host) && hws_interval_insert(&managed));
    HWS_CHECK(!hws_interval_is_mirrored(BASE) && hws_interval_is_mirrored(2 * BASE + 4095));
    HWS_CHECK(hws_interval_insert(&mapped));
    hws_interval_set_mirrored(BASE + 1, true); /* no range starts there */
    HWS_CHECK(hws_interval_find(HWS_SIDE_HOST, BASE, &found) && !found.mirrored && found.twin == 0);
    hws_interval_set_mirrored(BASE, true);
    HWS_CHECK(hws_interval_find(HWS_SIDE_HOST, BASE + 9, &found) && found.mirrored && found.twin == BASE);
    HWS_CHECK(hws_interval_is_mirrored(BASE + 4095) && !hws_interval_is_mirrored(BASE + 4096));
    HWS_CHECK(!hws_interval_is_managed(BASE, 1) && hws_interval_is_managed(2 * BASE, 1));
    hws_interval_set_mirrored(BASE, false);
    HWS_CHECK(hws_interval_remove(HWS_SIDE_HOST, BASE, &found) && !found.mirrored && found.twin == 0);
    HWS_CHECK(hws_interval_remove(HWS_SIDE_DEVICE, BASE, &found));
    HWS_CHECK(hws_interval_remove(HWS_SIDE_DEVICE, 2 * BASE, &found));
}

int main(void) {
    HWS_RUN(shouldAgreeWithAByteMap);
    HWS_RUN(shouldRefuseEmptyAndWrappingRanges);
    HWS_RUN(shouldKeepHostAndDeviceApart);
    HWS_RUN(shouldRemoveWhatBelongsToAModule);
    HWS_RUN(shouldGoOnFromMappingToMapping);
    HWS_RUN(shouldKnowMemoryThatADeviceHasForTheHost);
    return 0;
}

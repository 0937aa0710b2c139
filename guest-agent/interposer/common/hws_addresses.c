#include "hws_addresses.h"

#include "hws_log.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void *map_nothing(uint64_t base, uint64_t bytes, int flags) {
    return mmap((void *) (uintptr_t) base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1,
                0);
}

bool hws_addresses_reserve(uint64_t base, uint64_t bytes) {
    void *reserved = map_nothing(base, bytes, MAP_FIXED_NOREPLACE);
    if (reserved != MAP_FAILED
        && reserved != (void *) (uintptr_t) base) { /* Linux before 4.17 does not know the flag */
        munmap(reserved, bytes);
        errno = EEXIST;
        return false;
    }
    return reserved != MAP_FAILED;
}

bool hws_addresses_empty(uint64_t base, uint64_t bytes, const char *what) {
    if (map_nothing(base, bytes, MAP_FIXED) == MAP_FAILED) {
        hws_log(HWS_ERROR, "freed %s stays mapped: %s", what, strerror(errno));
        return false;
    }
    return true;
}

/* A region's file: opens and maps it, reads its header once and checks it. */
#include "hws_shm_internal.h"

#include "hws_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A region is mapped here if the place is free. The worker tries the same address; a pinned allocation then has one
 * address on both sides. The heaps of usual programs lie below it, the arenas of device memory, libraries and stacks
 * above.
 */
#ifdef __SANITIZE_THREAD__
#define WINDOW_BASE 0x7ea000000000ull /* the sanitizer keeps its own memory in the other place */
#else
#define WINDOW_BASE 0x110000000000ull
#endif
#define WINDOW_STEP 0x10000000000ull
#define WINDOW_STEPS 15
#define LAST_SYSTEM_USER 999u /* login.defs(5), SYS_UID_MAX: the broker's packages make such a user */
#define OVERFLOW_USER 65534u  /* outside a container's user namespace: the container's administrator mounted the file */
#define SLOT_PAGES 3u
#define MAX_RING_BYTES (1ull << 30)
#define MAX_REGION_BYTES (1ull << 47) /* of an address space; keeps the sums below from overflowing */

static bool is_power_of_two(uint64_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

static bool is_inside(uint64_t offset, uint64_t bytes, uint64_t from, uint64_t to) {
    return offset % HWS_PAGE_BYTES == 0 && offset >= from && offset <= to && bytes <= to - offset;
}

static bool are_apart(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
    return a + a_bytes <= b || b + b_bytes <= a; /* both lie inside the region, so no sum overflows */
}

bool hws_shm_header_is_sound(const hws_region_header_t *h, uint64_t mapped_bytes) {
    uint64_t whole = h->region_bytes, stride = h->slot_stride, first = (uint64_t) SLOT_PAGES * HWS_PAGE_BYTES;
    if (whole > mapped_bytes || whole > MAX_REGION_BYTES || whole % HWS_PAGE_BYTES != 0 || h->epoch == 0
        || h->slot_count == 0 || h->slot_count > HWS_MAX_SLOTS || stride % HWS_PAGE_BYTES != 0 || stride < first
        || stride > whole || !is_inside(h->slots_offset, stride * h->slot_count, HWS_PAGE_BYTES, whole)) {
        return false;
    }
    if (!is_power_of_two(h->command_bytes) || h->command_bytes > MAX_RING_BYTES || !is_power_of_two(h->reply_bytes)
        || h->reply_bytes > MAX_RING_BYTES || h->command_bytes < HWS_PAGE_BYTES || h->reply_bytes < HWS_PAGE_BYTES
        || h->chunk_count < 2 || h->chunk_count > HWS_MAX_CHUNKS || !is_power_of_two(h->chunk_bytes)
        || h->chunk_bytes < HWS_PAGE_BYTES || h->chunk_bytes > MAX_RING_BYTES) {
        return false;
    }
    uint64_t bulk_bytes = h->chunk_count * h->chunk_bytes;
    if (!is_inside(h->command_offset, h->command_bytes, first, stride)
        || !is_inside(h->reply_offset, h->reply_bytes, first, stride)
        || !is_inside(h->bulk_offset, bulk_bytes, first, stride)
        || !are_apart(h->command_offset, h->command_bytes, h->reply_offset, h->reply_bytes)
        || !are_apart(h->command_offset, h->command_bytes, h->bulk_offset, bulk_bytes)
        || !are_apart(h->reply_offset, h->reply_bytes, h->bulk_offset, bulk_bytes)) {
        return false;
    }
    uint64_t granules = h->heap_bytes / HWS_GRANULE_BYTES;
    return h->heap_bytes % HWS_GRANULE_BYTES == 0 && is_inside(h->heap_offset, h->heap_bytes, HWS_PAGE_BYTES, whole)
        && is_inside(h->heap_table_offset, granules, HWS_PAGE_BYTES, whole)
        && are_apart(h->heap_offset, h->heap_bytes, h->heap_table_offset, granules)
        && are_apart(h->slots_offset, stride * h->slot_count, h->heap_offset, h->heap_bytes)
        && are_apart(h->slots_offset, stride * h->slot_count, h->heap_table_offset, granules);
}

static uint8_t *map_somewhere(int fd, uint64_t bytes) {
    for (uint64_t i = 0; i < WINDOW_STEPS; i++) {
        void *wanted = (void *) (uintptr_t) (WINDOW_BASE + i * WINDOW_STEP);
        void *got = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
        if (got == wanted) {
            return got;
        }
        if (got != MAP_FAILED) {
            munmap(got, bytes); /* a kernel before 4.17 takes the address as a hint only */
        }
    }
    void *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return got == MAP_FAILED ? NULL : got;
}

/* Copies the header out and reads each field of the shared page once. Returns false while the broker formats it. */
static bool read_header(const hws_region_header_t *live, hws_region_header_t *header_p) {
    /* Pairs with the broker's release store of the magic, which it writes last. */
    if (__atomic_load_n(&live->magic, __ATOMIC_ACQUIRE) != HWS_REGION_MAGIC) {
        return false;
    }
    const uint64_t *from = (const uint64_t *) live;
    uint64_t *to = (uint64_t *) header_p;
    for (size_t i = 0; i < sizeof *header_p / sizeof *to; i++) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    }
    /* A broker that starts to format meanwhile clears the magic first. */
    return __atomic_load_n(&live->magic, __ATOMIC_RELAXED) == HWS_REGION_MAGIC && header_p->magic == HWS_REGION_MAGIC
        && header_p->epoch == __atomic_load_n(&live->epoch, __ATOMIC_RELAXED);
}

_Static_assert(sizeof(hws_region_header_t) % sizeof(uint64_t) == 0, "the header is read by words");

static void map_doorbell(hws_shm_t *shm) {
    int fd = open(shm->doorbell_path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return; /* the worker polls: slower, but the GPU stays usable */
    }
    void *registers = mmap(NULL, HWS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (registers != MAP_FAILED) {
        madvise(registers, HWS_PAGE_BYTES, MADV_DONTFORK);
        shm->doorbell = (volatile uint32_t *) ((uint8_t *) registers + HWS_DOORBELL_OFFSET);
    }
}

/* Fills in the pointers that follow from the checked header. */
static void take_view(hws_shm_t *shm) {
    shm->live = (hws_region_header_t *) shm->view.base;
    shm->view.header = &shm->header;
    shm->view.heap = shm->view.base + shm->header.heap_offset;
    shm->view.heap_table = (_Atomic uint8_t *) (shm->view.base + shm->header.heap_table_offset);
    if (shm->header.doorbell_vectors > 0 && shm->doorbell_path[0] != '\0') {
        map_doorbell(shm);
    }
}

/* Whether no other person owns files of this owner: it is root, the program's user, a service, or unknown. */
static bool is_trusted(uid_t owner) {
    return owner == geteuid() || owner <= LAST_SYSTEM_USER || owner == OVERFLOW_USER;
}

/*
 * Whether a region's file may be used. In /dev/shm any user can create a file of the region's name before the broker
 * does, and would read all that the program sends. So the owner of the file must be trusted. Or the owner of its folder
 * must be, if other users cannot write there. The folder is that of the given name: a link in a shared folder belongs
 * to its creator, wherever it leads.
 */
static bool is_safe(const char *path, const struct stat *file) {
    if (is_trusted(file->st_uid)) {
        return true;
    }
    const char *slash = strrchr(path, '/');
    char folder[sizeof((hws_shm_t *) NULL)->path];
    struct stat status;
    snprintf(folder, sizeof folder, "%.*s/", slash == NULL ? 1 : (int) (slash - path), slash == NULL ? "." : path);
    return stat(folder, &status) == 0 && (status.st_mode & S_IWOTH) == 0 && is_trusted(status.st_uid);
}

int hws_shm_map(hws_shm_t *shm, bool *ours_p, char *error_p, size_t error_capacity) {
    *ours_p = false;
    struct stat status;
    shm->fd = open(shm->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (shm->fd < 0 || fstat(shm->fd, &status) != 0) {
        snprintf(error_p, error_capacity, "the region cannot be opened: %s: %s", shm->path, strerror(errno));
        return -1;
    }
    if (!S_ISREG(status.st_mode) || status.st_size < (off_t) HWS_PAGE_BYTES) {
        snprintf(error_p, error_capacity, "a region must be a file of at least %d bytes: %s", HWS_PAGE_BYTES,
                 shm->path);
        return -1;
    }
    if (!is_safe(shm->path, &status)) {
        snprintf(error_p, error_capacity,
                 "a region must belong to the program's user, root or a system user: %s belongs to %u", shm->path,
                 (unsigned) status.st_uid);
        return -1;
    }
    shm->mapped_bytes = (uint64_t) status.st_size;
    shm->view.base = map_somewhere(shm->fd, shm->mapped_bytes);
    if (shm->view.base == NULL) {
        snprintf(error_p, error_capacity, "the region cannot be mapped: %s: %s", shm->path, strerror(errno));
        return -1;
    }
    /* A child that wrote there would disturb its parent's session. */
    if (madvise(shm->view.base, shm->mapped_bytes, MADV_DONTFORK) != 0) {
        snprintf(error_p, error_capacity, "the region cannot be kept from children: %s: %s", shm->path,
                 strerror(errno));
        return -1;
    }
    const hws_region_header_t *live = (const hws_region_header_t *) shm->view.base;
    if (!read_header(live, &shm->header)) {
        snprintf(error_p, error_capacity, "no broker has formatted the region: %s", shm->path);
        return -1;
    }
    *ours_p = true;
    if (shm->header.region_version != HWS_REGION_VERSION || shm->header.protocol_version != HWS_PROTOCOL_VERSION) {
        snprintf(error_p, error_capacity, "the region must be version %d with records of version %d: %s has %u and %u",
                 HWS_REGION_VERSION, HWS_PROTOCOL_VERSION, shm->path, shm->header.region_version,
                 shm->header.protocol_version);
        return -1;
    }
    if (!hws_shm_header_is_sound(&shm->header, shm->mapped_bytes)) {
        snprintf(error_p, error_capacity, "the region's header is invalid: %s (%llu of %llu bytes, %u slots)",
                 shm->path, (unsigned long long) shm->header.region_bytes, (unsigned long long) shm->mapped_bytes,
                 shm->header.slot_count);
        return -1;
    }
    take_view(shm);
    return 0;
}

void hws_shm_unmap(hws_shm_t *shm) {
    if (shm->view.base != NULL) {
        munmap(shm->view.base, shm->mapped_bytes);
        shm->view.base = NULL;
    }
    if (shm->doorbell != NULL) {
        munmap((uint8_t *) shm->doorbell - HWS_DOORBELL_OFFSET, HWS_PAGE_BYTES);
        shm->doorbell = NULL;
    }
    if (shm->fd >= 0) {
        close(shm->fd);
        shm->fd = -1;
    }
}

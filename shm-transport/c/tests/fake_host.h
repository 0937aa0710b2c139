/*
 * The host's side of a region, in this process: formats it as the broker does, beats, answers claims and frees slots.
 * The test plays a worker's two rings for one session.
 */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include "../hws_record.h"
#include "../shm/hws_shm_internal.h"
#include "hws_test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef enum fake_mood {
    HOST_SERVES,
    HOST_REFUSES,
    HOST_IGNORES,     /* lives, but accepts no claim */
    HOST_STANDS_STILL /* does nothing at all */
} fake_mood_t;

typedef struct fake_host {
    char path[64];
    int fd;
    uint8_t *base;              /* the host's own mapping */
    hws_region_header_t header; /* as written */
    _Atomic int mood;
    _Atomic uint32_t liveness;
    _Atomic bool ends;
    _Atomic int busy;           /* slot whose worker has not ended: the host leaves it alone; -1 for none */
    _Atomic uint64_t sessions;  /* accepted claims; also the last one's id */
    _Atomic uint32_t abandoned; /* freed slots that another process had found abandoned */
    pthread_t thread;
} fake_host_t;

/* One session's worker. */
typedef struct fake_slot {
    hws_region_guest_t *guest;
    hws_region_host_t *host;
    uint8_t *base;
    hws_ring_t command, reply;
} fake_slot_t;

static fake_host_t fake_host;

static inline void fake_nap(void) {
    struct timespec time = {.tv_nsec = 100000};
    nanosleep(&time, NULL);
}

static inline uint64_t fake_highest_bit(uint64_t value) {
    return value == 0 ? 0 : 1ull << (63 - __builtin_clzll(value));
}

/* RegionGeometry.of(), and the rest of what the broker writes. */
static inline hws_region_header_t fake_header(uint64_t bytes, uint32_t slots) {
    const uint64_t page = HWS_PAGE_BYTES, ring = 256 << 10, rings = 3 * page + 2 * ring;
    uint64_t bulk = fake_highest_bit(bytes / 2 / slots);
    bulk = bulk > HWS_MAX_CHUNKS * (512ull << 10) ? HWS_MAX_CHUNKS * (512ull << 10) : bulk;
    bulk = bulk < 256 << 10 ? 256 << 10 : bulk;
    uint64_t chunk = fake_highest_bit(bulk / HWS_MAX_CHUNKS);
    chunk = chunk < 64 << 10 ? 64 << 10 : chunk > 512 << 10 ? 512 << 10 : chunk;
    if (page + slots * (rings + bulk) + 2 * page > bytes) {
        bulk = 256 << 10;
        chunk = 64 << 10;
    }
    uint64_t stride = rings + bulk, table = page + slots * stride;
    HWS_CHECK(table + 2 * page <= bytes);
    uint64_t pages = (bytes - table) / page;
    uint64_t heap = table + (pages + HWS_GRANULE_BYTES) / (HWS_GRANULE_BYTES + 1) * page;
    hws_region_header_t header = {
        .magic = HWS_REGION_MAGIC,
        .region_version = HWS_REGION_VERSION,
        .protocol_version = HWS_PROTOCOL_VERSION,
        .region_bytes = bytes,
        .epoch = 0x1234567,
        .slot_count = slots,
        .slots_offset = page,
        .slot_stride = stride,
        .command_offset = 3 * page,
        .command_bytes = ring,
        .reply_offset = 3 * page + ring,
        .reply_bytes = ring,
        .bulk_offset = rings,
        .chunk_count = bulk / chunk,
        .chunk_bytes = chunk,
        .heap_table_offset = table,
        .heap_offset = heap,
        .heap_bytes = bytes - heap,
    };
    strcpy(header.vgpu, "fake");
    return header;
}

static inline hws_region_guest_t *fake_guest(uint8_t *base, uint32_t slot) {
    return (hws_region_guest_t *) (base + fake_host.header.slots_offset + slot * fake_host.header.slot_stride);
}

static inline hws_region_host_t *fake_host_page(uint8_t *base, uint32_t slot) {
    return (hws_region_host_t *) ((uint8_t *) fake_guest(base, slot) + HWS_PAGE_BYTES);
}

static inline uint32_t fake_load(const uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void fake_attach(fake_slot_t *slot, uint8_t *base, uint32_t number) {
    slot->base = base;
    slot->guest = fake_guest(base, number);
    slot->host = fake_host_page(base, number);
    uint8_t *first = (uint8_t *) slot->guest;
    const hws_region_header_t *h = &fake_host.header;
    hws_ring_attach_reader(&slot->command, first + h->command_offset, h->command_bytes, &slot->host->command_head,
                           &slot->guest->command_tail);
    hws_ring_attach_writer(&slot->reply, first + h->reply_offset, h->reply_bytes, &slot->guest->reply_head,
                           &slot->host->reply_tail);
}

static inline void fake_slot_end(fake_slot_t *slot, uint32_t state, const char *reason) {
    snprintf(slot->host->reason, sizeof slot->host->reason, "%s", reason);
    __atomic_store_n(&slot->host->state, state, __ATOMIC_RELEASE);
    hws_wait_signal(&slot->host->reply_signal);
}

static inline void fake_slot_put(fake_slot_t *slot, const void *bytes, uint64_t count) {
    hws_ring_put(&slot->reply, bytes, count);
    hws_ring_commit(&slot->reply);
    hws_wake(&slot->guest->reply_waiting, &slot->host->reply_signal);
}

typedef struct fake_welcome {
    hws_record_header_t header;
    uint32_t version, devices;
    uint64_t session, window;
    uint32_t record, bulk;
    uint64_t hash;
} fake_welcome_t;

static void fake_take_claim(uint32_t number) {
    fake_slot_t slot;
    fake_attach(&slot, fake_host.base, number);
    HWS_CHECK(slot.guest->epoch == fake_host.header.epoch && slot.guest->protocol_version == HWS_PROTOCOL_VERSION);
    uint64_t session = atomic_fetch_add(&fake_host.sessions, 1) + 1;
    slot.host->session_id = session;
    slot.host->liveness = atomic_load(&fake_host.liveness);
    if (atomic_load(&fake_host.mood) == HOST_REFUSES) {
        slot.host->refusal_code = 3;
        fake_slot_end(&slot, HWS_HOST_REFUSED, "no room");
        return;
    }
    __atomic_store_n(&slot.host->state, HWS_HOST_STARTING, __ATOMIC_RELEASE);
    fake_welcome_t welcome = {
        .header = {.length_bytes = sizeof welcome, .opcode = HWS_CONTROL_WELCOME},
        .version = HWS_PROTOCOL_VERSION,
        .devices = 1,
        .session = session,
        .window = HWS_CREDIT_WINDOW_BYTES,
        .record = HWS_MAX_RECORD_BYTES,
        .bulk = HWS_MAX_BULK_BYTES,
    };
    if (session % 2 == 0) {
        fake_slot_put(&slot, &welcome, sizeof welcome); /* a worker that is faster than its broker */
    }
    __atomic_store_n(&slot.host->state, HWS_HOST_SERVING, __ATOMIC_RELEASE);
    if (session % 2 != 0) {
        fake_slot_put(&slot, &welcome, sizeof welcome);
    }
}

static void *fake_host_main(void *unused) {
    (void) unused;
    hws_region_header_t *live = (hws_region_header_t *) fake_host.base;
    while (!atomic_load(&fake_host.ends)) {
        int mood = atomic_load(&fake_host.mood);
        if (mood != HOST_STANDS_STILL) { /* in each turn: on a loaded machine few turns fit into a guest's time limit */
            __atomic_fetch_add(&live->host_beat, 1, __ATOMIC_RELEASE);
        }
        for (uint32_t i = 0; mood < HOST_IGNORES && i < fake_host.header.slot_count; i++) {
            uint32_t guest_state = fake_load(&fake_guest(fake_host.base, i)->state);
            uint32_t answered = fake_load(&fake_host_page(fake_host.base, i)->state);
            if (atomic_load(&fake_host.busy) == (int) i) {
                continue;
            }
            if (guest_state == HWS_GUEST_CLAIMED && answered == HWS_HOST_FREE) {
                fake_take_claim(i);
            } else if (guest_state == HWS_GUEST_LEFT || guest_state == HWS_GUEST_ABANDONED) {
                atomic_fetch_add(&fake_host.abandoned, guest_state == HWS_GUEST_ABANDONED ? 1 : 0);
                uint32_t *words = (uint32_t *) fake_guest(fake_host.base, i);
                for (uint32_t at = 3 * HWS_PAGE_BYTES / sizeof *words; at > 0; at--) {
                    __atomic_store_n(&words[at - 1], 0, __ATOMIC_RELEASE); /* the guest's state last */
                }
            }
        }
        fake_nap();
    }
    return NULL;
}

/* Makes and formats a region in /dev/shm and starts to serve it. */
static inline void fake_host_start(uint64_t bytes, uint32_t slots, fake_mood_t mood) {
    strcpy(fake_host.path, "/dev/shm/hawser-test-XXXXXX"); /* no pid: a killed process may have left such a file */
    fake_host.fd = mkostemp(fake_host.path, O_CLOEXEC);
    HWS_CHECK(fake_host.fd >= 0 && ftruncate(fake_host.fd, (off_t) bytes) == 0);
    fake_host.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fake_host.fd, 0);
    HWS_CHECK(fake_host.base != MAP_FAILED);
    fake_host.header = fake_header(bytes, slots);
    hws_region_header_t *live = (hws_region_header_t *) fake_host.base;
    memcpy((uint8_t *) live + 8, (uint8_t *) &fake_host.header + 8, sizeof *live - 8);
    __atomic_store_n(&live->magic, HWS_REGION_MAGIC, __ATOMIC_RELEASE);
    atomic_store(&fake_host.mood, mood);
    atomic_store(&fake_host.liveness, HWS_LIVENESS_LOCK);
    atomic_store(&fake_host.ends, false);
    atomic_store(&fake_host.busy, -1);
    atomic_store(&fake_host.abandoned, 0);
    HWS_CHECK(pthread_create(&fake_host.thread, NULL, fake_host_main, NULL) == 0);
}

static inline void fake_host_stop(void) {
    atomic_store(&fake_host.ends, true);
    HWS_CHECK(pthread_join(fake_host.thread, NULL) == 0);
    munmap(fake_host.base, fake_host.header.region_bytes);
    close(fake_host.fd);
    unlink(fake_host.path);
}

/* A sysfs with two devices, of which the second is the region; made of files and links. */
static inline void fake_sysfs_make(char *root, const char *region) {
    char path[256];
    const struct {
        const char *device, *name, *text;
    } files[] = {
        {"0000:00:02.0", "vendor", "0x8086\n"}, {"0000:00:02.0", "device", "0x1110\n"},
        {"0000:00:04.0", "vendor", "0x1af4\n"}, {"0000:00:04.0", "device", "0x1110\n"},
        {"0000:00:04.0", "enable", "1\n"},      {"0000:00:05.0", "vendor", "0x1af4\n"},
        {"0000:00:05.0", "device", "0x1110\n"}, {"0000:00:05.0", "enable", "0\n"},
    };
    HWS_CHECK(mkdtemp(root) != NULL);
    const char *folders[] = {"bus",
                             "bus/pci",
                             "bus/pci/devices",
                             "bus/pci/devices/0000:00:02.0",
                             "bus/pci/devices/0000:00:04.0",
                             "bus/pci/devices/0000:00:05.0"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        HWS_CHECK(mkdir(path, 0700) == 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/bus/pci/devices/%s/%s", root, files[i].device, files[i].name);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        HWS_CHECK(fd >= 0 && write(fd, files[i].text, strlen(files[i].text)) == (ssize_t) strlen(files[i].text));
        close(fd);
    }
    const char *empty[] = {"0000:00:04.0/resource2", "0000:00:05.0/resource0"}; /* another device's memory; registers */
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/bus/pci/devices/%s", root, empty[i]);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        HWS_CHECK(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
        close(fd);
    }
    snprintf(path, sizeof path, "%s/bus/pci/devices/0000:00:05.0/resource2", root);
    HWS_CHECK(symlink(region, path) == 0);
}

static inline void fake_sysfs_remove(const char *root) {
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    HWS_CHECK(system(command) == 0);
}

static inline hws_config_t fake_config(void) {
    hws_config_t config = {.carrier = HWS_CARRIER_SHM, .sysfs = "/nowhere", .connect_timeout_ms = 20000};
    memcpy(config.region, fake_host.path, sizeof fake_host.path);
    return config;
}

/*
 * Acts as the worker of this process's session. It uses the guest's own mapping: the thread sanitizer identifies memory
 * by its address, and so sees both ends.
 */
static inline void fake_slot_adopt(fake_slot_t *slot) {
    const hws_shm_view_t *view = hws_shm_current();
    HWS_CHECK(view != NULL);
    atomic_store(&fake_host.busy, (int) view->slot);
    fake_attach(slot, view->base, view->slot);
    slot->reply.own_position = slot->reply.published = slot->reply.peer_cached = sizeof(fake_welcome_t);
}

static inline bool fake_slot_is_left(const fake_slot_t *slot) {
    return fake_load(&slot->guest->state) != HWS_GUEST_CLAIMED;
}

/* Sleeps until a ring has bytes or room, as a worker does. A worker of a virtual machine polls. */
static inline void fake_slot_sleep(fake_slot_t *slot, uint32_t *waiting, uint64_t (*look)(hws_ring_t *),
                                   hws_ring_t *ring) {
    if (slot->guest->kind == HWS_KIND_MACHINE) {
        fake_nap();
        return;
    }
    uint32_t seen = hws_wait_prepare(waiting, &slot->guest->command_signal);
    if (look(ring) == 0) {
        hws_wait_sleep(&slot->guest->command_signal, seen, 20000000);
    }
}

/* Reads bytes from the guest; false when the guest has left. */
static inline bool fake_slot_read(fake_slot_t *slot, void *target, uint64_t bytes) {
    for (uint8_t *to = target; bytes > 0;) {
        uint64_t available = hws_ring_available(&slot->command);
        HWS_CHECK(available != HWS_RING_CORRUPT);
        if (available == 0) {
            if (fake_slot_is_left(slot)) {
                return false;
            }
            fake_slot_sleep(slot, &slot->host->command_waiting, hws_ring_available, &slot->command);
            continue;
        }
        uint64_t part = bytes < available ? bytes : available;
        hws_ring_take(&slot->command, to, part);
        hws_ring_release(&slot->command);
        hws_wake(&slot->guest->room_waiting, &slot->host->reply_signal);
        to += part;
        bytes -= part;
    }
    return true;
}

/* Writes bytes to the guest; false when the guest has left. */
static inline bool fake_slot_write(fake_slot_t *slot, const void *source, uint64_t bytes) {
    for (const uint8_t *from = source; bytes > 0;) {
        uint64_t room = hws_ring_room(&slot->reply);
        HWS_CHECK(room != HWS_RING_CORRUPT);
        if (fake_slot_is_left(slot)) {
            return false;
        }
        if (room == 0) {
            fake_slot_sleep(slot, &slot->host->room_waiting, hws_ring_room, &slot->reply);
            continue;
        }
        uint64_t part = bytes < room ? bytes : room;
        fake_slot_put(slot, from, part);
        from += part;
        bytes -= part;
    }
    return true;
}

#endif

#include "fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINK_DOWN "link-down"
#define OPENING_MASK 0xffffffu

uint64_t hws_fabric_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static bool is_alive(uint64_t beat, uint64_t now_ms) {
    /* A beat far in the future comes from before the machine's last start. */
    int64_t age = (int64_t) (now_ms - (beat >> 24));
    return beat != 0 && age < HWS_FABRIC_DEAD_MS && age > -HWS_FABRIC_DEAD_MS;
}

/* Processes of other users join, so the umask must not count. */
static int open_files(hws_fabric_t *fabric, const char *folder) {
    if (mkdir(folder, 0777) == 0) {
        (void) chmod(folder, 0777);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/arena", folder);
    fabric->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fabric->file < 0) {
        return errno;
    }
    (void) fchmod(fabric->file, 0666);
    if (ftruncate(fabric->file, sizeof(hws_fabric_arena_t)) != 0) {
        return errno;
    }
    void *mapped = mmap(NULL, sizeof(hws_fabric_arena_t), PROT_READ | PROT_WRITE, MAP_SHARED, fabric->file, 0);
    if (mapped == MAP_FAILED) {
        return errno;
    }
    fabric->arena = mapped;
    /* A child after fork cannot harm what it does not have. */
    (void) madvise(mapped, sizeof(hws_fabric_arena_t), MADV_DONTFORK);
    /* The watch comes before the look, so no change of the link is lost. A jailed process can still read the watch. */
    fabric->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fabric->watch < 0
        || inotify_add_watch(fabric->watch, folder, IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM) < 0) {
        return errno;
    }
    snprintf(path, sizeof path, "%s/" LINK_DOWN, folder);
    atomic_store(&fabric->arena->link_down, access(path, F_OK) == 0);
    return 0;
}

/* Free nodes first: a process that was only stopped for long keeps its node as long as possible. */
static int take_node(hws_fabric_t *fabric) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint32_t opening = ((uint32_t) now.tv_nsec * 2654435761u ^ (uint32_t) getpid()) & OPENING_MASK;
    fabric->opening = opening == 0 ? 1 : opening;
    for (int dead = 0; dead < 2; dead++) {
        for (uint32_t i = 0; i < HWS_FABRIC_NODES; i++) {
            hws_fabric_node_t *node = &fabric->arena->nodes[i];
            uint64_t beat = atomic_load(&node->beat);
            uint64_t now_ms = hws_fabric_now_ms();
            if (beat != 0 && (!dead || is_alive(beat, now_ms))) {
                continue;
            }
            fabric->beat = now_ms << 24 | fabric->opening;
            if (atomic_compare_exchange_strong(&node->beat, &beat, fabric->beat)) {
                fabric->node = i;
                return 0;
            }
        }
    }
    return EBUSY;
}

int hws_fabric_open(hws_fabric_t *fabric) {
    *fabric = (hws_fabric_t) {.file = -1, .watch = -1};
    char standard[64];
    snprintf(standard, sizeof standard, "/tmp/hawser-fabric-%u", (unsigned) getuid());
    const char *folder = getenv("HAWSER_TEST_FABRIC");
    int rc = open_files(fabric, folder == NULL || *folder == '\0' ? standard : folder);
    if (rc == 0) {
        uint32_t none = 0;
        if (!atomic_compare_exchange_strong(&fabric->arena->magic, &none, HWS_FABRIC_MAGIC)
            && none != HWS_FABRIC_MAGIC) {
            rc = EPROTO;
        }
    }
    if (rc == 0) {
        rc = take_node(fabric);
    }
    if (rc != 0) {
        fprintf(stderr, "test device: cannot open the fabric: folder=%s: %s\n", folder == NULL ? standard : folder,
                strerror(rc));
        hws_fabric_close(fabric, true);
    }
    return rc;
}

static uint64_t own_mark(const hws_fabric_t *fabric) {
    return (uint64_t) fabric->opening << 8 | fabric->node;
}

void hws_fabric_close(hws_fabric_t *fabric, bool in_child) {
    if (!in_child) {
        for (uint32_t i = 0; i < HWS_FABRIC_PAIRS; i++) {
            if (atomic_load(&fabric->arena->pairs[i].owner) == own_mark(fabric)) {
                hws_fabric_pair_give(&fabric->arena->pairs[i]);
            }
        }
        uint64_t beat = fabric->beat;
        atomic_compare_exchange_strong(&fabric->arena->nodes[fabric->node].beat, &beat, 0);
    }
    if (fabric->arena != NULL) {
        (void) munmap(fabric->arena, sizeof(hws_fabric_arena_t));
    }
    if (fabric->watch >= 0) {
        (void) close(fabric->watch);
    }
    if (fabric->file >= 0) {
        (void) close(fabric->file);
    }
    *fabric = (hws_fabric_t) {.file = -1, .watch = -1};
}

bool hws_fabric_beat(hws_fabric_t *fabric, uint64_t now_ms) {
    if (now_ms - (fabric->beat >> 24) < HWS_FABRIC_BEAT_MS / 2) {
        return true;
    }
    uint64_t before = fabric->beat;
    uint64_t next = now_ms << 24 | fabric->opening;
    if (!atomic_compare_exchange_strong(&fabric->arena->nodes[fabric->node].beat, &before, next)) {
        return false;
    }
    fabric->beat = next;
    return true;
}

/* Every engine writes what it saw into the arena, so that all of them agree. The last event of a reading counts. */
bool hws_fabric_link_is_down(hws_fabric_t *fabric) {
    _Alignas(struct inotify_event) char events[4096];
    ssize_t bytes;
    while ((bytes = read(fabric->watch, events, sizeof events)) > 0) {
        int down = -1;
        for (ssize_t at = 0; at < bytes;) {
            const struct inotify_event *event = (const struct inotify_event *) (events + at);
            if (event->len > 0 && strcmp(event->name, LINK_DOWN) == 0) {
                down = (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0;
            }
            at += (ssize_t) sizeof *event + event->len;
        }
        if (down >= 0) {
            atomic_store(&fabric->arena->link_down, (uint32_t) down);
        }
    }
    return atomic_load(&fabric->arena->link_down) != 0;
}

static bool pair_is_left(hws_fabric_t *fabric, uint64_t owner) {
    uint64_t beat = atomic_load(&fabric->arena->nodes[(owner & 0xff) % HWS_FABRIC_NODES].beat);
    return (beat & OPENING_MASK) != owner >> 8 || !is_alive(beat, hws_fabric_now_ms());
}

hws_fabric_pair_t *hws_fabric_pair_take(hws_fabric_t *fabric) {
    for (int left = 0; left < 2; left++) {
        for (uint32_t i = 0; i < HWS_FABRIC_PAIRS; i++) {
            hws_fabric_pair_t *pair = &fabric->arena->pairs[i];
            uint64_t owner = atomic_load(&pair->owner);
            if ((owner != 0 && (!left || !pair_is_left(fabric, owner)))
                || !atomic_compare_exchange_strong(&pair->owner, &owner, own_mark(fabric))) {
                continue;
            }
            atomic_store(&pair->state, IBV_QPS_RESET);
            atomic_store(&pair->destination, 0);
            atomic_store(&pair->refused_ms, 0);
            atomic_store(&pair->head, atomic_load(&pair->tail));
            uint32_t serial = (atomic_load(&pair->serial) + 1) & 0xffff;
            atomic_store(&pair->serial, serial == 0 ? 1 : serial);
            atomic_store(&pair->number, (serial == 0 ? 1 : serial) << 8 | i);
            return pair;
        }
    }
    return NULL;
}

void hws_fabric_pair_give(hws_fabric_pair_t *pair) {
    atomic_store(&pair->state, IBV_QPS_RESET);
    atomic_store(&pair->number, 0);
    atomic_store(&pair->owner, 0);
}

hws_fabric_pair_t *hws_fabric_pair_find(hws_fabric_t *fabric, uint32_t number) {
    hws_fabric_pair_t *pair = &fabric->arena->pairs[(number & 0xff) % HWS_FABRIC_PAIRS];
    return number != 0 && atomic_load(&pair->number) == number ? pair : NULL;
}

uint64_t hws_fabric_pair_beat_ms(hws_fabric_t *fabric, const hws_fabric_pair_t *pair) {
    uint64_t owner = atomic_load(&pair->owner);
    uint64_t beat = atomic_load(&fabric->arena->nodes[(owner & 0xff) % HWS_FABRIC_NODES].beat);
    return owner != 0 && (beat & OPENING_MASK) == owner >> 8 ? beat >> 24 : 0;
}

void hws_fabric_pair_wake(hws_fabric_t *fabric, const hws_fabric_pair_t *pair) {
    hws_fabric_wake(fabric, (uint32_t) (atomic_load(&pair->owner) & 0xff) % HWS_FABRIC_NODES);
}

void hws_fabric_wake(hws_fabric_t *fabric, uint32_t node) {
    _Atomic uint32_t *word = &fabric->arena->nodes[node].wake;
    atomic_fetch_add(word, 1);
    (void) syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void hws_fabric_sleep(hws_fabric_t *fabric, uint32_t seen, uint32_t limit_ms) {
    struct timespec limit = {.tv_sec = limit_ms / 1000, .tv_nsec = (long) (limit_ms % 1000) * 1000000};
    (void) syscall(SYS_futex, &fabric->arena->nodes[fabric->node].wake, FUTEX_WAIT, seen, &limit, NULL, 0);
}

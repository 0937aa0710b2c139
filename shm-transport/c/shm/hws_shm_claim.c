/*
 * The guest's part of a slot's life: lock, states, beat. The lock belongs to the process (F_SETLK), not to the open
 * file: no fork inherits it, and the kernel releases it when the process dies. It also ends when the process closes any
 * descriptor of the region's file. So the carrier opens the file once and keeps it open.
 */
#include "hws_shm_internal.h"

#include "hws_record.h"
#include "hws_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS_NS 1000000ll
/*
 * All slots count as taken only after every look for this long, and this many looks, found them locked. Other processes
 * hold locks briefly while they search for a slot or free a dead process's memory. The time alone proves nothing: a
 * process that did not get a processor meanwhile may have looked only once.
 */
#define TAKEN_NS (20 * MS_NS)
#define TAKEN_LOOKS 20
#define NAP_NS 100000        /* pause between two looks for the broker's answer; the broker's own poll delays it more */
#define LOOK_NS (20 * MS_NS) /* the same where the broker wakes us; only a dead broker makes us wait so long */

typedef enum lock_result { LOCK_OURS, LOCK_TAKEN, LOCK_FAILED } lock_result_t;

static lock_result_t set_lock(int fd, uint32_t slot, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    if (fcntl(fd, F_SETLK, &lock) == 0) {
        return LOCK_OURS;
    }
    return errno == EACCES || errno == EAGAIN ? LOCK_TAKEN : LOCK_FAILED;
}

static uint32_t guest_state(const hws_shm_t *shm, uint32_t slot) {
    return __atomic_load_n(&hws_shm_guest(shm, slot)->state, __ATOMIC_ACQUIRE);
}

static bool change_state(hws_shm_t *shm, uint32_t slot, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&hws_shm_guest(shm, slot)->state, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static bool is_free(const hws_shm_t *shm, uint32_t slot) {
    return guest_state(shm, slot) == HWS_GUEST_FREE
        && __atomic_load_n(&hws_shm_host(shm, slot)->state, __ATOMIC_ACQUIRE) == HWS_HOST_FREE;
}

/*
 * Frees the granules of an unused slot. The slot is free and its lock is ours, so no process takes granules for it
 * meanwhile.
 */
static uint64_t free_granules(hws_shm_t *shm, uint32_t slot) {
    uint64_t granules = shm->header.heap_bytes / HWS_GRANULE_BYTES, freed = 0;
    uint8_t *table = (uint8_t *) shm->view.heap_table, owner = (uint8_t) (slot + 1);
    for (uint64_t at = 0; at < granules; at++) {
        /*
         * Most of a table is zeros, so eight are checked at a time. The table begins on a page, so the word is aligned.
         */
        if (at % 8 == 0 && granules - at >= 8 && __atomic_load_n((uint64_t *) (table + at), __ATOMIC_RELAXED) == 0) {
            at += 7;
        } else if (__atomic_load_n(&table[at], __ATOMIC_RELAXED) == owner) {
            __atomic_store_n(&table[at], 0, __ATOMIC_RELEASE);
            freed++;
        }
    }
    return freed;
}

/* Writes text into a field of our page, cut so that a NUL fits. */
static void put_text(char *field, size_t capacity, const char *text) {
    size_t length = strnlen(text, capacity - 1);
    memset(field, 0, capacity);
    memcpy(field, text, length);
}

/* Claims a slot that is free and whose lock is ours: writes our identity into its page and sets its state. */
static bool claim(hws_shm_t *shm, uint32_t slot, uint64_t description_hash) {
    hws_region_guest_t *guest = hws_shm_guest(shm, slot);
    /* The last process of the slot may have had a thread that wrote after the broker zeroed the page. */
    __atomic_store_n(&guest->command_tail, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&guest->reply_head, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&guest->reply_waiting, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&guest->room_waiting, 0, __ATOMIC_RELAXED);
    guest->kind = shm->view.kind;
    guest->pid = (uint64_t) getpid();
    guest->epoch = shm->header.epoch;
    guest->description_hash = description_hash;
    guest->protocol_version = HWS_PROTOCOL_VERSION;
    guest->map_address = (uint64_t) (uintptr_t) shm->view.base;
    char host[sizeof guest->host] = "";
    gethostname(host, sizeof host - 1);
    put_text(guest->program, sizeof guest->program, program_invocation_short_name);
    put_text(guest->host, sizeof guest->host, host);
    free_granules(shm, slot);
    if (!change_state(shm, slot, HWS_GUEST_FREE, HWS_GUEST_CLAIMED)) {
        return false;
    }
    shm->view.slot = slot;
    shm->guest = guest;
    shm->host = hws_shm_host(shm, slot);
    shm->view.bulk = hws_shm_slot(shm, slot) + shm->header.bulk_offset;
    shm->claimed = true;
    return true;
}

typedef enum scan { SCAN_CLAIMED, SCAN_CHANGING, SCAN_TAKEN, SCAN_FAILED } scan_t;

/* Looks at every slot once. CHANGING: none is free, but the broker is about to free one. */
static scan_t scan_slots(hws_shm_t *shm, uint64_t description_hash) {
    scan_t result = SCAN_TAKEN;
    for (uint32_t slot = 0; slot < shm->header.slot_count; slot++) {
        lock_result_t lock = set_lock(shm->fd, slot, F_WRLCK);
        if (lock == LOCK_FAILED) {
            return SCAN_FAILED;
        }
        if (lock == LOCK_TAKEN) {
            continue;
        }
        if (is_free(shm, slot) && claim(shm, slot, description_hash)) {
            shm->locked = true;
            return SCAN_CLAIMED;
        }
        /* We have its lock, so the process that claimed it is dead. The broker may be unable to see that. */
        if (change_state(shm, slot, HWS_GUEST_CLAIMED, HWS_GUEST_ABANDONED)) {
            hws_shm_ring_broker(shm);
        }
        set_lock(shm->fd, slot, F_UNLCK);
        result = SCAN_CHANGING;
    }
    return result;
}

static void nap(void) {
    struct timespec time = {.tv_nsec = NAP_NS};
    nanosleep(&time, NULL);
}

static int find_slot(hws_shm_t *shm, uint32_t timeout_ms, uint64_t description_hash, char *error, size_t capacity) {
    int64_t began_ns = hws_shm_now_ns(), not_taken_ns = began_ns;
    unsigned taken_looks = 0; /* since not_taken_ns */
    hws_shm_look_t look = {0};
    for (;;) {
        scan_t result = scan_slots(shm, description_hash);
        int64_t now_ns = hws_shm_now_ns();
        not_taken_ns = result == SCAN_TAKEN ? not_taken_ns : now_ns;
        taken_looks = result == SCAN_TAKEN ? taken_looks + 1 : 0;
        if (result == SCAN_CLAIMED) {
            return 0;
        }
        if (result == SCAN_FAILED) {
            snprintf(error, capacity, "the region's slots cannot be locked: %s: %s", shm->path, strerror(errno));
            return -1;
        }
        if (now_ns - not_taken_ns > TAKEN_NS && taken_looks >= TAKEN_LOOKS) {
            snprintf(error, capacity, "all %u slots of the region are taken by other processes: %s",
                     shm->header.slot_count, shm->path);
            return -1;
        }
        if (hws_shm_is_still(shm, &look, HWS_SHM_STILL_MS)) {
            snprintf(error, capacity, "the region's broker shows no sign of life (%u ms): %s", HWS_SHM_STILL_MS,
                     shm->path);
            return -1;
        }
        if (now_ns - began_ns > timeout_ms * MS_NS) {
            snprintf(error, capacity, "the broker did not free a slot in time (%u ms): %s", timeout_ms, shm->path);
            return -1;
        }
        nap();
    }
}

static void *beat_main(void *argument) {
    hws_shm_t *shm = argument;
    pthread_mutex_lock(&shm->lock);
    while (!shm->beat_ends) {
        __atomic_fetch_add(&shm->guest->beat, 1, __ATOMIC_RELEASE);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += HWS_BEAT_MS * MS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&shm->beat_wake, &shm->lock, &until);
    }
    pthread_mutex_unlock(&shm->lock);
    return NULL;
}

/* Starts the beat for a broker that cannot see our lock and watches the beat instead. */
static int start_beat(hws_shm_t *shm) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shm->beat_wake, &attributes);
    pthread_condattr_destroy(&attributes);
    shm->beats = hws_thread_start(&shm->beat_thread, beat_main, shm, "hawser-beat") == 0;
    return shm->beats ? 0 : -1;
}

void hws_shm_end_beat(hws_shm_t *shm) {
    if (shm->beats) {
        pthread_mutex_lock(&shm->lock);
        shm->beat_ends = true;
        pthread_cond_signal(&shm->beat_wake);
        pthread_mutex_unlock(&shm->lock);
    }
}

void hws_shm_join_beat(hws_shm_t *shm) {
    if (shm->beats) {
        pthread_join(shm->beat_thread, NULL);
    }
}

/* Sleeps until the broker may have answered. The broker wakes processes of its own kernel; a virtual machine polls. */
static void await_change(hws_shm_t *shm) {
    if (shm->view.kind != HWS_KIND_PROCESS) {
        nap();
        return;
    }
    uint32_t seen = __atomic_load_n(&shm->host->reply_signal, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&shm->host->state, __ATOMIC_ACQUIRE) == HWS_HOST_FREE) {
        hws_futex_wait(&shm->host->reply_signal, seen, LOOK_NS);
    }
}

static int await_broker(hws_shm_t *shm, uint32_t timeout_ms, char *error, size_t capacity) {
    int64_t began_ns = hws_shm_now_ns();
    hws_shm_look_t look = {0};
    while (__atomic_load_n(&shm->host->state, __ATOMIC_ACQUIRE) == HWS_HOST_FREE) {
        if (hws_shm_is_still(shm, &look, HWS_SHM_STILL_MS)) {
            snprintf(error, capacity, "the region's broker shows no sign of life (%u ms): %s", HWS_SHM_STILL_MS,
                     shm->path);
            return -1;
        }
        if (hws_shm_now_ns() - began_ns > timeout_ms * MS_NS) {
            snprintf(error, capacity, "the broker did not accept the claim in time (%u ms): %s", timeout_ms, shm->path);
            return -1;
        }
        await_change(shm);
    }
    look = (hws_shm_look_t) {0};
    if (hws_shm_is_lost(shm, &look)) {
        snprintf(error, capacity, "%s", shm->fault);
        return -1;
    }
    if (__atomic_load_n(&shm->host->liveness, __ATOMIC_RELAXED) == HWS_LIVENESS_BEAT && start_beat(shm) != 0) {
        snprintf(error, capacity, "no thread can be started for this process's sign of life");
        return -1;
    }
    return 0;
}

int hws_shm_claim(hws_shm_t *shm, const hws_config_t *config, uint64_t description_hash, char *error_p,
                  size_t error_capacity) {
    if (find_slot(shm, config->connect_timeout_ms, description_hash, error_p, error_capacity) != 0) {
        return -1;
    }
    hws_shm_ring_broker(shm);
    return await_broker(shm, config->connect_timeout_ms, error_p, error_capacity);
}

void hws_shm_leave(hws_shm_t *shm) {
    if (shm->claimed && change_state(shm, shm->view.slot, HWS_GUEST_CLAIMED, HWS_GUEST_LEFT)) {
        hws_shm_ring_broker(shm);
        hws_shm_wake_worker(shm, &shm->host->command_waiting); /* the worker then ends the session */
    }
}

void hws_shm_unlock(hws_shm_t *shm) {
    if (shm->locked) {
        shm->locked = false;
        set_lock(shm->fd, shm->view.slot, F_UNLCK);
    }
}

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t hws_shm_reclaim(void) {
    hws_shm_t *shm = atomic_load(&hws_shm_session);
    uint64_t freed = 0;
    if (shm == NULL) {
        return 0;
    }
    /* The lock belongs to the process: two threads would both get it, and the first would release it for both. */
    pthread_mutex_lock(&reclaim_lock);
    for (uint32_t slot = 0; slot < shm->header.slot_count; slot++) {
        if (slot != shm->view.slot && set_lock(shm->fd, slot, F_WRLCK) == LOCK_OURS) {
            freed += is_free(shm, slot) ? free_granules(shm, slot) : 0;
            if (change_state(shm, slot, HWS_GUEST_CLAIMED, HWS_GUEST_ABANDONED)) {
                hws_shm_ring_broker(shm);
            }
            set_lock(shm->fd, slot, F_UNLCK);
        }
    }
    pthread_mutex_unlock(&reclaim_lock);
    return freed;
}

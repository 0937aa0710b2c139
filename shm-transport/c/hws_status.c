#include "hws_status.h"

#include "hws_broker.h"
#include "hws_handshake.h"
#include "hws_record.h"
#include "shm/hws_shm_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 20
#define ATTEMPTS 50

typedef struct question {
    uint64_t description_hash;
    hws_status_t *status;
} question_t;

static int ask(hws_carrier_t **carrier_p, const hws_config_t *config, void *state, char *error_p,
               size_t error_capacity) {
    const question_t *question = state;
    return hws_handshake_ask_status(*carrier_p, config, question->description_hash, question->status->text,
                                    sizeof question->status->text, error_p, error_capacity);
}

int hws_status_ask(hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                   size_t error_capacity) {
    if (config->missing[0] != '\0') {
        snprintf(error_p, error_capacity, "%s", config->missing);
        return -1;
    }
    hws_config_t own = *config;
    if (config->reached.host[0] != '\0') {
        /* Before the list, whose last broker has no place if it is full. The next question asks that one. */
        own.broker_count += own.broker_count < HWS_MAX_BROKERS ? 1 : 0;
        memmove(own.brokers + 1, own.brokers, (own.broker_count - 1) * sizeof own.brokers[0]);
        own.brokers[0] = config->reached;
        config->reached.host[0] = '\0';
    }
    question_t question = {description_hash, status_p};
    /* No retries: the caller wants the state at this moment. */
    hws_carrier_t *carrier = hws_broker_open(&own, false, ask, &question, error_p, error_capacity);
    if (carrier == NULL) {
        return -1;
    }
    carrier->ops->destroy(carrier);
    config->reached = own.brokers[0];
    snprintf(status_p->from, sizeof status_p->from, "broker %s:%s", own.brokers[0].host, own.brokers[0].port);
    return 0;
}

static void pause_ms(long ms) {
    const struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

/*
 * Copies the status at a moment when the broker does not change it. Returns 0; or -1 when it changed at each try, or is
 * invalid.
 */
static int copy_status(const hws_region_header_t *live, hws_status_t *status_p) {
    for (int i = 0; i < ATTEMPTS; i++) {
        /* pairs with the release stores of the broker's StatusPage.put() */
        uint64_t before = __atomic_load_n(&live->status_sequence, __ATOMIC_ACQUIRE);
        uint32_t bytes = __atomic_load_n(&live->status_length, __ATOMIC_RELAXED);
        if (bytes > sizeof live->status) {
            return -1;
        }
        memcpy(status_p->text, live->status, bytes);
        status_p->text[bytes] = '\0';
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (before % 2 == 0 && before == __atomic_load_n(&live->status_sequence, __ATOMIC_RELAXED)) {
            return 0;
        }
        pause_ms(1);
    }
    return -1;
}

/* A mapped region. The caller makes calls from one thread at a time. */
typedef struct watch {
    hws_shm_t shm;
    bool mapped;
    pid_t pid;              /* a forked child does not have the mapping */
    uint64_t beat, seen_ms; /* the broker's last beat, and when it was first seen; 0: not yet */
} watch_t;

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static uint64_t load_beat(const watch_t *watch) {
    return __atomic_load_n(&watch->shm.live->host_beat, __ATOMIC_RELAXED);
}

/* Whether the region's broker lives. The first call waits for a beat; later ones use the time since the last one. */
static bool lives(watch_t *watch) {
    if (watch->seen_ms == 0) {
        watch->beat = load_beat(watch);
        for (unsigned waited = 0; watch->beat == load_beat(watch); waited += LOOK_MS) {
            if (waited > HWS_SHM_STILL_MS) {
                return false;
            }
            pause_ms(LOOK_MS);
        }
    }
    uint64_t beat = load_beat(watch), now = now_ms();
    if (watch->seen_ms == 0 || beat != watch->beat) {
        watch->beat = beat;
        watch->seen_ms = now;
    }
    return now - watch->seen_ms <= HWS_SHM_STILL_MS;
}

static int read_region(watch_t *watch, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                       size_t error_capacity) {
    const hws_shm_t *shm = &watch->shm;
    if (shm->header.protocol_version != HWS_PROTOCOL_VERSION || shm->header.description_hash != description_hash) {
        snprintf(error_p, error_capacity,
                 "guest libraries and broker must be made from the same description of the "
                 "API: guest=%016llx broker=%016llx",
                 (unsigned long long) description_hash, (unsigned long long) shm->header.description_hash);
        return -1;
    }
    if (!lives(watch)) {
        snprintf(error_p, error_capacity, "the broker of the region shows no life: %s", shm->path);
        return -1;
    }
    if (copy_status(shm->live, status_p) != 0 || status_p->text[0] == '\0') {
        snprintf(error_p, error_capacity, "the region's broker has not written the status of its vGPU: %s", shm->path);
        return -1;
    }
    snprintf(status_p->from, sizeof status_p->from, "region %s", shm->path);
    return 0;
}

static void drop(watch_t *watch) {
    if (watch->pid != getpid()) {
        watch->shm.view.base = NULL; /* the child may have mapped something else there */
        watch->shm.doorbell = NULL;
    }
    hws_shm_unmap(&watch->shm);
    watch->mapped = false;
}

/* Whether the region's path still names the mapped file. */
static bool is_current(const watch_t *watch) {
    struct stat mapped, named;
    return fstat(watch->shm.fd, &mapped) == 0 && stat(watch->shm.path, &named) == 0 && mapped.st_dev == named.st_dev
        && mapped.st_ino == named.st_ino;
}

static int map_region(watch_t *watch, const hws_config_t *config, bool *found_p, char *error_p, size_t error_capacity) {
    if (watch->mapped && watch->pid == getpid() && is_current(watch)) {
        *found_p = true;
        return 0;
    }
    if (watch->mapped) {
        drop(watch);
    }
    memset(watch, 0, sizeof *watch);
    watch->shm.fd = -1;
    watch->pid = getpid();
    watch->mapped = hws_shm_find(&watch->shm, config, found_p, error_p, error_capacity) == 0;
    return watch->mapped ? 0 : -1;
}

int hws_status_read(const hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, bool *found_p,
                    char *error_p, size_t error_capacity) {
    static watch_t watch; /* a page and more; the command reads the status once */
    if (map_region(&watch, config, found_p, error_p, error_capacity) != 0) {
        return -1;
    }
    int rc = read_region(&watch, description_hash, status_p, error_p, error_capacity);
    drop(&watch);
    return rc;
}

int hws_status_fetch(hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                     size_t error_capacity) {
    /*
     * Stays mapped and open while its path names it. close(2) of any descriptor of a file drops all locks that the
     * process has on it, and libcuda.so.1 in the same process holds the lock of its slot.
     */
    static watch_t watch;
    bool found = false;
    if (hws_config_takes_region(config) && map_region(&watch, config, &found, error_p, error_capacity) == 0
        && read_region(&watch, description_hash, status_p, error_p, error_capacity) == 0) {
        return 0;
    }
    /* A region's message is worth more than that of a broker which is not configured. */
    if (config->carrier == HWS_CARRIER_SHM || (found && config->missing[0] != '\0')) {
        return -1;
    }
    return hws_status_ask(config, description_hash, status_p, error_p, error_capacity);
}

#include "hws_status.h"

#include "hws_broker.h"
#include "hws_handshake.h"
#include "hws_record.h"
#include "shm/hws_shm_internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 20
#define ATTEMPTS 50

int hws_status_ask(const hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                   size_t error_capacity) {
    if (config->missing[0] != '\0') {
        snprintf(error_p, error_capacity, "%s", config->missing);
        return -1;
    }
    /* No retries: the caller wants the state at this moment. */
    hws_carrier_t *carrier = hws_broker_connect(config, false, error_p, error_capacity);
    if (carrier == NULL) {
        return -1;
    }
    int rc = hws_handshake_ask_status(carrier, config, description_hash, status_p->text, sizeof status_p->text, error_p,
                                      error_capacity);
    carrier->ops->close(carrier);
    snprintf(status_p->from, sizeof status_p->from, "broker %s:%s", config->host, config->port);
    return rc;
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

static int read_region(hws_shm_t *shm, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                       size_t error_capacity) {
    if (shm->header.protocol_version != HWS_PROTOCOL_VERSION || shm->header.description_hash != description_hash) {
        snprintf(error_p, error_capacity,
                 "guest libraries and broker must be made from the same description of the "
                 "API: guest=%016llx broker=%016llx",
                 (unsigned long long) description_hash, (unsigned long long) shm->header.description_hash);
        return -1;
    }
    uint64_t beat = __atomic_load_n(&shm->live->host_beat, __ATOMIC_RELAXED);
    for (unsigned waited = 0; beat == __atomic_load_n(&shm->live->host_beat, __ATOMIC_RELAXED); waited += LOOK_MS) {
        if (waited > HWS_SHM_STILL_MS) {
            snprintf(error_p, error_capacity, "the broker of the region shows no life: %s", shm->path);
            return -1;
        }
        pause_ms(LOOK_MS);
    }
    if (copy_status(shm->live, status_p) != 0 || status_p->text[0] == '\0') {
        snprintf(error_p, error_capacity, "the region's broker has not written the status of its vGPU: %s", shm->path);
        return -1;
    }
    snprintf(status_p->from, sizeof status_p->from, "region %s", shm->path);
    return 0;
}

int hws_status_read(const hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, bool *found_p,
                    char *error_p, size_t error_capacity) {
    static hws_shm_t shm; /* a page and more; the command reads the status once */
    memset(&shm, 0, sizeof shm);
    shm.fd = -1;
    if (hws_shm_find(&shm, config, found_p, error_p, error_capacity) != 0) {
        return -1;
    }
    int rc = read_region(&shm, description_hash, status_p, error_p, error_capacity);
    hws_shm_unmap(&shm);
    return rc;
}

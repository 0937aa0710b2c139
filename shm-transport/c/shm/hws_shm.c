/* The shm carrier: connecting, and the operations of hws_carrier.h over a slot's two rings. */
#include "hws_shm_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

hws_shm_t *_Atomic hws_shm_session;

static bool has_reply(hws_shm_t *shm, uint32_t unused) {
    (void) unused;
    return hws_ring_available(&shm->reply) != 0; /* also for a corrupt position: taking the bytes detects it */
}

static bool has_room(hws_shm_t *shm, uint32_t unused) {
    (void) unused;
    return hws_ring_room(&shm->command) != 0;
}

static bool is_serving(hws_shm_t *shm, uint32_t unused) {
    (void) unused;
    return __atomic_load_n(&shm->host->state, __ATOMIC_ACQUIRE) == HWS_HOST_SERVING;
}

/* Handles an impossible position: the broker has reset the slot meanwhile, or the worker is at fault. */
static int refuse_position(hws_shm_t *shm, const char *which) {
    hws_shm_look_t look = {0};
    if (hws_shm_is_lost(shm, &look)) {
        errno = ECONNRESET;
        return -1;
    }
    hws_shm_set_fault(shm, "the worker broke the protocol, the session is over: its position in the %s ring", which);
    errno = EPROTO;
    return -1;
}

/* Whether the session can still be ours. Reads two words of one cache line that the host seldom writes. */
static bool is_ours(hws_shm_t *shm) {
    hws_shm_look_t look = {0};
    return (is_serving(shm, 0)
            && __atomic_load_n(&shm->host->session_id, __ATOMIC_RELAXED)
                == atomic_load_explicit(&shm->session_id, memory_order_relaxed))
        || !hws_shm_is_lost(shm, &look);
}

static int shm_send(hws_carrier_t *carrier, struct iovec *pieces, int count) {
    hws_shm_t *shm = (hws_shm_t *) carrier;
    if (atomic_load_explicit(&shm->closed, memory_order_relaxed)) {
        errno = ESHUTDOWN;
        return -1;
    }
    if (!is_ours(shm)) {
        errno = ECONNRESET;
        return -1;
    }
    for (int i = 0; i < count; i++) {
        const uint8_t *from = pieces[i].iov_base;
        uint64_t left = pieces[i].iov_len;
        while (left > 0) {
            uint64_t room = hws_ring_has_room(&shm->command, left) ? left : hws_ring_room(&shm->command);
            if (room == HWS_RING_CORRUPT) {
                return refuse_position(shm, "command");
            }
            if (room == 0) {
                /* The rest streams through as the worker takes bytes out. */
                hws_ring_commit(&shm->command);
                hws_shm_wake_worker(shm, &shm->host->command_waiting);
                const hws_shm_wish_t wish = {.is_granted = has_room,
                                             .waiting = &shm->guest->room_waiting,
                                             .spin = &shm->send_spin,
                                             .bounded = true};
                if (hws_shm_wait(shm, &wish) != 0) {
                    return -1;
                }
                continue;
            }
            uint64_t part = left < room ? left : room;
            hws_ring_put(&shm->command, from, part);
            from += part;
            left -= part;
        }
    }
    hws_ring_commit(&shm->command);
    hws_shm_wake_worker(shm, &shm->host->command_waiting);
    return 0;
}

static ssize_t shm_receive(hws_carrier_t *carrier, const struct iovec *pieces, int count) {
    hws_shm_t *shm = (hws_shm_t *) carrier;
    if (atomic_load_explicit(&shm->closed, memory_order_relaxed)) {
        errno = ESHUTDOWN;
        return -1;
    }
    const hws_shm_wish_t wish = {.is_granted = has_reply,
                                 .waiting = &shm->guest->reply_waiting,
                                 .spin = &shm->receive_spin,
                                 .bounded = true,
                                 .patient = true};
    if (hws_shm_wait(shm, &wish) != 0) {
        return -1;
    }
    uint64_t available = hws_ring_available(&shm->reply), taken = 0;
    if (available == HWS_RING_CORRUPT) {
        return refuse_position(shm, "reply");
    }
    for (int i = 0; i < count && taken < available; i++) {
        uint64_t part = pieces[i].iov_len < available - taken ? pieces[i].iov_len : available - taken;
        hws_ring_take(&shm->reply, pieces[i].iov_base, part);
        taken += part;
    }
    hws_ring_release(&shm->reply);
    hws_shm_wake_worker(shm, &shm->host->room_waiting);
    return (ssize_t) taken;
}

static int shm_set_timeout(hws_carrier_t *carrier, uint32_t timeout_ms) {
    atomic_store(&((hws_shm_t *) carrier)->timeout_ms, timeout_ms);
    return 0;
}

static const char *shm_fault(hws_carrier_t *carrier) {
    hws_shm_t *shm = (hws_shm_t *) carrier;
    pthread_mutex_lock(&shm->lock);
    bool faulted = shm->faulted; /* the text is written once, before this flag */
    pthread_mutex_unlock(&shm->lock);
    return faulted ? shm->fault : NULL;
}

static int shm_descriptor(hws_carrier_t *carrier) {
    (void) carrier;
    return -1;
}

static void shm_shutdown(hws_carrier_t *carrier) {
    hws_shm_t *shm = (hws_shm_t *) carrier;
    atomic_store(&shm->closed, true);
    hws_shm_end_beat(shm);
    hws_shm_leave(shm);
    /* Threads of this process that sleep check whether the carrier is shut down. */
    hws_futex_wake(&shm->host->reply_signal);
}

/* Frees everything. Nothing of the region may be in use: after a failed start, or at the end of a test. */
static void release(hws_shm_t *shm) {
    hws_shm_end_beat(shm);
    hws_shm_join_beat(shm);
    hws_shm_leave(shm);
    hws_shm_unlock(shm);
    hws_shm_unmap(shm);
}

static void shm_close(hws_carrier_t *carrier) {
    hws_shm_t *shm = (hws_shm_t *) carrier;
    hws_bulk_use_chunks(NULL);
    atomic_store(&hws_shm_session, NULL);
    if (getpid() != shm->pid) {
        close(shm->fd); /* a forked child has only the descriptor; the rest belongs to the parent */
        return;
    }
    release(shm);
}

static const hws_carrier_ops_t shm_ops = {
    .name = "shm",
    .direct = true,
    .send = shm_send,
    .receive = shm_receive,
    .set_timeout = shm_set_timeout,
    .fault = shm_fault,
    .descriptor = shm_descriptor,
    .shutdown = shm_shutdown,
    .close = shm_close,
};

static hws_shm_t *create(void) {
    hws_shm_t *shm = calloc(1, sizeof *shm);
    if (shm != NULL) {
        shm->carrier.ops = &shm_ops;
        shm->fd = -1;
        shm->pid = getpid();
        pthread_mutex_init(&shm->lock, NULL);
        hws_spin_init(&shm->send_spin);
        shm->receive_spin = shm->send_spin;
        hws_patience_init(&shm->patience);
        for (uint32_t i = 0; i < HWS_MAX_CHUNKS; i++) {
            shm->chunk_spins[i] = shm->send_spin;
        }
    }
    return shm;
}

static void attach_rings(hws_shm_t *shm) {
    uint8_t *slot = hws_shm_slot(shm, shm->view.slot);
    hws_ring_attach_writer(&shm->command, slot + shm->header.command_offset, shm->header.command_bytes,
                           &shm->host->command_head, &shm->guest->command_tail);
    hws_ring_attach_reader(&shm->reply, slot + shm->header.reply_offset, shm->header.reply_bytes,
                           &shm->guest->reply_head, &shm->host->reply_tail);
}

/* Waits for the worker's WELCOME. The worker answers before or after the broker marks the slot as serving. */
static int await_worker(hws_shm_t *shm, uint32_t timeout_ms, hws_welcome_t *welcome_p, char *error, size_t capacity) {
    if (hws_handshake_await_welcome(&shm->carrier, timeout_ms, welcome_p, error, capacity) != 0) {
        return -1;
    }
    const hws_shm_wish_t wish = {
        .is_granted = is_serving, .waiting = &shm->guest->reply_waiting, .spin = &shm->receive_spin, .bounded = true};
    shm_set_timeout(&shm->carrier, timeout_ms);
    if (hws_shm_wait(shm, &wish) != 0) {
        const char *fault = shm_fault(&shm->carrier);
        snprintf(error, capacity, "%s", fault != NULL ? fault : "the broker has not confirmed the slot");
        return -1;
    }
    atomic_store(&shm->session_id, __atomic_load_n(&shm->host->session_id, __ATOMIC_RELAXED));
    return shm_set_timeout(&shm->carrier, 0);
}

hws_carrier_t *hws_shm_connect(const hws_config_t *config, uint64_t description_hash, hws_welcome_t *welcome_p,
                               bool *found_p, char *error_p, size_t error_capacity) {
    *found_p = false;
    hws_shm_t *shm = create();
    if (shm == NULL) {
        snprintf(error_p, error_capacity, "no memory for the region");
        return NULL;
    }
    bool mapped = hws_shm_find(shm, config, found_p, error_p, error_capacity) == 0;
    bool claimed = mapped && hws_shm_claim(shm, config, description_hash, error_p, error_capacity) == 0;
    if (claimed) {
        attach_rings(shm);
    }
    if (!claimed
        || await_worker(shm, HWS_WORKER_START_FACTOR * config->connect_timeout_ms, welcome_p, error_p, error_capacity)
            != 0) {
        release(shm);
        free(shm);
        return NULL;
    }
    atomic_store(&hws_shm_session, shm);
    hws_shm_use_chunks(shm);
    return &shm->carrier;
}

const hws_shm_view_t *hws_shm_current(void) {
    hws_shm_t *shm = atomic_load_explicit(&hws_shm_session, memory_order_acquire);
    return shm == NULL ? NULL : &shm->view;
}

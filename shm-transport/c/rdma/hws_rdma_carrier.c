/* The operations of hws_carrier.h over the rings of a mirror, and its chunks. */
#include "hws_rdma_carrier.h"

#include "../hws_channel.h"
#include "../shm/hws_bulk.h"
#include "../shm/hws_ring.h"
#include "../shm/hws_wait.h"
#include "hws_region.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MS_NS 1000000ll
/* A sleeping thread looks again this often, in case that an adapter gives no event. */
#define LOOK_MS 50
/* For the records of the exit to arrive, which is only the other end's acknowledgement. */
#define LEAVE_MS 1000u

typedef struct hws_rdma_carrier {
    hws_carrier_t carrier;
    hws_rdma_t *rdma;
    hws_carrier_t *connection;
    pid_t pid;
    hws_ring_t command, reply;
    uint64_t sent; /* the position up to which the command ring was posted */
    hws_spin_t send_spin, receive_spin, chunk_spins[HWS_MIRROR_CHUNKS];
    hws_patience_t patience;
    hws_chunks_t chunks;
    _Atomic bool closed; /* by this process: every operation fails */
    _Atomic uint32_t timeout_ms;

    pthread_mutex_t sleep_lock; /* its holder sleeps on the channel; the other sleepers wait for it */
    uint32_t progressed;        /* futex word: incremented after each sleep on the channel */
    _Atomic uint32_t followers; /* sleepers that wait for the word */
    _Atomic(const char *) fault;
} hws_rdma_carrier_t;

/* What a thread waits for. */
typedef struct wish {
    bool (*is_granted)(hws_rdma_carrier_t *self, uint32_t argument);
    uint32_t argument;
    bool patient;
    bool bounded; /* by timeout_ms */
    hws_spin_t *spin;
} wish_t;

static hws_rdma_carrier_t *_Atomic session;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000ll + now.tv_nsec;
}

static bool has_reply(hws_rdma_carrier_t *self, uint32_t unused) {
    (void) unused;
    return hws_ring_available(&self->reply) != 0; /* also for a corrupt position: taking the bytes detects it */
}

static bool has_room(hws_rdma_carrier_t *self, uint32_t unused) {
    (void) unused;
    return hws_ring_room(&self->command) != 0; /* also for a corrupt position: the next look detects it */
}

static bool can_send(hws_rdma_carrier_t *self, uint32_t unused) {
    (void) unused;
    return hws_rdma_can_send(self->rdma) != 0; /* also for a lost connection: sending detects it */
}

static bool is_done(hws_rdma_carrier_t *self, uint32_t chunk) {
    /* Pairs with the release store of hws_rdma_progress(). */
    return __atomic_load_n(&hws_rdma_words(self->rdma)->chunks[chunk], __ATOMIC_ACQUIRE) != HWS_CHUNK_BUSY;
}

/*
 * Looks at the session's connection when it has something to read. The worker sends nothing on it any more, so it can
 * only be the end.
 */
static void look_at_connection(hws_rdma_carrier_t *self) {
    uint8_t byte;
    const struct iovec piece = {&byte, 1};
    self->connection->ops->set_timeout(self->connection, 1);
    ssize_t received = self->connection->ops->receive(self->connection, &piece, 1);
    /* This process shuts the connection down too, but only after it has closed the carrier. */
    if ((received >= 0 || errno != EAGAIN) && !atomic_load(&self->closed)) {
        atomic_store(&self->fault,
                     received > 0 ? "the worker broke the protocol, the session is over: bytes beside RDMA"
                                  : "the broker has closed the session's connection");
    }
}

static bool is_over(hws_rdma_carrier_t *self) {
    return atomic_load(&self->fault) != NULL || hws_rdma_fault(self->rdma) != NULL;
}

/* Sleeps until a completion, until the connection ends, or for a short time. sleep_lock held. */
static void sleep_on_channel(hws_rdma_carrier_t *self, const wish_t *wish) {
    if (hws_rdma_arm(self->rdma) != 0 || hws_rdma_progress(self->rdma) != 0 || wish->is_granted(self, wish->argument)) {
        return;
    }
    struct pollfd looked[2] = {{.fd = hws_rdma_channel(self->rdma), .events = POLLIN},
                               {.fd = self->connection->ops->descriptor(self->connection), .events = POLLIN}};
    int ready = poll(looked, 2, LOOK_MS);
    if (ready > 0 && looked[0].revents != 0) {
        hws_rdma_awake(self->rdma);
    }
    if (ready > 0 && looked[1].revents != 0) {
        look_at_connection(self);
    }
    while (hws_rdma_progress(self->rdma) > 0) {
    }
}

/* One thread sleeps on the channel. The others sleep until it has looked, because it takes their completions too. */
static int wait_asleep(hws_rdma_carrier_t *self, const wish_t *wish) {
    int64_t began_ns = now_ns();
    for (;;) {
        uint32_t seen = __atomic_load_n(&self->progressed, __ATOMIC_ACQUIRE);
        uint32_t timeout_ms = wish->bounded ? atomic_load_explicit(&self->timeout_ms, memory_order_relaxed) : 0;
        bool over = is_over(self); /* what arrived before the end comes first */
        if (wish->is_granted(self, wish->argument)) {
            return 0;
        }
        if (atomic_load(&self->closed)) {
            errno = ESHUTDOWN;
            return -1;
        }
        if (over) {
            errno = ECONNRESET;
            return -1;
        }
        if (timeout_ms != 0 && now_ns() - began_ns > timeout_ms * MS_NS) {
            errno = EAGAIN;
            return -1;
        }
        if (pthread_mutex_trylock(&self->sleep_lock) == 0) {
            sleep_on_channel(self, wish);
            pthread_mutex_unlock(&self->sleep_lock);
            __atomic_fetch_add(&self->progressed, 1, __ATOMIC_SEQ_CST);
            if (atomic_load(&self->followers) != 0) {
                hws_futex_wake(&self->progressed);
            }
        } else {
            atomic_fetch_add(&self->followers, 1);
            hws_futex_wait(&self->progressed, seen, LOOK_MS * MS_NS);
            atomic_fetch_sub(&self->followers, 1);
        }
    }
}

static int await(hws_rdma_carrier_t *self, const wish_t *wish) {
    hws_spin_begin(wish->spin);
    do {
        if (wish->is_granted(self, wish->argument)) {
            hws_spin_end(wish->spin, false);
            return 0;
        }
        hws_rdma_progress(self->rdma);
    } while (hws_spin_once(wish->spin));
    hws_spin_end(wish->spin, true);
    if (wish->patient) {
        hws_patient_t wait;
        bool granted = false;
        hws_patient_begin(&wait, &self->patience);
        while (!granted && hws_patient_once(&wait)) {
            hws_rdma_progress(self->rdma);
            granted = wish->is_granted(self, wish->argument);
        }
        hws_patient_end(&wait, granted);
        if (granted) {
            return 0;
        }
    }
    return wait_asleep(self, wish);
}

static int refuse_position(hws_rdma_carrier_t *self, const char *fault) {
    atomic_store(&self->fault, fault);
    errno = EPROTO;
    return -1;
}

/* Posts what was put since the last time, as soon as the worker has a receive for it. */
static int post(hws_rdma_carrier_t *self) {
    const wish_t wish = {.is_granted = can_send, .spin = &self->send_spin, .bounded = true};
    if (!can_send(self, 0) && await(self, &wish) != 0) {
        return -1;
    }
    hws_ring_commit(&self->command);
    uint64_t to = self->command.published;
    if (to == self->sent) {
        return 0;
    }
    if (hws_rdma_send_tail(self->rdma, self->sent, to) != 0) {
        errno = ECONNRESET;
        return -1;
    }
    self->sent = to;
    return 0;
}

static int await_room(hws_rdma_carrier_t *self) {
    const wish_t wish = {.is_granted = has_room, .spin = &self->send_spin, .bounded = true};
    return await(self, &wish);
}

static int rdma_send(hws_carrier_t *carrier, struct iovec *pieces, int count) {
    hws_rdma_carrier_t *self = (hws_rdma_carrier_t *) carrier;
    if (atomic_load_explicit(&self->closed, memory_order_relaxed)) {
        errno = ESHUTDOWN;
        return -1;
    }
    if (is_over(self)) {
        errno = ECONNRESET;
        return -1;
    }
    for (int i = 0; i < count; i++) {
        const uint8_t *from = pieces[i].iov_base;
        uint64_t left = pieces[i].iov_len;
        while (left > 0) {
            uint64_t room = left;
            if (!hws_ring_has_room(&self->command, left)) {
                hws_rdma_progress(self->rdma); /* nobody else may have taken the worker's report of room */
                room = hws_ring_room(&self->command);
            }
            if (room == HWS_RING_CORRUPT) {
                return refuse_position(
                    self, "the worker broke the protocol, the session is over: its position in the command ring");
            }
            if (room == 0) {
                /* The rest streams through as the worker takes bytes out. */
                if (post(self) != 0 || await_room(self) != 0) {
                    return -1;
                }
                continue;
            }
            uint64_t part = left < room ? left : room;
            hws_ring_put(&self->command, from, part);
            from += part;
            left -= part;
        }
    }
    return post(self);
}

static ssize_t rdma_receive(hws_carrier_t *carrier, const struct iovec *pieces, int count) {
    hws_rdma_carrier_t *self = (hws_rdma_carrier_t *) carrier;
    if (atomic_load_explicit(&self->closed, memory_order_relaxed)) {
        errno = ESHUTDOWN;
        return -1;
    }
    const wish_t wish = {.is_granted = has_reply, .spin = &self->receive_spin, .bounded = true, .patient = true};
    if (await(self, &wish) != 0) {
        return -1;
    }
    uint64_t available = hws_ring_available(&self->reply), taken = 0;
    if (available == HWS_RING_CORRUPT) {
        return refuse_position(self,
                               "the worker broke the protocol, the session is over: its position in the reply ring");
    }
    for (int i = 0; i < count && taken < available; i++) {
        uint64_t part = pieces[i].iov_len < available - taken ? pieces[i].iov_len : available - taken;
        hws_ring_take(&self->reply, pieces[i].iov_base, part);
        taken += part;
    }
    hws_ring_release(&self->reply);
    /* A lost connection shows at the next wait; these bytes have arrived. */
    hws_rdma_taken(self->rdma, self->reply.published);
    return (ssize_t) taken;
}

static int rdma_set_timeout(hws_carrier_t *carrier, uint32_t timeout_ms) {
    atomic_store(&((hws_rdma_carrier_t *) carrier)->timeout_ms, timeout_ms);
    return 0;
}

static const char *rdma_fault(hws_carrier_t *carrier) {
    hws_rdma_carrier_t *self = (hws_rdma_carrier_t *) carrier;
    const char *fault = atomic_load(&self->fault);
    return fault != NULL ? fault : hws_rdma_fault(self->rdma);
}

static void rdma_shutdown(hws_carrier_t *carrier) {
    hws_rdma_carrier_t *self = (hws_rdma_carrier_t *) carrier;
    if (!atomic_exchange(&self->closed, true)) {
        hws_rdma_leave(self->rdma, LEAVE_MS);
        self->connection->ops->shutdown(self->connection); /* also wakes the thread that sleeps on the channel */
        __atomic_fetch_add(&self->progressed, 1, __ATOMIC_SEQ_CST);
        hws_futex_wake(&self->progressed);
    }
}

static void rdma_close(hws_carrier_t *carrier) {
    hws_rdma_carrier_t *self = (hws_rdma_carrier_t *) carrier;
    hws_bulk_use_chunks(NULL);
    atomic_store(&session, NULL);
    self->connection->ops->close(self->connection);
    if (getpid() != self->pid) {
        hws_rdma_abandon_in_child(self->rdma);
    } else if (self->rdma != NULL) {
        hws_rdma_close(self->rdma);
        free(self->connection);
        self->rdma = NULL;
    }
}

static int rdma_descriptor(hws_carrier_t *carrier) {
    return hws_rdma_channel(((hws_rdma_carrier_t *) carrier)->rdma);
}

static const hws_carrier_ops_t rdma_ops = {
    .name = "rdma",
    .direct = true,
    .send = rdma_send,
    .receive = rdma_receive,
    .set_timeout = rdma_set_timeout,
    .fault = rdma_fault,
    .shutdown = rdma_shutdown,
    .close = rdma_close,
    .descriptor = rdma_descriptor,
};

static uint32_t *chunk_word(uint32_t chunk) {
    return &hws_rdma_words(atomic_load(&session)->rdma)->chunks[chunk];
}

static void chunk_begin(uint32_t chunk) {
    __atomic_store_n(chunk_word(chunk), HWS_CHUNK_BUSY, __ATOMIC_RELEASE);
}

static int fail(hws_rdma_carrier_t *self) {
    const char *fault = rdma_fault(&self->carrier);
    if (fault != NULL) {
        return hws_channel_fail(HWS_LOST_STATUS, "%s", fault);
    }
    int status = hws_channel_status();
    return status != 0 ? status : HWS_LOST_STATUS;
}

static int chunk_put(uint32_t chunk, uint32_t bytes) {
    hws_rdma_carrier_t *self = atomic_load(&session);
    return hws_rdma_send_chunk(self->rdma, chunk, 0, bytes) == 0 ? 0 : fail(self);
}

static int chunk_put_from(void *registered, const uint8_t *from, uint32_t chunk, uint32_t bytes) {
    hws_rdma_carrier_t *self = atomic_load(&session);
    return hws_rdma_send_chunk_from(self->rdma, registered, from, chunk, bytes) == 0 ? 0 : fail(self);
}

static void chunk_cancel(uint32_t chunk) {
    __atomic_store_n(chunk_word(chunk), 0, __ATOMIC_RELEASE);
}

static bool chunk_is_ready(uint32_t chunk) {
    hws_rdma_carrier_t *self = atomic_load(&session);
    if (is_done(self, chunk)) {
        return true;
    }
    hws_rdma_progress(self->rdma); /* nothing else may take completions meanwhile */
    return is_done(self, chunk);
}

static int chunk_wait(uint32_t chunk) {
    hws_rdma_carrier_t *self = atomic_load(&session);
    const wish_t wish = {.is_granted = is_done, .argument = chunk, .spin = &self->chunk_spins[chunk]};
    if (await(self, &wish) == 0) {
        return (int) __atomic_load_n(chunk_word(chunk), __ATOMIC_ACQUIRE);
    }
    return fail(self);
}

hws_rdma_t *hws_rdma_session(void) {
    const hws_rdma_carrier_t *self = atomic_load(&session);
    return self == NULL || getpid() != self->pid ? NULL : self->rdma;
}

static void attach_rings(hws_rdma_carrier_t *self) {
    hws_rdma_words_t *words = hws_rdma_words(self->rdma);
    uint8_t *mirror = hws_rdma_mirror(self->rdma);
    hws_ring_attach_writer(&self->command, mirror + HWS_MIRROR_COMMAND_OFFSET, HWS_MIRROR_RING_BYTES, &words->peer_head,
                           &words->own_tail);
    hws_ring_attach_reader(&self->reply, mirror + HWS_MIRROR_REPLY_OFFSET, HWS_MIRROR_RING_BYTES, &words->own_head,
                           &words->peer_tail);
}

hws_carrier_t *hws_rdma_adopt(hws_rdma_t *rdma, hws_carrier_t *connection) {
    hws_rdma_carrier_t *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->carrier.ops = &rdma_ops;
    self->rdma = rdma;
    self->connection = connection;
    self->pid = getpid();
    pthread_mutex_init(&self->sleep_lock, NULL);
    hws_spin_init(&self->send_spin);
    self->receive_spin = self->send_spin;
    for (uint32_t i = 0; i < HWS_MIRROR_CHUNKS; i++) {
        self->chunk_spins[i] = self->send_spin;
    }
    hws_patience_init(&self->patience);
    attach_rings(self);
    self->chunks = (hws_chunks_t) {
        .bytes = hws_rdma_mirror(rdma) + HWS_MIRROR_BULK_OFFSET,
        .offset = HWS_MIRROR_BULK_OFFSET,
        .chunk_bytes = HWS_MIRROR_CHUNK_BYTES,
        .count = HWS_MIRROR_CHUNKS,
        .begin = chunk_begin,
        .put = chunk_put,
        .put_from = chunk_put_from,
        .cancel = chunk_cancel,
        .is_ready = chunk_is_ready,
        .wait = chunk_wait,
    };
    atomic_store(&session, self);
    hws_bulk_use_chunks(&self->chunks);
    return &self->carrier;
}

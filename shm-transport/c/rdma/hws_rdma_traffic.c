/* What travels: work requests, completions and the positions in them. */
#include "hws_rdma_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#define POSITION_UNIT 8u
#define NAP_NS 20000l

/* Bytes that a work request writes to the other end, or reads from it. */
typedef struct piece {
    uint64_t here;
    uint64_t there;
    uint32_t local_key;
    uint32_t key;
    uint32_t bytes; /* 0: only the immediate data */
    bool reads;
} piece_t;

/* Bytes of the mirror, which go to the same place in the other end's. */
static piece_t of_mirror(const hws_rdma_t *rdma, uint64_t offset, uint32_t bytes) {
    return (piece_t) {.here = (uint64_t) (uintptr_t) rdma->mirror + offset,
                      .there = rdma->peer.address + offset,
                      .local_key = rdma->region->lkey,
                      .key = rdma->peer.key,
                      .bytes = bytes};
}

static piece_t nothing(const hws_rdma_t *rdma) {
    return of_mirror(rdma, 0, 0);
}

static uint32_t immediate(hws_rdma_kind_t kind, uint64_t value) {
    return (uint32_t) kind << HWS_RDMA_KIND_SHIFT | ((uint32_t) value & HWS_RDMA_VALUE_MASK);
}

static int lose_by_status(hws_rdma_t *rdma, const char *what, enum ibv_wc_status status) {
    return hws_rdma_lose(rdma, "the RDMA connection is lost: %s: %s", what, rdma->verbs->ibv_wc_status_str(status));
}

bool hws_rdma_reap(hws_rdma_t *rdma) {
    struct ibv_wc done[HWS_RDMA_BATCH];
    int count = ibv_poll_cq(rdma->sent, (int) HWS_RDMA_BATCH, done);
    if (count < 0) {
        hws_rdma_lose(rdma, "the RDMA connection is lost: its completions cannot be read");
        return true;
    }
    for (int i = 0; i < count; i++) {
        if (done[i].status != IBV_WC_SUCCESS) {
            lose_by_status(rdma, "sending", done[i].status);
        } else if (done[i].wr_id > rdma->completed) {
            rdma->completed = done[i].wr_id;
        }
    }
    return count > 0;
}

/* Sleeps for a moment, while only the adapter can go on. */
static void nap(void) {
    const struct timespec nap = {.tv_nsec = NAP_NS};
    nanosleep(&nap, NULL);
}

/*
 * Posts requests in order; the last one carries `imm`, unless that is NULL. The send queue is seldom full: adapters empty
 * it without the other end's program. While a link is down it may be, so the wait ends with the connection. send_lock
 * held.
 */
static int post_locked(hws_rdma_t *rdma, const piece_t *pieces, unsigned count, const uint32_t *imm, bool signal) {
    struct ibv_sge parts[2];
    struct ibv_send_wr requests[2] = {0}, *bad = NULL;
    while (!atomic_load_explicit(&rdma->lost, memory_order_relaxed)
           && rdma->posted - rdma->completed + count > HWS_RDMA_SENDS) {
        if (!hws_rdma_reap(rdma)) {
            nap();
        }
    }
    if (atomic_load_explicit(&rdma->lost, memory_order_relaxed)) {
        return -1;
    }
    uint64_t bytes = 0, bytes_read = 0;
    for (unsigned i = 0; i < count; i++) {
        struct ibv_send_wr *request = &requests[i];
        bool last = i == count - 1;
        parts[i] = (struct ibv_sge) {.addr = pieces[i].here, .length = pieces[i].bytes, .lkey = pieces[i].local_key};
        request->wr_id = rdma->posted + i + 1;
        request->next = last ? NULL : request + 1;
        request->sg_list = &parts[i];
        request->num_sge = pieces[i].bytes != 0;
        request->opcode = pieces[i].reads ? IBV_WR_RDMA_READ
            : last && imm != NULL         ? IBV_WR_RDMA_WRITE_WITH_IMM
                                          : IBV_WR_RDMA_WRITE;
        request->imm_data = last && imm != NULL ? htonl(*imm) : 0;
        bool in_request = !pieces[i].reads && pieces[i].bytes <= rdma->inline_bytes && pieces[i].bytes != 0;
        request->send_flags = in_request ? IBV_SEND_INLINE : 0;
        request->send_flags |= (signal && last) || request->wr_id % HWS_RDMA_SIGNAL_EVERY == 0 ? IBV_SEND_SIGNALED : 0;
        request->wr.rdma.remote_addr = pieces[i].there;
        request->wr.rdma.rkey = pieces[i].key;
        *(pieces[i].reads ? &bytes_read : &bytes) += pieces[i].bytes;
    }
    int rc = ibv_post_send(rdma->queue_pair, requests, &bad);
    if (rc != 0) {
        return hws_rdma_lose(rdma, "the RDMA connection is lost: nothing can be sent: %s", strerror(rc));
    }
    rdma->posted += count;
    atomic_fetch_add_explicit(&rdma->messages_out, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&rdma->bytes_out, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&rdma->bytes_read, bytes_read, memory_order_relaxed);
    return 0;
}

static int post(hws_rdma_t *rdma, const piece_t *pieces, unsigned count, const uint32_t *imm) {
    pthread_mutex_lock(&rdma->send_lock);
    int rc = post_locked(rdma, pieces, count, imm, false);
    pthread_mutex_unlock(&rdma->send_lock);
    return rc;
}

int hws_rdma_can_send(hws_rdma_t *rdma) {
    if (atomic_load_explicit(&rdma->lost, memory_order_relaxed)) {
        return -1;
    }
    uint64_t head = __atomic_load_n(&rdma->words.peer_head, __ATOMIC_ACQUIRE);
    /* The other end has taken bytes up to its head, so the tails up to there have left their receives. */
    while (rdma->tail_count > 0 && (int64_t) (head - rdma->tails[rdma->first_tail]) >= 0) {
        rdma->first_tail = (rdma->first_tail + 1) % HWS_MIRROR_TAILS;
        rdma->tail_count--;
    }
    if (rdma->tail_count == HWS_MIRROR_TAILS) {
        return 0;
    }
    pthread_mutex_lock(&rdma->send_lock);
    bool room = rdma->posted - rdma->completed <= HWS_RDMA_SENDS - HWS_RDMA_SENDS_KEPT;
    if (!room && hws_rdma_reap(rdma)) {
        room = rdma->posted - rdma->completed <= HWS_RDMA_SENDS - HWS_RDMA_SENDS_KEPT;
    }
    pthread_mutex_unlock(&rdma->send_lock);
    return room;
}

int hws_rdma_send_tail(hws_rdma_t *rdma, uint64_t from, uint64_t to) {
    uint64_t ring = rdma->options.is_worker ? HWS_MIRROR_REPLY_OFFSET : HWS_MIRROR_COMMAND_OFFSET;
    uint64_t at = from & (HWS_MIRROR_RING_BYTES - 1), bytes = to - from;
    uint32_t imm = immediate(HWS_RDMA_TAIL, to / POSITION_UNIT);
    uint64_t first = bytes < HWS_MIRROR_RING_BYTES - at ? bytes : HWS_MIRROR_RING_BYTES - at;
    const piece_t pieces[2] = {of_mirror(rdma, ring + at, (uint32_t) first),
                               of_mirror(rdma, ring, (uint32_t) (bytes - first))};
    rdma->tails[(rdma->first_tail + rdma->tail_count++) % HWS_MIRROR_TAILS] = to;
    return post(rdma, pieces, bytes == first ? 1 : 2, &imm);
}

int hws_rdma_taken(hws_rdma_t *rdma, uint64_t head) {
    uint32_t tails = atomic_load_explicit(&rdma->tails_unreported, memory_order_acquire);
    /* Reporting the tails needs the position after all of them: earlier ones would leave their receives taken. */
    bool all = tails >= HWS_RDMA_REPORT_TAILS && head == __atomic_load_n(&rdma->words.peer_tail, __ATOMIC_ACQUIRE);
    if (!all && head - rdma->reported < HWS_MIRROR_RING_BYTES / 4) {
        return 0;
    }
    if (all) {
        atomic_fetch_sub_explicit(&rdma->tails_unreported, tails, memory_order_relaxed);
    }
    rdma->reported = head;
    uint32_t imm = immediate(HWS_RDMA_HEAD, head / POSITION_UNIT);
    const piece_t piece = nothing(rdma);
    return post(rdma, &piece, 1, &imm);
}

/* Bytes of a chunk. Returns false, and loses the connection, if they do not lie in it. */
static bool of_chunk(hws_rdma_t *rdma, uint32_t chunk, uint32_t offset, uint32_t bytes, piece_t *piece_p) {
    if (chunk >= HWS_MIRROR_CHUNKS || offset > HWS_MIRROR_CHUNK_BYTES || bytes > HWS_MIRROR_CHUNK_BYTES - offset) {
        hws_rdma_lose(rdma, "bytes must lie in a chunk: chunk=%u offset=%u bytes=%u", chunk, offset, bytes);
        return false;
    }
    *piece_p = of_mirror(rdma, HWS_MIRROR_BULK_OFFSET + (uint64_t) chunk * HWS_MIRROR_CHUNK_BYTES + offset, bytes);
    return true;
}

int hws_rdma_send_chunk(hws_rdma_t *rdma, uint32_t chunk, uint32_t offset, uint32_t bytes) {
    piece_t piece;
    return of_chunk(rdma, chunk, offset, bytes, &piece) ? post(rdma, &piece, 1, NULL) : -1;
}

int hws_rdma_return_chunk(hws_rdma_t *rdma, uint32_t chunk, uint32_t offset, uint32_t bytes, uint32_t result) {
    piece_t piece;
    if (!of_chunk(rdma, chunk, offset, bytes, &piece)) {
        return -1;
    }
    if (result >> HWS_RDMA_CHUNK_SHIFT != 0) {
        return hws_rdma_lose(rdma, "a chunk's result must fit 16 bits: chunk=%u result=%u", chunk, result);
    }
    uint32_t imm = immediate(HWS_RDMA_CHUNK, chunk << HWS_RDMA_CHUNK_SHIFT | result);
    return post(rdma, &piece, 1, &imm);
}

/* Posts a request with registered memory, and asks for a completion that tells when it is done. */
static int post_memory(hws_rdma_t *rdma, hws_rdma_memory_t *memory, piece_t piece, uint64_t *ticket_p) {
    uint64_t offset = piece.here - memory->base;
    if (piece.here < memory->base || offset > memory->bytes || piece.bytes > memory->bytes - offset) {
        return hws_rdma_lose(rdma, "bytes must lie in registered memory: offset=%lld bytes=%u", (long long) offset,
                             piece.bytes);
    }
    piece.local_key = memory->region->lkey;
    pthread_mutex_lock(&rdma->send_lock);
    int rc = post_locked(rdma, &piece, 1, NULL, true);
    if (rc == 0) {
        memory->last = rdma->posted;
        atomic_store(&rdma->ticketed, rdma->posted);
        if (ticket_p != NULL) {
            *ticket_p = rdma->posted;
        }
    }
    pthread_mutex_unlock(&rdma->send_lock);
    return rc;
}

int hws_rdma_write(hws_rdma_t *rdma, hws_rdma_memory_t *memory, const void *from, uint32_t bytes, uint64_t to,
                   uint32_t key, uint64_t *ticket_p) {
    const piece_t piece = {.here = (uint64_t) (uintptr_t) from, .there = to, .key = key, .bytes = bytes};
    return post_memory(rdma, memory, piece, ticket_p);
}

int hws_rdma_read(hws_rdma_t *rdma, hws_rdma_memory_t *memory, void *to, uint32_t bytes, uint64_t from, uint32_t key,
                  uint64_t *ticket_p) {
    const piece_t piece = {.here = (uint64_t) (uintptr_t) to, .there = from, .key = key, .bytes = bytes, .reads = true};
    return post_memory(rdma, memory, piece, ticket_p);
}

int hws_rdma_send_chunk_from(hws_rdma_t *rdma, hws_rdma_memory_t *memory, const void *from, uint32_t chunk,
                             uint32_t bytes) {
    piece_t piece;
    if (!of_chunk(rdma, chunk, 0, bytes, &piece)) {
        return -1;
    }
    piece.here = (uint64_t) (uintptr_t) from;
    return post_memory(rdma, memory, piece, NULL);
}

uint64_t hws_rdma_done(hws_rdma_t *rdma) {
    if (atomic_load(&rdma->completed) < atomic_load(&rdma->ticketed) && pthread_mutex_trylock(&rdma->send_lock) == 0) {
        hws_rdma_reap(rdma);
        pthread_mutex_unlock(&rdma->send_lock);
    }
    return atomic_load(&rdma->completed);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool hws_rdma_await(hws_rdma_t *rdma, uint64_t ticket, uint32_t limit_ms) {
    int64_t until_ms = now_ms() + limit_ms;
    while (rdma->completed < ticket && !atomic_load(&rdma->lost)) {
        if (hws_rdma_reap(rdma)) {
            continue;
        }
        if (now_ms() >= until_ms) {
            break;
        }
        pthread_mutex_unlock(&rdma->send_lock);
        nap();
        pthread_mutex_lock(&rdma->send_lock);
    }
    return rdma->completed >= ticket;
}

int hws_rdma_leave(hws_rdma_t *rdma, uint32_t limit_ms) {
    uint32_t imm = immediate(HWS_RDMA_LEFT, 0);
    const piece_t piece = nothing(rdma);
    pthread_mutex_lock(&rdma->send_lock);
    bool done = post_locked(rdma, &piece, 1, &imm, true) == 0 && hws_rdma_await(rdma, rdma->posted, limit_ms);
    pthread_mutex_unlock(&rdma->send_lock);
    return done ? 0 : -1;
}

int hws_rdma_post_receives(hws_rdma_t *rdma, uint32_t count) {
    struct ibv_recv_wr requests[HWS_RDMA_BATCH] = {0}, *bad = NULL;
    while (count > 0) {
        uint32_t part = count < HWS_RDMA_BATCH ? count : HWS_RDMA_BATCH;
        for (uint32_t i = 0; i < part; i++) {
            requests[i].next = i + 1 < part ? &requests[i + 1] : NULL;
        }
        int rc = ibv_post_recv(rdma->queue_pair, requests, &bad);
        if (rc != 0) {
            return hws_rdma_lose(rdma, "the RDMA connection is lost: nothing can be received: %s", strerror(rc));
        }
        count -= part;
    }
    return 0;
}

/* The whole position of which the low bits have arrived. Positions only grow, and by less than the bits can count. */
static void advance(uint64_t *word, uint32_t low) {
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    uint64_t units = (low - (uint32_t) (before / POSITION_UNIT)) & HWS_RDMA_VALUE_MASK;
    __atomic_store_n(word, before + units * POSITION_UNIT, __ATOMIC_RELEASE);
}

/* The ring checks positions. Here only the kinds and the chunk's number can be wrong. */
static int take(hws_rdma_t *rdma, uint32_t imm) {
    uint32_t value = imm & HWS_RDMA_VALUE_MASK, chunk = value >> HWS_RDMA_CHUNK_SHIFT;
    switch ((hws_rdma_kind_t) (imm >> HWS_RDMA_KIND_SHIFT)) {
        case HWS_RDMA_TAIL:
            advance(&rdma->words.peer_tail, value);
            atomic_fetch_add_explicit(&rdma->tails_unreported, 1, memory_order_release);
            return 0;
        case HWS_RDMA_HEAD:
            advance(&rdma->words.peer_head, value);
            return 0;
        case HWS_RDMA_CHUNK:
            if (rdma->options.is_worker || chunk >= HWS_MIRROR_CHUNKS) {
                break;
            }
            __atomic_store_n(&rdma->words.chunks[chunk], value & ((1u << HWS_RDMA_CHUNK_SHIFT) - 1), __ATOMIC_RELEASE);
            return 0;
        case HWS_RDMA_LEFT:
            __atomic_store_n(&rdma->words.peer_left, 1, __ATOMIC_RELEASE);
            return 0;
    }
    return hws_rdma_lose(rdma, "the other end of the RDMA connection broke the protocol: immediate data %08x", imm);
}

/* A failed send also fails the receives: its reason is the better one. */
static int lose_by_receive(hws_rdma_t *rdma, enum ibv_wc_status status) {
    pthread_mutex_lock(&rdma->send_lock);
    while (hws_rdma_reap(rdma) && !atomic_load(&rdma->lost)) {
    }
    pthread_mutex_unlock(&rdma->send_lock);
    return lose_by_status(rdma, "receiving", status);
}

int hws_rdma_progress(hws_rdma_t *rdma) {
    if (atomic_load_explicit(&rdma->lost, memory_order_relaxed)) {
        return -1;
    }
    if (pthread_mutex_trylock(&rdma->receive_lock) != 0) {
        return 0;
    }
    struct ibv_wc done[HWS_RDMA_BATCH];
    int count = ibv_poll_cq(rdma->received, (int) HWS_RDMA_BATCH, done), rc = 0;
    if (count < 0) {
        rc = hws_rdma_lose(rdma, "the RDMA connection is lost: its completions cannot be read");
    }
    for (int i = 0; i < count && rc == 0; i++) {
        if (done[i].status != IBV_WC_SUCCESS) {
            rc = lose_by_receive(rdma, done[i].status);
        } else if (done[i].opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
            rc = hws_rdma_lose(rdma, "the other end of the RDMA connection broke the protocol: completion %d",
                               (int) done[i].opcode);
        } else {
            rdma->receives_owed++;
            rc = take(rdma, ntohl(done[i].imm_data));
        }
    }
    if (rc == 0 && rdma->receives_owed >= HWS_RDMA_BATCH) {
        rc = hws_rdma_post_receives(rdma, rdma->receives_owed);
        rdma->receives_owed = 0;
    }
    pthread_mutex_unlock(&rdma->receive_lock);
    if (count > 0) {
        atomic_fetch_add_explicit(&rdma->messages_in, (uint64_t) count, memory_order_relaxed);
    }
    return rc != 0 ? -1 : count > 0;
}

static int request_event(hws_rdma_t *rdma, struct ibv_cq *queue) {
    int rc = ibv_req_notify_cq(queue, 0);
    return rc == 0 ? 0 : hws_rdma_lose(rdma, "the RDMA connection is lost: no events: %s", strerror(rc));
}

int hws_rdma_arm(hws_rdma_t *rdma) {
    if (request_event(rdma, rdma->received) != 0) {
        return -1;
    }
    /* A thread that took a completion before this has now updated the words, so the caller's next look sees them. */
    pthread_mutex_lock(&rdma->receive_lock);
    pthread_mutex_unlock(&rdma->receive_lock);
    if (atomic_load(&rdma->completed) >= atomic_load(&rdma->ticketed)) {
        return 0;
    }
    if (request_event(rdma, rdma->sent) != 0) {
        return -1;
    }
    pthread_mutex_lock(&rdma->send_lock);
    while (hws_rdma_reap(rdma) && !atomic_load(&rdma->lost)) { /* what came before the request gives no event */
    }
    pthread_mutex_unlock(&rdma->send_lock);
    return 0;
}

/* Acknowledging takes a lock, so several events are acknowledged at once. */
static void acknowledge(hws_rdma_t *rdma, struct ibv_cq *queue, unsigned *events) {
    if (++*events == HWS_RDMA_BATCH) {
        rdma->verbs->ibv_ack_cq_events(queue, *events);
        *events = 0;
    }
}

void hws_rdma_awake(hws_rdma_t *rdma) {
    struct ibv_cq *queue;
    void *unused;
    while (rdma->verbs->ibv_get_cq_event(rdma->channel, &queue, &unused) == 0) {
        acknowledge(rdma, queue, queue == rdma->sent ? &rdma->sent_events : &rdma->events);
    }
}

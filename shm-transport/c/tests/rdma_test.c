/* An end of RDMA and its carrier against another end of this process: rules, limits, and the end of the connection. */
#include "../hws_channel.h"
#include "../rdma/hws_rdma_internal.h"
#include "../shm/hws_bulk.h"
#include "fake_rdma.h"
#include "hws_region.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define ROUNDS 60
#define LONG_RETRY_MS 4000
#define SHORT_RETRY_MS 200

static fake_end_t worker;
static hws_carrier_t *guest;
static const hws_chunks_t *chunks;
static _Atomic int failed_status;

/* The carrier calls these functions of the channel and of copies. */
_Thread_local hws_tls_t hws_tls;

void hws_bulk_use_chunks(const hws_chunks_t *used) {
    chunks = used;
}

int hws_channel_fail(int status, const char *format, ...) {
    (void) format;
    atomic_store(&failed_status, status);
    return status;
}

int hws_channel_status(void) {
    return atomic_load(&failed_status);
}

static hws_rdma_t *guest_end(void) {
    return ((hws_rdma_t **) (guest + 1))[0];
}

static hws_rdma_memory_t *register_at(hws_rdma_t *end, void *base, uint64_t bytes, uint32_t access) {
    char error[256] = "";
    hws_rdma_memory_t *memory = hws_rdma_register(end, base, bytes, access, error, sizeof error);
    HWS_CHECK(memory != NULL);
    return memory;
}

static void connect_within(uint32_t retry_ms) {
    atomic_store(&failed_status, 0);
    guest = fake_rdma_connect_within(&worker, retry_ms);
}

static void hang_up(void) {
    guest->ops->shutdown(guest);
    fake_rdma_hang_up(&worker);
    guest->ops->close(guest);
    free(guest);
}

static void send_words(const void *bytes, size_t count) {
    struct iovec piece = {(void *) bytes, count};
    HWS_CHECK(guest->ops->send(guest, &piece, 1) == 0);
}

static ssize_t receive_words(void *target, size_t bytes) {
    const struct iovec piece = {target, bytes};
    return guest->ops->receive(guest, &piece, 1);
}

static bool receive_all(uint8_t *target, size_t bytes) {
    while (bytes > 0) {
        ssize_t received = receive_words(target, bytes);
        if (received <= 0) {
            return false;
        }
        target += received;
        bytes -= (size_t) received;
    }
    return true;
}

/* Posts a write of the worker that no correct worker would post. */
static void post_raw(uint64_t offset, uint32_t bytes, bool with_imm, uint32_t imm) {
    hws_rdma_t *rdma = worker.rdma;
    struct ibv_sge part = {.addr = (uint64_t) (uintptr_t) rdma->mirror, .length = bytes, .lkey = rdma->region->lkey};
    struct ibv_send_wr request = {
        .wr_id = ++rdma->posted,
        .sg_list = &part,
        .num_sge = bytes != 0,
        .opcode = with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .imm_data = htonl(imm),
        .wr.rdma = {.remote_addr = rdma->peer.address + offset, .rkey = rdma->peer.key},
    };
    struct ibv_send_wr *bad;
    HWS_CHECK(ibv_post_send(rdma->queue_pair, &request, &bad) == 0);
}

static uint32_t make_imm(hws_rdma_kind_t kind, uint32_t value) {
    return (uint32_t) kind << HWS_RDMA_KIND_SHIFT | value;
}

static void should_carry_chunks_there_and_back(void) {
    connect_within(0);
    HWS_CHECK(chunks->count == HWS_MIRROR_CHUNKS && chunks->offset == HWS_MIRROR_BULK_OFFSET);
    for (uint32_t chunk = 0; chunk < chunks->count; chunk++) {
        uint8_t *here = chunks->bytes + chunk * chunks->chunk_bytes;
        uint8_t *there = hws_rdma_mirror(worker.rdma) + chunks->offset + chunk * chunks->chunk_bytes;
        uint64_t word = chunk;
        memset(here, (int) chunk + 1, chunks->chunk_bytes);
        chunks->begin(chunk);
        HWS_CHECK(!chunks->is_ready(chunk) && chunks->put(chunk, (uint32_t) chunks->chunk_bytes) == 0);
        send_words(&word, sizeof word);
        HWS_CHECK(fake_rdma_read(&worker, &word, sizeof word) && word == chunk);
        HWS_CHECK(memcmp(here, there, chunks->chunk_bytes) == 0);
        memset(there, 0x80 + (int) chunk, chunks->chunk_bytes);
        HWS_CHECK(hws_rdma_return_chunk(worker.rdma, chunk, 8, 1000, chunk == 3 ? 719 : 0) == 0);
        HWS_CHECK(chunks->wait(chunk) == (chunk == 3 ? 719 : 0) && chunks->is_ready(chunk));
        HWS_CHECK(here[7] == chunk + 1 && here[8] == 0x80 + chunk && here[1007] == 0x80 + chunk
                  && here[1008] == chunk + 1);
    }
    chunks->begin(1);
    chunks->cancel(1);
    HWS_CHECK(chunks->wait(1) == 0);
    HWS_CHECK(hws_rdma_return_chunk(worker.rdma, 0, 0, 0, 0) == 0 && hws_rdma_fault(worker.rdma) == NULL);
    HWS_CHECK(hws_rdma_return_chunk(worker.rdma, 0, 8, HWS_MIRROR_CHUNK_BYTES, 0) == -1);
    hang_up();
}

/* An end that reads nothing stops the other one, without a packet that finds no receive. */
static void should_stop_at_the_receives_of_an_end_that_does_not_read(void) {
    connect_within(0);
    uint64_t sent = 0, word;
    for (int round = 0; round < 3; round++) {
        uint64_t first = sent;
        while (hws_rdma_can_send(worker.rdma) == 1) {
            word = ++sent;
            hws_ring_put(&worker.reply, &word, sizeof word);
            hws_ring_commit(&worker.reply);
            HWS_CHECK(hws_rdma_send_tail(worker.rdma, worker.sent, worker.reply.published) == 0);
            worker.sent = worker.reply.published;
        }
        /* The guest reports in steps, so that some tails of the last round still count. */
        HWS_CHECK(round == 0 ? sent == HWS_MIRROR_TAILS : sent - first >= HWS_MIRROR_TAILS - HWS_RDMA_REPORT_TAILS);
        for (uint64_t i = first + 1; i <= sent; i++) {
            HWS_CHECK(receive_all((uint8_t *) &word, sizeof word) && word == i);
        }
        /* All but the tails of the last step are reported, sooner or later. */
        while (hws_rdma_words(worker.rdma)->peer_head / sizeof word + HWS_RDMA_REPORT_TAILS <= sent) {
            HWS_CHECK(fake_rdma_await(&worker));
        }
    }
    hang_up();
}

static hws_rdma_counts_t counts_of(const hws_rdma_t *rdma) {
    hws_rdma_counts_t counts;
    hws_rdma_count(rdma, &counts);
    return counts;
}

/* The model of appliance/docs/specification/rdma.md: what each step costs at each end. */
static void should_send_as_many_messages_as_the_model_says(void) {
    enum { CALLS = 1000, CALL_BYTES = 64, REPLY_BYTES = 40, LONG_BYTES = 1 << 20 };
    static uint8_t bytes[LONG_BYTES];
    connect_within(0);
    hws_rdma_t *end = guest_end();
    for (int i = 0; i < CALLS; i++) {
        send_words(bytes, CALL_BYTES);
        HWS_CHECK(fake_rdma_read(&worker, bytes, CALL_BYTES));
        fake_rdma_write(&worker, bytes, REPLY_BYTES);
        HWS_CHECK(receive_all(bytes, REPLY_BYTES));
    }
    hws_rdma_counts_t out = counts_of(end), back = counts_of(worker.rdma);
    HWS_CHECK(out.bytes_out == CALLS * CALL_BYTES && back.bytes_out == CALLS * REPLY_BYTES);
    HWS_CHECK(out.messages_out == CALLS + CALLS / HWS_RDMA_REPORT_TAILS);
    HWS_CHECK(back.messages_out == CALLS + CALLS / HWS_RDMA_REPORT_TAILS);
    /* A chunk to the device: its bytes and a record; back comes one message. To the host: one record, one message. */
    chunks->begin(0);
    HWS_CHECK(chunks->put(0, HWS_MIRROR_CHUNK_BYTES) == 0);
    send_words(bytes, CALL_BYTES);
    HWS_CHECK(fake_rdma_read(&worker, bytes, CALL_BYTES));
    HWS_CHECK(hws_rdma_return_chunk(worker.rdma, 0, 0, HWS_MIRROR_CHUNK_BYTES, 0) == 0 && chunks->wait(0) == 0);
    HWS_CHECK(counts_of(end).messages_out - out.messages_out == 2);
    HWS_CHECK(counts_of(end).bytes_out - out.bytes_out == HWS_MIRROR_CHUNK_BYTES + CALL_BYTES);
    HWS_CHECK(counts_of(worker.rdma).messages_out - back.messages_out == 1);
    HWS_CHECK(counts_of(worker.rdma).bytes_out - back.bytes_out == HWS_MIRROR_CHUNK_BYTES);
    /* Registered memory: the same messages to the device, and a write each to the host. */
    out = counts_of(end);
    back = counts_of(worker.rdma);
    hws_rdma_memory_t *here = register_at(end, bytes, sizeof bytes, HWS_RDMA_PEER_WRITES);
    hws_rdma_memory_t *there = register_at(worker.rdma, hws_rdma_mirror(worker.rdma), HWS_MIRROR_BYTES, 0);
    chunks->begin(0);
    HWS_CHECK(chunks->put_from(here, bytes, 0, HWS_MIRROR_CHUNK_BYTES) == 0);
    send_words(bytes, CALL_BYTES);
    HWS_CHECK(fake_rdma_read(&worker, bytes, CALL_BYTES));
    HWS_CHECK(hws_rdma_return_chunk(worker.rdma, 0, 0, 0, 0) == 0 && chunks->wait(0) == 0);
    HWS_CHECK(hws_rdma_write(worker.rdma, there, hws_rdma_mirror(worker.rdma), LONG_BYTES / 2,
                             (uint64_t) (uintptr_t) bytes, hws_rdma_key(here), NULL)
              == 0);
    HWS_CHECK(counts_of(end).messages_out - out.messages_out == 2);
    HWS_CHECK(counts_of(end).bytes_out - out.bytes_out == HWS_MIRROR_CHUNK_BYTES + CALL_BYTES);
    HWS_CHECK(counts_of(worker.rdma).messages_out - back.messages_out == 2);
    HWS_CHECK(counts_of(worker.rdma).bytes_out - back.bytes_out == LONG_BYTES / 2);
    hws_rdma_unregister(worker.rdma, there, LONG_RETRY_MS); /* before `bytes` changes below */
    /* Two long records, of which one crosses the ring's end: three writes. Each brings a report of room. */
    out = counts_of(end);
    back = counts_of(worker.rdma);
    for (int i = 0; i < 2; i++) {
        send_words(bytes, LONG_BYTES);
        HWS_CHECK(fake_rdma_read(&worker, bytes, LONG_BYTES));
        while (hws_rdma_words(end)->peer_head != worker.command.published) {
            HWS_CHECK(hws_rdma_progress(end) >= 0);
        }
    }
    HWS_CHECK(counts_of(end).messages_out - out.messages_out == 3);
    HWS_CHECK(counts_of(end).bytes_out - out.bytes_out == 2 * LONG_BYTES);
    HWS_CHECK(counts_of(worker.rdma).messages_out - back.messages_out == 2);
    hang_up();
}

static void expect_refusal_of(uint32_t imm) {
    uint64_t word;
    connect_within(0);
    post_raw(0, 0, true, imm);
    HWS_CHECK(receive_words(&word, sizeof word) == -1);
    HWS_CHECK(errno == ECONNRESET || errno == EPROTO);
    HWS_CHECK(strstr(guest->ops->fault(guest), "broke the protocol") != NULL);
    hang_up();
}

static void should_end_after_a_broken_rule(void) {
    expect_refusal_of(make_imm(HWS_RDMA_CHUNK, HWS_MIRROR_CHUNKS << HWS_RDMA_CHUNK_SHIFT));
    expect_refusal_of(make_imm(HWS_RDMA_TAIL, HWS_MIRROR_RING_BYTES / 8 + 1)); /* more than the ring has */
    expect_refusal_of(make_imm(HWS_RDMA_TAIL, HWS_RDMA_VALUE_MASK));           /* backwards */
    /* A head that the guest has not reached yet shows when it sends. */
    connect_within(0);
    uint8_t *bytes = calloc(1, HWS_MIRROR_RING_BYTES + 8);
    struct iovec piece = {bytes, HWS_MIRROR_RING_BYTES + 8};
    post_raw(0, 0, true, make_imm(HWS_RDMA_HEAD, HWS_MIRROR_RING_BYTES / 4));
    HWS_CHECK(guest->ops->send(guest, &piece, 1) == -1 && errno == EPROTO);
    free(bytes);
    hang_up();
    /* Only the guest takes chunks back. */
    connect_within(0);
    HWS_CHECK(hws_rdma_return_chunk(guest_end(), 0, 0, 0, 0) == 0);
    while (fake_rdma_await(&worker)) {
    }
    HWS_CHECK(strstr(hws_rdma_fault(worker.rdma), "broke the protocol") != NULL);
    hang_up();
}

/* The adapter refuses writes beside the mirror, and both ends notice. */
static void should_end_after_a_write_beside_the_mirror(void) {
    uint64_t word;
    connect_within(SHORT_RETRY_MS);
    post_raw(HWS_MIRROR_BYTES - 4, 8, false, 0);
    post_raw(0, 0, true, make_imm(HWS_RDMA_LEFT, 0));
    while (hws_rdma_fault(worker.rdma) == NULL) {
        hws_rdma_progress(worker.rdma);
        pthread_mutex_lock(&worker.rdma->send_lock);
        hws_rdma_reap(worker.rdma);
        pthread_mutex_unlock(&worker.rdma->send_lock);
    }
    HWS_CHECK(receive_words(&word, sizeof word) == -1 && errno == ECONNRESET);
    hang_up();
}

#ifndef __SANITIZE_THREAD__ /* an adapter that writes what this end reads is the point, and a race */
/* Bytes and positions of the other end may be anything at any time. */
static void should_survive_a_mirror_that_changes(void) {
    unsigned seed = 20261128;
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t taken[4096];
        connect_within(0);
        uint8_t *mirror = hws_rdma_mirror(worker.rdma);
        for (int i = 0; i < 65536; i++) {
            mirror[i] = (uint8_t) rand_r(&seed);
        }
        uint32_t tail = 0;
        for (int i = 0; i < 50 && guest->ops->fault(guest) == NULL; i++) {
            post_raw((uint32_t) rand_r(&seed) % (HWS_MIRROR_BYTES - 65536), 1 + (uint32_t) rand_r(&seed) % 65536, false,
                     0);
            tail += (uint32_t) rand_r(&seed) % 600;
            uint32_t imm = rand_r(&seed) % 8 == 0 ? (uint32_t) rand_r(&seed) << 1 : make_imm(HWS_RDMA_TAIL, tail);
            post_raw(0, 0, true, imm);
            guest->ops->set_timeout(guest, 5);
            receive_words(taken, 1 + (size_t) rand_r(&seed) % sizeof taken);
        }
        hang_up();
    }
}
#endif

static void should_connect_only_with_a_sound_end(void) {
    static const struct {
        size_t offset;
        uint64_t value;
        size_t bytes;
    } damages[] = {
        {offsetof(hws_rdma_end_t, queue_pair), 1u << 24, 4},
        {offsetof(hws_rdma_end_t, first_packet), 1u << 24, 4},
        {offsetof(hws_rdma_end_t, lid), 1u << 16, 4},
        {offsetof(hws_rdma_end_t, mtu), 0, 4},
        {offsetof(hws_rdma_end_t, mtu), 6, 4},
        {offsetof(hws_rdma_end_t, link_layer), IBV_LINK_LAYER_INFINIBAND, 4},
        {offsetof(hws_rdma_end_t, bytes), HWS_MIRROR_BYTES - 1, 8},
        {offsetof(hws_rdma_end_t, address), UINT64_MAX - 4096, 8},
        {offsetof(hws_rdma_end_t, reads), 0, 4},
        {offsetof(hws_rdma_end_t, reads), 256, 4},
        {offsetof(hws_rdma_end_t, reserved), 1, 4},
    };
    uint8_t sound[HWS_RDMA_END_BYTES], own[HWS_RDMA_END_BYTES];
    char error[512];
    hws_rdma_t *other = fake_rdma_open(true, 0, sound);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        uint8_t damaged[HWS_RDMA_END_BYTES];
        hws_rdma_t *rdma = fake_rdma_open(false, 0, own);
        memcpy(damaged, sound, sizeof damaged);
        memcpy(damaged + damages[i].offset, &damages[i].value, damages[i].bytes);
        HWS_CHECK(hws_rdma_connect(rdma, damaged, error, sizeof error) == -1);
        HWS_CHECK(hws_rdma_connect(rdma, sound, error, sizeof error) == 0);
        hws_rdma_close(rdma);
    }
    hws_rdma_close(other);
}

static void should_say_why_there_is_no_device(void) {
    char error[512];
    hws_rdma_options_t options = {.device = "none_0", .gid_index = -1};
    HWS_CHECK(hws_rdma_open(&options, error, sizeof error) == NULL);
    HWS_CHECK(strcmp(error, "there is no RDMA device none_0") == 0);
    options = (hws_rdma_options_t) {.port = 7, .gid_index = -1};
    HWS_CHECK(hws_rdma_open(&options, error, sizeof error) == NULL && strstr(error, "active port") != NULL);
    options = (hws_rdma_options_t) {.gid_index = 200};
    HWS_CHECK(hws_rdma_open(&options, error, sizeof error) == NULL && strstr(error, "index 200") != NULL);
}

static void *receive_one(void *result_p) {
    uint64_t word;
    *(ssize_t *) result_p = receive_words(&word, sizeof word);
    return NULL;
}

static ssize_t receive_while(void (*act)(void)) {
    pthread_t thread;
    ssize_t result = 0;
    HWS_CHECK(pthread_create(&thread, NULL, receive_one, &result) == 0);
    act();
    HWS_CHECK(pthread_join(thread, NULL) == 0);
    return result;
}

static void end_connection(void) {
    close(worker.connection);
    worker.connection = -1;
}

static void write_beside(void) {
    HWS_CHECK(write(worker.connection, "x", 1) == 1);
}

static void shut_down(void) {
    guest->ops->shutdown(guest);
}

static void should_end_with_the_connection(void) {
    connect_within(0);
    HWS_CHECK(receive_while(end_connection) == -1);
    HWS_CHECK(strstr(guest->ops->fault(guest), "closed the session's connection") != NULL);
    hang_up();
    connect_within(0);
    HWS_CHECK(receive_while(write_beside) == -1);
    HWS_CHECK(strstr(guest->ops->fault(guest), "bytes beside RDMA") != NULL);
    chunks->begin(0);
    HWS_CHECK(chunks->wait(0) == HWS_LOST_STATUS && atomic_load(&failed_status) == HWS_LOST_STATUS);
    hang_up();
    connect_within(0);
    HWS_CHECK(receive_while(shut_down) == -1);
    HWS_CHECK(guest->ops->fault(guest) == NULL);
    HWS_CHECK(fake_rdma_await(&worker) && hws_rdma_words(worker.rdma)->peer_left == 1);
    hang_up();
}

/* The guest gets the bytes that the worker sent before it left. */
static void should_deliver_what_came_before_the_end(void) {
    uint64_t word = 42, got = 0;
    connect_within(0);
    fake_rdma_write(&worker, &word, sizeof word);
    fake_rdma_end(&worker);
    HWS_CHECK(receive_words(&got, sizeof got) == sizeof got && got == 42);
    HWS_CHECK(receive_words(&got, sizeof got) == -1 && errno == ECONNRESET);
    hang_up();
}

static char link_down[256];

static void take_link_down(void) {
    int file = open(link_down, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    HWS_CHECK(file >= 0);
    close(file);
}

static void should_outlast_a_link_that_is_down_for_less_than_the_limit(void) {
    uint64_t word = 42, got = 0;
    connect_within(LONG_RETRY_MS);
    take_link_down();
    send_words(&word, sizeof word);
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(fake_rdma_await(&worker) && hws_ring_available(&worker.command) == 0);
    }
    HWS_CHECK(unlink(link_down) == 0);
    HWS_CHECK(fake_rdma_read(&worker, &got, sizeof got) && got == 42);
    hang_up();
}

static void should_end_when_a_link_is_down_for_longer(void) {
    uint64_t word = 42;
    connect_within(SHORT_RETRY_MS);
    take_link_down();
    send_words(&word, sizeof word);
    HWS_CHECK(receive_words(&word, sizeof word) == -1 && errno == ECONNRESET);
    HWS_CHECK(strstr(guest->ops->fault(guest), "the RDMA connection is lost") != NULL);
    HWS_CHECK(guest->ops->send(guest, &(struct iovec) {&word, sizeof word}, 1) == -1);
    HWS_CHECK(unlink(link_down) == 0);
    hang_up();
}

/* The device looks at the link now and then. */
static void await_port(hws_rdma_t *rdma, enum ibv_port_state state) {
    struct ibv_port_attr port;
    do {
        HWS_CHECK(rdma->verbs->ibv_query_port(rdma->context, 1, &port) == 0);
        sched_yield();
    } while (port.state != state);
}

/* A worker that starts while the link is down serves a session that comes later. A guest has no session to wait for. */
static void should_open_the_device_of_a_worker_without_a_link(void) {
    char error[512];
    uint8_t end[HWS_RDMA_END_BYTES];
    const hws_rdma_options_t of_guest = {.gid_index = -1}, of_worker = {.gid_index = -1, .is_worker = true};
    take_link_down();
    hws_rdma_t *rdma = hws_rdma_open(&of_worker, error, sizeof error);
    HWS_CHECK(rdma != NULL);
    await_port(rdma, IBV_PORT_DOWN);
    hws_rdma_close(rdma);
    HWS_CHECK(hws_rdma_open(&of_guest, error, sizeof error) == NULL && strstr(error, "active port") != NULL);
    rdma = hws_rdma_open(&of_worker, error, sizeof error);
    HWS_CHECK(rdma != NULL && hws_rdma_prepare(rdma, end, error, sizeof error) == -1);
    HWS_CHECK(strcmp(error, "the RDMA device hawser_test0 has no active port") == 0);
    HWS_CHECK(unlink(link_down) == 0);
    await_port(rdma, IBV_PORT_ACTIVE);
    HWS_CHECK(hws_rdma_prepare(rdma, end, error, sizeof error) == 0 && rdma->port == 1 && rdma->gid_index == 3);
    hws_rdma_close(rdma);
}

/* Registered memory ---------------------------------------------------------------------------------------------- */

#define BLOCK_BYTES (3u << 20)

static uint64_t address_of(const void *memory) {
    return (uint64_t) (uintptr_t) memory;
}

/* A record that comes later finds the bytes, at places that no mirror has. */
static void should_write_registered_memory_before_later_records(void) {
    static uint8_t here[BLOCK_BYTES], there[BLOCK_BYTES];
    connect_within(0);
    hws_rdma_memory_t *target = register_at(guest_end(), there, sizeof there, HWS_RDMA_PEER_WRITES);
    hws_rdma_memory_t *source = register_at(worker.rdma, here, sizeof here, 0);
    uint64_t last = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint32_t at = (uint32_t) round * 4096 + 3, bytes = round % 2 == 0 ? 1u << 20 : (uint32_t) round;
        uint64_t ticket, word = round;
        memset(here + at, (int) round, bytes);
        HWS_CHECK(
            hws_rdma_write(worker.rdma, source, here + at, bytes, address_of(there + at), hws_rdma_key(target), &ticket)
            == 0);
        HWS_CHECK(ticket > last);
        last = ticket;
        fake_rdma_write(&worker, &word, sizeof word);
        HWS_CHECK(receive_all((uint8_t *) &word, sizeof word) && word == round);
        HWS_CHECK(memcmp(here + at, there + at, bytes) == 0 && there[at + bytes] == 0);
        memset(there, 0, sizeof there);
    }
    while (hws_rdma_done(worker.rdma) < last) {
        HWS_CHECK(hws_rdma_progress(worker.rdma) >= 0);
    }
    hws_rdma_unregister(worker.rdma, source, 0);
    hws_rdma_unregister(guest_end(), target, 0);
    HWS_CHECK(hws_rdma_fault(worker.rdma) == NULL);
    hang_up();
}

static void should_carry_registered_memory_by_chunks(void) {
    static uint8_t memory[BLOCK_BYTES];
    uint64_t word = 7;
    connect_within(0);
    void *registered = register_at(guest_end(), memory, sizeof memory, 0);
    uint8_t *there = hws_rdma_mirror(worker.rdma) + chunks->offset + 2 * chunks->chunk_bytes;
    memset(memory + 5, 0x5a, chunks->chunk_bytes);
    chunks->begin(2);
    HWS_CHECK(chunks->put_from(registered, memory + 5, 2, (uint32_t) chunks->chunk_bytes) == 0);
    send_words(&word, sizeof word);
    HWS_CHECK(fake_rdma_read(&worker, &word, sizeof word) && word == 7);
    HWS_CHECK(memcmp(there, memory + 5, chunks->chunk_bytes) == 0);
    HWS_CHECK(hws_rdma_return_chunk(worker.rdma, 2, 0, 0, 0) == 0 && chunks->wait(2) == 0);
    HWS_CHECK(chunks->bytes[2 * chunks->chunk_bytes] == 0); /* its own chunk has carried nothing */
    hang_up();                                              /* closing ends the registration */
}

/* A sleeper learns of the end of a write, which is no message of the other end. */
static void should_wake_a_sleeper_when_a_write_is_done(void) {
    static uint8_t here[BLOCK_BYTES], there[BLOCK_BYTES];
    connect_within(LONG_RETRY_MS);
    hws_rdma_memory_t *target = register_at(guest_end(), there, sizeof there, HWS_RDMA_PEER_WRITES);
    hws_rdma_memory_t *source = register_at(worker.rdma, here, sizeof here, 0);
    uint64_t ticket;
    take_link_down();
    HWS_CHECK(hws_rdma_write(worker.rdma, source, here, 1 << 20, address_of(there), hws_rdma_key(target), &ticket)
              == 0);
    HWS_CHECK(hws_rdma_arm(worker.rdma) == 0 && hws_rdma_done(worker.rdma) < ticket);
    HWS_CHECK(unlink(link_down) == 0);
    struct pollfd looked = {.fd = hws_rdma_channel(worker.rdma), .events = POLLIN};
    HWS_CHECK(poll(&looked, 1, 2 * LONG_RETRY_MS) == 1);
    hws_rdma_awake(worker.rdma);
    HWS_CHECK(hws_rdma_done(worker.rdma) == ticket);
    /* With nothing under way the queue of sends is not armed. */
    HWS_CHECK(hws_rdma_arm(worker.rdma) == 0 && poll(&looked, 1, 0) == 0);
    hang_up();
}

static void *restore_link(void *unused) {
    nanosleep(&(struct timespec) {.tv_nsec = 100000000}, NULL); /* any time will do: the other thread waits for it */
    HWS_CHECK(unlink(link_down) == 0);
    return unused;
}

/* The program frees the memory next. */
static void should_unregister_only_after_the_device_has_read(void) {
    static uint8_t here[BLOCK_BYTES], there[BLOCK_BYTES];
    pthread_t thread;
    connect_within(LONG_RETRY_MS);
    hws_rdma_memory_t *target = register_at(worker.rdma, there, sizeof there, HWS_RDMA_PEER_WRITES);
    hws_rdma_memory_t *source = register_at(guest_end(), here, sizeof here, 0);
    uint64_t ticket, word = 1;
    memset(here, 0x77, sizeof here);
    take_link_down();
    HWS_CHECK(hws_rdma_write(guest_end(), source, here, sizeof here, address_of(there), hws_rdma_key(target), &ticket)
              == 0);
    HWS_CHECK(pthread_create(&thread, NULL, restore_link, NULL) == 0);
    hws_rdma_unregister(guest_end(), source, 2 * LONG_RETRY_MS);
    HWS_CHECK(hws_rdma_done(guest_end()) >= ticket);
    memset(here, 0, sizeof here);
    HWS_CHECK(pthread_join(thread, NULL) == 0);
    send_words(&word, sizeof word);
    HWS_CHECK(fake_rdma_read(&worker, &word, sizeof word));
    HWS_CHECK(there[0] == 0x77 && memcmp(there, there + 1, sizeof there - 1) == 0);
    hang_up();
}

typedef struct wrong_request {
    uint32_t access; /* to the guest's memory */
    bool reads, unregistered;
    uint32_t key_change;
    uint32_t own_access;
    int64_t here, there; /* beside the memory's begin */
} wrong_request_t;

/* The worker's adapter reports it, or the library before that. */
static void expect_loss_of(const wrong_request_t *wrong) {
    static uint8_t here[8192], there[8192];
    connect_within(SHORT_RETRY_MS);
    hws_rdma_memory_t *target = register_at(guest_end(), there, 4096, wrong->access);
    hws_rdma_memory_t *own = register_at(worker.rdma, here, 4096, wrong->own_access);
    uint32_t key = hws_rdma_key(target) + wrong->key_change;
    uint64_t at = address_of(there) + (uint64_t) wrong->there;
    if (wrong->unregistered) {
        hws_rdma_unregister(guest_end(), target, 0);
    }
    memset(wrong->reads ? there : here, 1, sizeof there);
    int rc = wrong->reads ? hws_rdma_read(worker.rdma, own, here + wrong->here, 64, at, key, NULL)
                          : hws_rdma_write(worker.rdma, own, here + wrong->here, 64, at, key, NULL);
    HWS_CHECK(rc == (wrong->here == 0 ? 0 : -1));
    while (hws_rdma_fault(worker.rdma) == NULL) {
        hws_rdma_done(worker.rdma);
    }
    const uint8_t *kept = wrong->reads ? here : there;
    HWS_CHECK(kept[0] == 0 && memcmp(kept, kept + 1, sizeof there - 1) == 0);
    memset(wrong->reads ? there : here, 0, sizeof there);
    hang_up();
}

static void should_end_after_a_wrong_write(void) {
    const uint32_t right = HWS_RDMA_PEER_WRITES;
    expect_loss_of(&(wrong_request_t) {.access = right, .key_change = 1});
    expect_loss_of(&(wrong_request_t) {.access = right, .there = -1});
    expect_loss_of(&(wrong_request_t) {.access = right, .there = 4096 - 63});
    expect_loss_of(&(wrong_request_t) {.access = right, .unregistered = true});
    expect_loss_of(&(wrong_request_t) {.access = HWS_RDMA_PEER_READS});
    expect_loss_of(&(wrong_request_t) {.access = right, .here = -1});
    expect_loss_of(&(wrong_request_t) {.access = right, .here = 4096 - 63});
}

static void should_end_after_a_wrong_read(void) {
    const uint32_t right = HWS_RDMA_PEER_READS, own = HWS_RDMA_FILLED;
    expect_loss_of(&(wrong_request_t) {.reads = true, .access = right, .own_access = own, .key_change = 1});
    expect_loss_of(&(wrong_request_t) {.reads = true, .access = right, .own_access = own, .there = -1});
    expect_loss_of(&(wrong_request_t) {.reads = true, .access = right, .own_access = own, .there = 4096 - 63});
    expect_loss_of(&(wrong_request_t) {.reads = true, .access = right, .own_access = own, .unregistered = true});
    expect_loss_of(&(wrong_request_t) {.reads = true, .access = HWS_RDMA_PEER_WRITES, .own_access = own});
    expect_loss_of(&(wrong_request_t) {.reads = true, .access = right, .own_access = own, .here = 4096 - 63});
    expect_loss_of(&(wrong_request_t) {.reads = true, .access = right, .own_access = HWS_RDMA_PEER_READS});
}

/* A record that comes later is there first or not: only the ticket tells of the bytes. */
static void should_read_registered_memory(void) {
    static uint8_t here[BLOCK_BYTES], there[BLOCK_BYTES];
    connect_within(0);
    hws_rdma_memory_t *source = register_at(guest_end(), there, sizeof there, HWS_RDMA_PEER_READS);
    hws_rdma_memory_t *target = register_at(worker.rdma, here, sizeof here, HWS_RDMA_FILLED);
    hws_rdma_counts_t before = counts_of(worker.rdma);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint32_t at = (uint32_t) round * 4096 + 3, bytes = round % 2 == 0 ? 1u << 20 : (uint32_t) round;
        uint64_t ticket, word = round;
        memset(there + at, (int) round, bytes);
        HWS_CHECK(
            hws_rdma_read(worker.rdma, target, here + at, bytes, address_of(there + at), hws_rdma_key(source), &ticket)
            == 0);
        fake_rdma_write(&worker, &word, sizeof word);
        HWS_CHECK(receive_all((uint8_t *) &word, sizeof word) && word == round);
        while (hws_rdma_done(worker.rdma) < ticket) {
            HWS_CHECK(hws_rdma_progress(worker.rdma) >= 0);
        }
        HWS_CHECK(memcmp(here + at, there + at, bytes) == 0 && here[at + bytes] == 0);
        memset(here, 0, sizeof here);
        memset(there, 0, sizeof there);
    }
    hws_rdma_counts_t after = counts_of(worker.rdma);
    HWS_CHECK(after.bytes_read - before.bytes_read == (uint64_t) ROUNDS / 2 * (1u << 20) + ROUNDS * ROUNDS / 4);
    HWS_CHECK(after.bytes_out - before.bytes_out == ROUNDS * sizeof(uint64_t));
    HWS_CHECK(hws_rdma_fault(worker.rdma) == NULL);
    hang_up();
}

/* The device knows the memory by a file alone: nothing of this process lies at its address. */
static void should_carry_memory_of_a_gpu(void) {
    static uint8_t here[BLOCK_BYTES];
    const uint64_t device = 0x200000000000;
    char error[256] = "";
    uint64_t ticket;
    connect_within(0);
    int file = memfd_create("device", MFD_CLOEXEC);
    HWS_CHECK(file >= 0 && ftruncate(file, BLOCK_BYTES) == 0);
    uint8_t *seen = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    HWS_CHECK(seen != MAP_FAILED);
    hws_rdma_memory_t *memory = hws_rdma_register_device(worker.rdma, device, BLOCK_BYTES, file, error, sizeof error);
    HWS_CHECK(memory != NULL && close(file) == 0);
    hws_rdma_memory_t *block = register_at(guest_end(), here, sizeof here, HWS_RDMA_PEER_READS | HWS_RDMA_PEER_WRITES);
    memset(here, 0x3c, sizeof here);
    HWS_CHECK(hws_rdma_read(worker.rdma, memory, (void *) (uintptr_t) (device + 4096), 1 << 20, address_of(here),
                            hws_rdma_key(block), &ticket)
              == 0);
    while (hws_rdma_done(worker.rdma) < ticket) {
    }
    HWS_CHECK(seen[4095] == 0 && seen[4096] == 0x3c && memcmp(seen + 4096, here, 1 << 20) == 0);
    HWS_CHECK(hws_rdma_write(worker.rdma, memory, (void *) (uintptr_t) device, 4096, address_of(here),
                             hws_rdma_key(block), &ticket)
              == 0);
    while (hws_rdma_done(worker.rdma) < ticket) {
    }
    HWS_CHECK(here[0] == 0 && here[4095] == 0 && here[4096] == 0x3c);
    HWS_CHECK(hws_rdma_write(worker.rdma, memory, (void *) (uintptr_t) (device + BLOCK_BYTES - 4095), 4096,
                             address_of(here), hws_rdma_key(block), NULL)
              == -1);
    hws_rdma_unregister(worker.rdma, memory, 0);
    HWS_CHECK(hws_rdma_register_device(worker.rdma, device, BLOCK_BYTES, file, error, sizeof error) == NULL);
    HWS_CHECK(strstr(error, strerror(EBADF)) != NULL);
    HWS_CHECK(munmap(seen, BLOCK_BYTES) == 0);
    hang_up();
}

/* Only the worker reads. Its connection serves no read, even of memory that would admit one. */
static void should_refuse_reads_of_a_guest(void) {
    static uint8_t here[4096], there[4096];
    connect_within(SHORT_RETRY_MS);
    hws_rdma_memory_t *source = register_at(worker.rdma, there, sizeof there, HWS_RDMA_PEER_READS);
    hws_rdma_memory_t *target = register_at(guest_end(), here, sizeof here, HWS_RDMA_FILLED);
    memset(there, 1, sizeof there);
    HWS_CHECK(hws_rdma_read(guest_end(), target, here, 64, address_of(there), hws_rdma_key(source), NULL) == 0);
    while (hws_rdma_fault(guest_end()) == NULL) {
        hws_rdma_done(guest_end());
    }
    HWS_CHECK(here[0] == 0);
    hang_up();
}

/* With the limit of locked memory, which is mostly the reason. */
static void should_say_why_memory_is_refused(void) {
    char error[512];
    uint8_t end[HWS_RDMA_END_BYTES];
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit limit;
    hws_rdma_t *rdma = fake_rdma_open(false, 0, end);
    HWS_CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    limit.rlim_cur = 65536;
    HWS_CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    /* The range wraps. */
    HWS_CHECK(hws_rdma_register(rdma, end, UINT64_MAX - 1023, HWS_RDMA_PEER_WRITES, error, sizeof error) == NULL);
    HWS_CHECK(strstr(error,
                     " KiB cannot be registered with the RDMA device hawser_test0: Invalid argument (limit of "
                     "locked memory: 64 KiB)")
              != NULL);
    if (setrlimit(RLIMIT_MEMLOCK, &none) == 0) {
        HWS_CHECK(hws_rdma_register(rdma, end, 0, HWS_RDMA_PEER_WRITES, error, sizeof error) == NULL);
        HWS_CHECK(strstr(error, "(limit of locked memory: none)") != NULL);
    }
    hws_rdma_close(rdma);
}

int main(void) {
    const char *fabric = getenv("HAWSER_TEST_FABRIC");
    HWS_CHECK(fabric != NULL);
    snprintf(link_down, sizeof link_down, "%s/link-down", fabric);
    unlink(link_down); /* of a test that was ended */
    HWS_RUN(should_carry_chunks_there_and_back);
    HWS_RUN(should_stop_at_the_receives_of_an_end_that_does_not_read);
    HWS_RUN(should_send_as_many_messages_as_the_model_says);
    HWS_RUN(should_end_after_a_broken_rule);
    HWS_RUN(should_end_after_a_write_beside_the_mirror);
#ifndef __SANITIZE_THREAD__
    HWS_RUN(should_survive_a_mirror_that_changes);
#endif
    HWS_RUN(should_connect_only_with_a_sound_end);
    HWS_RUN(should_say_why_there_is_no_device);
    HWS_RUN(should_end_with_the_connection);
    HWS_RUN(should_deliver_what_came_before_the_end);
    HWS_RUN(should_outlast_a_link_that_is_down_for_less_than_the_limit);
    HWS_RUN(should_end_when_a_link_is_down_for_longer);
    HWS_RUN(should_open_the_device_of_a_worker_without_a_link);
    HWS_RUN(should_write_registered_memory_before_later_records);
    HWS_RUN(should_carry_registered_memory_by_chunks);
    HWS_RUN(should_wake_a_sleeper_when_a_write_is_done);
    HWS_RUN(should_unregister_only_after_the_device_has_read);
    HWS_RUN(should_end_after_a_wrong_write);
    HWS_RUN(should_read_registered_memory);
    HWS_RUN(should_end_after_a_wrong_read);
    HWS_RUN(should_carry_memory_of_a_gpu);
    HWS_RUN(should_refuse_reads_of_a_guest);
    HWS_RUN(should_say_why_memory_is_refused);
    return 0;
}

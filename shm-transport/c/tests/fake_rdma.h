/*
 * The worker's end of a session over RDMA, in this process, by the device of libibverbs for tests. The session's
 * connection is a socket pair.
 */
#ifndef FAKE_RDMA_H
#define FAKE_RDMA_H

#include "../rdma/hws_rdma_carrier.h"
#include "../shm/hws_ring.h"
#include "../tcp/hws_tcp.h"
#include "hws_test.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct fake_end {
    hws_rdma_t *rdma;
    int connection; /* -1: closed */
    hws_ring_t command, reply;
    uint64_t sent;
} fake_end_t;

static hws_rdma_t *fake_rdma_open(bool is_worker, uint32_t retry_ms, uint8_t end_p[HWS_RDMA_END_BYTES]) {
    char error[512] = "";
    const hws_rdma_options_t options = {.gid_index = -1, .is_worker = is_worker, .retry_ms = retry_ms};
    hws_rdma_t *rdma = hws_rdma_open(&options, error, sizeof error);
    if (rdma == NULL || hws_rdma_prepare(rdma, end_p, error, sizeof error) != 0) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return rdma;
}

/* Makes a worker of an end. */
static void fake_rdma_attach(fake_end_t *end, hws_rdma_t *rdma) {
    hws_rdma_words_t *words = hws_rdma_words(rdma);
    uint8_t *mirror = hws_rdma_mirror(rdma);
    *end = (fake_end_t) {.rdma = rdma, .connection = -1};
    hws_ring_attach_reader(&end->command, mirror + HWS_MIRROR_COMMAND_OFFSET, HWS_MIRROR_RING_BYTES, &words->own_head,
                           &words->peer_tail);
    hws_ring_attach_writer(&end->reply, mirror + HWS_MIRROR_REPLY_OFFSET, HWS_MIRROR_RING_BYTES, &words->peer_head,
                           &words->own_tail);
}

/* Makes both ends. Returns the guest's carrier. */
static inline hws_carrier_t *fake_rdma_connect_within(fake_end_t *end, uint32_t retry_ms) {
    uint8_t guest[HWS_RDMA_END_BYTES], worker[HWS_RDMA_END_BYTES];
    char error[512];
    int ends[2];
    hws_rdma_t *rdma = fake_rdma_open(false, retry_ms, guest);
    fake_rdma_attach(end, fake_rdma_open(true, retry_ms, worker));
    HWS_CHECK(hws_rdma_connect(end->rdma, guest, error, sizeof error) == 0);
    HWS_CHECK(hws_rdma_connect(rdma, worker, error, sizeof error) == 0);
    HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    end->connection = ends[1];
    hws_carrier_t *carrier = hws_rdma_adopt(rdma, hws_tcp_adopt(ends[0]));
    HWS_CHECK(carrier != NULL);
    return carrier;
}

static inline hws_carrier_t *fake_rdma_connect(fake_end_t *end) {
    return fake_rdma_connect_within(end, 0);
}

/* Sleeps until the guest has sent something. Returns false when the connection is lost. */
static bool fake_rdma_await(fake_end_t *end) {
    if (hws_rdma_progress(end->rdma) == 0 && hws_rdma_arm(end->rdma) == 0 && hws_rdma_progress(end->rdma) == 0) {
        struct pollfd looked = {.fd = hws_rdma_channel(end->rdma), .events = POLLIN};
        poll(&looked, 1, 100);
        hws_rdma_awake(end->rdma);
    }
    return hws_rdma_fault(end->rdma) == NULL;
}

static bool fake_rdma_read(fake_end_t *end, void *target, size_t bytes) {
    for (uint8_t *p = target; bytes > 0;) {
        uint64_t available = hws_ring_available(&end->command);
        HWS_CHECK(available != HWS_RING_CORRUPT);
        if (available == 0) {
            if (!fake_rdma_await(end)) {
                return false;
            }
            continue;
        }
        uint64_t part = available < bytes ? available : bytes;
        hws_ring_take(&end->command, p, part);
        hws_ring_release(&end->command);
        hws_rdma_taken(end->rdma, end->command.published);
        p += part;
        bytes -= part;
    }
    return true;
}

/* Gives up when the guest has gone. */
static void fake_rdma_write(fake_end_t *end, const void *bytes, size_t count) {
    for (const uint8_t *p = bytes; count > 0;) {
        uint64_t room = hws_ring_room(&end->reply);
        HWS_CHECK(room != HWS_RING_CORRUPT);
        if (room == 0 || hws_rdma_can_send(end->rdma) <= 0) {
            if (!fake_rdma_await(end)
                || __atomic_load_n(&hws_rdma_words(end->rdma)->peer_left, __ATOMIC_ACQUIRE) != 0) {
                return;
            }
            continue;
        }
        uint64_t part = room < count ? room : count;
        hws_ring_put(&end->reply, p, part);
        hws_ring_commit(&end->reply);
        if (end->reply.published != end->sent) {
            hws_rdma_send_tail(end->rdma, end->sent, end->reply.published);
            end->sent = end->reply.published;
        }
        p += part;
        count -= part;
    }
}

/* The worker sends nothing more. */
static inline void fake_rdma_end(fake_end_t *end) {
    if (end->connection >= 0) {
        hws_rdma_leave(end->rdma, 1000);
        close(end->connection);
        end->connection = -1;
    }
}

static inline void fake_rdma_hang_up(fake_end_t *end) {
    if (end->rdma != NULL) {
        fake_rdma_end(end);
        hws_rdma_close(end->rdma);
        end->rdma = NULL;
    }
}

#endif

/*
 * The other end of a channel, in this process: the test sends real bytes over a socket pair, a region or a mirror. Every
 * test runs over each carrier (fake_run_all).
 */
#ifndef FAKE_WORKER_H
#define FAKE_WORKER_H

#include "../hws_channel_internal.h"
#include "../tcp/hws_tcp.h"
#include "fake_host.h"
#include "fake_rdma.h"
#include "hws_test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE_OPCODE 0x00010001u
#define FAKE_WINDOW_BYTES (4u << 20)

static bool fake_over_shm, fake_over_rdma;   /* the carrier under test; neither: TCP */
static char fake_sysfs[64];                  /* folder of its region's device, "" for a region in a file */
static int fake_fd = -1;                     /* the worker's end, over TCP */
static fake_slot_t fake_slot;                /* the same, over a region */
static fake_end_t fake_end;                  /* the same, over RDMA */
static uint64_t fake_sequence;               /* of the next expected record */
static void (*fake_callback)(uint64_t, int); /* the action of run_callback */
static _Atomic int fake_failed_status;

static void fake_run_callback(uint64_t id, int status) {
    fake_callback(id, status);
}

static void fake_failed(int status) {
    atomic_store(&fake_failed_status, status);
}

static hws_carrier_t *fake_connect_shm(void) {
    hws_config_t config = fake_config();
    if (fake_sysfs[0] != '\0') {
        config.region[0] = '\0';
        snprintf(config.sysfs, sizeof config.sysfs, "%s", fake_sysfs);
    }
    hws_welcome_t welcome;
    bool found;
    char error[512];
    hws_carrier_t *carrier = hws_shm_connect(&config, 0, &welcome, &found, error, sizeof error);
    HWS_CHECK(carrier != NULL && welcome.next_sequence == 3);
    fake_slot_adopt(&fake_slot);
    return carrier;
}

static hws_carrier_t *fake_connect_tcp(void) {
    int ends[2];
    HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    fake_fd = ends[1];
    return hws_tcp_adopt(ends[0]);
}

static void fake_open_with(uint64_t window_bytes) {
    hws_carrier_t *carrier = fake_over_shm ? fake_connect_shm()
        : fake_over_rdma                   ? fake_rdma_connect(&fake_end)
                                           : fake_connect_tcp();
    fake_sequence = 3;
    atomic_store(&fake_failed_status, 0);
    hws_welcome_t welcome = {.device_count = 1,
                             .credit_window_bytes = window_bytes,
                             .max_record_bytes = HWS_MAX_RECORD_BYTES,
                             .max_bulk_bytes = HWS_MAX_BULK_BYTES,
                             .next_sequence = 3};
    hws_channel_hooks_t hooks = {.run_callback = fake_run_callback, .failed = fake_failed};
    HWS_CHECK(hws_channel_open(carrier, &welcome, &hooks) == 0);
}

static inline void fake_open(void) {
    fake_open_with(FAKE_WINDOW_BYTES);
}

/* The worker sends nothing more. */
static inline void fake_end_writing(void) {
    if (fake_over_shm) {
        fake_slot_end(&fake_slot, HWS_HOST_ENDED, "the test has ended it");
    } else if (fake_over_rdma) {
        fake_rdma_end(&fake_end);
    } else {
        shutdown(fake_fd, SHUT_WR);
    }
}

static void fake_hang_up(void) {
    if (fake_over_shm && fake_slot.base != NULL) {
        fake_end_writing();
        fake_slot.base = NULL;
    }
    if (fake_over_rdma) {
        fake_rdma_hang_up(&fake_end);
    }
    if (fake_fd >= 0) {
        close(fake_fd);
        fake_fd = -1;
    }
}

static inline void fake_close(void) {
    hws_channel_close(HWS_STATUS_DEINITIALIZED);
    fake_hang_up();
    hws_channel_join();
    atomic_store(&fake_host.busy, -1);
}

static void fake_read(void *target, size_t bytes) {
    if (fake_over_shm) {
        HWS_CHECK(fake_slot_read(&fake_slot, target, bytes));
        return;
    }
    if (fake_over_rdma) {
        HWS_CHECK(fake_rdma_read(&fake_end, target, bytes));
        return;
    }
    for (uint8_t *p = target; bytes > 0;) {
        ssize_t n = read(fake_fd, p, bytes);
        HWS_CHECK(n > 0);
        p += n;
        bytes -= (size_t) n;
    }
}

/* Reads one record and checks the rules for all records. */
static hws_record_header_t fake_take(uint8_t *payload, size_t capacity) {
    hws_record_header_t header;
    fake_read(&header, sizeof header);
    HWS_CHECK(header.length_bytes >= HWS_HEADER_BYTES && header.length_bytes % 8 == 0);
    HWS_CHECK((size_t) header.length_bytes - HWS_HEADER_BYTES <= capacity);
    HWS_CHECK(header.sequence == fake_sequence++);
    HWS_CHECK(header.reserved == 0);
    fake_read(payload, (size_t) header.length_bytes - HWS_HEADER_BYTES);
    return header;
}

static void fake_write(const void *bytes, size_t count) {
    if (fake_over_shm) {
        fake_slot_write(&fake_slot, bytes, count); /* fails if the channel has refused earlier bytes */
        return;
    }
    if (fake_over_rdma) {
        fake_rdma_write(&fake_end, bytes, count); /* as above */
        return;
    }
    for (const uint8_t *p = bytes; count > 0;) {
        ssize_t n = send(fake_fd, p, count, MSG_NOSIGNAL);
        if (n < 0) {
            return; /* the channel has already refused earlier bytes */
        }
        p += n;
        count -= (size_t) n;
    }
}

static void fake_put(uint32_t opcode, uint64_t sequence, uint32_t status, const void *payload, uint32_t bytes) {
    uint8_t padding[8] = {0};
    hws_record_header_t header = {.length_bytes = (int32_t) (HWS_HEADER_BYTES + hws_pad8(bytes)),
                                  .opcode = opcode,
                                  .sequence = sequence,
                                  .flags = status};
    fake_write(&header, sizeof header);
    fake_write(payload, bytes);
    fake_write(padding, hws_pad8(bytes) - bytes);
}

static inline void fake_reply(const hws_record_header_t *request, uint32_t status, const void *payload,
                              uint32_t bytes) {
    fake_put(request->opcode | HWS_REPLY_BIT, request->sequence, status, payload, bytes);
}

static inline void fake_data(uint64_t sequence, uint64_t offset, const void *bytes, uint32_t count) {
    uint8_t *payload = calloc(1, 16 + (size_t) count);
    memcpy(payload, &offset, sizeof offset);
    memcpy(payload + 8, &count, sizeof count);
    memcpy(payload + 16, bytes, count);
    fake_put(HWS_CONTROL_DATA, sequence, 0, payload, 16 + count);
    free(payload);
}

typedef struct fake_thread {
    pthread_t thread;
    void (*main)(void *);
    void *argument;
} fake_thread_t;

static void *fake_thread_main(void *argument) {
    fake_thread_t *self = argument;
    self->main(self->argument);
    return NULL;
}

static inline void fake_start(fake_thread_t *thread, void (*main)(void *), void *argument) {
    thread->main = main;
    thread->argument = argument;
    HWS_CHECK(pthread_create(&thread->thread, NULL, fake_thread_main, thread) == 0);
}

static inline void fake_join(fake_thread_t *thread) {
    HWS_CHECK(pthread_join(thread->thread, NULL) == 0);
}

/* Runs all tests of a file over each carrier. */
static inline void fake_run_all(void (*run)(void)) {
    fprintf(stderr, "over tcp\n");
    run();
    fprintf(stderr, "over rdma\n");
    fake_over_rdma = true;
    run();
    fake_over_rdma = false;
    fprintf(stderr, "over shm, as a process\n");
    fake_over_shm = true;
    fake_host_start(16u << 20, 4, HOST_SERVES);
    run();
    fprintf(stderr, "over shm, as a machine\n");
    strcpy(fake_sysfs, "/tmp/hawser-test-XXXXXX");
    fake_sysfs_make(fake_sysfs, fake_host.path);
    atomic_store(&fake_host.liveness, HWS_LIVENESS_BEAT);
    run();
    fake_sysfs_remove(fake_sysfs);
    fake_host_stop();
}

#endif

/* Sessions that move between brokers: the worker's end, with the calls of the guest's threads. */
#ifndef MOVING_SESSION_H
#define MOVING_SESSION_H

#include "../tcp/hws_move.h"
#include "fake_broker.h"
#include "fake_worker.h"

#include <time.h>

static uint8_t scratch[HWS_MAX_RECORD_BYTES];
static _Atomic unsigned reached; /* events so far */

static void note_reached(uint64_t event, uint64_t sequence) {
    (void) event, (void) sequence;
    atomic_fetch_add(&reached, 1);
}

static hws_config_t configure(void) {
    return (hws_config_t) {.brokers = {{"127.0.0.1", "1"}},
                           .broker_count = 1,
                           .key_id = "key",
                           .secret = FAKE_SECRET,
                           .connect_timeout_ms = 20000};
}

static hws_welcome_t welcome_of(bool may_leave) {
    return (hws_welcome_t) {.device_count = 1,
                            .session_id = FAKE_SESSION,
                            .credit_window_bytes = FAKE_WINDOW_BYTES,
                            .max_record_bytes = HWS_MAX_RECORD_BYTES,
                            .max_bulk_bytes = HWS_MAX_BULK_BYTES,
                            .next_sequence = 3,
                            .session_nonce = FAKE_NONCE,
                            .may_leave = may_leave};
}

/* For the connection of the next session, instead of those of TCP. NULL: none. */
static const hws_carrier_ops_t *session_ops;

static void open_channel(bool may_leave, bool has_hook) {
    const hws_config_t config = configure();
    const hws_welcome_t welcome = welcome_of(may_leave);
    const hws_channel_hooks_t hooks = {.run_callback = fake_run_callback,
                                       .failed = fake_failed,
                                       .event_reached = note_reached,
                                       .leave = has_hook ? hws_move_begin : NULL};
    hws_carrier_t *carrier = fake_connect_tcp();
    carrier->ops = session_ops == NULL ? carrier->ops : session_ops;
    fake_sequence = 3;
    atomic_store(&fake_failed_status, 0);
    hws_move_use(&config, 1, &welcome);
    HWS_CHECK(hws_channel_open(carrier, &welcome, &hooks) == 0);
}

/* A call that waits for its reply, on a thread of its own. */
typedef struct call {
    fake_thread_t thread;
    hws_record_header_t header;
    int status;
    uint64_t reply;
} call_t;

static void make_call(void *argument) {
    call_t *call = argument;
    const uint64_t payload = 7;
    uint32_t bytes = 0;
    call->status =
        hws_call(FAKE_OPCODE, 0, &payload, sizeof payload, NULL, 0, &call->reply, sizeof call->reply, &bytes);
}

static void start_call(call_t *call) {
    *call = (call_t) {.status = -1};
    fake_start(&call->thread, make_call, call);
}

static void begin_call(call_t *call) {
    start_call(call);
    call->header = fake_take(scratch, sizeof scratch);
    HWS_CHECK(call->header.opcode == FAKE_OPCODE);
}

static void end_call(call_t *call) {
    const uint64_t reply = call->header.sequence + 1000;
    fake_reply(&call->header, 0, &reply, sizeof reply);
    fake_join(&call->thread);
    HWS_CHECK(call->status == 0 && call->reply == reply);
}

static inline void round_trip(void) {
    call_t call;
    begin_call(&call);
    end_call(&call);
}

/* Opens a session whose worker has got FOLLOWS. */
static inline void open_session(void) {
    open_channel(true, true);
    char byte;
    HWS_CHECK(recv(fake_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN); /* it waits for a call */
    call_t call;
    start_call(&call);
    const hws_record_header_t follows = fake_take(scratch, sizeof scratch);
    HWS_CHECK(follows.opcode == HWS_CONTROL_FOLLOWS && follows.length_bytes == HWS_HEADER_BYTES
              && follows.sequence == 3);
    call.header = fake_take(scratch, sizeof scratch);
    end_call(&call);
}

static inline void close_session(void) {
    hws_channel_close(HWS_STATUS_DEINITIALIZED);
    hws_move_join();
    fake_close();
}

static void put_leave(const char *address) {
    uint8_t payload[HWS_LEAVE_FIXED_BYTES + HWS_MAX_ADDRESS_BYTES + 8] = {0};
    const uint32_t length = (uint32_t) strlen(address);
    memcpy(payload, &length, sizeof length);
    memcpy(payload + HWS_LEAVE_FIXED_BYTES, address, length);
    fake_put(HWS_CONTROL_LEAVE, 0, 0, payload, HWS_LEAVE_FIXED_BYTES + length);
}

/* Sends LEAVE before a reply, so that the caller reads it at once. */
static inline void leave_for(const char *address) {
    call_t call;
    begin_call(&call);
    put_leave(address);
    end_call(&call);
}

/* The reason of a LEFT that has been taken. */
static const char *reason_of(const hws_record_header_t *header) {
    static char reason[HWS_MAX_TEXT_BYTES + 1];
    uint32_t length;
    memcpy(&length, scratch, sizeof length);
    HWS_CHECK(header->opcode == HWS_CONTROL_LEFT && length <= HWS_MAX_TEXT_BYTES);
    HWS_CHECK(header->length_bytes == (int32_t) (HWS_HEADER_BYTES + HWS_LEFT_FIXED_BYTES + hws_pad8(length)));
    memcpy(reason, scratch + HWS_LEFT_FIXED_BYTES, length);
    reason[length] = '\0';
    return reason;
}

static inline const char *take_left(void) {
    const hws_record_header_t header = fake_take(scratch, sizeof scratch);
    return reason_of(&header);
}

static inline int connection_of(fake_broker_t *broker, unsigned number) {
    fake_broker_await(broker, &broker->parked_count, number + 1);
    return broker->parked[number];
}

static inline void put_resumed(int fd) {
    fake_answer(fd, HWS_CONTROL_RESUMED, scratch, 0);
}

/* Whether the guest has closed a connection, which must bring no byte before. */
static inline void expect_end(int fd) {
    char byte;
    ssize_t received = recv(fd, &byte, 1, 0);
    HWS_CHECK(received == 0 || (received < 0 && errno == ECONNRESET));
}

/* Moves to a broker: LEAVE, LEFT and RESUMED. The worker is then at that broker. */
static inline void move_to(fake_broker_t *broker, unsigned number) {
    const int old = fake_fd;
    leave_for(broker->name);
    const int fd = connection_of(broker, number);
    HWS_CHECK(take_left()[0] == '\0');
    put_resumed(fd);
    fake_fd = fd;
    round_trip();
    expect_end(old);
    close(old);
}

static inline void nap(void) {
    const struct timespec time = {.tv_nsec = 20000000};
    nanosleep(&time, NULL);
}

static inline void await_hold(hws_hold_t hold) {
    while (atomic_load(&hws_channel.hold) != hold) {
        nap();
    }
}

#endif

/* The channel with a dead or hostile worker, in a forked process, and at its end. */
#include "fake_worker.h"

#include <sys/wait.h>

static uint8_t scratch[HWS_MAX_RECORD_BYTES];

typedef struct fault_call {
    uint8_t target[64]; /* the copy may write the first 32 */
    bool copy, direct;
    int status;
} fault_call_t;

static void make_call(void *argument) {
    fault_call_t *call = argument;
    uint64_t payload = 7;
    uint32_t bytes = 0;
    hws_target_t target = {.base = call->target, .width_bytes = 32, .rows = 1, .slices = 1, .direct = call->direct};
    call->status = call->copy ? hws_read(FAKE_OPCODE, &payload, sizeof payload, &target, true)
                              : hws_call(FAKE_OPCODE, 0, &payload, sizeof payload, NULL, 0, call->target, 16, &bytes);
}

/* The worker answers one call with the given bytes and closes; the call must end as lost. */
static void expect_refusal(bool copy, const void *answer, size_t bytes) {
    fake_open();
    fault_call_t call = {.copy = copy, .status = -1};
    memset(call.target, 0xcc, sizeof call.target);
    fake_thread_t thread;
    fake_start(&thread, make_call, &call);
    fake_take(scratch, sizeof scratch);
    fake_write(answer, bytes);
    fake_end_writing();
    fake_join(&thread);
    HWS_CHECK(call.status == HWS_LOST_STATUS);
    HWS_CHECK(atomic_load(&fake_failed_status) == HWS_LOST_STATUS);
    for (size_t i = copy ? 32 : 0; i < sizeof call.target; i++) {
        HWS_CHECK(call.target[i] == 0xcc);
    }
    uint64_t payload = 0;
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, &payload, sizeof payload, NULL, 0) == HWS_LOST_STATUS);
    fake_close();
}

typedef struct hostile {
    hws_record_header_t header;
    uint8_t payload[64];
} hostile_t;

static hostile_t hostile(uint32_t opcode, int32_t length, uint64_t sequence, uint32_t status) {
    return (hostile_t) {.header = {.length_bytes = length, .opcode = opcode, .sequence = sequence, .flags = status}};
}

static void put_data(hostile_t *record, uint64_t offset, uint32_t bytes) {
    memcpy(record->payload, &offset, sizeof offset);
    memcpy(record->payload + 8, &bytes, sizeof bytes);
}

static void shouldRefuseHostileReplies(void) {
    const uint32_t reply = FAKE_OPCODE | HWS_REPLY_BIT;
    const hostile_t records[] = {
        hostile(reply, 0, 3, 0),
        hostile(reply, -8, 3, 0),
        hostile(reply, 31, 3, 0),
        hostile(reply, 36, 3, 0),
        hostile(reply, INT32_MAX - 7, 3, 0),
        hostile(reply, HWS_MAX_RECORD_BYTES + 8, 3, 0),
        hostile(reply, 32, 4, 0), /* for a call that was not made */
        hostile(reply, 32, UINT64_MAX, 0),
        hostile(reply + 1, 32, 3, 0),   /* with another opcode */
        hostile(reply, 32 + 24, 3, 0),  /* longer than its call allows */
        hostile(reply, 32 + 8, 3, 700), /* outputs with a failed call */
        hostile(FAKE_OPCODE, 32, 3, 0), /* a request */
        hostile(HWS_CONTROL_HELLO, 32, 0, 0),
        hostile(HWS_CONTROL_CREDIT, 32, 0, 0),
        hostile(HWS_CONTROL_REACHED, 32, 0, 0),
        hostile(HWS_CONTROL_REACHED, 40, 0, 0), /* for a guest that expects none */
        hostile(HWS_CONTROL_DATA, 32, 3, 0),
        hostile(HWS_CONTROL_DATA, 48, 3, 0), /* for a call that is not a copy */
        hostile(HWS_CONTROL_OUTPUT, 32, 0, 0),
        hostile(HWS_CONTROL_CALLBACK, 48, 0, 0),
        hostile(HWS_CONTROL_CALLBACK, 40, 0, 0),
        hostile(HWS_CONTROL_LOST, 32, 0, 0),
    };
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        expect_refusal(false, &records[i], sizeof records[i]);
    }
    hostile_t credit = hostile(HWS_CONTROL_CREDIT, 40, 0, 0);
    memset(credit.payload, 0xff, 8);
    expect_refusal(false, &credit, 40);
    hostile_t output = hostile(HWS_CONTROL_OUTPUT, 48, 0, 0);
    memset(output.payload, 0xff, 4);
    expect_refusal(false, &output, 48);
    hostile_t lost = hostile(HWS_CONTROL_LOST, 40, 0, 0);
    memset(lost.payload, 0xff, 8);
    expect_refusal(false, &lost, 40);
}

static void shouldRefuseDataOutsideTheTarget(void) {
    const struct {
        uint64_t offset;
        uint32_t bytes;
        int32_t length;
    } pieces[] = {
        {0, 40, 48 + 40},        {32, 8, 48 + 8}, {25, 8, 48 + 8}, {UINT64_MAX, 8, 48 + 8}, {UINT64_MAX - 7, 8, 48 + 8},
        {0, UINT32_MAX, 48 + 8}, {0, 8, 48 + 16}, {0, 16, 48 + 8}, {0, 9, 48 + 8},          {33, 0, 48},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        hostile_t record = hostile(HWS_CONTROL_DATA, pieces[i].length, 3, 0);
        put_data(&record, pieces[i].offset, pieces[i].bytes);
        expect_refusal(true, &record, sizeof record);
    }
}

static void shouldRefuseACopyOfTooFewOrTooManyBytes(void) {
    hostile_t records[5];
    for (int i = 0; i < 5; i++) {
        records[i] = hostile(HWS_CONTROL_DATA, 48 + 8, 3, 0);
        put_data(&records[i], (uint64_t) (i % 4) * 8, 8);
    }
    uint8_t bytes[5 * 56];
    for (int i = 0; i < 5; i++) {
        memcpy(bytes + 56 * i, &records[i], 56);
    }
    expect_refusal(true, bytes, 5 * 56); /* the fifth exceeds a full target */
    hostile_t reply = hostile(FAKE_OPCODE | HWS_REPLY_BIT, 32, 3, 0);
    memcpy(bytes + 3 * 56, &reply, 32);
    expect_refusal(true, bytes, 3 * 56 + 32); /* 24 of 32 bytes, and a successful reply */
}

/* The worker writes the target itself, so its reply ends the copy, and DATA could only overwrite the bytes. */
static void shouldRefuseDataForADirectCopy(void) {
    hostile_t records[2] = {hostile(HWS_CONTROL_DATA, 48 + 8, 3, 0), hostile(FAKE_OPCODE | HWS_REPLY_BIT, 32, 3, 0)};
    put_data(&records[0], 0, 8);
    for (int with_data = 0; with_data < 2; with_data++) {
        fake_open();
        fault_call_t call = {.copy = true, .direct = true, .status = -1};
        memset(call.target, 0xcc, sizeof call.target);
        fake_thread_t thread;
        fake_start(&thread, make_call, &call);
        fake_take(scratch, sizeof scratch);
        if (with_data != 0) {
            fake_write(&records[0], 48 + 8);
        }
        fake_write(&records[1], 32);
        fake_join(&thread);
        HWS_CHECK(call.status == (with_data != 0 ? HWS_LOST_STATUS : 0));
        HWS_CHECK(call.target[0] == 0xcc && memcmp(call.target, call.target + 1, sizeof call.target - 1) == 0);
        fake_close();
    }
}

static void shouldEndACallThatIsTruncatedAtAnyByte(void) {
    hostile_t reply = hostile(FAKE_OPCODE | HWS_REPLY_BIT, 48, 3, 0);
    for (size_t bytes = 0; bytes < 48; bytes++) {
        expect_refusal(false, &reply, bytes);
    }
    hostile_t data = hostile(HWS_CONTROL_DATA, 48 + 16, 3, 0);
    put_data(&data, 0, 13);
    for (size_t bytes = 0; bytes <= 64; bytes += 3) {
        expect_refusal(true, &data, bytes);
    }
}

static void shouldTellEveryWaitingThread(void) {
    fake_open();
    enum { CALLERS = 6 };
    fault_call_t calls[CALLERS] = {0};
    fake_thread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        calls[i].copy = i % 2 == 0;
        fake_start(&threads[i], make_call, &calls[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        fake_take(scratch, sizeof scratch);
    }
    uint64_t value = 0;
    hws_target_t target = {.base = &value, .width_bytes = sizeof value, .rows = 1, .slices = 1};
    HWS_CHECK(hws_read(FAKE_OPCODE, &value, sizeof value, &target, false) == 0);
    fake_hang_up();
    for (int i = 0; i < CALLERS; i++) {
        fake_join(&threads[i]);
        HWS_CHECK(calls[i].status == HWS_LOST_STATUS);
    }
    hws_channel_wait_for_target(&value, sizeof value);
    HWS_CHECK(hws_channel_expect_callback(HWS_LANE_PROGRAM) == HWS_LOST_STATUS);
    fake_close();
}

static void shouldPassOnWhatTheWorkerSaysWhenItEndsTheSession(void) {
    fake_open();
    fault_call_t call = {.status = -1};
    fake_thread_t thread;
    fake_start(&thread, make_call, &call);
    fake_take(scratch, sizeof scratch);
    uint8_t payload[24] = {0};
    uint32_t words[2] = {2, 15};
    memcpy(payload, words, sizeof words);
    memcpy(payload + 8, "out of patience", 15);
    fake_put(HWS_CONTROL_LOST, 0, 0, payload, sizeof payload);
    fake_join(&thread);
    HWS_CHECK(call.status == 2);
    fake_close();
}

static void send_until_lost(void *argument) {
    int *status = argument;
    static const uint8_t bulk[HWS_MAX_BULK_BYTES];
    do {
        *status = hws_send(FAKE_OPCODE, HWS_FLAG_CREDITED, NULL, 0, bulk, sizeof bulk);
    } while (*status == 0);
}

static void shouldNoticeALostWorkerWhileSendingOrWaitingForCredit(void) {
    fake_open();
    int status = 0;
    fake_thread_t thread;
    fake_start(&thread, send_until_lost, &status);
    fake_take(scratch, sizeof scratch);
    fake_hang_up();
    fake_join(&thread);
    HWS_CHECK(status == HWS_LOST_STATUS);
    fake_close();
    fake_open();
    fake_start(&thread, send_until_lost, &status);
    for (int i = 0; i < 3; i++) {
        fake_take(scratch, sizeof scratch); /* the fourth does not fit the window */
    }
    fake_hang_up();
    fake_join(&thread);
    HWS_CHECK(status == HWS_LOST_STATUS);
    fake_close();
}

static void shouldEndWithCallsInFlight(void) {
    fake_open();
    fault_call_t call = {.status = -1};
    fake_thread_t thread;
    fake_start(&thread, make_call, &call);
    fake_take(scratch, sizeof scratch);
    hws_channel_close(HWS_STATUS_DEINITIALIZED);
    fake_join(&thread);
    HWS_CHECK(call.status == HWS_STATUS_DEINITIALIZED);
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, NULL, 0, NULL, 0) == HWS_STATUS_DEINITIALIZED);
    HWS_CHECK(atomic_load(&fake_failed_status) == 0);
    fake_close();
}

#ifndef __SANITIZE_THREAD__ /* the thread sanitizer does not follow forks */
static void shouldRefuseCallsInAForkedChildAndGoOnInTheParent(void) {
    fake_open();
    pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        hws_channel_abandon_in_child();
        uint64_t payload = 0;
        fault_call_t call = {.status = -1};
        make_call(&call);
        _exit(call.status == HWS_STATUS_NOT_INITIALIZED
                      && hws_send(FAKE_OPCODE, 0, &payload, 8, NULL, 0) == HWS_STATUS_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    int outcome = -1;
    HWS_CHECK(waitpid(child, &outcome, 0) == child && outcome == 0);
    fault_call_t call = {.status = -1};
    fake_thread_t thread;
    fake_start(&thread, make_call, &call);
    hws_record_header_t header = fake_take(scratch, sizeof scratch);
    fake_reply(&header, 0, scratch, 16);
    fake_join(&thread);
    HWS_CHECK(call.status == 0);
    fake_close();
}
#endif

static void run(void) {
    HWS_RUN(shouldRefuseHostileReplies);
    HWS_RUN(shouldRefuseDataOutsideTheTarget);
    HWS_RUN(shouldRefuseACopyOfTooFewOrTooManyBytes);
    HWS_RUN(shouldRefuseDataForADirectCopy);
    HWS_RUN(shouldEndACallThatIsTruncatedAtAnyByte);
    HWS_RUN(shouldTellEveryWaitingThread);
    HWS_RUN(shouldPassOnWhatTheWorkerSaysWhenItEndsTheSession);
    HWS_RUN(shouldNoticeALostWorkerWhileSendingOrWaitingForCredit);
    HWS_RUN(shouldEndWithCallsInFlight);
#ifndef __SANITIZE_THREAD__
    HWS_RUN(shouldRefuseCallsInAForkedChildAndGoOnInTheParent);
#endif
}

int main(void) {
    fake_run_all(run);
    return 0;
}

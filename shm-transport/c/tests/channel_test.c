/* The channel with a worker that keeps to the protocol: order, replies, copies, credit, host functions, staging. */
#include "fake_worker.h"

#define THREADS 4
#define CALLS_A_THREAD 300

static uint8_t scratch[HWS_MAX_RECORD_BYTES];

static void send_numbers(void *argument) {
    uint32_t which = (uint32_t) (uintptr_t) argument;
    for (uint32_t i = 0; i < CALLS_A_THREAD; i++) {
        uint32_t payload[2] = {which, i};
        HWS_CHECK(hws_send(FAKE_OPCODE, 0, payload, sizeof payload, NULL, 0) == 0);
    }
}

static void shouldKeepTheOrderOfEachThread(void) {
    fake_open();
    fake_thread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        fake_start(&threads[i], send_numbers, (void *) i);
    }
    uint32_t next[THREADS] = {0}, number[THREADS] = {0};
    for (int i = 0; i < THREADS * CALLS_A_THREAD; i++) {
        hws_record_header_t header = fake_take(scratch, sizeof scratch);
        uint32_t payload[2];
        memcpy(payload, scratch, sizeof payload);
        HWS_CHECK(header.length_bytes == 40 && header.opcode == FAKE_OPCODE && header.flags == 0);
        HWS_CHECK(payload[0] < THREADS && payload[1] == next[payload[0]]++);
        HWS_CHECK(header.thread != 0);
        HWS_CHECK(number[payload[0]] == 0 || number[payload[0]] == header.thread);
        number[payload[0]] = header.thread;
    }
    for (int i = 0; i < THREADS; i++) {
        fake_join(&threads[i]);
    }
    fake_close();
}

static void call_numbers(void *argument) {
    uint64_t which = (uintptr_t) argument;
    for (uint64_t i = 0; i < CALLS_A_THREAD; i++) {
        uint64_t payload = which << 32 | i, reply = 0;
        uint32_t bytes = 0;
        int status = hws_call(FAKE_OPCODE, 0, &payload, sizeof payload, NULL, 0, &reply, sizeof reply, &bytes);
        HWS_CHECK(i % 7 == 3 ? status == 500 : status == 0 && bytes == 8 && reply == ~payload);
    }
}

static void shouldAnswerEveryThreadWhateverTheOrderOfReplies(void) {
    fake_open();
    fake_thread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        fake_start(&threads[i], call_numbers, (void *) i);
    }
    hws_record_header_t held = {0};
    uint64_t held_payload = 0;
    for (int i = 0; i < THREADS * CALLS_A_THREAD; i++) {
        uint64_t payload;
        hws_record_header_t header = fake_take((uint8_t *) &payload, sizeof payload);
        HWS_CHECK(header.flags == HWS_FLAG_REPLY);
        /* Every third call is answered after the next one; the last calls have no next one. */
        if (i % 3 == 0 && held.sequence == 0 && i < (THREADS - 1) * CALLS_A_THREAD - THREADS) {
            held = header;
            held_payload = payload;
            continue;
        }
        uint64_t reply = ~payload;
        bool fails = (payload & 0xffffffff) % 7 == 3;
        fake_reply(&header, fails ? 500 : 0, &reply, fails ? 0 : sizeof reply);
        if (held.sequence != 0) {
            reply = ~held_payload;
            fails = (held_payload & 0xffffffff) % 7 == 3;
            fake_reply(&held, fails ? 500 : 0, &reply, fails ? 0 : sizeof reply);
            held.sequence = 0;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        fake_join(&threads[i]);
    }
    hws_statistics_t statistics;
    hws_channel_statistics(&statistics);
    HWS_CHECK(statistics.calls == THREADS * CALLS_A_THREAD && statistics.round_trips == statistics.calls);
    HWS_CHECK(statistics.bytes_out == statistics.calls * 40);
    fake_close();
}

static void send_bulks(void *argument) {
    (void) argument;
    uint8_t *bulk = malloc(HWS_MAX_BULK_BYTES);
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t bytes = i % 2 == 0 ? 5 + i : HWS_MAX_BULK_BYTES - i;
        memset(bulk, (int) i, bytes);
        uint32_t payload[2] = {i, bytes};
        HWS_CHECK(hws_send(FAKE_OPCODE, 0, payload, sizeof payload, bulk, bytes) == 0);
    }
    free(bulk);
}

static void shouldPadBulksAndKeepLargeOnesInOrder(void) {
    fake_open();
    fake_thread_t thread;
    fake_start(&thread, send_bulks, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        hws_record_header_t header = fake_take(scratch, sizeof scratch);
        uint32_t payload[2];
        memcpy(payload, scratch, sizeof payload);
        HWS_CHECK(payload[0] == i && (uint64_t) header.length_bytes == 40 + hws_pad8(payload[1]));
        for (uint32_t k = 0; k < hws_pad8(payload[1]); k++) {
            HWS_CHECK(scratch[8 + k] == (k < payload[1] ? i : 0));
        }
    }
    fake_join(&thread);
    fake_close();
}

typedef struct box_copy {
    hws_target_t target;
    bool wait;
    int status;
} box_copy_t;

static void read_box(void *argument) {
    box_copy_t *copy = argument;
    uint64_t payload = 1;
    copy->status = hws_read(FAKE_OPCODE, &payload, sizeof payload, &copy->target, copy->wait);
}

static void shouldScatterPiecesOfAnySizeIntoABox(void) {
    enum { WIDTH = 70, ROWS = 5, PITCH = 96, SLICES = 3, SLICE = PITCH * 7, TOTAL = WIDTH * ROWS * SLICES };
    uint8_t bytes[TOTAL];
    for (int i = 0; i < TOTAL; i++) {
        bytes[i] = (uint8_t) (i * 31 + 1);
    }
    for (uint32_t piece = 1; piece <= TOTAL; piece = piece * 3 + 1) {
        fake_open();
        uint8_t *memory = malloc(SLICE * SLICES);
        memset(memory, 0xee, SLICE * SLICES);
        box_copy_t copy = {.target = {memory, WIDTH, ROWS, PITCH, SLICES, SLICE}, .wait = true};
        fake_thread_t thread;
        fake_start(&thread, read_box, &copy);
        hws_record_header_t header = fake_take(scratch, sizeof scratch);
        for (uint32_t at = 0; at < TOTAL; at += piece) {
            fake_data(header.sequence, at, bytes + at, TOTAL - at < piece ? TOTAL - at : piece);
        }
        fake_reply(&header, 0, NULL, 0);
        fake_join(&thread);
        HWS_CHECK(copy.status == 0);
        for (int at = 0; at < SLICE * SLICES; at++) {
            int slice = at / SLICE, row = at % SLICE / PITCH, column = at % PITCH;
            bool inside = row < ROWS && column < WIDTH;
            HWS_CHECK(memory[at] == (inside ? bytes[(slice * ROWS + row) * WIDTH + column] : 0xee));
        }
        free(memory);
        fake_close();
    }
}

static void shouldReadALargeCopyStraightIntoItsTarget(void) {
    fake_open();
    const uint64_t total = 3u * HWS_MAX_BULK_BYTES + 12345;
    uint8_t *source = malloc(total), *memory = calloc(1, total);
    for (uint64_t i = 0; i < total; i++) {
        source[i] = (uint8_t) (i * 13 + (i >> 11));
    }
    box_copy_t copy = {.target = {memory, total, 1, 0, 1, 0}, .wait = true};
    fake_thread_t thread;
    fake_start(&thread, read_box, &copy);
    hws_record_header_t header = fake_take(scratch, sizeof scratch);
    for (uint64_t at = 0; at < total; at += HWS_MAX_BULK_BYTES) {
        uint64_t part = total - at < HWS_MAX_BULK_BYTES ? total - at : HWS_MAX_BULK_BYTES;
        fake_data(header.sequence, at, source + at, (uint32_t) part);
    }
    fake_reply(&header, 0, NULL, 0);
    fake_join(&thread);
    HWS_CHECK(copy.status == 0 && memcmp(source, memory, total) == 0);
    free(source);
    free(memory);
    fake_close();
}

static void shouldFinishAnAsynchronousCopyWhileNobodyWaits(void) {
    fake_open();
    enum { COPIES = HWS_MAX_DETACHED / 2 };
    uint64_t values[COPIES] = {0};
    for (uint64_t i = 0; i < COPIES; i++) {
        box_copy_t copy = {.target = {&values[i], sizeof values[i], 1, 0, 1, 0}};
        read_box(&copy);
        HWS_CHECK(copy.status == 0);
    }
    for (uint64_t i = 0; i < COPIES; i++) {
        hws_record_header_t header = fake_take(scratch, sizeof scratch);
        uint64_t value = i + 100;
        fake_data(header.sequence, 0, &value, sizeof value);
        fake_reply(&header, i == 5 ? 700 : 0, NULL, 0);
    }
    hws_channel_wait_for_target(values, sizeof values);
    for (uint64_t i = 0; i < COPIES; i++) {
        HWS_CHECK(values[i] == i + 100);
    }
    HWS_CHECK(hws_channel_take_deferred() == 700);
    HWS_CHECK(hws_channel_take_deferred() == 0);
    fake_close();
}

static _Atomic int credited_sent;

static void send_credited(void *argument) {
    (void) argument;
    static uint8_t bulk[HWS_MAX_BULK_BYTES];
    for (int i = 0; i < 8; i++) {
        HWS_CHECK(hws_send(FAKE_OPCODE, HWS_FLAG_CREDITED, NULL, 0, bulk, sizeof bulk) == 0);
        atomic_fetch_add(&credited_sent, 1);
    }
}

static void shouldWaitForCreditWithoutHoldingUpOthers(void) {
    const uint64_t record_bytes = HWS_HEADER_BYTES + HWS_MAX_BULK_BYTES;
    fake_open_with(2 * record_bytes);
    atomic_store(&credited_sent, 0);
    fake_thread_t thread, other;
    fake_start(&thread, send_credited, NULL);
    hws_record_header_t header;
    for (int i = 0; i < 2; i++) {
        header = fake_take(scratch, sizeof scratch);
        HWS_CHECK(header.flags == HWS_FLAG_CREDITED);
    }
    /* The third call is held back. The next record is another thread's call, which must go through. */
    fake_start(&other, call_numbers, (void *) 0);
    for (int i = 0; i < CALLS_A_THREAD; i++) {
        uint64_t payload;
        header = fake_take((uint8_t *) &payload, sizeof payload);
        HWS_CHECK(header.flags == HWS_FLAG_REPLY);
        uint64_t reply = ~payload;
        fake_reply(&header, i % 7 == 3 ? 500 : 0, &reply, i % 7 == 3 ? 0 : sizeof reply);
    }
    fake_join(&other);
    HWS_CHECK(atomic_load(&credited_sent) <= 2);
    for (uint64_t i = 1; i <= 6; i++) {
        uint64_t released = i * record_bytes;
        fake_put(HWS_CONTROL_CREDIT, 0, 0, &released, sizeof released);
        header = fake_take(scratch, sizeof scratch);
        HWS_CHECK(header.flags == HWS_FLAG_CREDITED);
    }
    fake_join(&thread);
    fake_close();
}

static _Atomic uint64_t callback_sum;

static void add_callback(uint64_t id, int status) {
    /* CUDA forbids calls here. The channel reports that instead of waiting forever. */
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, NULL, 0, NULL, 0) == HWS_STATUS_NOT_PERMITTED);
    atomic_fetch_add(&callback_sum, id * 1000 + (uint64_t) status);
}

static void shouldRunHostFunctionsAndSayWhenTheyAreDone(void) {
    fake_open();
    fake_callback = add_callback;
    atomic_store(&callback_sum, 0);
    for (uint64_t id = 4; id <= 160; id += 4) {
        HWS_CHECK(hws_channel_expect_callback(HWS_LANE_PROGRAM) == 0);
        HWS_CHECK(hws_send(FAKE_OPCODE, HWS_FLAG_CREDITED, &id, sizeof id, NULL, 0) == 0);
    }
    for (uint64_t id = 4; id <= 160; id += 4) {
        fake_take(scratch, sizeof scratch);
    }
    for (uint64_t id = 4; id <= 160; id += 4) {
        uint64_t payload[2] = {id, 2}, done;
        fake_put(HWS_CONTROL_CALLBACK, 0, 0, payload, sizeof payload);
        hws_record_header_t header = fake_take((uint8_t *) &done, sizeof done);
        HWS_CHECK(header.opcode == HWS_CONTROL_CALLBACK_DONE && done == id);
    }
    HWS_CHECK(atomic_load(&callback_sum) == 4 * 40 * 41 / 2 * 1000 + 40 * 2);
    fake_close();
}

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;

static void wait_or_copy(uint64_t id, int status) {
    (void) status;
    if ((id & HWS_CALLBACK_COPY_BIT) == 0) {
        pthread_mutex_lock(&gate_lock);
        pthread_mutex_unlock(&gate_lock);
    } else {
        HWS_CHECK(hws_send(FAKE_OPCODE, 0, &id, sizeof id, NULL, 0) == 0); /* calls are legal here */
    }
}

static void shouldCopyWhileAHostFunctionBlocks(void) {
    fake_open();
    fake_callback = wait_or_copy;
    HWS_CHECK(hws_channel_expect_callback(HWS_LANE_PROGRAM) == 0);
    HWS_CHECK(hws_channel_expect_callback(HWS_LANE_COPIES) == 0);
    pthread_mutex_lock(&gate_lock);
    uint64_t blocking[2] = {4, 0}, copy[2] = {8 | HWS_CALLBACK_COPY_BIT, 0}, done;
    fake_put(HWS_CONTROL_CALLBACK, 0, 0, blocking, sizeof blocking);
    fake_put(HWS_CONTROL_CALLBACK, 0, 0, copy, sizeof copy);
    hws_record_header_t header = fake_take((uint8_t *) &done, sizeof done);
    HWS_CHECK(header.opcode == FAKE_OPCODE && done == copy[0]);
    header = fake_take((uint8_t *) &done, sizeof done);
    HWS_CHECK(header.opcode == HWS_CONTROL_CALLBACK_DONE && done == copy[0]);
    pthread_mutex_unlock(&gate_lock);
    header = fake_take((uint8_t *) &done, sizeof done);
    HWS_CHECK(header.opcode == HWS_CONTROL_CALLBACK_DONE && done == blocking[0]);
    fake_close();
}

typedef struct staging {
    const uint8_t *blob;
    uint64_t bytes, id;
    int status;
} staging_t;

static void stage(void *argument) {
    staging_t *staging = argument;
    staging->status = hws_stage(staging->blob, staging->bytes, &staging->id);
}

static void shouldSendABlobOnlyWhereItIsNotKnown(void) {
    fake_open();
    const uint64_t bytes = HWS_MAX_BULK_BYTES + 77;
    uint8_t *blob = malloc(bytes);
    memset(blob, 0x5a, bytes);
    for (uint32_t known = 0; known <= 1; known++) {
        staging_t staging = {.blob = blob, .bytes = bytes, .status = -1};
        fake_thread_t thread;
        fake_start(&thread, stage, &staging);
        hws_record_header_t header = fake_take(scratch, sizeof scratch);
        HWS_CHECK(header.opcode == HWS_CONTROL_STAGE
                  && header.length_bytes == HWS_HEADER_BYTES + HWS_STAGE_FIXED_BYTES);
        uint32_t reply[2] = {known, 0};
        fake_reply(&header, 0, reply, sizeof reply);
        for (uint64_t at = 0; known == 0 && at < bytes; at += HWS_MAX_BULK_BYTES) {
            header = fake_take(scratch, sizeof scratch);
            uint64_t offset;
            memcpy(&offset, scratch + HWS_STAGE_DATA_OFFSET_BYTES_OFFSET, sizeof offset);
            HWS_CHECK(header.opcode == HWS_CONTROL_STAGE_DATA && offset == at);
            HWS_CHECK(header.flags == HWS_FLAG_CREDITED);
        }
        fake_join(&thread);
        HWS_CHECK(staging.status == 0 && staging.id == known + 1);
    }
    free(blob);
    fake_close();
}

static void shouldRefuseRecordsThatTheWorkerWouldRefuse(void) {
    fake_open();
    uint8_t payload[9] = {0};
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, payload, 9, payload, 1) == HWS_STATUS_INVALID_VALUE);
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, payload, 8, scratch, HWS_MAX_RECORD_BYTES) == HWS_STATUS_INVALID_VALUE);
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, payload, 8, scratch, UINT64_MAX - 7) == HWS_STATUS_INVALID_VALUE);
    hws_target_t target = {
        .base = scratch, .width_bytes = UINT64_MAX / 2, .rows = 4, .pitch_bytes = UINT64_MAX / 2, .slices = 1};
    HWS_CHECK(hws_read(FAKE_OPCODE, payload, 8, &target, true) == HWS_STATUS_INVALID_VALUE);
    fake_close();
}

static void run(void) {
    HWS_RUN(shouldKeepTheOrderOfEachThread);
    HWS_RUN(shouldAnswerEveryThreadWhateverTheOrderOfReplies);
    HWS_RUN(shouldPadBulksAndKeepLargeOnesInOrder);
    HWS_RUN(shouldScatterPiecesOfAnySizeIntoABox);
    HWS_RUN(shouldReadALargeCopyStraightIntoItsTarget);
    HWS_RUN(shouldFinishAnAsynchronousCopyWhileNobodyWaits);
    HWS_RUN(shouldWaitForCreditWithoutHoldingUpOthers);
    HWS_RUN(shouldRunHostFunctionsAndSayWhenTheyAreDone);
    HWS_RUN(shouldCopyWhileAHostFunctionBlocks);
    HWS_RUN(shouldSendABlobOnlyWhereItIsNotKnown);
    HWS_RUN(shouldRefuseRecordsThatTheWorkerWouldRefuse);
}

int main(void) {
    fake_run_all(run);
    return 0;
}

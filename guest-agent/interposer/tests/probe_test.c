/*
 * Calls that wait only once: equal contents, and no others, are sent without waiting. The channel is replaced by one
 * that records whether a call waited.
 */
#include "hws_test.h"

#include "capture.h"
#include "hws_service.h"
#include "shm/hws_shm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 96u
#define CONTENTS 100000
#define MOST 8192 /* contents that are remembered */

_Atomic int hws_gate;
_Atomic unsigned hws_captures;
_Thread_local hws_tls_t hws_tls;
hws_stream_watcher_t *_Atomic hws_stream_watcher;
static _Thread_local bool waited;
static _Atomic int answer;
static _Atomic uint64_t watched;

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) opcode;
    (void) payload;
    (void) payload_bytes;
    (void) bulk;
    (void) bulk_bytes;
    (void) reply;
    (void) reply_capacity;
    HWS_CHECK((flags & HWS_FLAG_REPLY) != 0);
    *reply_bytes_p = 0;
    waited = true;
    return atomic_load(&answer);
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) opcode;
    (void) payload;
    (void) payload_bytes;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK((flags & HWS_FLAG_REPLY) == 0);
    waited = false;
    return 0;
}

const hws_shm_view_t *hws_shm_current(void) {
    return NULL;
}

bool hws_channel_watches_work(void) {
    return false;
}

int hws_channel_status(void) {
    return 0;
}

int hws_channel_fail(int status, const char *format, ...) {
    (void) format;
    return status;
}

uint64_t hws_handle_new(hws_kind_t kind) {
    return kind;
}

void hws_handle_drop(hws_kind_t kind, uint64_t handle) {
    (void) kind;
    (void) handle;
}

bool hws_handle_valid(hws_kind_t kind, uint64_t handle) {
    (void) kind;
    return handle == 3;
}

void hws_handle_attach(hws_kind_t kind, uint64_t handle, void *data) {
    (void) kind;
    (void) handle;
    (void) data;
}

void *hws_handle_data(hws_kind_t kind, uint64_t handle) {
    (void) kind;
    (void) handle;
    return NULL;
}

CUresult hws_capture_ask(CUstream stream) {
    (void) stream;
    return HWS_CAPTURED;
}

bool hws_capture_captures(CUstream stream) {
    return stream == (CUstream) (uintptr_t) 3;
}

void hws_capture_begin_use(CUstream stream, uint64_t object) {
    (void) stream;
    (void) object;
}

void hws_capture_end_use(CUstream stream, uint64_t object) {
    (void) stream;
    (void) object;
}

static uint32_t captured; /* opcode */

int hws_library_capture(CUstream stream, uint32_t opcode, const void *payload, uint32_t payload_bytes, const void *bulk,
                        uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) payload;
    (void) payload_bytes;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK(stream == (CUstream) (uintptr_t) 3);
    captured = opcode;
    if (reply != NULL) {
        memset(reply, 0x5a, reply_capacity);
        *reply_bytes_p = reply_capacity;
    }
    return 15;
}

CUresult hws_unsupported(const char *name) {
    (void) name;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void watch(uint64_t stream) {
    atomic_store(&watched, stream);
}

/* Eight bytes of identity at 8, an address at 16. */
static const hws_vary_t varies[] = {{8, 8, false}, {16, 8, true}};

static bool waits(uint32_t opcode, const uint64_t *payload, uint32_t bytes) {
    HWS_CHECK(hws_service.probe(7, opcode, 0, payload, bytes, varies, 2) == atomic_load(&answer) || !waited);
    return waited;
}

static void should_wait_only_for_the_first_call_of_a_kind(void) {
    uint64_t payload[BYTES / 8] = {1, 2, 0x1000, 4};
    HWS_CHECK(waits(1, payload, BYTES));
    HWS_CHECK(!waits(1, payload, BYTES));
    payload[1] = 99;
    payload[2] = 0x7000;
    HWS_CHECK(!waits(1, payload, BYTES)); /* another handle and another address */
    payload[2] = 0x7010;
    HWS_CHECK(waits(1, payload, BYTES)); /* another alignment */
    payload[2] = 0;
    HWS_CHECK(waits(1, payload, BYTES)); /* NULL */
    payload[3] = 5;
    HWS_CHECK(waits(1, payload, BYTES));
    HWS_CHECK(waits(2, payload, BYTES)); /* another function */
    hws_tls.context = 8;
    HWS_CHECK(waits(2, payload, BYTES)); /* another context, perhaps of another GPU */
    hws_tls.context = 0;
}

static void should_wait_again_after_a_failure(void) {
    uint64_t payload[BYTES / 8] = {1, 2, 0x1000, 77};
    atomic_store(&answer, 15);
    HWS_CHECK(waits(3, payload, BYTES));
    HWS_CHECK(waits(3, payload, BYTES));
    atomic_store(&answer, 0);
    HWS_CHECK(waits(3, payload, BYTES));
    HWS_CHECK(!waits(3, payload, BYTES));
}

static void should_report_the_stream(void) {
    uint64_t payload[BYTES / 8] = {0};
    atomic_store(&hws_stream_watcher, watch);
    hws_service.probe(41, 9, 0, payload, BYTES, varies, 2);
    HWS_CHECK(atomic_load(&watched) == 41);
    atomic_store(&hws_stream_watcher, NULL);
}

static void should_capture_work_of_a_stream_that_captures(void) {
    uint64_t payload[BYTES / 8] = {1, 2, 0x1000, 4};
    uint8_t reply[8] = {0};
    uint32_t reply_bytes = 0;
    HWS_CHECK(waits(20, payload, BYTES) && !waits(20, payload, BYTES));
    atomic_store(&hws_captures, 1);
    /* Also a kind that has succeeded before: a node needs the worker's answer. */
    HWS_CHECK(hws_service.probe(3, 20, 0, payload, BYTES, varies, 2) == 15 && captured == 20);
    HWS_CHECK(hws_service.work(3, 21, HWS_FLAG_REPLY | HWS_FLAG_CREDITED, payload, BYTES, NULL, 0, reply, sizeof reply,
                               &reply_bytes)
                  == 15
              && captured == 21 && reply_bytes == 8 && reply[7] == 0x5a);
    HWS_CHECK(hws_service.probe(7, 22, 0, payload, BYTES, varies, 2) == 0 && captured == 21); /* another stream */
    atomic_store(&hws_captures, 0);
    HWS_CHECK(hws_service.probe(3, 23, 0, payload, BYTES, varies, 2) == 0 && captured == 21);
}

static void should_refuse_what_is_no_stream(void) {
    HWS_CHECK(hws_service.may_issue(NULL) == CUDA_ERROR_INVALID_CONTEXT);
    hws_tls.context = 1;
    HWS_CHECK(hws_service.may_issue((CUstream) (uintptr_t) 4) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(hws_service.may_issue(NULL) == CUDA_SUCCESS);
    atomic_store(&hws_captures, 1);
    HWS_CHECK(hws_service.may_issue((CUstream) (uintptr_t) 3) == CUDA_SUCCESS); /* a node */
    atomic_store(&hws_captures, 0);
    hws_tls.context = 0;
}

/* Random contents of few bits, so that many are equal. A list of all that have been seen says what must happen. */
static void should_know_exactly_equal_contents(void) {
    static uint64_t seen[MOST];
    unsigned count = 0, state = 1, equal = 0;
    uint64_t payload[BYTES / 8] = {0};
    for (int i = 0; i < CONTENTS; i++) {
        uint64_t key = 0;
        for (unsigned word = 3; word < BYTES / 8; word++) {
            state = state * 1103515245 + 12345;
            payload[word] = (state >> 16) % 32 == 0 ? 1ull << (state >> 24) % 64 : 0;
            key = key * 67 + (payload[word] == 0 ? 0 : 1 + (unsigned) __builtin_ctzll(payload[word]));
        }
        bool known = false;
        for (unsigned j = 0; j < count && !known; j++) {
            known = seen[j] == key;
        }
        bool full = count == 4096; /* below the limit of remembered contents */
        if (full && !known) {
            continue;
        }
        HWS_CHECK(waits(5, payload, BYTES) == !known);
        if (!known) {
            seen[count++] = key;
        }
        equal += known;
    }
    HWS_CHECK(count > 1000 && equal > 1000);
}

static void *race(void *from) {
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t payload[BYTES / 8] = {1, i, 0x1000, 1000000 + i % 500};
        HWS_CHECK(hws_service.probe(7, 6, 0, payload, BYTES, varies, 2) == 0);
    }
    return from;
}

static void should_be_used_by_several_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, race, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    uint64_t payload[BYTES / 8] = {1, 2, 0x1000, 1000000};
    HWS_CHECK(!waits(6, payload, BYTES));
}

/* Last: afterwards new contents are no longer remembered, and each waits. */
static void should_bound_the_memory_of_contents(void) {
    uint64_t payload[BYTES / 8] = {1, 2, 0x1000};
    for (uint64_t i = 0; i < 3 * MOST; i++) {
        payload[3] = 1ull << 40 | i;
        HWS_CHECK(waits(8, payload, BYTES));
    }
    HWS_CHECK(waits(8, payload, BYTES));
}

int main(void) {
    should_wait_only_for_the_first_call_of_a_kind();
    should_wait_again_after_a_failure();
    should_report_the_stream();
    should_capture_work_of_a_stream_that_captures();
    should_refuse_what_is_no_stream();
    should_know_exactly_equal_contents();
    should_be_used_by_several_threads();
    should_bound_the_memory_of_contents();
    return 0;
}

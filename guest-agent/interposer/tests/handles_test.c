/* Handles: typed, never reused at once, and checked safely for any number. */
#include "hws_handles.h"
#include "hws_test.h"

#include <pthread.h>

static void shouldKnowKindAndLife(void) {
    uint64_t stream = hws_handle_new(HWS_KIND_STREAM), event = hws_handle_new(HWS_KIND_EVENT);
    HWS_CHECK(stream != 0 && event != 0 && stream >> 40 == HWS_KIND_STREAM && (uint32_t) stream != 0);
    HWS_CHECK(hws_handle_valid(HWS_KIND_STREAM, stream) && !hws_handle_valid(HWS_KIND_EVENT, stream));
    HWS_CHECK(!hws_handle_valid(HWS_KIND_STREAM, event));
    hws_handle_drop(HWS_KIND_STREAM, stream);
    HWS_CHECK(!hws_handle_valid(HWS_KIND_STREAM, stream));
    hws_handle_drop(HWS_KIND_STREAM, stream);
    hws_handle_drop(HWS_KIND_EVENT, event);
}

static void shouldRefuseNumbersThatWereNeverHandles(void) {
    const uint64_t numbers[] = {3,
                                4,
                                1ull << 40,
                                UINT64_MAX,
                                (uint64_t) HWS_KIND_STREAM << 40,
                                (uint64_t) HWS_KIND_STREAM << 40 | 999999,
                                (uint64_t) HWS_KIND_STREAM << 40 | 1ull << 35,
                                (uint64_t) HWS_KIND_MODULE << 40 | 1,
                                0x7f1234567890};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        HWS_CHECK(!hws_handle_legal(HWS_KIND_STREAM, numbers[i]));
        HWS_CHECK(hws_handle_data(HWS_KIND_STREAM, numbers[i]) == NULL);
    }
    for (uint64_t stream = 0; stream <= 2; stream++) {
        HWS_CHECK(hws_handle_legal(HWS_KIND_STREAM, stream) && !hws_handle_legal(HWS_KIND_EVENT, stream));
    }
}

static void shouldGiveAnotherNumberWhenASlotIsUsedAgain(void) {
    uint64_t before[100];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 100; i++) {
            uint64_t handle = hws_handle_new(HWS_KIND_EVENT);
            HWS_CHECK(handle != 0 && (round == 0 || handle != before[i]));
            HWS_CHECK(round == 0 || !hws_handle_valid(HWS_KIND_EVENT, before[i]));
            before[i] = handle;
        }
        for (int i = 0; i < 100; i++) {
            hws_handle_drop(HWS_KIND_EVENT, before[i]);
        }
    }
}

static void count_one(uint64_t handle, void *data, void *argument) {
    HWS_CHECK(hws_handle_data(HWS_KIND_MODULE, handle) == data);
    ++*(int *) argument;
}

static void shouldKeepAttachmentsUntilTheSlotIsUsedAgain(void) {
    uint64_t handle = hws_handle_new(HWS_KIND_MODULE);
    int *data = malloc(sizeof *data);
    *data = 5;
    hws_handle_attach(HWS_KIND_MODULE, handle, data);
    int count = 0;
    hws_handle_each(HWS_KIND_MODULE, count_one, &count);
    HWS_CHECK(count == 1 && hws_handle_data(HWS_KIND_MODULE, handle) == data);
    hws_handle_drop(HWS_KIND_MODULE, handle);
    HWS_CHECK(hws_handle_data(HWS_KIND_MODULE, handle) == NULL && *data == 5);
    uint64_t next = hws_handle_new(HWS_KIND_MODULE); /* frees the attachment */
    hws_handle_drop(HWS_KIND_MODULE, next);
}

static void *churn(void *unused) {
    (void) unused;
    for (int i = 0; i < 5000; i++) {
        uint64_t a = hws_handle_new(HWS_KIND_FUNCTION), b = hws_handle_new(HWS_KIND_FUNCTION);
        HWS_CHECK(a != b && hws_handle_valid(HWS_KIND_FUNCTION, a) && hws_handle_valid(HWS_KIND_FUNCTION, b));
        hws_handle_drop(HWS_KIND_FUNCTION, a);
        hws_handle_drop(HWS_KIND_FUNCTION, b);
    }
    return NULL;
}

static void shouldServeSeveralThreads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, churn, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(void) {
    HWS_RUN(shouldKnowKindAndLife);
    HWS_RUN(shouldRefuseNumbersThatWereNeverHandles);
    HWS_RUN(shouldGiveAnotherNumberWhenASlotIsUsedAgain);
    HWS_RUN(shouldKeepAttachmentsUntilTheSlotIsUsedAgain);
    HWS_RUN(shouldServeSeveralThreads);
    return 0;
}

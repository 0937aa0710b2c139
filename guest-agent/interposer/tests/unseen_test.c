/* The list of pinned memory, read by launches while other threads change it. */
#include "hws_hint.h"
#include "hws_test.h"
#include "shadow.h"
#include "unseen.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#define PAGE 4096ull
#define RANGES 300

static _Atomic int hints, exposed;
static _Atomic uint64_t last_exposed;
static _Atomic CUresult expose_result = CUDA_ERROR_NOT_SUPPORTED;
static _Atomic bool over;

void hws_hint_set(const char *format, ...) {
    (void) format;
    atomic_fetch_add(&hints, 1);
}

CUresult hws_shadow_expose(uint64_t address) {
    atomic_fetch_add(&exposed, 1);
    atomic_store(&last_exposed, address);
    return atomic_load(&expose_result);
}

static CUresult look(uint64_t address) {
    static const struct {
        hws_function_t function;
    } kernel = {{.params_bytes = 16, .name = "kernel"}};
    uint64_t packed[2] = {1, address};
    return hws_unseen_look(&kernel.function, (const uint8_t *) packed);
}

/* Even pages come and go; odd pages are never in the list. */
static void *change(void *from) {
    uint64_t base = (uint64_t) (uintptr_t) from;
    for (int round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < RANGES; i++) {
            hws_unseen_add(base + 2 * i * PAGE, PAGE);
        }
        for (uint64_t i = RANGES; i > 0; i--) {
            hws_unseen_remove(base + 2 * (i - 1) * PAGE);
        }
    }
    return NULL;
}

static void *launch(void *from) {
    uint64_t base = (uint64_t) (uintptr_t) from;
    while (!atomic_load(&over)) {
        for (uint64_t i = 0; i < 4 * RANGES; i++) {
            HWS_CHECK(look(base + (2 * i + 1) * PAGE + i) == CUDA_SUCCESS);
        }
    }
    return NULL;
}

static void shouldFindNothingThatWasNeverThere(void) {
    pthread_t changers[2], launchers[2];
    void *bases[] = {(void *) (uintptr_t) PAGE, (void *) (uintptr_t) (PAGE + 2 * RANGES * PAGE)};
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(pthread_create(&launchers[i], NULL, launch, bases[0]) == 0);
        HWS_CHECK(pthread_create(&changers[i], NULL, change, bases[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(pthread_join(changers[i], NULL) == 0);
    }
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(pthread_join(launchers[i], NULL) == 0);
    }
    HWS_CHECK(atomic_load(&exposed) == 0 && !atomic_load(&hws_unseen_watched));
}

/* The other threads' changes may hide no range: its kernel would end with an error. */
static void shouldFindARangeWhileOthersChangeTheList(void) {
    pthread_t changer;
    const uint64_t kept = 1ull << 40;
    hws_unseen_add(kept, PAGE);
    HWS_CHECK(pthread_create(&changer, NULL, change, (void *) (uintptr_t) PAGE) == 0);
    for (int i = 1; i <= 20000; i++) {
        HWS_CHECK(look(kept + PAGE - 8) == CUDA_SUCCESS && atomic_load(&exposed) == i);
    }
    HWS_CHECK(pthread_join(changer, NULL) == 0);
    hws_unseen_remove(kept);
    HWS_CHECK(atomic_load(&last_exposed) == kept + PAGE - 8 && atomic_load(&hints) == 1);
}

static void shouldReportThatMemoryIsShort(void) {
    hws_unseen_add(PAGE, PAGE);
    atomic_store(&expose_result, CUDA_ERROR_OUT_OF_MEMORY);
    HWS_CHECK(look(PAGE) == CUDA_ERROR_OUT_OF_MEMORY && atomic_load(&hints) == 1);
    atomic_store(&expose_result, CUDA_SUCCESS);
    HWS_CHECK(look(PAGE) == CUDA_SUCCESS && atomic_load(&hints) == 1);
    hws_unseen_remove(PAGE);
}

static void shouldFindEachRangeFromItsFirstByteToItsLast(void) {
    for (uint64_t i = 0; i < RANGES; i++) {
        hws_unseen_add(PAGE + 2 * i * PAGE, PAGE);
        HWS_CHECK(atomic_load(&hws_unseen_watched));
    }
    hws_unseen_remove(PAGE + 2 * 7 * PAGE);
    const uint64_t outside[] = {PAGE + 2 * 7 * PAGE, PAGE - 1, 2 * PAGE};
    const uint64_t inside[] = {PAGE, PAGE + 2 * (RANGES - 1) * PAGE + PAGE - 1};
    const int before = atomic_load(&exposed);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        HWS_CHECK(look(outside[i]) == CUDA_SUCCESS && atomic_load(&exposed) == before);
    }
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        HWS_CHECK(look(inside[i]) == CUDA_SUCCESS && atomic_load(&last_exposed) == inside[i]);
    }
}

int main(void) {
    HWS_RUN(shouldFindNothingThatWasNeverThere);
    HWS_RUN(shouldFindARangeWhileOthersChangeTheList);
    HWS_RUN(shouldReportThatMemoryIsShort);
    HWS_RUN(shouldFindEachRangeFromItsFirstByteToItsLast);
    return 0;
}

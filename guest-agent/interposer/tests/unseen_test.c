/* The list of pinned memory, read by launches while other threads change it. */
#include "hws_hint.h"
#include "hws_test.h"
#include "shm/hws_shm.h"
#include "unseen.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#define PAGE 4096ull
#define RANGES 300

static _Atomic int hints;
static _Atomic bool over;

void hws_hint_set(const char *format, ...) {
    (void) format;
    atomic_fetch_add(&hints, 1);
}

const hws_shm_view_t *hws_shm_current(void) {
    return NULL; /* a session over TCP */
}

static void look(uint64_t address) {
    static const struct {
        hws_function_t function;
    } kernel = {{.params_bytes = 16, .name = "kernel"}};
    uint64_t packed[2] = {1, address};
    hws_unseen_look(&kernel.function, (const uint8_t *) packed);
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
            look(base + (2 * i + 1) * PAGE + i);
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
    HWS_CHECK(atomic_load(&hints) == 0 && !atomic_load(&hws_unseen_watched));
}

static void shouldFindEachRangeFromItsFirstByteToItsLast(void) {
    for (uint64_t i = 0; i < RANGES; i++) {
        hws_unseen_add(PAGE + 2 * i * PAGE, PAGE);
        HWS_CHECK(atomic_load(&hws_unseen_watched));
    }
    hws_unseen_remove(PAGE + 2 * 7 * PAGE);
    look(PAGE + 2 * 7 * PAGE);
    look(PAGE - 1);
    look(2 * PAGE);
    HWS_CHECK(atomic_load(&hints) == 0);
    look(PAGE + 2 * (RANGES - 1) * PAGE + PAGE - 1);
    HWS_CHECK(atomic_load(&hints) == 1 && !atomic_load(&hws_unseen_watched));
    look(PAGE); /* printed once */
    hws_unseen_add(1ull << 40, PAGE);
    HWS_CHECK(atomic_load(&hints) == 1 && !atomic_load(&hws_unseen_watched));
}

int main(void) {
    HWS_RUN(shouldFindNothingThatWasNeverThere);
    HWS_RUN(shouldFindEachRangeFromItsFirstByteToItsLast);
    return 0;
}

/* Both ends of a ring at the same time, spinning and sleeping; built with the thread sanitizer. */
#include "ring_stream.h"

#include <pthread.h>

typedef struct shared {
    _Alignas(64) uint64_t head;
    _Alignas(64) uint64_t tail;
    _Alignas(64) uint32_t bytes_waiting;
    uint32_t bytes_signal;
    _Alignas(64) uint32_t room_waiting;
    uint32_t room_signal;
    _Alignas(64) uint8_t bytes[4096];
} shared_t;

typedef struct job {
    shared_t *shared;
    uint64_t size;
    uint64_t records;
    uint64_t most;
    uint32_t limit_ns;
} job_t;

static void prepare(stream_end_t *end, const job_t *job, bool writer) {
    shared_t *at = job->shared;
    memset(end, 0, sizeof *end);
    if (writer) {
        hws_ring_attach_writer(&end->ring, at->bytes, job->size, &at->head, &at->tail);
    } else {
        hws_ring_attach_reader(&end->ring, at->bytes, job->size, &at->head, &at->tail);
    }
    hws_spin_init(&end->spin);
    end->spin.limit_ns = end->spin.budget_ns = job->limit_ns;
    end->own_waiting = writer ? &at->room_waiting : &at->bytes_waiting;
    end->own_signal = writer ? &at->room_signal : &at->bytes_signal;
    end->peer_waiting = writer ? &at->bytes_waiting : &at->room_waiting;
    end->peer_signal = writer ? &at->bytes_signal : &at->room_signal;
}

static void *send_all(void *argument) {
    const job_t *job = argument;
    stream_end_t end;
    prepare(&end, job, true);
    stream_send_all(&end, 42, job->records, job->most);
    return NULL;
}

static void pass(job_t job) {
    shared_t shared = {0};
    job.shared = &shared;
    pthread_t sender;
    HWS_CHECK(pthread_create(&sender, NULL, send_all, &job) == 0);
    stream_end_t end;
    prepare(&end, &job, false);
    stream_receive_all(&end, 42, job.records, job.most);
    HWS_CHECK(pthread_join(sender, NULL) == 0);
    HWS_CHECK(shared.head == shared.tail);
}

static void shouldPassRecordsOfEverySize(void) {
    pass((job_t) {.size = 4096, .records = 20000, .most = 2048, .limit_ns = 20000});
}

static void shouldPassRecordsThroughTheSmallestRing(void) {
    pass((job_t) {.size = 8, .records = 5000, .most = 16, .limit_ns = 20000});
}

static void shouldLoseNoWakeUpWhenNobodySpins(void) {
    pass((job_t) {.size = 64, .records = 20000, .most = 16, .limit_ns = 0});
    pass((job_t) {.size = 4096, .records = 10000, .most = 2048, .limit_ns = 0});
}

/* Several threads sleep by the same two words, each until its own turn. */
enum { SLEEPERS = 4, TURNS = 2000 };

typedef struct turns {
    uint64_t turn; /* number of the turn, modulo SLEEPERS */
    uint32_t waiting;
    uint32_t signal;
} turns_t;

typedef struct sleeper {
    turns_t *turns;
    uint64_t number;
} sleeper_t;

static void *take_turns(void *argument) {
    const sleeper_t *me = argument;
    turns_t *turns = me->turns;
    for (uint64_t mine = me->number; mine < (uint64_t) SLEEPERS * TURNS; mine += SLEEPERS) {
        while (__atomic_load_n(&turns->turn, __ATOMIC_ACQUIRE) != mine) {
            uint32_t seen = hws_wait_prepare(&turns->waiting, &turns->signal);
            if (__atomic_load_n(&turns->turn, __ATOMIC_ACQUIRE) != mine) {
                hws_wait_sleep(&turns->signal, seen, STREAM_TIMEOUT_NS);
            }
        }
        __atomic_store_n(&turns->turn, mine + 1, __ATOMIC_RELEASE);
        hws_wake(&turns->waiting, &turns->signal);
    }
    return NULL;
}

static void shouldWakeAllThatSleepByOneWord(void) {
    turns_t turns = {0};
    pthread_t threads[SLEEPERS];
    sleeper_t sleepers[SLEEPERS];
    for (uint64_t i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (sleeper_t) {&turns, i};
        HWS_CHECK(pthread_create(&threads[i], NULL, take_turns, &sleepers[i]) == 0);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        HWS_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    HWS_CHECK(turns.turn == SLEEPERS * TURNS);
}

static void shouldAskForAWakeUpOnce(void) {
    uint32_t waiting = 0, signal = 7;
    HWS_CHECK(!hws_waiting_take(&waiting));
    HWS_CHECK(hws_wait_prepare(&waiting, &signal) == 7);
    HWS_CHECK(hws_waiting_take(&waiting));
    HWS_CHECK(!hws_waiting_take(&waiting));
    hws_wait_sleep(&signal, 6, STREAM_TIMEOUT_NS); /* incremented since: does not sleep */
    hws_wait_sleep(&signal, 7, 1000);
    hws_wake(&waiting, &signal);
    HWS_CHECK(signal == 7);
    hws_wait_prepare(&waiting, &signal);
    hws_wake(&waiting, &signal);
    HWS_CHECK(signal == 8 && waiting == 0);
}

static void shouldSpinLessWhileWaitsAreLongAndTryAgainNowAndThen(void) {
    hws_spin_t spin = {.limit_ns = 20000, .budget_ns = 20000};
    int tries = 0;
    for (int i = 1; i <= 64; i++) {
        hws_spin_begin(&spin);
        while (hws_spin_once(&spin)) {
        }
        hws_spin_end(&spin, true);
        tries += spin.budget_ns >= spin.limit_ns;
        HWS_CHECK(i != 8 || (spin.budget_ns == 0 && !hws_spin_once(&spin)));
    }
    HWS_CHECK(tries == 4);
    hws_spin_begin(&spin);
    HWS_CHECK(hws_spin_once(&spin));
    hws_spin_end(&spin, false); /* the last try was worth it */
    HWS_CHECK(spin.budget_ns == 20000);
    hws_spin_begin(&spin);
    hws_spin_end(&spin, true);
    HWS_CHECK(spin.budget_ns == 10000);
    hws_spin_begin(&spin);
    hws_spin_end(&spin, false); /* no wait at all: changes nothing */
    HWS_CHECK(spin.budget_ns == 10000);
    hws_spin_begin(&spin);
    HWS_CHECK(hws_spin_once(&spin));
    hws_spin_end(&spin, false);
    HWS_CHECK(spin.budget_ns == 20000);
    hws_spin_t alone = {0};
    for (int i = 0; i < 32; i++) {
        hws_spin_begin(&alone);
        HWS_CHECK(!hws_spin_once(&alone));
        hws_spin_end(&alone, true);
    }
}

static void shouldBePatientWhereProcessorsAreToSpareOnly(void) {
    const uint32_t limit = 10000000;
    HWS_CHECK(hws_patience_learn(limit, limit, true, false, 0) == limit);
    HWS_CHECK(hws_patience_learn(limit, limit, false, false, 1) == limit);
    uint32_t budget = limit;
    for (int i = 0; i < 20; i++) {
        budget = hws_patience_learn(budget, limit, false, true, 0);
    }
    HWS_CHECK(budget == 50000); /* as short as any spin, but not none: a quick device is seen */
    for (int i = 0; i < 60; i++) {
        budget = hws_patience_learn(budget, limit, true, false, 0);
    }
    HWS_CHECK(budget == limit);
    HWS_CHECK(!hws_is_crowded("0.20 0.18 0.12 6/80 11206\n", 16) && hws_is_crowded("0.20 0.18 0.12 7/80 11206\n", 16));
    HWS_CHECK(!hws_is_crowded("", 16) && !hws_is_crowded("0.20 0.18", 16) && !hws_is_crowded("a b c d", 16));
    HWS_CHECK(hws_patience_learn(50000, limit, false, false, 15) == 50000);
    HWS_CHECK(hws_patience_learn(50000, limit, false, false, 16) == limit); /* the others may have gone */
}

int main(void) {
    HWS_RUN(shouldPassRecordsOfEverySize);
    HWS_RUN(shouldPassRecordsThroughTheSmallestRing);
    HWS_RUN(shouldLoseNoWakeUpWhenNobodySpins);
    HWS_RUN(shouldWakeAllThatSleepByOneWord);
    HWS_RUN(shouldAskForAWakeUpOnce);
    HWS_RUN(shouldSpinLessWhileWaitsAreLongAndTryAgainNowAndThen);
    HWS_RUN(shouldBePatientWhereProcessorsAreToSpareOnly);
    return 0;
}

/*
 * Waiting for the other end of a ring: spin, then sleep. The protocol (wire.md, "Region") uses two shared
 * words. It loses no wake-up, and a wake-up costs no system call while nothing sleeps:
 *
 *   sleeper                                     waker
 *   seen = hws_wait_prepare(waiting, signal);   make it so (hws_ring_commit(), a chunk's word, ...)
 *   if (still nothing to do)                    hws_wake(waiting, signal);
 *       hws_wait_sleep(signal, seen, timeout);
 *
 * Only the waker resets a waiting word to 0. So several threads may sleep by the same words, and a burst of records
 * wakes once. A sleeper that found work leaves its 1 behind; that costs the waker one needless wake. The other end can
 * write both words, but can only wake too often or never; so sleeps have a timeout.
 */
#ifndef HWS_WAIT_H
#define HWS_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Sleeps until *word is woken, at most timeout_ns (0: not at all). Returns at once when *word is not `expected`. May
 * return early. Processes may share the word.
 */
void hws_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);

/* Wakes all sleepers of the word, in any process of this kernel. */
void hws_futex_wake(uint32_t *word);

/* Orders the store before it and the load after it, as seen by every thread. */
static inline void hws_fence(void) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan" /* the thread sanitizer does not model it; data is ordered without it */
#endif
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}

/* Sleeper: announces that it is about to sleep and returns the signal's count. Look again for work after this. */
static inline uint32_t hws_wait_prepare(uint32_t *waiting, const uint32_t *signal) {
    uint32_t seen = __atomic_load_n(signal, __ATOMIC_ACQUIRE);
    /* The store must be visible before the following look for work: pairs with the fence in hws_waiting_take(). */
    __atomic_store_n(waiting, 1, __ATOMIC_SEQ_CST);
    hws_fence();
    return seen;
}

/* Sleeper: sleeps unless the signal was incremented since hws_wait_prepare(); see hws_futex_wait(). */
static inline void hws_wait_sleep(uint32_t *signal, uint32_t seen, uint64_t timeout_ns) {
    hws_futex_wait(signal, seen, timeout_ns);
}

/*
 * Waker, after its store: resets the waiting word. Returns whether a thread sleeps or is about to sleep, so that the
 * caller must wake it by a futex or a doorbell; true once for each announced sleep.
 */
static inline bool hws_waiting_take(uint32_t *waiting) {
    hws_fence(); /* pairs with the fence in hws_wait_prepare() */
    return __atomic_load_n(waiting, __ATOMIC_RELAXED) != 0 && __atomic_exchange_n(waiting, 0, __ATOMIC_ACQ_REL) != 0;
}

/* Waker: increments the signal and wakes its futex, whether or not a thread waits. */
void hws_wait_signal(uint32_t *signal);

/* Waker, after its store: wakes the futex if a thread waits. */
static inline void hws_wake(uint32_t *waiting, uint32_t *signal) {
    if (hws_waiting_take(waiting)) {
        hws_wait_signal(signal);
    }
}

/*
 * The time that a thread spins before it sleeps. It adapts: a wait that ended while spinning was worth it; otherwise
 * the spin took a processor from others. So the time falls to zero while waits are long. Two ends that both sleep would
 * never learn that neither has to. So now and then one spins up to the limit. Private memory, one thread at a time.
 */
typedef struct hws_spin {
    uint32_t limit_ns; /* longest spin of a wait; 0 with one processor */
    uint32_t budget_ns;
    uint32_t turns;
    uint32_t sleeps; /* in a row */
    uint64_t since_ns;
} hws_spin_t;

/* Sets the limits for the processors that this thread may use. HAWSER_SPIN=off sets none, so that it sleeps at once. */
void hws_spin_init(hws_spin_t *spin);

/* The same for waits in which each look is a system call: no spinning with few processors. */
void hws_spin_init_by_calls(hws_spin_t *spin);

/* Begins a wait. */
void hws_spin_begin(hws_spin_t *spin);

/* Spins a little; false when it is time to sleep (and after that always false). */
bool hws_spin_once(hws_spin_t *spin);

/* Ends a wait. `slept`: it has also slept. */
void hws_spin_end(hws_spin_t *spin, bool slept);

/*
 * The time that threads spin before they sleep while they wait for a device, as CUDA's own waits do. It is long with
 * idle processors and zero with few processors. It adapts: a spinning thread that the scheduler has interrupted takes a
 * processor that others need, so the time is halved. A thread that got its result lengthens it. Longer waits alone
 * would never show that the load has ended, so now and then one spins up to the limit. Any number of threads, without a
 * lock: a lost update only delays the adaptation.
 */
typedef struct hws_patience {
    uint32_t limit_ns; /* 0: never */
    _Atomic uint32_t budget_ns, misses;
} hws_patience_t;

/* One wait. */
typedef struct hws_patient {
    hws_patience_t *patience;
    uint64_t began_ns, began_ran_ns, looked_ns; /* ran: the thread's own processor time */
    uint32_t turns;
    bool crowded; /* others ran while it spun */
    bool over;    /* ended before it began */
} hws_patient_t;

/* Sets the limit for the processors that this thread may use. */
void hws_patience_init(hws_patience_t *patience);

/* Begins a wait; on a crowded machine it is over at once. */
void hws_patient_begin(hws_patient_t *wait, hws_patience_t *patience);

/* Spins a little; false when it is time to sleep. */
bool hws_patient_once(hws_patient_t *wait);

/* Ends the wait. `granted`: the result has arrived meanwhile. */
void hws_patient_end(hws_patient_t *wait, bool granted);

/*
 * Whether so many threads run that a spinning one takes a processor, or half a core, from another: more than three
 * eighths of the processors. The worker's limit is higher, so that of two spinning ends the guest's gives way.
 * `loadavg` is the line of /proc/loadavg.
 */
bool hws_is_crowded(const char *loadavg, int cpus);

/* The next budget after such a wait. */
uint32_t hws_patience_learn(uint32_t budget_ns, uint32_t limit_ns, bool granted, bool crowded, uint32_t misses);

#endif

/*
 * Waiting for the other end of a ring: spin, then sleep. The protocol (architecture.md, section 2.6) in terms of two
 * shared words, so that no wake-up is lost and none costs a system call while nobody sleeps:
 *
 *   sleeper                                     waker
 *   seen = hws_wait_prepare(waiting, signal);   make it so (hws_ring_commit(), a chunk's word, ...)
 *   if (still nothing to do)                    hws_wake(waiting, signal);
 *       hws_wait_sleep(signal, seen, timeout);
 *
 * Only the waker takes a waiting word back to 0: so several threads may sleep by the same words, and a burst of
 * records wakes once. A sleeper that found something to do leaves its 1 behind; that costs the waker one idle wake.
 * The other end can write both words: all it can do is to wake too often or never, so sleeps have a timeout.
 */
#ifndef HWS_WAIT_H
#define HWS_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Sleeps until *word is woken, at most timeout_ns (0: not at all), and not at all when *word is not `expected`. May
 * return early. The word may be shared by processes.
 */
void hws_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);

/* Wakes all that sleep on the word, in any process of this kernel. */
void hws_futex_wake(uint32_t *word);

/* Orders the store before it with the load behind it, in every thread's eyes. */
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

/* Sleeper: says that it is about to sleep and returns the signal's count. Look again for work after this. */
static inline uint32_t hws_wait_prepare(uint32_t *waiting, const uint32_t *signal) {
    uint32_t seen = __atomic_load_n(signal, __ATOMIC_ACQUIRE);
    /* The store must be seen before the look for work that follows: pairs with the fence in hws_wait_is_asked(). */
    __atomic_store_n(waiting, 1, __ATOMIC_SEQ_CST);
    hws_fence();
    return seen;
}

/* Sleeper: sleeps unless the signal was counted up since hws_wait_prepare(); see hws_futex_wait(). */
static inline void hws_wait_sleep(uint32_t *signal, uint32_t seen, uint64_t timeout_ns) {
    hws_futex_wait(signal, seen, timeout_ns);
}

/*
 * Waker, after its store: whether somebody sleeps, or is about to, and must be woken by the caller (a futex, a
 * doorbell). Answers true once for each time that somebody said so.
 */
static inline bool hws_wait_is_asked(uint32_t *waiting) {
    hws_fence(); /* pairs with the fence in hws_wait_prepare() */
    return __atomic_load_n(waiting, __ATOMIC_RELAXED) != 0 && __atomic_exchange_n(waiting, 0, __ATOMIC_ACQ_REL) != 0;
}

/* Waker: counts the signal up and wakes its futex, whether anybody asked or not. */
void hws_wait_signal(uint32_t *signal);

/* Waker, after its store: wakes by the futex if somebody asked. */
static inline void hws_wake(uint32_t *waiting, uint32_t *signal) {
    if (hws_wait_is_asked(waiting)) {
        hws_wait_signal(signal);
    }
}

/*
 * How long a thread spins before it sleeps. It learns: a wait that ended while spinning was worth it, one that did not
 * was a processor taken from others, so the time goes down to none while waits are long. Two ends that both
 * sleep would never learn that neither has to, so now and then one spins as long as it may. Private memory, one thread
 * at a time.
 */
typedef struct hws_spin {
    uint32_t limit_ns; /* as long as a wait spins at most; 0 with one processor */
    uint32_t budget_ns;
    uint32_t turns;
    uint32_t sleeps; /* one after the other */
    uint64_t since_ns;
} hws_spin_t;

/* Sets the limits for the processors that this thread may use; HAWSER_SPIN=off: none, so that it sleeps at once. */
void hws_spin_init(hws_spin_t *spin);

/* The same where each look is a system call: none where processors are few. */
void hws_spin_init_by_calls(hws_spin_t *spin);

/* Begins a wait. */
void hws_spin_begin(hws_spin_t *spin);

/* Spins a little; false when it is time to sleep instead (and each time after that). */
bool hws_spin_once(hws_spin_t *spin);

/* Ends a wait; `slept`: it has slept as well. */
void hws_spin_end(hws_spin_t *spin, bool slept);

/*
 * How long threads that wait for a device rather spin on than sleep, as CUDA's own waits do: long where there are
 * processors to spare, not at all where there are few. It learns which it is: a thread that spins and has been made to
 * stand aside meanwhile takes a processor that others need, so the time is halved; one that got what it waited for
 * lengthens it. Waits that are all longer would never learn that the others have gone, so now and then one spins as long
 * as it may. Any number of threads, without a lock: a lost update only learns later.
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
    bool crowded; /* while it spun, others were let run */
    bool over;    /* before it began */
} hws_patient_t;

/* Sets the limit for the processors that this thread may use. */
void hws_patience_init(hws_patience_t *patience);

/* Begins a wait; where the machine is crowded it is over at once. */
void hws_patient_begin(hws_patient_t *wait, hws_patience_t *patience);

/* Spins a little; false when it is time to sleep instead. */
bool hws_patient_once(hws_patient_t *wait);

/* Ends the wait; whether what was waited for has come meanwhile. */
void hws_patient_end(hws_patient_t *wait, bool granted);

/*
 * Whether so many threads run that one which only looks takes a processor, or the half of a core, from another: more
 * than three eighths of the processors. Fewer than what a worker bears, so that of two ends that both spin the guest's
 * gives way. `loadavg` is the line of /proc/loadavg.
 */
bool hws_is_crowded(const char *loadavg, int cpus);

/* What such a wait teaches: the next budget. */
uint32_t hws_patience_learn(uint32_t budget_ns, uint32_t limit_ns, bool granted, bool crowded, uint32_t misses);

#endif

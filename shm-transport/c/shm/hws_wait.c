/* Sleeping and spinning: hws_wait.h. The same in Java: io.hawser.shm.os.Futex, io.hawser.shm.ring.Spin. */
#include "hws_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000u
#define LIMIT_NS 50000u       /* about the cost of a sleep and of a wake-up by another idle processor */
#define FEWER_LIMIT_NS 20000u /* with up to FEW_CPUS processors the spinning one may be the one that is needed */
#define FEW_CPUS 2
#define MANY_CPUS 8
#define PATIENCE_NS 10000000u
#define SHORTEST_PATIENCE_NS 50000u
#define CROWD_LOOK_NS 100000u   /* between two reads of the thread's own time, each a system call */
#define CROWD_KNOWN_NS 5000000u /* a measurement of the machine's load is valid for this long */
#define CROWDED_NS 200000u      /* if a thread's own time is this much shorter than real time, others have run */
#define SMALLEST_NS 1000u       /* below this a spin is not worth its reads of the clock */
#define SLEEPS_A_TRY 16         /* after this many, one wait spins up to LIMIT_NS, in case the other end is awake */
#define TURNS_A_CLOCK 8         /* looks at the word between two reads of the clock */

void hws_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    if (timeout_ns == 0) {
        return;
    }
    struct timespec timeout = {.tv_sec = (time_t) (timeout_ns / SECOND_NS), .tv_nsec = (long) (timeout_ns % SECOND_NS)};
    int saved = errno;
    /* A signal, the timeout or another value may end it: the caller checks for itself. */
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
    errno = saved;
}

void hws_futex_wake(uint32_t *word) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

void hws_wait_signal(uint32_t *signal) {
    __atomic_fetch_add(signal, 1, __ATOMIC_RELEASE); /* pairs with the load in hws_wait_prepare() */
    hws_futex_wake(signal);
}

static uint64_t time_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * SECOND_NS + (uint64_t) now.tv_nsec;
}

static uint64_t now_ns(void) {
    return time_ns(CLOCK_MONOTONIC);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

static int usable_cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : FEW_CPUS;
}

/*
 * The number of processors that a spin may assume. HAWSER_SPIN=off disables spinning (to measure, to save power); =on
 * forces it (tests).
 */
static int spinning_cpus(void) {
    const char *setting = getenv("HAWSER_SPIN");
    if (setting != NULL && strcmp(setting, "off") == 0) {
        return 1;
    }
    return setting != NULL && strcmp(setting, "on") == 0 ? MANY_CPUS : usable_cpus();
}

static uint32_t limit_for(int cpus) {
    return cpus < 2 ? 0 : cpus <= FEW_CPUS ? FEWER_LIMIT_NS : LIMIT_NS;
}

void hws_spin_init(hws_spin_t *spin) {
    uint32_t limit = limit_for(spinning_cpus());
    *spin = (hws_spin_t) {.limit_ns = limit, .budget_ns = limit};
}

void hws_spin_init_by_calls(hws_spin_t *spin) {
    hws_spin_init(spin);
    if (spinning_cpus() <= FEW_CPUS) {
        *spin = (hws_spin_t) {.limit_ns = 0};
    }
}

void hws_spin_begin(hws_spin_t *spin) {
    spin->turns = 0;
    spin->since_ns = 0;
}

bool hws_spin_once(hws_spin_t *spin) {
    if (spin->budget_ns == 0) {
        return false;
    }
    pause_cpu(); /* once between two looks: it takes 140 cycles on recent processors and delays the answer */
    if (++spin->turns % TURNS_A_CLOCK != 0) {
        return true;
    }
    uint64_t now = now_ns();
    if (spin->since_ns == 0) {
        spin->since_ns = now; /* a short wait never reads the clock */
        return true;
    }
    return now - spin->since_ns < spin->budget_ns;
}

void hws_spin_end(hws_spin_t *spin, bool slept) {
    if (spin->limit_ns == 0) {
        return;
    }
    if (!slept) {
        if (spin->turns != 0) {
            spin->sleeps = 0;
            spin->budget_ns = spin->budget_ns > spin->limit_ns / 2 ? spin->limit_ns : spin->budget_ns * 2;
        }
    } else if (++spin->sleeps % SLEEPS_A_TRY == 0) {
        spin->budget_ns = LIMIT_NS;
    } else {
        uint32_t half = spin->budget_ns / 2;
        spin->budget_ns = spin->sleeps > SLEEPS_A_TRY || half < SMALLEST_NS ? 0 : half;
    }
}

void hws_patience_init(hws_patience_t *patience) {
    patience->limit_ns = spinning_cpus() < MANY_CPUS ? 0 : PATIENCE_NS;
    atomic_init(&patience->budget_ns, patience->limit_ns);
    atomic_init(&patience->misses, 0);
}

bool hws_is_crowded(const char *loadavg, int cpus) {
    /* "0.20 0.18 0.12 1/80 11206": the fourth field has the number of runnable threads. */
    int running;
    return sscanf(loadavg, "%*s %*s %*s %d/", &running) == 1 && running * 8 > cpus * 3;
}

/* Reads the load only now and then, because that costs some microseconds. Any thread. */
static bool is_crowded(uint64_t now) {
    static _Atomic uint64_t looked_ns;
    static _Atomic bool crowded;
    uint64_t last_ns = atomic_load_explicit(&looked_ns, memory_order_relaxed);
    if (now - last_ns > CROWD_KNOWN_NS && atomic_compare_exchange_strong(&looked_ns, &last_ns, now)) {
        char line[128];
        int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
        ssize_t bytes = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
        if (fd >= 0) {
            close(fd);
        }
        line[bytes < 0 ? 0 : bytes] = '\0';
        atomic_store_explicit(&crowded, hws_is_crowded(line, spinning_cpus()), memory_order_relaxed);
    }
    return atomic_load_explicit(&crowded, memory_order_relaxed);
}

void hws_patient_begin(hws_patient_t *wait, hws_patience_t *patience) {
    *wait = (hws_patient_t) {.patience = patience};
    if (patience->limit_ns != 0) {
        wait->looked_ns = wait->began_ns = now_ns();
        wait->over = is_crowded(wait->began_ns);
        wait->began_ran_ns = wait->over ? 0 : time_ns(CLOCK_THREAD_CPUTIME_ID);
    }
}

bool hws_patient_once(hws_patient_t *wait) {
    uint32_t budget_ns = atomic_load_explicit(&wait->patience->budget_ns, memory_order_relaxed);
    if (wait->patience->limit_ns == 0 || wait->over) {
        return false;
    }
    pause_cpu();
    if (++wait->turns % TURNS_A_CLOCK != 0) {
        return true;
    }
    uint64_t now = now_ns(), waited_ns = now - wait->began_ns;
    if (now - wait->looked_ns > CROWD_LOOK_NS) {
        uint64_t ran_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) - wait->began_ran_ns;
        wait->looked_ns = now;
        wait->crowded = waited_ns > ran_ns + CROWDED_NS;
    }
    return !wait->crowded && waited_ns < budget_ns;
}

void hws_patient_end(hws_patient_t *wait, bool granted) {
    hws_patience_t *patience = wait->patience;
    if (patience->limit_ns == 0 || wait->turns == 0) {
        return;
    }
    uint32_t misses = granted || wait->crowded
        ? atomic_load_explicit(&patience->misses, memory_order_relaxed)
        : atomic_fetch_add_explicit(&patience->misses, 1, memory_order_relaxed) + 1;
    uint32_t budget_ns = atomic_load_explicit(&patience->budget_ns, memory_order_relaxed);
    uint32_t next_ns = hws_patience_learn(budget_ns, patience->limit_ns, granted, wait->crowded, misses);
    if (next_ns != budget_ns) { /* spares a shared cache line */
        atomic_store_explicit(&patience->budget_ns, next_ns, memory_order_relaxed);
    }
}

uint32_t hws_patience_learn(uint32_t budget_ns, uint32_t limit_ns, bool granted, bool crowded, uint32_t misses) {
    if (crowded) {
        return budget_ns / 2 < SHORTEST_PATIENCE_NS ? SHORTEST_PATIENCE_NS : budget_ns / 2;
    }
    if (granted) {
        return budget_ns > limit_ns - limit_ns / 8 ? limit_ns : budget_ns + budget_ns / 8;
    }
    return misses % SLEEPS_A_TRY == 0 ? limit_ns : budget_ns;
}

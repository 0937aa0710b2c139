#include "shared_memory.h"

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE_BYTES 64
#define MOST_THREADS 4
#define SHORT_COPY_BYTES ((size_t) 1 << 20)
#define GIVE_UP_ROUNDS 1000 /* looks before a waiter yields: with one processor the other thread could never run */

typedef struct table {
    _Alignas(LINE_BYTES) _Atomic unsigned ball;
    _Alignas(LINE_BYTES) _Atomic unsigned back;
    int rounds;
} table_t;

static void await(_Atomic unsigned *word, unsigned value) {
    for (unsigned looks = 0; atomic_load_explicit(word, memory_order_acquire) != value; looks++) {
        if (looks % GIVE_UP_ROUNDS == GIVE_UP_ROUNDS - 1) {
            sched_yield();
        } else {
            __builtin_ia32_pause();
        }
    }
}

static void *return_balls(void *argument) {
    table_t *table = argument;
    for (unsigned i = 1; i <= (unsigned) table->rounds; i++) {
        await(&table->ball, i); /* pairs with the release store in shared_memory_ping_pong() */
        atomic_store_explicit(&table->back, i, memory_order_release);
    }
    return NULL;
}

/*
 * Pins a thread to the n-th allowed processor, counted from 0. Two threads that start on one processor would share it
 * for a while, which is no cost of shared memory. With one processor there is no choice.
 */
static void stay_on(pthread_t thread, const cpu_set_t *allowed, int number) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed) && number-- == 0) {
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(thread, sizeof(one), &one);
            return;
        }
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

double shared_memory_ping_pong(int rounds) {
    int fd = memfd_create("hawser-benchmark", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(table_t)) != 0) {
        check_fail("shared memory, expected some, got none");
    }
    table_t *table = mmap(NULL, sizeof(table_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    double *seconds = malloc((size_t) rounds * sizeof(double));
    close(fd);
    if (table == MAP_FAILED || seconds == NULL) {
        check_fail("a mapping of shared memory and memory for %d times, expected both, got none", rounds);
    }
    table->rounds = rounds;
    pthread_t partner;
    if (pthread_create(&partner, NULL, return_balls, table) != 0) {
        check_fail("a thread, expected one, got none");
    }
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        check_fail("the processors that this thread may use, expected some, got none");
    }
    stay_on(pthread_self(), &allowed, 0);
    stay_on(partner, &allowed, 1);
    for (int i = 0; i < rounds; i++) {
        double start = check_seconds();
        atomic_store_explicit(&table->ball, (unsigned) i + 1, memory_order_release);
        await(&table->back, (unsigned) i + 1); /* pairs with the release store in return_balls() */
        seconds[i] = check_seconds() - start;
    }
    pthread_join(partner, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
    qsort(seconds, (size_t) rounds, sizeof(double), compare);
    double median = seconds[rounds / 2];
    free(seconds);
    munmap(table, sizeof(table_t));
    return median;
}

typedef struct part {
    char *target;
    const char *source;
    size_t bytes;
} part_t;

/* The threads that help to copy; they sleep between two copies. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    part_t parts[MOST_THREADS];
    unsigned generation;
    int helpers, unfinished;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void *help(void *argument) {
    const part_t *part = argument;
    unsigned seen = 0;
    pthread_mutex_lock(&pool.lock);
    while (true) {
        while (pool.generation == seen) {
            pthread_cond_wait(&pool.wake, &pool.lock);
        }
        seen = pool.generation;
        part_t mine = *part;
        pthread_mutex_unlock(&pool.lock);
        memcpy(mine.target, mine.source, mine.bytes);
        pthread_mutex_lock(&pool.lock);
        if (--pool.unfinished == 0) {
            pthread_cond_signal(&pool.done);
        }
    }
    return NULL;
}

int shared_memory_threads(size_t bytes) {
    cpu_set_t allowed;
    if (bytes < SHORT_COPY_BYTES || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return 1;
    }
    int processors = CPU_COUNT(&allowed);
    return processors < MOST_THREADS ? processors : MOST_THREADS;
}

double shared_memory_copy(void *target, const void *source, size_t bytes) {
    int threads = shared_memory_threads(bytes);
    if (threads == 1) {
        double start = check_seconds();
        memcpy(target, source, bytes);
        return check_seconds() - start;
    }
    for (; pool.helpers < threads - 1; pool.helpers++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, &pool.parts[pool.helpers]) != 0) {
            check_fail("a thread, expected one, got none");
        }
        pthread_detach(thread);
    }
    size_t piece = bytes / (size_t) threads / 4096 * 4096;
    double start = check_seconds();
    pthread_mutex_lock(&pool.lock);
    for (int i = 0; i < pool.helpers; i++) {
        size_t at = (size_t) i * piece;
        pool.parts[i] = (part_t) {(char *) target + at, (const char *) source + at, piece};
    }
    pool.unfinished = pool.helpers;
    pool.generation++;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    size_t at = (size_t) pool.helpers * piece;
    memcpy((char *) target + at, (const char *) source + at, bytes - at);
    pthread_mutex_lock(&pool.lock);
    while (pool.unfinished > 0) {
        pthread_cond_wait(&pool.done, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    return check_seconds() - start;
}

/*
 * The limits of shared memory on this machine, as a reference for the shm carrier. Needs no GPU, no broker and no guest
 * library. Prints one JSON object:
 *
 *   roundTripNs.word      two spinning threads pass one word back and forth: one round trip, the hardware's limit
 *   roundTripNs.ring      the same with records of 32 bytes over two rings, like a synchronous call and its reply
 *   roundTripNs.policy    the same with hws_spin_t: the ends spin for a while, then sleep
 *   roundTripNs.sleeping  the same when both ends sleep at once
 *   records               one way, committed one by one: records of 64 bytes a second; GB/s in records of 4 and 64 KiB
 *   memcpyGBs             from private memory into a file of /dev/shm, by 1, 2 and 4 threads, by size of the copy
 *
 * --rounds N (100000), --max-mib N (256).
 */
#include "shm/hws_ring.h"
#include "shm/hws_wait.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES (256u << 10)
#define SLEEP_NS 1000000000u
#define WARM_UP 1000
#define MIB (1ull << 20)
#define MOST_THREADS 4

/* The shared memory of one direction: a cache line for each word, as in the region's layout. */
typedef struct direction {
    _Alignas(64) uint64_t head;
    _Alignas(64) uint64_t tail;
    _Alignas(64) uint32_t waiting;
    uint32_t signal;
    _Alignas(64) uint32_t room_waiting;
    uint32_t room_signal;
    _Alignas(64) uint8_t bytes[RING_BYTES];
} direction_t;

typedef struct shared {
    direction_t there, back;
    _Alignas(64) uint64_t ping;
    _Alignas(64) uint64_t pong;
} shared_t;

static shared_t *shared;

static void *must(void *memory) {
    if (memory == NULL || memory == MAP_FAILED) {
        perror("ring_benchmark: memory");
        exit(1);
    }
    return memory;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *values, uint64_t count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static pthread_t start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0) {
        fprintf(stderr, "ring_benchmark: a thread must start\n");
        exit(1);
    }
    return thread;
}

/* Bare words. */
static void *pong(void *argument) {
    uint64_t rounds = *(uint64_t *) argument;
    for (uint64_t n = 1; n <= rounds; n++) {
        while (__atomic_load_n(&shared->ping, __ATOMIC_ACQUIRE) != n) {
        }
        __atomic_store_n(&shared->pong, n, __ATOMIC_RELEASE);
    }
    return NULL;
}

static uint64_t word_ns(uint64_t rounds) {
    uint64_t total = rounds + WARM_UP, *took = must(calloc(total, sizeof *took));
    pthread_t thread = start(pong, &total);
    for (uint64_t n = 1; n <= total; n++) {
        uint64_t at = now_ns();
        __atomic_store_n(&shared->ping, n, __ATOMIC_RELEASE);
        while (__atomic_load_n(&shared->pong, __ATOMIC_ACQUIRE) != n) {
        }
        took[n - 1] = now_ns() - at;
    }
    pthread_join(thread, NULL);
    uint64_t result = median(took + WARM_UP, rounds);
    free(took);
    return result;
}

/* Rings. */
typedef enum waiting { SPINNING, SLEEPING, POLICY } waiting_t;

typedef struct end {
    hws_ring_t ring;
    direction_t *at;
    waiting_t how;
    hws_spin_t spin;
} end_t;

static end_t writer(direction_t *at, waiting_t how) {
    end_t end = {.at = at, .how = how};
    hws_spin_init(&end.spin);
    at->head = at->tail = 0;
    hws_ring_attach_writer(&end.ring, at->bytes, RING_BYTES, &at->head, &at->tail);
    return end;
}

static end_t reader(direction_t *at, waiting_t how) {
    end_t end = {.at = at, .how = how};
    hws_spin_init(&end.spin);
    hws_ring_attach_reader(&end.ring, at->bytes, RING_BYTES, &at->head, &at->tail);
    return end;
}

static uint64_t look(end_t *end, bool room) {
    uint64_t bytes = room ? hws_ring_room(&end->ring) : hws_ring_available(&end->ring);
    if (bytes == HWS_RING_CORRUPT) {
        fprintf(stderr, "ring_benchmark: a ring must not become corrupt\n");
        exit(1);
    }
    return bytes;
}

static void sleep_for(end_t *end, bool room, uint64_t wanted) {
    uint32_t *waiting = room ? &end->at->room_waiting : &end->at->waiting;
    uint32_t *signal = room ? &end->at->room_signal : &end->at->signal;
    uint32_t seen = hws_wait_prepare(waiting, signal);
    if (look(end, room) < wanted) {
        hws_wait_sleep(signal, seen, SLEEP_NS);
    }
}

static uint64_t await(end_t *end, bool room, uint64_t wanted) {
    uint64_t bytes = look(end, room);
    if (bytes >= wanted) {
        return bytes;
    }
    hws_spin_begin(&end->spin);
    while ((bytes = look(end, room)) < wanted) {
        if (end->how == POLICY && !hws_spin_once(&end->spin)) {
            break;
        }
        if (end->how == SLEEPING) {
            sleep_for(end, room, wanted);
        }
    }
    bool slept = bytes < wanted;
    while (bytes < wanted) {
        sleep_for(end, room, wanted);
        bytes = look(end, room);
    }
    hws_spin_end(&end->spin, slept);
    return bytes;
}

static void send(end_t *end, const void *record, uint64_t bytes) {
    if (!hws_ring_has_room(&end->ring, bytes)) {
        await(end, true, bytes);
    }
    hws_ring_put(&end->ring, record, bytes);
    hws_ring_commit(&end->ring);
    hws_wake(&end->at->waiting, &end->at->signal);
}

static void receive(end_t *end, void *record, uint64_t bytes) {
    await(end, false, bytes);
    hws_ring_take(&end->ring, record, bytes);
    hws_ring_release(&end->ring);
    hws_wake(&end->at->room_waiting, &end->at->room_signal);
}

typedef struct job {
    end_t in, out;
    uint64_t rounds;
    uint64_t bytes;
} job_t;

static void *echo(void *argument) {
    job_t *job = argument;
    uint64_t record[4];
    for (uint64_t n = 0; n < job->rounds; n++) {
        receive(&job->in, record, sizeof record);
        send(&job->out, record, sizeof record);
    }
    return NULL;
}

static uint64_t ring_ns(uint64_t rounds, waiting_t how) {
    uint64_t total = rounds + WARM_UP, *took = must(calloc(total, sizeof *took)), record[4] = {0};
    end_t out = writer(&shared->there, how), in = reader(&shared->back, how);
    job_t job = {.in = reader(&shared->there, how), .out = writer(&shared->back, how), .rounds = total};
    pthread_t thread = start(echo, &job);
    for (uint64_t n = 0; n < total; n++) {
        uint64_t at = now_ns();
        send(&out, record, sizeof record);
        receive(&in, record, sizeof record);
        took[n] = now_ns() - at;
    }
    pthread_join(thread, NULL);
    uint64_t result = median(took + WARM_UP, rounds);
    free(took);
    return result;
}

static void *drain(void *argument) {
    job_t *job = argument;
    uint8_t *memory = must(malloc(RING_BYTES));
    uint64_t left = job->rounds * job->bytes;
    while (left != 0) {
        uint64_t bytes = await(&job->in, false, 8);
        hws_ring_take(&job->in.ring, memory, bytes);
        hws_ring_release(&job->in.ring);
        hws_wake(&job->in.at->room_waiting, &job->in.at->room_signal);
        left -= bytes;
    }
    free(memory);
    return NULL;
}

/* Records a second, one way. */
static double stream(uint64_t rounds, uint64_t bytes) {
    uint8_t *record = must(calloc(1, bytes));
    end_t out = writer(&shared->there, POLICY);
    job_t job = {.in = reader(&shared->there, POLICY), .rounds = rounds, .bytes = bytes};
    pthread_t thread = start(drain, &job);
    uint64_t at = now_ns();
    for (uint64_t n = 0; n < rounds; n++) {
        send(&out, record, bytes);
    }
    pthread_join(thread, NULL);
    uint64_t took = now_ns() - at;
    free(record);
    return (double) rounds * 1e9 / (double) took;
}

/* memcpy into shared memory. */
typedef struct copier {
    pthread_barrier_t *barrier;
    uint8_t *target, *source;
    uint64_t bytes, times;
    uint64_t start_ns, end_ns;
} copier_t;

static void *copy(void *argument) {
    copier_t *copier = argument;
    pthread_barrier_wait(copier->barrier);
    copier->start_ns = now_ns();
    for (uint64_t i = 0; i < copier->times; i++) {
        memcpy(copier->target, copier->source, copier->bytes);
    }
    copier->end_ns = now_ns();
    return NULL;
}

/* GB/s of threads that each copy their part of `bytes`, from the first start to the last end; best of three runs. */
static double copy_rate(uint8_t *target, uint8_t *source, uint64_t bytes, uint64_t threads) {
    uint64_t part = bytes / threads, times = (256 * MIB + bytes - 1) / bytes;
    double best = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        pthread_barrier_t barrier;
        pthread_t ids[MOST_THREADS];
        copier_t copiers[MOST_THREADS];
        pthread_barrier_init(&barrier, NULL, (unsigned) threads);
        for (uint64_t i = 0; i < threads; i++) {
            copiers[i] = (copier_t) {&barrier, target + i * part, source + i * part, part, times, 0, 0};
            ids[i] = start(copy, &copiers[i]);
        }
        uint64_t first = UINT64_MAX, last = 0;
        for (uint64_t i = 0; i < threads; i++) {
            pthread_join(ids[i], NULL);
            first = copiers[i].start_ns < first ? copiers[i].start_ns : first;
            last = copiers[i].end_ns > last ? copiers[i].end_ns : last;
        }
        pthread_barrier_destroy(&barrier);
        double rate = (double) (part * threads * times) / (double) (last - first);
        best = rate > best ? rate : best;
    }
    return best;
}

static void copies(uint64_t max_bytes) {
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/hawser-ring-benchmark-%d", (int) getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || unlink(path) != 0 || ftruncate(fd, (off_t) max_bytes) != 0) {
        perror(path);
        exit(1);
    }
    uint8_t *target = must(mmap(NULL, max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    uint8_t *source = must(malloc(max_bytes));
    memset(target, 1, max_bytes); /* the pages exist before the measurement */
    memset(source, 2, max_bytes);
    printf("  \"memcpyGBs\": [");
    const char *comma = "";
    for (uint64_t bytes = 4096; bytes <= max_bytes; bytes *= 16) {
        printf("%s\n    {\"bytes\": %llu", comma, (unsigned long long) bytes);
        for (uint64_t threads = 1; threads <= MOST_THREADS; threads *= 2) {
            printf(", \"threads%llu\": %.2f", (unsigned long long) threads, copy_rate(target, source, bytes, threads));
        }
        printf("}");
        comma = ",";
    }
    printf("\n  ]\n");
    munmap(target, max_bytes);
    free(source);
    close(fd);
}

int main(int argc, char **argv) {
    uint64_t rounds = 100000, max_mib = 256;
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--rounds") == 0 && value >= 100) {
            rounds = value;
        } else if (strcmp(argv[i], "--max-mib") == 0 && value >= 1) {
            max_mib = value;
        } else {
            fprintf(stderr, "usage: ring_benchmark [--rounds N (at least 100)] [--max-mib N]\n");
            return 2;
        }
    }
    shared = must(mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    printf("{\n  \"cpus\": %ld,\n", sysconf(_SC_NPROCESSORS_ONLN));
    printf("  \"roundTripNs\": {\"word\": %llu", (unsigned long long) word_ns(rounds));
    printf(", \"ring\": %llu", (unsigned long long) ring_ns(rounds, SPINNING));
    printf(", \"policy\": %llu", (unsigned long long) ring_ns(rounds, POLICY));
    printf(", \"sleeping\": %llu},\n", (unsigned long long) ring_ns(rounds / 10, SLEEPING));
    printf("  \"records\": {\"smallPerSecond\": %.0f", stream(20 * rounds, 64));
    printf(", \"gbs4k\": %.2f", stream(2 * rounds, 4096) * 4096 / 1e9);
    printf(", \"gbs64k\": %.2f},\n", stream(rounds / 10, 65536) * 65536 / 1e9);
    copies(max_mib * MIB);
    printf("}\n");
    return 0;
}

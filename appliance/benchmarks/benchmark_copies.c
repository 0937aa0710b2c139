/* Copies of all lengths, each way, from pageable and from pinned memory. */
#include "benchmark.h"

#include "plain_socket.h"
#include "shared_memory.h"

#include <pthread.h>
#include <sched.h>

static const size_t SIZES[] = {64, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20, 256 << 20};
enum { SIZE_COUNT = sizeof(SIZES) / sizeof(SIZES[0]), MOST_ROUNDS = 5000, LEAST_ROUNDS = 5 };
/* Copies from here on use several connections over TCP, so several plain sockets are their limit. */
#define SHARED_BYTES ((size_t) 16 << 20)
enum { MOST_SOCKETS = 8, USUAL_SOCKETS = 4 };
/* Bytes of copies that are issued back to back, and the fewest and most copies. */
#define ISSUED_BYTES ((size_t) 64 << 20)
#define LEAST_ISSUED ((size_t) 2)
#define MOST_ISSUED ((size_t) 1000)

/* Copies of one kind. The functions that make them return the seconds of a copy. */
typedef struct copies {
    CUdeviceptr device;
    char *host;
    size_t bytes;
    CUstream stream; /* the next two for copies that are issued back to back */
    int count;
} copies_t;

/*
 * Copies to the device and waits until all bytes have arrived. The call alone may return when the bytes have been read.
 */
static double copy_in(const copies_t *copies) {
    double start = check_seconds();
    CU_OK(cuMemcpyHtoD(copies->device, copies->host, copies->bytes));
    CU_OK(cuCtxSynchronize());
    return check_seconds() - start;
}

static double copy_out(const copies_t *copies) {
    double start = check_seconds();
    CU_OK(cuMemcpyDtoH(copies->host, copies->device, copies->bytes));
    return check_seconds() - start;
}

/* Issues copies back to back, and waits for the last one. */
static double issue_in(const copies_t *copies) {
    double start = check_seconds();
    for (int i = 0; i < copies->count; i++) {
        CU_OK(cuMemcpyHtoDAsync(copies->device, copies->host, copies->bytes, copies->stream));
    }
    CU_OK(cuStreamSynchronize(copies->stream));
    return (check_seconds() - start) / copies->count;
}

static double issue_out(const copies_t *copies) {
    double start = check_seconds();
    for (int i = 0; i < copies->count; i++) {
        CU_OK(cuMemcpyDtoHAsync(copies->host, copies->device, copies->bytes, copies->stream));
    }
    CU_OK(cuStreamSynchronize(copies->stream));
    return (check_seconds() - start) / copies->count;
}

static void print_rate(const char *part, const char *what, size_t bytes, double *seconds, int rounds) {
    char name[64];
    snprintf(name, sizeof(name), "%s.%zu", what, bytes);
    benchmark_figure(part, name, "GB/s", (double) bytes / 1e9 / benchmark_median(seconds, rounds));
}

static void measure(const benchmark_options_t *options, const char *what, double (*run)(const copies_t *),
                    const copies_t *copies) {
    static double seconds[MOST_ROUNDS];
    /* A fifth of the time warms up, because a worker runs different code for long and short copies. */
    double end = check_seconds() + options->budget_s / 5;
    do {
        run(copies);
    } while (check_seconds() < end);
    end = check_seconds() + options->budget_s;
    int rounds = 0;
    while (rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || check_seconds() < end)) {
        seconds[rounds++] = run(copies);
    }
    print_rate("copies", what, copies->bytes, seconds, rounds);
}

void benchmark_copies(const benchmark_options_t *options, bool only_pinned) {
    char *pageable = check_memory(options->max_bytes), *pinned;
    CU_OK(cuMemAllocHost_v2((void **) &pinned, options->max_bytes));
    CUdeviceptr device = check_device(NULL, options->max_bytes);
    memset(pageable, 1, options->max_bytes);
    memset(pinned, 1, options->max_bytes);
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < SIZE_COUNT && SIZES[i] <= options->max_bytes; i++) {
        size_t fitting = ISSUED_BYTES / SIZES[i];
        int count = (int) (fitting < LEAST_ISSUED ? LEAST_ISSUED : fitting > MOST_ISSUED ? MOST_ISSUED : fitting);
        copies_t slow = {device, pageable, SIZES[i], stream, count}, fast = {device, pinned, SIZES[i], stream, count};
        measure(options, "pinned_in", copy_in, &fast);
        measure(options, "pinned_out", copy_out, &fast);
        if (only_pinned) {
            continue;
        }
        measure(options, "pageable_in", copy_in, &slow);
        measure(options, "pageable_out", copy_out, &slow);
        measure(options, "issued_out", issue_out, &fast);
        measure(options, "issued_in", issue_in, &fast);
    }
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFreeHost(pinned));
    free(pageable);
}

void benchmark_small_copies(const benchmark_options_t *options) {
    long long value = 7, got = 0;
    CUdeviceptr device = check_device(&value, sizeof(value));
    double start = check_seconds();
    for (int i = 0; i < options->small_copies; i++) {
        value = i;
        CU_OK(cuMemcpyHtoD(device, &value, sizeof(value)));
    }
    CU_OK(cuCtxSynchronize());
    double middle = check_seconds();
    for (int i = 0; i < options->small_copies; i++) {
        CU_OK(cuMemcpyDtoH(&got, device, sizeof(got)));
    }
    double end = check_seconds();
    check_equal("the last of the small copies", value, got);
    benchmark_figure("small", "in", "us", (middle - start) / options->small_copies * 1e6);
    benchmark_figure("small", "out", "us", (end - middle) / options->small_copies * 1e6);
    CU_OK(cuMemFree(device));
}

/* As many connections as the guest library shares a long copy between: HAWSER_COPY_THREADS, or its default. */
static int count_sockets(void) {
    const char *setting = getenv("HAWSER_COPY_THREADS");
    int count = setting == NULL ? 0 : atoi(setting);
    cpu_set_t set;
    if (count < 1 && sched_getaffinity(0, sizeof(set), &set) == 0) {
        count = CPU_COUNT(&set) / 2 < USUAL_SOCKETS ? CPU_COUNT(&set) / 2 : USUAL_SOCKETS;
    }
    return count < MOST_SOCKETS ? count : MOST_SOCKETS;
}

/* One thread's part of a shared exchange. */
typedef struct share {
    pthread_t thread;
    plain_socket_t socket;
    char *bytes;
    size_t out, in;
} share_t;

static void *exchange_share(void *argument) {
    share_t *share = argument;
    plain_socket_exchange(&share->socket, share->bytes, share->out, share->in);
    return NULL;
}

/* Moves the bytes by all sockets at once, a thread each. */
static void exchange_shared(share_t *shares, int count, char *bytes, size_t out, size_t in) {
    for (int i = 0; i < count; i++) {
        shares[i].bytes = bytes + (size_t) i * ((out > in ? out : in) / (size_t) count);
        shares[i].out = out > in ? out / (size_t) count : out;
        shares[i].in = in > out ? in / (size_t) count : in;
        if (pthread_create(&shares[i].thread, NULL, exchange_share, &shares[i]) != 0) {
            check_fail("a thread for a plain socket, expected one, got none");
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(shares[i].thread, NULL);
    }
}

/* The means of the limits. */
typedef struct limits {
    plain_socket_t one;
    share_t *several;
    int count; /* of these */
    char *here, *there;
} limits_t;

static void one_in(const limits_t *limits, size_t bytes) {
    plain_socket_exchange(&limits->one, limits->here, bytes, 32);
}

static void one_out(const limits_t *limits, size_t bytes) {
    plain_socket_exchange(&limits->one, limits->here, 32, bytes);
}

static void several_in(const limits_t *limits, size_t bytes) {
    exchange_shared(limits->several, limits->count, limits->here, bytes, 32);
}

static void several_out(const limits_t *limits, size_t bytes) {
    exchange_shared(limits->several, limits->count, limits->here, 32, bytes);
}

static void by_memory(const limits_t *limits, size_t bytes) {
    shared_memory_copy(limits->there, limits->here, bytes);
}

static void measure_limit(const benchmark_options_t *options, const char *what, void (*move)(const limits_t *, size_t),
                          const limits_t *limits, size_t bytes) {
    static double seconds[MOST_ROUNDS];
    int rounds = -2; /* these warm up */
    for (double end = check_seconds() + options->budget_s;
         rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || check_seconds() < end); rounds++) {
        double start = check_seconds();
        move(limits, bytes);
        seconds[rounds < 0 ? 0 : rounds] = check_seconds() - start;
    }
    print_rate("limits", what, bytes, seconds, rounds);
}

void benchmark_limits(const benchmark_options_t *options) {
    static double seconds[MOST_ROUNDS];
    plain_socket_t plain = plain_socket_open(); /* forks, so it comes before anything else */
    share_t shares[MOST_SOCKETS];
    int count = count_sockets();
    for (int i = 0; i < count; i++) {
        shares[i].socket = plain_socket_open();
    }
    char *here = check_memory(options->max_bytes), *there = check_memory(options->max_bytes);
    memset(here, 1, options->max_bytes);
    memset(there, 1, options->max_bytes);
    for (int i = -500; i < MOST_ROUNDS; i++) {
        double start = check_seconds();
        plain_socket_exchange(&plain, here, 64, 64);
        seconds[i < 0 ? 0 : i] = check_seconds() - start; /* the first ones are written over */
    }
    benchmark_figure("limits", "socket_round_trip", "us", benchmark_median(seconds, MOST_ROUNDS) * 1e6);
    benchmark_figure("limits", "memory_round_trip", "us", shared_memory_ping_pong(20000) * 1e6);
    const limits_t limits = {plain, shares, count, here, there};
    for (int i = 0; i < SIZE_COUNT && SIZES[i] <= options->max_bytes; i++) {
        measure_limit(options, "socket_in", one_in, &limits, SIZES[i]);
        measure_limit(options, "socket_out", one_out, &limits, SIZES[i]);
        measure_limit(options, "memory", by_memory, &limits, SIZES[i]);
        if (SIZES[i] >= SHARED_BYTES && count > 1) {
            measure_limit(options, "sockets_out", several_out, &limits, SIZES[i]);
            measure_limit(options, "sockets_in", several_in, &limits, SIZES[i]);
        }
    }
    plain_socket_close(&plain);
    for (int i = 0; i < count; i++) {
        plain_socket_close(&shares[i].socket);
    }
    free(here);
    free(there);
}

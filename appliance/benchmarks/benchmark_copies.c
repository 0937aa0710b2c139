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

/*
 * Copies to the device and waits until all bytes have arrived. The call alone may return when the bytes have been read.
 */
static double copy_in(CUdeviceptr device, void *host, size_t bytes) {
    double start = check_seconds();
    CU_OK(cuMemcpyHtoD(device, host, bytes));
    CU_OK(cuCtxSynchronize());
    return check_seconds() - start;
}

static double copy_out(CUdeviceptr device, void *host, size_t bytes) {
    double start = check_seconds();
    CU_OK(cuMemcpyDtoH(host, device, bytes));
    return check_seconds() - start;
}

static void print_rate(const char *part, const char *what, size_t bytes, double *seconds, int rounds) {
    char name[64];
    snprintf(name, sizeof(name), "%s.%zu", what, bytes);
    benchmark_figure(part, name, "GB/s", (double) bytes / 1e9 / benchmark_median(seconds, rounds));
}

/* Issues copies of pinned memory back to back, and waits for the last one. Returns the seconds of each. */
static double issue(int is_in, CUdeviceptr device, char *pinned, size_t bytes, int count, CUstream stream) {
    double start = check_seconds();
    for (int i = 0; i < count; i++) {
        CU_OK(is_in ? cuMemcpyHtoDAsync(device, pinned, bytes, stream)
                    : cuMemcpyDtoHAsync(pinned, device, bytes, stream));
    }
    CU_OK(cuStreamSynchronize(stream));
    return (check_seconds() - start) / count;
}

static void measure_issued(const benchmark_options_t *options, CUdeviceptr device, char *pinned, size_t bytes) {
    static double seconds[MOST_ROUNDS];
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    size_t fitting = ISSUED_BYTES / bytes;
    int count = (int) (fitting < LEAST_ISSUED ? LEAST_ISSUED : fitting > MOST_ISSUED ? MOST_ISSUED : fitting);
    for (int is_in = 0; is_in < 2; is_in++) {
        double end = check_seconds() + options->budget_s / 5; /* as in measure_copies() */
        do {
            issue(is_in, device, pinned, bytes, count, stream);
        } while (check_seconds() < end);
        end = check_seconds() + options->budget_s;
        int rounds = 0;
        while (rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || check_seconds() < end)) {
            seconds[rounds++] = issue(is_in, device, pinned, bytes, count, stream);
        }
        print_rate("copies", is_in ? "issued_in" : "issued_out", bytes, seconds, rounds);
    }
    CU_OK(cuStreamDestroy(stream));
}

static void measure_copies(const benchmark_options_t *options, const char *what,
                           double (*copy)(CUdeviceptr, void *, size_t), CUdeviceptr device, void *host, size_t bytes) {
    static double seconds[MOST_ROUNDS];
    /* A fifth of the time warms up, because a worker runs different code for long and short copies. */
    double end = check_seconds() + options->budget_s / 5;
    do {
        copy(device, host, bytes);
    } while (check_seconds() < end);
    end = check_seconds() + options->budget_s;
    int rounds = 0;
    while (rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || check_seconds() < end)) {
        seconds[rounds++] = copy(device, host, bytes);
    }
    print_rate("copies", what, bytes, seconds, rounds);
}

void benchmark_copies(const benchmark_options_t *options) {
    char *pageable = check_memory(options->max_bytes), *pinned;
    CU_OK(cuMemAllocHost_v2((void **) &pinned, options->max_bytes));
    CUdeviceptr device = check_device(NULL, options->max_bytes);
    memset(pageable, 1, options->max_bytes);
    memset(pinned, 1, options->max_bytes);
    for (int i = 0; i < SIZE_COUNT && SIZES[i] <= options->max_bytes; i++) {
        measure_copies(options, "pinned_in", copy_in, device, pinned, SIZES[i]);
        measure_copies(options, "pinned_out", copy_out, device, pinned, SIZES[i]);
        measure_copies(options, "pageable_in", copy_in, device, pageable, SIZES[i]);
        measure_copies(options, "pageable_out", copy_out, device, pageable, SIZES[i]);
        measure_issued(options, device, pinned, SIZES[i]);
    }
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

static void measure_shared(const benchmark_options_t *options, share_t *shares, int count, char *bytes, size_t size) {
    static double seconds[MOST_ROUNDS];
    for (int is_in = 0; is_in < 2; is_in++) {
        int rounds = -2; /* these warm up */
        for (double end = check_seconds() + options->budget_s;
             rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || check_seconds() < end); rounds++) {
            double start = check_seconds();
            exchange_shared(shares, count, bytes, is_in ? size : 32, is_in ? 32 : size);
            seconds[rounds < 0 ? 0 : rounds] = check_seconds() - start;
        }
        print_rate("limits", is_in ? "sockets_in" : "sockets_out", size, seconds, rounds);
    }
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
    for (int i = 0; i < SIZE_COUNT && SIZES[i] <= options->max_bytes; i++) {
        for (int kind = 0; kind < 3; kind++) {
            int rounds = -2; /* these warm up */
            for (double end = check_seconds() + options->budget_s;
                 rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || check_seconds() < end); rounds++) {
                double start = check_seconds(), took;
                if (kind == 0) {
                    plain_socket_exchange(&plain, here, SIZES[i], 32);
                } else if (kind == 1) {
                    plain_socket_exchange(&plain, here, 32, SIZES[i]);
                } else {
                    shared_memory_copy(there, here, SIZES[i]);
                }
                took = check_seconds() - start;
                seconds[rounds < 0 ? 0 : rounds] = took;
            }
            print_rate("limits",
                       kind == 0       ? "socket_in"
                           : kind == 1 ? "socket_out"
                                       : "memory",
                       SIZES[i], seconds, rounds);
        }
        if (SIZES[i] >= SHARED_BYTES && count > 1) {
            measure_shared(options, shares, count, here, SIZES[i]);
        }
    }
    plain_socket_close(&plain);
    for (int i = 0; i < count; i++) {
        plain_socket_close(&shares[i].socket);
    }
    free(here);
    free(there);
}

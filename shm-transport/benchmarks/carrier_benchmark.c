/* The guest side of appliance/benchmark: what calls and copies cost through Hawser, each beside what the carrier alone can do in the same
 * run: a plain socket over loopback (tcp), two threads and memcpy over shared memory (shm). Prints one JSON object.
 *
 *   --first-kernel 1  measures only the time from the first call to the end of the first kernel
 *   --crowd MS        one guest of several: says READY, waits until standard input ends, then works for so long on each of calls that
 *                     wait, calls that do not, and copies, and says how many it made a second
 *   --max MiB         bounds the copies (256)
 *   --hold 1          waits, once measured, until standard input ends, so that memory can be looked at */
#include "check_driver.h"
#include "plain_socket.h"
#include "shared_memory.h"

#include <stdbool.h>

#define ROUNDS 3000
#define BLOCK 100 /* rounds of one kind before the next kind's turn */
#define WARM_UP_BLOCKS 3

static const char IMAGE[] = ".version 6.4\n.target sm_75\n.address_size 64\n"
        ".visible .entry four(.param .u64 a, .param .u64 b, .param .u32 c, .param .f32 d)\n{\n    ret;\n}\n";

/* What the carrier can do without Hawser. */
typedef struct limits {
    bool shared_memory;
    plain_socket_t socket;
} limits_t;

static int compare(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count) {
    qsort(values, (size_t) count, sizeof(double), compare);
    return values[count / 2];
}

static CUfunction load(void) {
    CUmodule module;
    CU_OK(cuModuleLoadData(&module, IMAGE));
    return check_function(module, "four");
}

static void launch(CUfunction function, CUstream stream) {
    CUdeviceptr a = 0, b = 0;
    int c = 1;
    float d = 2;
    CHECK_LAUNCH(function, 1, 1, 0, stream, &a, &b, &c, &d);
}

/* Seconds from the first CUDA call to the end of the first kernel: connect, context, image, launch, synchronise. */
static double first_kernel(void) {
    double start = check_seconds();
    check_context();
    launch(load(), NULL);
    CU_OK(cuCtxSynchronize());
    return check_seconds() - start;
}

/* The calls whose round trip is measured. */
enum { SYNCHRONIZE, COPY_IN, COPY_OUT, LAUNCH, CALLS };

static void call(int which, CUfunction function, CUdeviceptr device) {
    static char bytes[64];
    switch (which) {
        case SYNCHRONIZE:
            break;
        case COPY_IN:
            CU_OK(cuMemcpyHtoD(device, bytes, sizeof(bytes)));
            break;
        case COPY_OUT:
            CU_OK(cuMemcpyDtoH(bytes, device, sizeof(bytes)));
            return;
        case LAUNCH:
            launch(function, NULL);
            break;
        default:
            abort();
    }
    CU_OK(cuCtxSynchronize());
}

static double limit_round_trip(const limits_t *limits) {
    static double seconds[BLOCK];
    char bytes[64] = {0};
    if (limits->shared_memory) {
        return shared_memory_ping_pong(20 * BLOCK);
    }
    for (int i = 0; i < BLOCK; i++) {
        double start = check_seconds();
        plain_socket_exchange(&limits->socket, bytes, sizeof(bytes), sizeof(bytes));
        seconds[i] = check_seconds() - start;
    }
    return median(seconds, BLOCK);
}

static void round_trips(const limits_t *limits, CUfunction function, CUdeviceptr device) {
    static double seconds[CALLS][ROUNDS], limit[ROUNDS / BLOCK];
    /* In turns, so that whatever else the machine does falls on all alike. */
    for (int block = -WARM_UP_BLOCKS; block < ROUNDS / BLOCK; block++) {
        for (int which = 0; which < CALLS; which++) {
            for (int i = 0; i < BLOCK; i++) {
                double start = check_seconds();
                call(which, function, device);
                double took = check_seconds() - start;
                if (block >= 0) {
                    seconds[which][block * BLOCK + i] = took;
                }
            }
        }
        double least = limit_round_trip(limits);
        if (block >= 0) {
            limit[block] = least;
        }
    }
    printf("  \"roundTripUs\": {\"limit\": %.3f, \"synchronize\": %.2f, \"copy64In\": %.2f, \"copy64Out\": %.2f, "
           "\"launchSynchronize\": %.2f},\n", median(limit, ROUNDS / BLOCK) * 1e6, median(seconds[SYNCHRONIZE], ROUNDS) * 1e6,
            median(seconds[COPY_IN], ROUNDS) * 1e6, median(seconds[COPY_OUT], ROUNDS) * 1e6, median(seconds[LAUNCH], ROUNDS) * 1e6);
}

static void asynchronous(CUfunction function) {
    enum { EVENTS = 400000, LAUNCHES = 50000, BURSTS = 400, BURST = 64, SERIES = 3 };
    static double stub[BURSTS];
    double events[SERIES], launches[SERIES];
    CUstream stream;
    CUevent event;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int series = 0; series < SERIES; series++) {
        double start = check_seconds();
        for (int i = 0; i < EVENTS; i++) {
            CU_OK(cuEventRecord(event, stream));
        }
        CU_OK(cuStreamSynchronize(stream));
        events[series] = EVENTS / (check_seconds() - start);
        start = check_seconds();
        for (int i = 0; i < LAUNCHES; i++) {
            launch(function, stream);
        }
        CU_OK(cuStreamSynchronize(stream));
        launches[series] = LAUNCHES / (check_seconds() - start);
    }
    /* Short bursts with a wait between them: neither credit nor a full buffer holds the caller up, only the stub is measured. */
    for (int i = 0; i < BURSTS; i++) {
        double start = check_seconds();
        for (int k = 0; k < BURST; k++) {
            launch(function, stream);
        }
        stub[i] = (check_seconds() - start) / BURST;
        CU_OK(cuStreamSynchronize(stream));
    }
    printf("  \"asynchronous\": {\"eventRecordsPerSecond\": %.0f, \"launchesPerSecond\": %.0f, \"launchStubNs\": %.0f},\n",
            median(events, SERIES), median(launches, SERIES), median(stub, BURSTS) * 1e9);
    CU_OK(cuEventDestroy(event));
    CU_OK(cuStreamDestroy(stream));
}

/* A copy to the device, all of which has arrived when this returns: the call itself may return when the bytes are taken. */
static double copy_in(CUdeviceptr device, const void *host, size_t bytes) {
    double start = check_seconds();
    CU_OK(cuMemcpyHtoD(device, host, bytes));
    CU_OK(cuCtxSynchronize());
    return check_seconds() - start;
}

static double copy_out(void *host, CUdeviceptr device, size_t bytes) {
    double start = check_seconds();
    CU_OK(cuMemcpyDtoH(host, device, bytes));
    return check_seconds() - start;
}

static double limit_in(const limits_t *limits, void *pinned, void *pageable, size_t bytes) {
    if (limits->shared_memory) {
        return shared_memory_copy(pinned, pageable, bytes);
    }
    double start = check_seconds();
    plain_socket_exchange(&limits->socket, pageable, bytes, 32);
    return check_seconds() - start;
}

static double limit_out(const limits_t *limits, void *pinned, void *pageable, size_t bytes) {
    if (limits->shared_memory) {
        return shared_memory_copy(pageable, pinned, bytes);
    }
    double start = check_seconds();
    plain_socket_exchange(&limits->socket, pageable, 32, bytes);
    return check_seconds() - start;
}

static void copies(const limits_t *limits, size_t max_bytes) {
    enum { MOST = 200, KINDS = 6 };
    char *pageable = check_memory(max_bytes), *pinned;
    CU_OK(cuMemAllocHost_v2((void **) &pinned, max_bytes));
    CUdeviceptr device = check_device(NULL, max_bytes);
    memset(pageable, 1, max_bytes);
    memset(pinned, 1, max_bytes);
    printf("  \"copies\": [");
    for (size_t bytes = 4096; bytes <= max_bytes; bytes *= 4) {
        static double seconds[KINDS][MOST];
        int rounds = (int) ((256u << 20) / bytes);
        rounds = rounds < 3 ? 3 : rounds > MOST ? MOST : rounds;
        for (int i = -1; i < rounds; i++) {
            int at = i < 0 ? 0 : i; /* the first round warms up, and is written over */
            seconds[0][at] = copy_in(device, pageable, bytes);
            seconds[1][at] = copy_out(pageable, device, bytes);
            seconds[2][at] = copy_in(device, pinned, bytes);
            seconds[3][at] = copy_out(pinned, device, bytes);
            seconds[4][at] = limit_in(limits, pinned, pageable, bytes);
            seconds[5][at] = limit_out(limits, pinned, pageable, bytes);
        }
        double rate[KINDS];
        for (int kind = 0; kind < KINDS; kind++) {
            rate[kind] = (double) bytes / 1e6 / median(seconds[kind], rounds);
        }
        printf("%s\n    {\"bytes\": %zu, \"pageableInMBps\": %.0f, \"pageableOutMBps\": %.0f, \"pinnedInMBps\": %.0f, "
               "\"pinnedOutMBps\": %.0f, \"limitInMBps\": %.0f, \"limitOutMBps\": %.0f, \"limitThreads\": %d}",
                bytes == 4096 ? "" : ",", bytes, rate[0], rate[1], rate[2], rate[3], rate[4], rate[5],
                limits->shared_memory ? shared_memory_threads(bytes) : 1);
        fflush(stdout);
    }
    printf("\n  ],\n");
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFreeHost(pinned));
    free(pageable);
}

static void await_end_of_input(void) {
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
}

/* One of several guests at once. */
static int crowd(double seconds) {
    enum { BYTES = 1 << 20, BURST = 100 };
    check_context();
    CUfunction function = load();
    char *host = check_memory(BYTES);
    CUdeviceptr device = check_device(host, BYTES);
    launch(function, NULL);
    CU_OK(cuCtxSynchronize());
    printf("READY\n");
    fflush(stdout);
    await_end_of_input();
    long done[3] = {0};
    double took[3], begin = check_seconds();
    for (int kind = 0; kind < 3; kind++) {
        /* To an end that all guests have in common: one that is late must not measure what the others have left. */
        double start = check_seconds(), end = begin + (kind + 1) * seconds;
        do {
            if (kind == 0) {
                for (int i = 0; i < 10; i++) {
                    CU_OK(cuCtxSynchronize());
                }
                done[0] += 10;
            } else if (kind == 1) {
                for (int i = 0; i < BURST; i++) {
                    launch(function, NULL);
                }
                CU_OK(cuCtxSynchronize());
                done[1] += BURST;
            } else {
                CU_OK(cuMemcpyHtoD(device, host, BYTES));
                CU_OK(cuMemcpyDtoH(host, device, BYTES));
                done[2] += 2;
            }
        } while (check_seconds() < end);
        took[kind] = check_seconds() - start;
    }
    printf("{\"roundTripsPerSecond\": %.0f, \"launchesPerSecond\": %.0f, \"pageableMBps\": %.0f}\n", (double) done[0] / took[0],
            (double) done[1] / took[1], (double) done[2] * BYTES / 1e6 / took[2]);
    CU_OK(cuMemFree(device));
    free(host);
    return 0;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (check_option("--first-kernel", 0)) {
        printf("{\"firstKernelMs\": %.1f}\n", first_kernel() * 1e3);
        return 0;
    }
    if (check_option("--crowd", 0) > 0) {
        return crowd((double) check_option("--crowd", 0) / 1e3);
    }
    const char *carrier = getenv("HAWSER_CARRIER");
    limits_t limits = {.shared_memory = carrier != NULL && strcmp(carrier, "shm") == 0};
    if (!limits.shared_memory) {
        limits.socket = plain_socket_open();
    }
    first_kernel();
    CUfunction function = load();
    CUdeviceptr device = check_device(NULL, 4096);
    char name[256];
    CU_OK(cuDeviceGetName(name, sizeof(name), 0));
    printf("{\n  \"device\": \"%s\",\n", name);
    round_trips(&limits, function, device);
    asynchronous(function);
    copies(&limits, (size_t) check_option("--max", 256) << 20);
    printf("  \"measured\": true\n}\n");
    fflush(stdout);
    if (!limits.shared_memory) {
        plain_socket_close(&limits.socket);
    }
    if (check_option("--hold", 0)) {
        await_end_of_input();
    }
    CU_OK(cuMemFree(device));
    return 0;
}

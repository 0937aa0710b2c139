/* A guest that uses the GPU together with others for a while and prints its part, for measurements of shares. Its work
 * consists of equal pieces: a copy, a kernel, or a copy and a kernel.
 *
 *   --bodies N    size of a kernel's work, which grows with N; 0: no kernels; default 4096
 *   --copy-kib N  length of a copy from pinned memory to the device; default 0: no copies
 *   --blocks N    blocks of 256 threads; default 64
 *   --depth N     pieces in flight; with 1 it waits for each; default 1
 *   --seconds N   length of the measurement; with 0 it measures one piece and ends
 *   --warm-up N   milliseconds of the same work before READY; default 500
 *   --at N        start time in seconds of the clock; default: when standard input ends, after READY
 *
 * Prints one line of JSON: the number of pieces ("kernels") that ended within the time, and the longest and the median
 * time from the issue of one to its end. */
#include "check_driver.h"

#include <time.h>

enum { MAX_DEPTH = 256, THREADS = 256, MAX_SAMPLES = 1 << 20 };

static CUfunction forces_of;
static CUdeviceptr bodies, forces, copied;
static void *pinned;
static size_t copy_bytes; /* 0: no copies */
static int count;         /* 0: no kernels */
static unsigned blocks;

static double clock_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static void issue(void) {
    if (copy_bytes) {
        CU_OK(cuMemcpyHtoDAsync(copied, pinned, copy_bytes, NULL));
    }
    if (!count) {
        return;
    }
    void *parameters[] = {&bodies, &forces, &count};
    CU_OK(cuLaunchKernel(forces_of, blocks, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
}

/* The pieces of a period, at most `depth` of them in flight. */
typedef struct work {
    long depth, in_time, samples;
    double longest;
} work_t;

static CUevent events[MAX_DEPTH];
static double *took; /* from the issue of a piece to its end, in seconds */

/* Issues pieces until `end` on the clock, at least one, and waits for all. */
static void run(work_t *work, double end) {
    double begun[MAX_DEPTH], now = clock_s(CLOCK_MONOTONIC);
    long issued = 0, ended = 0;
    work->in_time = work->samples = 0;
    work->longest = 0;
    do {
        if ((issued == 0 || now < end) && issued - ended < work->depth) {
            begun[issued % work->depth] = now;
            issue();
            CU_OK(cuEventRecord(events[issued % work->depth], NULL));
            issued++;
        }
        if (issued - ended == work->depth || now >= end) {
            CU_OK(cuEventSynchronize(events[ended % work->depth]));
            now = clock_s(CLOCK_MONOTONIC);
            double time = now - begun[ended % work->depth];
            work->longest = time > work->longest ? time : work->longest;
            if (work->samples < MAX_SAMPLES) {
                took[work->samples++] = time;
            }
            work->in_time += now <= end;
            ended++;
        }
        now = clock_s(CLOCK_MONOTONIC);
    } while (now < end || ended < issued);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static void await_start(long at) {
    printf("READY\n");
    fflush(stdout);
    if (at) {
        struct timespec when = {.tv_sec = at};
        while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &when, NULL)) {
        }
        return;
    }
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    count = (int) check_option("--bodies", 4096) / THREADS * THREADS;
    blocks = (unsigned) check_option("--blocks", 64);
    long depth = check_option("--depth", 1), seconds = check_option("--seconds", 2);
    size_t most = (size_t) count > (size_t) blocks * THREADS ? (size_t) count : (size_t) blocks * THREADS;
    copy_bytes = (size_t) check_option("--copy-kib", 0) << 10;
    if (count < 0 || (count == 0 && copy_bytes == 0) || depth < 1 || depth > MAX_DEPTH) {
        fprintf(stderr, "tenant: --bodies is %d or more, or 0 with --copy-kib, and --depth 1 to %d\n", THREADS,
                MAX_DEPTH);
        return 2;
    }
    if (copy_bytes) {
        copied = check_device(NULL, copy_bytes);
        CU_OK(cuMemHostAlloc(&pinned, copy_bytes, 0));
        memset(pinned, 1, copy_bytes);
    }
    forces_of = check_function(check_module("benchmark.ptx"), "nbody_forces");
    bodies = check_device(NULL, most * 16);
    forces = check_device(NULL, (size_t) blocks * THREADS * 16);
    CU_OK(cuMemsetD32(bodies, 0x3f800000, most * 4));
    took = check_memory(MAX_SAMPLES * sizeof *took);
    for (long i = 0; i < depth; i++) {
        CU_OK(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    }
    work_t work = {.depth = seconds == 0 ? 1 : depth};
    run(&work, clock_s(CLOCK_MONOTONIC) + (double) check_option("--warm-up", 500) * 1e-3);
    if (seconds == 0) {
        printf("{\"name\": \"kernel\", \"ms\": %.4f}\n", took[work.samples - 1] * 1e3);
        return 0;
    }
    await_start(check_option("--at", 0));
    run(&work, clock_s(CLOCK_MONOTONIC) + (double) seconds);
    qsort(took, (size_t) work.samples, sizeof *took, compare);
    printf("{\"name\": \"tenant\", \"kernels\": %ld, \"longest_ms\": %.3f, \"middle_ms\": %.3f, \"p99_ms\": %.3f}\n",
           work.in_time, work.longest * 1e3, took[work.samples / 2] * 1e3, took[work.samples * 99 / 100] * 1e3);
    return 0;
}

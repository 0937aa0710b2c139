/*
 * A benchmark over the Driver API for any libcuda.so.1: NVIDIA's driver or Hawser. hawser-check runs it with both and
 * compares. Prints figures as lines of JSON.
 *
 *   hawser_benchmark PART... [--option N]...
 *
 * device        the name of the GPU
 * start         milliseconds of cuInit, and from the first call to the end of the first kernel; only as the first part
 * calls         latencies of calls that wait, cost of calls that do not, events and launches a second, allocations
 * latencies     only the calls that wait
 * copies        64 B to 256 MiB, pageable and pinned, both ways
 * pinned        only the copies of pinned memory that the program waits for
 * small         many synchronous copies of 8 bytes
 * managed       managed memory that host and kernels use in turn: passes, single words
 * applications  loops of kernels that depend on each other, with small copies between
 * tenant        prints READY, waits until standard input ends, then does a fixed amount of work
 * rates         round trips, launches and copied bytes a second, for a given time
 * limits        a plain socket and shared memory without CUDA; only as the first part
 *
 *   --budget MS (250), --warm-up MS (1500), --max MiB (256), --small N (100000), --scale PERCENT (100)
 *   --light 1     the loops have smaller matrices and fewer bodies, for a software GPU
 */
#include "benchmark.h"

enum { BLOCK = 100 /* rounds of one kind before the next kind's turn */ };

static int compare(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

double benchmark_median(double *values, int count) {
    qsort(values, (size_t) count, sizeof(double), compare);
    return values[count / 2];
}

void benchmark_figure(const char *part, const char *what, const char *unit, double value) {
    printf("{\"name\": \"%s.%s\", \"unit\": \"%s\", \"value\": %.6g}\n", part, what, unit, value);
    fflush(stdout);
}

void benchmark_figure_with_mean(const char *part, const char *what, const char *unit, double median, double mean) {
    printf("{\"name\": \"%s.%s\", \"unit\": \"%s\", \"value\": %.6g, \"mean\": %.6g}\n", part, what, unit, median,
           mean);
    fflush(stdout);
}

CUfunction benchmark_function(const char *file, const char *name) {
    return check_function(check_module(file), name);
}

void benchmark_launch(CUfunction four, CUstream stream) {
    CUdeviceptr a = 0, b = 0;
    int c = 1;
    float d = 2;
    CHECK_LAUNCH(four, 1, 1, 0, stream, &a, &b, &c, &d);
}

void benchmark_await_end_of_input(void) {
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
}

static void device(void) {
    char name[256];
    size_t bytes;
    int devices, version, major, minor;
    CU_OK(cuDeviceGetCount(&devices));
    CU_OK(cuDeviceGetName(name, sizeof(name), 0));
    CU_OK(cuDeviceTotalMem(&bytes, 0));
    CU_OK(cuDriverGetVersion(&version));
    CU_OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    CU_OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    printf(
        "{\"name\": \"device\", \"device\": \"%s\", \"devices\": %d, \"memoryMiB\": %zu, \"cudaVersion\": \"%d.%d\", "
        "\"computeCapability\": \"%d.%d\"}\n",
        name, devices, bytes >> 20, version / 1000, version % 1000 / 10, major, minor);
    fflush(stdout);
}

static void start(void) {
    double begin = check_seconds();
    CU_OK(cuInit(0));
    double initialised = check_seconds();
    check_context();
    benchmark_launch(benchmark_function("benchmark.ptx", "four"), NULL);
    CU_OK(cuCtxSynchronize());
    double end = check_seconds();
    benchmark_figure("start", "init", "ms", (initialised - begin) * 1e3);
    benchmark_figure("start", "first_kernel", "ms", (end - begin) * 1e3);
}

/* The calls whose latency is measured. */
enum { SYNCHRONIZE, COPY_IN, COPY_IN_SYNCHRONIZE, COPY_OUT, LAUNCH_SYNCHRONIZE, CALLS };
static const char *const CALL_NAMES[CALLS] = {"synchronize", "copy64_in", "copy64_in_synchronize", "copy64_out",
                                              "launch_synchronize"};

static void call(int which, CUfunction function, CUdeviceptr memory) {
    static char bytes[64];
    switch (which) {
        case SYNCHRONIZE:
            CU_OK(cuCtxSynchronize());
            break;
        case COPY_IN:
            CU_OK(cuMemcpyHtoD(memory, bytes, sizeof(bytes)));
            break;
        case COPY_IN_SYNCHRONIZE:
            CU_OK(cuMemcpyHtoD(memory, bytes, sizeof(bytes)));
            CU_OK(cuCtxSynchronize());
            break;
        case COPY_OUT:
            CU_OK(cuMemcpyDtoH(bytes, memory, sizeof(bytes)));
            break;
        case LAUNCH_SYNCHRONIZE:
            benchmark_launch(function, NULL);
            CU_OK(cuCtxSynchronize());
            break;
        default:
            abort();
    }
}

/* Calls of all kinds, until the worker's code is compiled. */
static void warm_up(const benchmark_options_t *options, CUfunction function, CUdeviceptr memory) {
    CUevent event;
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (double end = check_seconds() + options->warm_up_s; check_seconds() < end;) {
        for (int which = 0; which < CALLS; which++) {
            for (int i = 0; i < BLOCK; i++) {
                call(which, function, memory);
            }
        }
        for (int i = 0; i < 10 * BLOCK; i++) {
            CU_OK(cuEventRecord(event, NULL));
            benchmark_launch(function, NULL);
        }
        CU_OK(cuCtxSynchronize());
    }
    CU_OK(cuEventDestroy(event));
}

static void latencies(const benchmark_options_t *options, CUfunction function, CUdeviceptr memory) {
    enum { ROUNDS = 10000 };
    static double seconds[CALLS][ROUNDS];
    double sums[CALLS] = {0};
    int rounds = 0;
    /* The kinds alternate, so that other load of the machine affects all alike. */
    double end = check_seconds() + CALLS * options->budget_s;
    while (rounds < ROUNDS && (rounds < 3 * BLOCK || check_seconds() < end)) {
        for (int which = 0; which < CALLS; which++) {
            for (int i = 0; i < BLOCK; i++) {
                double begin = check_seconds();
                call(which, function, memory);
                double took = check_seconds() - begin;
                seconds[which][rounds + i] = took;
                sums[which] += took;
            }
            CU_OK(cuCtxSynchronize());
        }
        rounds += BLOCK;
    }
    for (int which = 0; which < CALLS; which++) {
        benchmark_figure_with_mean("calls", CALL_NAMES[which], "us", benchmark_median(seconds[which], rounds) * 1e6,
                                   sums[which] / rounds * 1e6);
    }
}

/* The executed calls a second when issued in bursts; the median of several series. */
static double executed_rate(const benchmark_options_t *options, CUfunction function, CUstream stream, CUevent event) {
    enum { SERIES = 5, BURST = 10000 };
    double rates[SERIES];
    for (int series = 0; series < SERIES; series++) {
        long done = 0;
        double begin = check_seconds(), end = begin + options->budget_s / 2;
        do {
            for (int i = 0; i < BURST; i++) {
                if (function != NULL) {
                    benchmark_launch(function, stream);
                } else {
                    CU_OK(cuEventRecord(event, stream));
                }
            }
            done += BURST;
        } while (check_seconds() < end);
        CU_OK(cuStreamSynchronize(stream));
        rates[series] = (double) done / (check_seconds() - begin);
    }
    return benchmark_median(rates, SERIES);
}

static void asynchronous(const benchmark_options_t *options, CUfunction function) {
    enum { BURSTS = 1000, BURST = 64 };
    static double stub[BURSTS];
    double sum = 0;
    CUstream stream;
    CUevent event;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    benchmark_figure("calls", "events", "1/s", executed_rate(options, NULL, stream, event));
    benchmark_figure("calls", "launches", "1/s", executed_rate(options, function, stream, NULL));
    /*
     * Short bursts with a wait between them: neither credit nor a full queue delays the caller, so only the call is
     * measured.
     */
    int bursts = 0;
    for (double end = check_seconds() + options->budget_s; bursts < BURSTS && (bursts < 50 || check_seconds() < end);
         bursts++) {
        double begin = check_seconds();
        for (int k = 0; k < BURST; k++) {
            benchmark_launch(function, stream);
        }
        stub[bursts] = (check_seconds() - begin) / BURST;
        sum += stub[bursts];
        CU_OK(cuStreamSynchronize(stream));
    }
    benchmark_figure_with_mean("calls", "launch_cost", "us", benchmark_median(stub, bursts) * 1e6, sum / bursts * 1e6);
    CU_OK(cuEventDestroy(event));
    CU_OK(cuStreamDestroy(stream));
}

/* Times one round of a call sequence again and again. */
static void repeat(const benchmark_options_t *options, const char *name, double parts, void (*round)(void *),
                   void *argument) {
    enum { ROUNDS = 5000 };
    static double seconds[ROUNDS];
    double sum = 0;
    int rounds = -20; /* these warm up */
    for (double end = check_seconds() + options->budget_s; rounds < ROUNDS && (rounds < 20 || check_seconds() < end);
         rounds++) {
        double begin = check_seconds();
        round(argument);
        if (rounds >= 0) {
            seconds[rounds] = (check_seconds() - begin) / parts;
            sum += seconds[rounds];
        }
    }
    benchmark_figure_with_mean("calls", name, "us", benchmark_median(seconds, rounds) * 1e6, sum / rounds * 1e6);
}

#define ROW 32

static void allocate_and_free(void *bytes) {
    CUdeviceptr memory;
    CU_OK(cuMemAlloc(&memory, *(const size_t *) bytes));
    CU_OK(cuMemFree(memory));
}

static void allocate_row_and_free(void *bytes) {
    CUdeviceptr memory[ROW];
    for (int i = 0; i < ROW; i++) {
        CU_OK(cuMemAlloc(&memory[i], *(const size_t *) bytes));
    }
    for (int i = 0; i < ROW; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
}

static void use_stream(void *memory) {
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    static const char bytes[64];
    CU_OK(cuMemcpyHtoDAsync(*(const CUdeviceptr *) memory, bytes, sizeof bytes, stream));
    CU_OK(cuStreamDestroy(stream));
}

/* Allocations one by one, and 32 in a row; streams that are used once. */
static void allocations(const benchmark_options_t *options) {
    static const size_t sizes[] = {4096, 1 << 20, 64 << 20, 256 << 20, 1 << 30}, rows[] = {1 << 20, 16 << 20};
    char name[64];
    size_t available, total;
    CU_OK(cuMemGetInfo(&available, &total));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] < available / 2; i++) {
        size_t bytes = sizes[i];
        snprintf(name, sizeof name, bytes == 1 << 20 ? "malloc_free" : "malloc_free.%zu", bytes); /* an old name */
        repeat(options, name, 1, allocate_and_free, &bytes);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows && ROW * rows[i] < available / 2; i++) {
        size_t bytes = rows[i];
        snprintf(name, sizeof name, "malloc_free_row.%zu", bytes);
        repeat(options, name, ROW, allocate_row_and_free, &bytes);
    }
    CUdeviceptr memory;
    CU_OK(cuMemAlloc(&memory, 64));
    repeat(options, "stream_use", 1, use_stream, &memory);
    CU_OK(cuCtxSynchronize());
    CU_OK(cuMemFree(memory));
}

/* The work done in a given time, for slow machines, on which single timings mean little. */
static void rates(const benchmark_options_t *options, CUfunction function) {
    enum { BYTES = 1 << 20, BURST = 100 };
    static const char *const NAMES[] = {"round_trips", "launches", "copied"};
    char *host = check_memory(BYTES);
    CUdeviceptr memory = check_device(host, BYTES);
    for (int kind = 0; kind < 3; kind++) {
        double done = 0, begin = check_seconds(), end = begin + options->budget_s;
        do {
            if (kind == 0) {
                CU_OK(cuCtxSynchronize());
                done++;
            } else if (kind == 1) {
                for (int i = 0; i < BURST; i++) {
                    benchmark_launch(function, NULL);
                }
                CU_OK(cuCtxSynchronize());
                done += BURST;
            } else {
                CU_OK(cuMemcpyHtoD(memory, host, BYTES));
                CU_OK(cuMemcpyDtoH(host, memory, BYTES));
                done += 2 * BYTES / 1e6;
            }
        } while (check_seconds() < end);
        benchmark_figure("rates", NAMES[kind], kind == 2 ? "MB/s" : "1/s", done / (check_seconds() - begin));
    }
    CU_OK(cuMemFree(memory));
    free(host);
}

static bool wanted(int argc, char **argv, const char *part) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], part) == 0) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    benchmark_options_t options = {.budget_s = (double) check_option("--budget", 250) / 1e3,
                                   .warm_up_s = (double) check_option("--warm-up", 1500) / 1e3,
                                   .max_bytes = (size_t) check_option("--max", 256) << 20,
                                   .small_copies = (int) check_option("--small", 100000),
                                   .scale = (int) check_option("--scale", 100),
                                   .light = check_option("--light", 0) != 0};
    if (argc < 2 || options.scale < 1 || options.small_copies < 1 || options.max_bytes == 0) {
        fprintf(stderr,
                "usage: hawser_benchmark "
                "device|start|calls|latencies|copies|pinned|small|managed|applications|tenant|rates|limits...\n");
        return 2;
    }
    if (wanted(argc, argv, "limits")) {
        benchmark_limits(&options);
        return 0;
    }
    if (wanted(argc, argv, "start")) {
        start();
        return 0;
    }
    check_context();
    if (wanted(argc, argv, "device")) {
        device();
    }
    CUfunction function = benchmark_function("benchmark.ptx", "four");
    CUdeviceptr memory = check_device(NULL, 4096);
    bool all_calls = wanted(argc, argv, "calls"), all_copies = wanted(argc, argv, "copies");
    bool any_latencies = all_calls || wanted(argc, argv, "latencies");
    if (any_latencies || wanted(argc, argv, "small") || wanted(argc, argv, "rates")) {
        warm_up(&options, function, memory);
    }
    if (any_latencies) {
        latencies(&options, function, memory);
    }
    if (all_calls) {
        asynchronous(&options, function);
        allocations(&options);
    }
    if (wanted(argc, argv, "rates")) {
        rates(&options, function);
    }
    if (wanted(argc, argv, "small")) {
        benchmark_small_copies(&options);
    }
    if (all_copies || wanted(argc, argv, "pinned")) {
        benchmark_copies(&options, !all_copies);
    }
    if (wanted(argc, argv, "managed")) {
        benchmark_managed(&options);
    }
    if (wanted(argc, argv, "applications")) {
        benchmark_applications(&options);
    }
    if (wanted(argc, argv, "tenant")) {
        benchmark_tenant(&options);
    }
    CU_OK(cuMemFree(memory));
    return 0;
}

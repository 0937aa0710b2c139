/* Managed memory that host and kernels use in turn: passes of the host through all of it, single pages and words. */
#include "benchmark.h"

enum { BLOCK = 256, ROUNDS = 4, MAX_SAMPLES = 5000, LARGEST = 4 /* times the longest copy */ };

static const size_t LIGHT_BYTES = 16 << 20; /* a software GPU's kernel needs long for more */

static const size_t FAR_BYTES = 2 << 20; /* NVIDIA's driver moves up to so much when the host touches one page */
static const uint64_t ONES = 0x3f8000003f800000; /* two floats */
static const uint64_t SIGNS = 0x8000000080000000;

/* The kernel has floats. The host has words of two, so that a pass takes as long as the memory needs. */
typedef struct managed {
    CUfunction blend;
    uint64_t *words;
    size_t count;
} managed_t;

/* A kernel that reads and writes the first words and changes none, and a wait for it. */
static void use(const managed_t *memory, size_t words) {
    CUdeviceptr address = (CUdeviceptr) (uintptr_t) memory->words;
    int count = (int) words * 2;
    float by = 0;
    CHECK_LAUNCH(memory->blend, (unsigned int) ((count + BLOCK - 1) / BLOCK), BLOCK, 0, NULL, &address, &address,
                 &count, &by);
    CU_OK(cuCtxSynchronize());
}

static void write_all(const managed_t *memory) {
    for (size_t i = 0; i < memory->count; i++) {
        memory->words[i] = ONES;
    }
}

static void read_all(const managed_t *memory) {
    uint64_t sum = 0;
    for (size_t i = 0; i < memory->count; i++) {
        sum += memory->words[i];
    }
    check_true("the sum of all words", sum == memory->count * ONES);
}

static void update_all(const managed_t *memory) {
    for (size_t i = 0; i < memory->count; i++) {
        memory->words[i] ^= SIGNS;
    }
}

static void use_all(const managed_t *memory) {
    use(memory, memory->count);
}

/* Passes over all bytes, each after the host or the device has used them. The first round of each prepares the rest. */
static void pass(const managed_t *memory, const char *name, void (*before)(const managed_t *),
                 void (*measured)(const managed_t *)) {
    double rates[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        write_all(memory);
        use_all(memory);
        before(memory);
        double begin = check_seconds();
        measured(memory);
        rates[round] = (double) memory->count * sizeof(uint64_t) / (check_seconds() - begin) / 1e9;
    }
    benchmark_figure("managed", name, "GB/s", benchmark_median(rates + 1, ROUNDS - 1));
}

/* Lone pages that the host touches after a kernel has used all memory. */
static void pages(const managed_t *memory) {
    static double touches[MAX_SAMPLES];
    double sum = 0;
    int samples = 0;
    for (int round = 0; round < ROUNDS; round++) {
        use_all(memory);
        for (size_t at = 0; at < memory->count && samples < MAX_SAMPLES; at += FAR_BYTES / sizeof(uint64_t)) {
            volatile uint64_t *word = &memory->words[at];
            double begin = check_seconds();
            check_true("a word of a lone page", (*word & ~SIGNS) == ONES);
            touches[samples] = check_seconds() - begin;
            sum += touches[samples++];
        }
    }
    benchmark_figure_with_mean("managed", "page", "us", benchmark_median(touches, samples) * 1e6, sum / samples * 1e6);
}

/* A word that the host changes before each kernel, and a wait for the kernel. */
static void words(const benchmark_options_t *options, const managed_t *memory) {
    static double cycles[MAX_SAMPLES];
    double sum = 0;
    int samples = 0;
    for (double end = check_seconds() + options->budget_s;
         samples < MAX_SAMPLES && (samples < 100 || check_seconds() < end); samples++) {
        double begin = check_seconds();
        memory->words[samples % BLOCK] ^= SIGNS;
        use(memory, BLOCK);
        cycles[samples] = check_seconds() - begin;
        sum += cycles[samples];
    }
    benchmark_figure_with_mean("managed", "word", "us", benchmark_median(cycles, samples) * 1e6, sum / samples * 1e6);
}

void benchmark_managed(const benchmark_options_t *options) {
    CUdeviceptr address;
    int supported;
    CU_OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    if (!supported) {
        return; /* the host may not touch such memory beside other work */
    }
    size_t bytes = options->light ? LIGHT_BYTES : LARGEST * options->max_bytes;
    CU_OK(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL));
    const managed_t memory = {
        .blend = benchmark_function("benchmark.ptx", "blend"),
        .words = (uint64_t *) (uintptr_t) address,
        .count = bytes / sizeof(uint64_t),
    };
    pass(&memory, "kernel", write_all, use_all);
    pass(&memory, "read", use_all, read_all);
    pass(&memory, "update", use_all, update_all);
    pages(&memory);
    words(options, &memory);
    CU_OK(cuMemFree(address));
}

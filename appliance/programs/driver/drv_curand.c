/*
 * cuRAND beside the Driver API: Philox held against numbers that the program computes, moments of every generator's
 * distributions, seeds, offsets, generators in host memory, streams, captured generation, tables and wrong calls. The
 * functions are found by name. The program prints sums of the numbers, which are the same natively and through Hawser.
 * A generator, distribution or table that the other end lacks returns CURAND_STATUS_INTERNAL_ERROR.
 */
#include "check_graphs.h"
#include "check_library.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 101, TYPE_ERROR = 103, OUT_OF_RANGE = 104, INTERNAL_ERROR = 999 };
enum { XORWOW = 101, MRG32K3A = 121, MTGP32 = 141, MT19937 = 142, PHILOX = 161 };
enum { SOBOL32 = 201, SCRAMBLED_SOBOL32 = 202, SOBOL64 = 203, SCRAMBLED_SOBOL64 = 204 };
enum { ORDERING_LEGACY = 103, ORDERING_QUASI = 201, DIRECTIONS32 = 101, DIRECTIONS64 = 103 };
enum { MAJOR_VERSION = 0, COUNT = 1 << 16, GUARD = 64, REPEATS = 500, DIMENSIONS = 20000 };

typedef void *generator_t;
typedef CUdeviceptr data_t; /* C's pointers to device memory */

static CUdeviceptr device; /* COUNT doubles and a guard */
static unsigned char host[(COUNT + GUARD) * sizeof(double)];

DECLARE(curandCreateGenerator, generator_t *, int);
DECLARE(curandCreateGeneratorHost, generator_t *, int);
DECLARE(curandDestroyGenerator, generator_t);
DECLARE(curandGetVersion, int *);
DECLARE(curandGetProperty, int, int *);
DECLARE(curandSetStream, generator_t, CUstream);
DECLARE(curandSetPseudoRandomGeneratorSeed, generator_t, unsigned long long);
DECLARE(curandSetGeneratorOffset, generator_t, unsigned long long);
DECLARE(curandSetGeneratorOrdering, generator_t, int);
DECLARE(curandSetQuasiRandomGeneratorDimensions, generator_t, unsigned int);
DECLARE(curandGenerateSeeds, generator_t);
DECLARE(curandGenerate, generator_t, data_t, size_t);
DECLARE(curandGenerateLongLong, generator_t, data_t, size_t);
DECLARE(curandGenerateUniform, generator_t, data_t, size_t);
DECLARE(curandGenerateUniformDouble, generator_t, data_t, size_t);
DECLARE(curandGenerateNormal, generator_t, data_t, size_t, float, float);
DECLARE(curandGenerateNormalDouble, generator_t, data_t, size_t, double, double);
DECLARE(curandGenerateLogNormal, generator_t, data_t, size_t, float, float);
DECLARE(curandGenerateLogNormalDouble, generator_t, data_t, size_t, double, double);
DECLARE(curandGeneratePoisson, generator_t, data_t, size_t, double);
DECLARE(curandGetDirectionVectors32, uint32_t **, int);
DECLARE(curandGetDirectionVectors64, uint64_t **, int);
DECLARE(curandGetScrambleConstants32, uint32_t **);
DECLARE(curandGetScrambleConstants64, uint64_t **);
DECLARE(curandCreatePoissonDistribution, double, void **);
DECLARE(curandDestroyDistribution, void *);

static void load(void) {
    open_library("libcurand.so.10", NULL);
    FIND(curandCreateGenerator);
    FIND(curandCreateGeneratorHost);
    FIND(curandDestroyGenerator);
    FIND(curandGetVersion);
    FIND(curandGetProperty);
    FIND(curandSetStream);
    FIND(curandSetPseudoRandomGeneratorSeed);
    FIND(curandSetGeneratorOffset);
    FIND(curandSetGeneratorOrdering);
    FIND(curandSetQuasiRandomGeneratorDimensions);
    FIND(curandGenerateSeeds);
    FIND(curandGenerate);
    FIND(curandGenerateLongLong);
    FIND(curandGenerateUniform);
    FIND(curandGenerateUniformDouble);
    FIND(curandGenerateNormal);
    FIND(curandGenerateNormalDouble);
    FIND(curandGenerateLogNormal);
    FIND(curandGenerateLogNormalDouble);
    FIND(curandGeneratePoisson);
    FIND(curandGetDirectionVectors32);
    FIND(curandGetDirectionVectors64);
    FIND(curandGetScrambleConstants32);
    FIND(curandGetScrambleConstants64);
    FIND(curandCreatePoissonDistribution);
    FIND(curandDestroyDistribution);
}

/* An error whose number the library decides: it is the same natively and through Hawser. */
#define WRONG(call)                                                                                                    \
    do {                                                                                                               \
        int got = (call);                                                                                              \
        check_true(#call " is an error", got != SUCCESS);                                                              \
        printf("%s returns %d\n", #call, got);                                                                         \
    } while (0)

static uint64_t sum_of(const void *bytes, size_t count) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) {
        sum = (sum ^ ((const unsigned char *) bytes)[i]) * 0x100000001b3u;
    }
    return sum;
}

/* Fills the memory with another pattern, and reads it back with the guard after `call`. */
static void before(void) {
    CU_OK(cuMemsetD8(device, 0x5a, sizeof host));
    CU_OK(cuCtxSynchronize()); /* a memset may end later, and non-blocking streams do not wait for it */
}

static void after(const char *what, size_t bytes) {
    CU_OK(cuMemcpyDtoH(host, device, sizeof host));
    for (size_t i = bytes; i < bytes + GUARD; i++) {
        check_element(what, (long long) i, 0x5a, host[i]);
    }
}

/* The four numbers of a counter of Philox4x32-10 (Salmon and others, 2011). */
static void philox(const uint32_t *counter, uint64_t seed, uint32_t *out) {
    uint32_t key[2] = {(uint32_t) seed, (uint32_t) (seed >> 32)};
    memcpy(out, counter, 4 * sizeof *out);
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t) out[0] * 0xD2511F53u, second = (uint64_t) out[2] * 0xCD9E8D57u;
        uint32_t next[4] = {(uint32_t) (second >> 32) ^ out[1] ^ key[0], (uint32_t) second,
                            (uint32_t) (first >> 32) ^ out[3] ^ key[1], (uint32_t) first};
        memcpy(out, next, sizeof next);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
}

/* CURAND_ORDERING_PSEUDO_LEGACY: four numbers of one of 65536 subsequences, then four of the next. */
static uint32_t philox_at(uint64_t seed, uint64_t position) {
    uint64_t group = position / 4, index = group / 65536;
    uint32_t counter[4] = {(uint32_t) index, (uint32_t) (index >> 32), (uint32_t) (group % 65536), 0}, numbers[4];
    philox(counter, seed, numbers);
    return numbers[position % 4];
}

static void check_philox(void) {
    static const struct {
        uint64_t seed, offset;
        size_t count;
    } cases[] = {{0, 0, 4}, {1234, 4, 5000}, {0x123456789abcdef0u, 400000, COUNT}, {~0ull, 1ull << 40, 4096}};
    generator_t generator;
    OK(curandCreateGenerator(&generator, PHILOX));
    OK(curandSetGeneratorOrdering(generator, ORDERING_LEGACY));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        OK(curandSetPseudoRandomGeneratorSeed(generator, cases[c].seed));
        OK(curandSetGeneratorOffset(generator, cases[c].offset));
        before();
        OK(curandGenerate(generator, device, cases[c].count));
        after("a byte behind the numbers", cases[c].count * 4);
        for (size_t i = 0; i < cases[c].count; i++) {
            check_element("Philox", (long long) i, philox_at(cases[c].seed, cases[c].offset + i),
                          ((uint32_t *) host)[i]);
        }
    }
    OK(curandDestroyGenerator(generator));
}

/* Mean and variance of the numbers lie within six deviations of their expected values. */
static void check_moments(int type, const char *what, const double *numbers, double mean, double variance,
                          double fourth) {
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += numbers[i];
        squares += (numbers[i] - mean) * (numbers[i] - mean);
    }
    double mean_off = fabs(sum / COUNT - mean) / sqrt(variance / COUNT);
    double variance_off = fabs(squares / COUNT - variance) / sqrt((fourth - variance * variance) / COUNT);
    if (!(mean_off < 6 && variance_off < 6)) {
        check_fail("%s of generator %d, expected mean %g and variance %g, got %g and %g", what, type, mean, variance,
                   sum / COUNT, squares / COUNT);
    }
}

/* How the numbers of a call are read. */
enum { AS_FLOAT, AS_DOUBLE, AS_INTEGER };

static const double *read_numbers(const char *what, int as) {
    static double numbers[COUNT];
    after(what, COUNT * (as == AS_DOUBLE ? sizeof(double) : sizeof(float)));
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = as == AS_DOUBLE ? ((double *) host)[i]
            : as == AS_FLOAT         ? ((float *) host)[i]
                                     : ((uint32_t *) host)[i];
    }
    return numbers;
}

static void print_sum(int type, const char *what, size_t bytes) {
    printf("generator %d, %s: %016llx\n", type, what, (unsigned long long) sum_of(host, bytes));
}

static void check_uniform(int type, const double *numbers, const char *what) {
    for (int i = 0; i < COUNT; i++) {
        if (!(numbers[i] > 0 && numbers[i] <= 1)) {
            check_fail("%s[%d] of generator %d, expected a number in (0, 1], got %g", what, i, type, numbers[i]);
        }
    }
    check_moments(type, what, numbers, 0.5, 1 / 12.0, 1 / 80.0);
}

static void check_logarithms(int type, const char *what, int as) {
    static double logarithms[COUNT];
    const double *numbers = read_numbers(what, as);
    for (int i = 0; i < COUNT; i++) {
        logarithms[i] = log(numbers[i]);
    }
    check_moments(type, what, logarithms, 1, 0.25, 3 * 0.0625);
}

/* Every distribution of a generator. */
static void check_distributions(generator_t generator, int type) {
    before();
    OK(curandGenerateUniform(generator, device, COUNT));
    check_uniform(type, read_numbers("uniform numbers", AS_FLOAT), "uniform numbers");
    print_sum(type, "uniform", COUNT * sizeof(float));
    before();
    OK(curandGenerateUniformDouble(generator, device, COUNT));
    check_uniform(type, read_numbers("uniform doubles", AS_DOUBLE), "uniform doubles");
    print_sum(type, "uniform doubles", COUNT * sizeof(double));
    before();
    OK(curandGenerateNormal(generator, device, COUNT, -3, 2));
    check_moments(type, "normal numbers", read_numbers("normal numbers", AS_FLOAT), -3, 4, 48);
    print_sum(type, "normal", COUNT * sizeof(float));
    before();
    OK(curandGenerateNormalDouble(generator, device, COUNT, -3, 2));
    check_moments(type, "normal doubles", read_numbers("normal doubles", AS_DOUBLE), -3, 4, 48);
    print_sum(type, "normal doubles", COUNT * sizeof(double));
    before();
    OK(curandGenerateLogNormal(generator, device, COUNT, 1, 0.5f));
    check_logarithms(type, "log-normal numbers", AS_FLOAT);
    before();
    OK(curandGenerateLogNormalDouble(generator, device, COUNT, 1, 0.5));
    check_logarithms(type, "log-normal doubles", AS_DOUBLE);
    before();
    int status = curandGeneratePoisson(generator, device, COUNT, 7.5);
    if (status == INTERNAL_ERROR) {
        check_here("the GPU's cuRAND has no Poisson numbers");
        return;
    }
    OK(status);
    check_moments(type, "Poisson numbers", read_numbers("Poisson numbers", AS_INTEGER), 7.5, 7.5, 3 * 7.5 * 7.5 + 7.5);
    print_sum(type, "Poisson", COUNT * sizeof(uint32_t));
}

/* A generator of pseudorandom numbers: two with the same seed agree, and the host's with the device's. */
static void check_pseudo(int type) {
    static unsigned char first[COUNT * sizeof(uint32_t)], other[COUNT * sizeof(uint32_t)];
    generator_t generator;
    int status = curandCreateGenerator(&generator, type);
    if (status == INTERNAL_ERROR) {
        check_here("the GPU's cuRAND has no generator %d", type);
        return;
    }
    OK(status);
    OK(curandSetPseudoRandomGeneratorSeed(generator, 42));
    OK(curandGenerateSeeds(generator));
    before();
    OK(curandGenerate(generator, device, COUNT));
    after("a byte behind the numbers", sizeof first);
    memcpy(first, host, sizeof first);
    print_sum(type, "bits", sizeof first);
    OK(curandGenerate(generator, device, COUNT));
    after("a byte behind the numbers", sizeof first);
    check_true("further numbers differ", memcmp(first, host, sizeof first) != 0);
    print_sum(type, "further bits", sizeof first);
    check_distributions(generator, type);
    OK(curandDestroyGenerator(generator));
    OK(curandCreateGenerator(&generator, type));
    OK(curandSetPseudoRandomGeneratorSeed(generator, 43));
    OK(curandSetPseudoRandomGeneratorSeed(generator, 42));
    before();
    OK(curandGenerate(generator, device, COUNT));
    after("a byte behind the numbers", sizeof first);
    check_true("the same seed gives the same numbers", memcmp(first, host, sizeof first) == 0);
    OK(curandDestroyGenerator(generator));
    OK(curandCreateGeneratorHost(&generator, type));
    OK(curandSetPseudoRandomGeneratorSeed(generator, 42));
    OK(curandGenerate(generator, (data_t) (uintptr_t) other, COUNT));
    check_true("the host gives the device's numbers", memcmp(first, other, sizeof first) == 0);
    OK(curandDestroyGenerator(generator));
}

static void check_quasi(int type) {
    generator_t generator;
    int status = curandCreateGenerator(&generator, type);
    if (status == INTERNAL_ERROR) {
        check_here("the GPU's cuRAND has no generator %d", type);
        return;
    }
    OK(status);
    OK(curandSetQuasiRandomGeneratorDimensions(generator, 4));
    before();
    OK(curandGenerateUniform(generator, device, COUNT));
    check_uniform(type, read_numbers("quasirandom numbers", AS_FLOAT), "quasirandom numbers");
    print_sum(type, "uniform", COUNT * sizeof(float));
    if (type >= SOBOL64) {
        before();
        OK(curandGenerateLongLong(generator, device, COUNT));
        after("a byte behind the numbers", COUNT * sizeof(uint64_t));
        print_sum(type, "64 bits", COUNT * sizeof(uint64_t));
    }
    WRONG(curandGenerateUniform(generator, device, COUNT - 1));
    WRONG(curandSetPseudoRandomGeneratorSeed(generator, 1));
    WRONG(curandSetQuasiRandomGeneratorDimensions(generator, 0));
    WRONG(curandSetQuasiRandomGeneratorDimensions(generator, DIMENSIONS + 1));
    OK(curandDestroyGenerator(generator));
}

/* Numbers of two streams; a copy in the same stream reads them without another wait. */
static void check_streams(void) {
    static uint32_t numbers[2][COUNT / 2];
    generator_t generator;
    CUstream streams[2];
    OK(curandCreateGenerator(&generator, PHILOX));
    OK(curandSetGeneratorOrdering(generator, ORDERING_LEGACY));
    OK(curandSetPseudoRandomGeneratorSeed(generator, 99));
    for (int i = 0; i < 2; i++) {
        CU_OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        OK(curandSetStream(generator, streams[i]));
        OK(curandSetGeneratorOffset(generator, (unsigned long long) i * COUNT / 2));
        OK(curandGenerate(generator, device + (CUdeviceptr) i * sizeof numbers[i], COUNT / 2));
        CU_OK(
            cuMemcpyDtoHAsync(numbers[i], device + (CUdeviceptr) i * sizeof numbers[i], sizeof numbers[i], streams[i]));
    }
    for (int i = 0; i < 2; i++) {
        CU_OK(cuStreamSynchronize(streams[i]));
        CU_OK(cuStreamDestroy(streams[i]));
        for (int k = 0; k < COUNT / 2; k++) {
            check_element("a number of a stream", k, philox_at(99, (uint64_t) (i * (COUNT / 2) + k)), numbers[i][k]);
        }
    }
    OK(curandDestroyGenerator(generator));
}

/* Captured generation fills the memory at each launch. */
static void check_capture(void) {
    generator_t generator;
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(curandCreateGenerator(&generator, PHILOX));
    OK(curandSetStream(generator, stream));
    OK(curandGenerateUniform(generator, device, COUNT)); /* allocates the state outside the capture */
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(curandGenerateUniform(generator, device, COUNT));
    CU_OK(cuStreamEndCapture(stream, &graph));
    CU_OK(cuGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 2; i++) {
        CU_OK(cuStreamSynchronize(stream));
        before();
        CU_OK(cuGraphLaunch(executable, stream));
        CU_OK(cuStreamSynchronize(stream));
        check_uniform(PHILOX, read_numbers("captured numbers", AS_FLOAT), "captured numbers");
    }
    CU_OK(cuGraphExecDestroy(executable));
    CU_OK(cuGraphDestroy(graph));
    OK(curandDestroyGenerator(generator));
    CU_OK(cuStreamDestroy(stream));
}

static void check_wrong_calls(void) {
    generator_t generator, none = NULL;
    IS(NOT_INITIALIZED, curandGenerate(none, device, 4));
    IS(NOT_INITIALIZED, curandDestroyGenerator(none));
    IS(TYPE_ERROR, curandCreateGenerator(&generator, 7));
    OK(curandCreateGenerator(&generator, PHILOX));
    WRONG(curandGenerateLongLong(generator, device, 4));
    WRONG(curandSetQuasiRandomGeneratorDimensions(generator, 2));
    WRONG(curandSetGeneratorOrdering(generator, ORDERING_QUASI));
    WRONG(curandSetGeneratorOrdering(generator, 7));
    OK(curandGenerate(generator, device, 4)); /* works after errors */
    OK(curandDestroyGenerator(generator));
}

static void check_tables(void) {
    uint32_t *vectors = NULL, *constants = NULL;
    uint64_t *wide = NULL, *wide_constants = NULL;
    void *distribution = NULL;
    int status = curandGetDirectionVectors32(&vectors, DIRECTIONS32);
    if (status == INTERNAL_ERROR) {
        check_here("the GPU's cuRAND has no tables");
    } else {
        OK(status);
        OK(curandGetDirectionVectors64(&wide, DIRECTIONS64));
        OK(curandGetScrambleConstants32(&constants));
        OK(curandGetScrambleConstants64(&wide_constants));
        printf("tables: %016llx %016llx %016llx %016llx\n",
               (unsigned long long) sum_of(vectors, DIMENSIONS * 32 * sizeof *vectors),
               (unsigned long long) sum_of(wide, DIMENSIONS * 64 * sizeof *wide),
               (unsigned long long) sum_of(constants, DIMENSIONS * sizeof *constants),
               (unsigned long long) sum_of(wide_constants, DIMENSIONS * sizeof *wide_constants));
    }
    status = curandCreatePoissonDistribution(7.5, &distribution);
    if (status == INTERNAL_ERROR) {
        check_here("the GPU's cuRAND has no Poisson distribution");
        return;
    }
    OK(status);
    check_true("a distribution has an address", distribution != NULL);
    OK(curandDestroyDistribution(distribution));
}

static void check_repeats(void) {
    generator_t generator;
    OK(curandCreateGenerator(&generator, PHILOX));
    OK(curandSetGeneratorOrdering(generator, ORDERING_LEGACY));
    OK(curandGenerate(generator, device, 256));
    CU_OK(cuCtxSynchronize());
    double start = check_seconds();
    for (int i = 0; i < REPEATS; i++) {
        OK(curandSetGeneratorOffset(generator, 256ull * (unsigned int) i));
        OK(curandGenerate(generator, device, 256));
    }
    double issued = check_seconds() - start;
    CU_OK(cuCtxSynchronize());
    check_measured("%d calls: %.2f us each in the caller, %.2f us each until the end", REPEATS, issued * 1e6 / REPEATS,
                   (check_seconds() - start) * 1e6 / REPEATS);
    after("a byte behind the numbers", sizeof host - GUARD);
    for (unsigned int i = 0; i < 256; i++) {
        check_element("the last numbers", i, philox_at(0, 256ull * (REPEATS - 1) + i), ((uint32_t *) host)[i]);
    }
    OK(curandDestroyGenerator(generator));
}

int main(int argc, char **argv) {
    static const int pseudo[] = {XORWOW, MRG32K3A, MTGP32, MT19937, PHILOX};
    static const int quasi[] = {SOBOL32, SCRAMBLED_SOBOL32, SOBOL64, SCRAMBLED_SOBOL64};
    check_begin(argc, argv);
    load();
    check_context();
    CU_OK(cuMemAlloc(&device, sizeof host));
    int version = 0, major = 0;
    OK(curandGetVersion(&version));
    OK(curandGetProperty(MAJOR_VERSION, &major));
    check_equal("the major version", version / 1000, major);
    check_here("cuRAND %d", version);
    before();
    check_philox();
    for (size_t i = 0; i < sizeof pseudo / sizeof *pseudo; i++) {
        check_pseudo(pseudo[i]);
    }
    for (size_t i = 0; i < sizeof quasi / sizeof *quasi; i++) {
        check_quasi(quasi[i]);
    }
    check_streams();
    check_capture();
    check_wrong_calls();
    check_tables();
    before();
    check_repeats();
    CU_OK(cuMemFree(device));
    return check_pass("generators, distributions, streams, captures and tables");
}

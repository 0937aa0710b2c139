/* Generation: one record each, for which only the first caller of a kind waits. */
#include "hws_curand.h"

#include "hws_curand_calls.h"

#define PART_BYTES (1u << 16) /* of a reply: hwsRandRead */

/* The remainders of `count` on which the library's status depends. */
static uint32_t remainders(uint64_t count, uint64_t dimensions) {
    return (uint32_t) (count % 2) | (dimensions > 1 && count % dimensions != 0 ? 2u : 0) | (count == 0 ? 4u : 0);
}

static curandStatus_t read_back(curandGenerator_t generator, void *output, uint64_t bytes) {
    for (uint64_t offset = 0; offset < bytes; offset += PART_BYTES) {
        uint64_t part = bytes - offset < PART_BYTES ? bytes - offset : PART_BYTES;
        HWS_TRY(hws_call_hwsRandRead(generator, offset, part, (char *) output + offset));
    }
    return CURAND_STATUS_SUCCESS;
}

/* Generates numbers of `element` bytes. The caller has set the function and the parameters of the distribution. */
static curandStatus_t generate(curandGenerator_t generator, HwsRandWork *work, void *output, size_t count,
                               size_t element) {
    HWS_ENTER();
    hws_rand_generator_t *state = hws_rand_find(generator);
    HWS_NEED(state != NULL, CURAND_STATUS_NOT_INITIALIZED);
    HWS_REQUIRE(count <= INT64_MAX / sizeof(double) && (output != NULL || count == 0 || element == 0));
    work->generator = (uintptr_t) generator;
    work->count = count;
    work->type = state->type;
    work->changed = state->changed;
    for (int i = 0; i < HWS_RAND_SETTINGS; i++) {
        work->settings[i] = state->settings[i];
    }
    work->ordering = (uint32_t) state->settings[HWS_RAND_ORDERING];
    work->dimensions = (uint32_t) state->settings[HWS_RAND_DIMENSIONS];
    work->remainders = remainders(count, work->dimensions);
    if (state->is_host) {
        HWS_TRY(hws_call_hwsRandGenerateHost(work));
        state->changed = 0;
        return read_back(generator, output, count * element);
    }
    HWS_NEED(hws_math_may_issue((CUstream) (uintptr_t) state->stream) == CUDA_SUCCESS, CURAND_STATUS_LAUNCH_FAILURE);
    work->stream = state->stream;
    HWS_TRY(hws_call_hwsRandGenerate(work, output));
    state->changed = 0;
    return CURAND_STATUS_SUCCESS;
}

HWS_EXPORT curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
    return generate(generator, &(HwsRandWork) {.function = HWS_RAND_SEEDS}, NULL, 0, 0);
}

HWS_EXPORT curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int *outputPtr, size_t num) {
    return generate(generator, &(HwsRandWork) {.function = HWS_RAND_BITS}, outputPtr, num, sizeof *outputPtr);
}

HWS_EXPORT curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long *outputPtr,
                                                 size_t num) {
    return generate(generator, &(HwsRandWork) {.function = HWS_RAND_BITS64}, outputPtr, num, sizeof *outputPtr);
}

HWS_EXPORT curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *outputPtr, size_t num) {
    return generate(generator, &(HwsRandWork) {.function = HWS_RAND_UNIFORM}, outputPtr, num, sizeof *outputPtr);
}

HWS_EXPORT curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *outputPtr, size_t num) {
    return generate(generator, &(HwsRandWork) {.function = HWS_RAND_UNIFORM_DOUBLE}, outputPtr, num, sizeof *outputPtr);
}

/* The functions for normal numbers: NAME(generator, outputPtr, n, mean, stddev). */
#define HWS_NORMAL(name, function_, real)                                                                              \
    HWS_EXPORT curandStatus_t name(curandGenerator_t generator, real *outputPtr, size_t n, real mean, real stddev) {   \
        HwsRandWork work = {.function = (function_), .mean = (double) mean, .stddev = (double) stddev};                \
        return generate(generator, &work, outputPtr, n, sizeof *outputPtr);                                            \
    }

HWS_NORMAL(curandGenerateNormal, HWS_RAND_NORMAL, float)
HWS_NORMAL(curandGenerateNormalDouble, HWS_RAND_NORMAL_DOUBLE, double)
HWS_NORMAL(curandGenerateLogNormal, HWS_RAND_LOG_NORMAL, float)
HWS_NORMAL(curandGenerateLogNormalDouble, HWS_RAND_LOG_NORMAL_DOUBLE, double)

HWS_EXPORT curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int *outputPtr, size_t n,
                                                double lambda) {
    HwsRandWork work = {.function = HWS_RAND_POISSON, .lambda = lambda};
    return generate(generator, &work, outputPtr, n, sizeof *outputPtr);
}

HWS_EXPORT curandStatus_t curandGeneratePoissonMethod(curandGenerator_t generator, unsigned int *outputPtr, size_t n,
                                                      double lambda, curandMethod_t method) {
    HwsRandWork work = {.function = HWS_RAND_POISSON_METHOD, .lambda = lambda, .method = (int) method};
    return generate(generator, &work, outputPtr, n, sizeof *outputPtr);
}

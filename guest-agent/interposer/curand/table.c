/* Tables for kernels that generate numbers by themselves, and the version. All are asked for once. */
#include "hws_curand.h"

#include "hws_curand_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DIMENSIONS 20000      /* documented for each set of direction vectors and constants */
#define PART_BYTES (1u << 16) /* of a reply: hwsRandTablePart */
#define FIRST_SET CURAND_DIRECTION_VECTORS_32_JOEKUO6
#define SETS 4

/* The tables that have been read. They stay until the process ends, as natively. */
static void *tables[HWS_RAND_TABLES][SETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const size_t table_bytes[HWS_RAND_TABLES] = {
    [HWS_RAND_DIRECTIONS32] = DIMENSIONS * sizeof(curandDirectionVectors32_t),
    [HWS_RAND_DIRECTIONS64] = DIMENSIONS * sizeof(curandDirectionVectors64_t),
    [HWS_RAND_CONSTANTS32] = DIMENSIONS * sizeof(unsigned int),
    [HWS_RAND_CONSTANTS64] = DIMENSIONS * sizeof(unsigned long long),
};

static curandStatus_t read_table(HwsRandTable table, curandDirectionVectorSet_t set, char *bytes) {
    for (size_t offset = 0; offset < table_bytes[table]; offset += PART_BYTES) {
        size_t left = table_bytes[table] - offset;
        HWS_TRY(hws_call_hwsRandTablePart(table, set, offset, left < PART_BYTES ? left : PART_BYTES, bytes + offset));
    }
    return CURAND_STATUS_SUCCESS;
}

/* Returns a table of the library in the guest's memory. */
static curandStatus_t table_of(HwsRandTable table, curandDirectionVectorSet_t set, void **out) {
    HWS_REQUIRE(out != NULL && set >= FIRST_SET && set < FIRST_SET + SETS);
    HWS_NEED(cuInit(0) == CUDA_SUCCESS, CURAND_STATUS_INITIALIZATION_FAILED);
    HWS_ENTER();
    void **kept = &tables[table][set - FIRST_SET];
    curandStatus_t status = CURAND_STATUS_SUCCESS;
    pthread_mutex_lock(&lock); /* another thread's first question is not asked again */
    if (*kept == NULL) {
        void *bytes = malloc(table_bytes[table]);
        status = bytes == NULL ? CURAND_STATUS_ALLOCATION_FAILED : read_table(table, set, bytes);
        if (status == CURAND_STATUS_SUCCESS) {
            *kept = bytes;
        } else {
            free(bytes);
        }
    }
    *out = status == CURAND_STATUS_SUCCESS ? *kept : *out;
    pthread_mutex_unlock(&lock);
    return status;
}

HWS_EXPORT curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t **vectors,
                                                      curandDirectionVectorSet_t set) {
    HWS_REQUIRE(set == CURAND_DIRECTION_VECTORS_32_JOEKUO6 || set == CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6);
    return table_of(HWS_RAND_DIRECTIONS32, set, (void **) vectors);
}

HWS_EXPORT curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t **vectors,
                                                      curandDirectionVectorSet_t set) {
    HWS_REQUIRE(set == CURAND_DIRECTION_VECTORS_64_JOEKUO6 || set == CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6);
    return table_of(HWS_RAND_DIRECTIONS64, set, (void **) vectors);
}

HWS_EXPORT curandStatus_t curandGetScrambleConstants32(unsigned int **constants) {
    return table_of(HWS_RAND_CONSTANTS32, FIRST_SET, (void **) constants);
}

HWS_EXPORT curandStatus_t curandGetScrambleConstants64(unsigned long long **constants) {
    return table_of(HWS_RAND_CONSTANTS64, FIRST_SET, (void **) constants);
}

HWS_EXPORT curandStatus_t curandCreatePoissonDistribution(double lambda,
                                                          curandDiscreteDistribution_t *discrete_distribution) {
    HWS_REQUIRE(discrete_distribution != NULL);
    HWS_NEED(hws_math_need_context(), CURAND_STATUS_INITIALIZATION_FAILED);
    HWS_ENTER();
    unsigned long long address;
    HWS_TRY(hws_call_hwsRandMakeDistribution(lambda, &address));
    *discrete_distribution = (curandDiscreteDistribution_t) (uintptr_t) address;
    return CURAND_STATUS_SUCCESS;
}

HWS_EXPORT curandStatus_t curandDestroyDistribution(curandDiscreteDistribution_t discrete_distribution) {
    HWS_NEED(discrete_distribution != NULL, CURAND_STATUS_NOT_INITIALIZED);
    HWS_NEED(hws_math_need_context(), CURAND_STATUS_INITIALIZATION_FAILED);
    HWS_ENTER();
    return hws_call_hwsRandDropDistribution((uintptr_t) discrete_distribution);
}

static curandStatus_t version_of(int *version) {
    static atomic_int known;
    int number = atomic_load_explicit(&known, memory_order_relaxed);
    if (number == 0) {
        HWS_NEED(cuInit(0) == CUDA_SUCCESS, CURAND_STATUS_INITIALIZATION_FAILED);
        HWS_ENTER();
        HWS_TRY(hws_call_hwsRandVersion(&number));
        atomic_store_explicit(&known, number, memory_order_relaxed);
    }
    *version = number;
    return CURAND_STATUS_SUCCESS;
}

HWS_EXPORT curandStatus_t curandGetVersion(int *version) {
    HWS_REQUIRE(version != NULL);
    return version_of(version);
}

HWS_EXPORT curandStatus_t curandGetProperty(libraryPropertyType type, int *value) {
    HWS_REQUIRE(value != NULL && type >= MAJOR_VERSION && type <= PATCH_LEVEL);
    int number;
    HWS_TRY(version_of(&number));
    *value = type == MAJOR_VERSION ? number / 1000 : type == MINOR_VERSION ? number / 100 % 10 : number % 100;
    return CURAND_STATUS_SUCCESS;
}

/*
 * The guest's state of cuRAND: handles, settings that wait for the next call, numbers in host memory, tables. The session
 * is replaced by a table that keeps the last record.
 */
#include "hws_test.h"
#include "replaced_session.h"

#include "hws_curand.h"
#include "hws_curand_opcodes.h"

#include <stdlib.h>
#include <string.h>

#define CONSTANTS_BYTES (20000 * sizeof(unsigned int))

static int destroyed;       /* counted */
static int answer;          /* to the next call */
static uint64_t part_bytes; /* of the parts that were read since a test has set it to 0 */

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK(opcode == HWS_OPCODE_hwsRandDestroy);
    session_keep(opcode, payload, payload_bytes);
    destroyed++;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    (void) flags;
    HWS_CHECK(opcode == HWS_OPCODE_hwsRandGenerate);
    for (uint32_t i = 0; i < count; i++) { /* the distribution, the type and the changes belong to the kind */
        HWS_CHECK(ranges[i].offset < offsetof(HwsRandWork, lambda) || ranges[i].offset >= sizeof(HwsRandWork));
    }
    session_keep(opcode, payload, payload_bytes);
    return answer;
}

/* A part of the numbers or of a table: each byte is the low byte of its offset. */
static uint32_t part(uint64_t offset, uint64_t bytes, uint8_t *reply, uint32_t capacity) {
    uint32_t count = (uint32_t) bytes;
    HWS_CHECK(bytes <= 1u << 16 && capacity >= 8 + count);
    memset(reply, 0, capacity);
    memcpy(reply, &count, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        reply[8 + i] = (uint8_t) (offset + i);
    }
    part_bytes += bytes;
    return 8 + (count + 7) / 8 * 8;
}

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    session_keep(opcode, payload, payload_bytes);
    *reply_bytes_p = 0;
    if (answer != 0) {
        return answer;
    }
    uint64_t numbers[3];
    switch (opcode) {
        case HWS_OPCODE_hwsRandRead:
        case HWS_OPCODE_hwsRandTablePart:
            memcpy(numbers, payload, sizeof numbers);
            *reply_bytes_p = part(numbers[1], numbers[2], reply, reply_capacity);
            break;
        case HWS_OPCODE_hwsRandVersion:
            memcpy(reply, &(uint64_t) {10407}, 8);
            *reply_bytes_p = 8;
            break;
        case HWS_OPCODE_hwsRandMakeDistribution:
            memcpy(reply, &(uint64_t) {0x7000}, 8);
            *reply_bytes_p = 8;
            break;
        default:
            break;
    }
    return 0;
}

static HwsRandWork last_work(uint32_t opcode) {
    HwsRandWork work;
    HWS_CHECK(session.last_opcode == opcode);
    memcpy(&work, session.last, sizeof work);
    return work;
}

static void should_refuse_what_is_no_generator(void) {
    curandGenerator_t wrong[] = {NULL, (curandGenerator_t) (uintptr_t) 8,
                                 (curandGenerator_t) (uintptr_t) session_handle(8)};
    unsigned int numbers[2];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        HWS_CHECK(curandSetStream(wrong[i], NULL) == CURAND_STATUS_NOT_INITIALIZED);
        HWS_CHECK(curandSetPseudoRandomGeneratorSeed(wrong[i], 1) == CURAND_STATUS_NOT_INITIALIZED);
        HWS_CHECK(curandGenerate(wrong[i], numbers, 2) == CURAND_STATUS_NOT_INITIALIZED);
        HWS_CHECK(curandGenerateSeeds(wrong[i]) == CURAND_STATUS_NOT_INITIALIZED);
        HWS_CHECK(curandDestroyGenerator(wrong[i]) == CURAND_STATUS_NOT_INITIALIZED);
    }
    HWS_CHECK(curandCreateGenerator(NULL, CURAND_RNG_PSEUDO_XORWOW) == CURAND_STATUS_OUT_OF_RANGE);
    session.has_context = false;
    curandGenerator_t generator = NULL;
    HWS_CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_XORWOW) == CURAND_STATUS_INITIALIZATION_FAILED);
    session.has_context = true;
    HWS_CHECK(session.records == 0);
    answer = CURAND_STATUS_TYPE_ERROR;
    HWS_CHECK(curandCreateGenerator(&generator, (curandRngType_t) 7) == CURAND_STATUS_TYPE_ERROR);
    answer = 0;
    HWS_CHECK(generator == NULL && session.dropped == 1);
}

static void should_send_changed_settings_with_the_next_numbers(void) {
    curandGenerator_t generator;
    float numbers[4];
    HWS_CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS);
    int before = session.records;
    HWS_CHECK(curandSetPseudoRandomGeneratorSeed(generator, 5) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(session.records == before + 1
              && session.last_opcode == HWS_OPCODE_hwsRandSet); /* waits for the first status */
    HWS_CHECK(curandSetPseudoRandomGeneratorSeed(generator, 6) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(curandSetGeneratorOffset(generator, 70) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(session.records == before + 2);
    HWS_CHECK(curandSetStream(generator, (CUstream) (uintptr_t) 5) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(curandGenerateNormal(generator, numbers, 4, 1.5f, 2.5f) == CURAND_STATUS_SUCCESS);
    HwsRandWork work = last_work(HWS_OPCODE_hwsRandGenerate);
    HWS_CHECK(work.generator == (uintptr_t) generator && work.stream == 5 && hws_math_stream == 5);
    HWS_CHECK(work.function == HWS_RAND_NORMAL && work.count == 4 && work.mean == 1.5 && work.stddev == 2.5);
    HWS_CHECK(work.type == CURAND_RNG_PSEUDO_PHILOX4_32_10 && work.changed == 1u << HWS_RAND_SEED);
    HWS_CHECK(work.settings[HWS_RAND_SEED] == 6 && work.ordering == 0 && work.remainders == 0);
    HWS_CHECK(curandGenerateUniform(generator, numbers, 3) == CURAND_STATUS_SUCCESS);
    work = last_work(HWS_OPCODE_hwsRandGenerate);
    HWS_CHECK(work.changed == 0 && work.remainders == 1);
    /* A failure keeps the changes for the next call. */
    HWS_CHECK(curandSetGeneratorOffset(generator, 71) == CURAND_STATUS_SUCCESS);
    answer = CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    HWS_CHECK(curandGenerateNormal(generator, numbers, 3, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    answer = 0;
    HWS_CHECK(curandGenerateSeeds(generator) == CURAND_STATUS_SUCCESS);
    work = last_work(HWS_OPCODE_hwsRandGenerate);
    HWS_CHECK(work.function == HWS_RAND_SEEDS && work.changed == 1u << HWS_RAND_OFFSET);
    HWS_CHECK(work.settings[HWS_RAND_OFFSET] == 71);
    before = session.records;
    HWS_CHECK(curandGenerate(generator, NULL, 4) == CURAND_STATUS_OUT_OF_RANGE);
    HWS_CHECK(curandGenerate(generator, (unsigned int *) numbers, SIZE_MAX / 2) == CURAND_STATUS_OUT_OF_RANGE);
    HWS_CHECK(curandSetStream(generator, (CUstream) (uintptr_t) 13) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(curandGenerateSeeds(generator) == CURAND_STATUS_LAUNCH_FAILURE); /* its capture has become invalid */
    HWS_CHECK(session.records == before);
    int ended = destroyed;
    HWS_CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS && destroyed == ended + 1);
    HWS_CHECK(curandGenerateSeeds(generator) == CURAND_STATUS_NOT_INITIALIZED);
}

static void should_wait_for_settings_whose_value_decides(void) {
    curandGenerator_t generator;
    unsigned int numbers[6];
    HWS_CHECK(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32) == CURAND_STATUS_SUCCESS);
    int before = session.records;
    HWS_CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 4) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 3) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(curandSetGeneratorOrdering(generator, CURAND_ORDERING_QUASI_DEFAULT) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(session.records == before + 3);
    answer = CURAND_STATUS_OUT_OF_RANGE;
    HWS_CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 20001) == CURAND_STATUS_OUT_OF_RANGE);
    answer = CURAND_STATUS_TYPE_ERROR; /* of a generator without a seed: asked each time */
    HWS_CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1) == CURAND_STATUS_TYPE_ERROR);
    HWS_CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1) == CURAND_STATUS_TYPE_ERROR);
    answer = 0;
    HWS_CHECK(curandGenerate(generator, numbers, 6) == CURAND_STATUS_SUCCESS);
    HwsRandWork work = last_work(HWS_OPCODE_hwsRandGenerate);
    HWS_CHECK(work.changed == 0 && work.dimensions == 3 && work.remainders == 0);
    HWS_CHECK(work.ordering == CURAND_ORDERING_QUASI_DEFAULT);
    HWS_CHECK(curandGenerate(generator, numbers, 5) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(last_work(HWS_OPCODE_hwsRandGenerate).remainders == 3);
    HWS_CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
}

static void should_read_numbers_of_the_host_in_parts(void) {
    enum { COUNT = 50001 };
    curandGenerator_t generator;
    unsigned int *numbers = malloc((COUNT + 1) * sizeof *numbers);
    numbers[COUNT] = 77;
    HWS_CHECK(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_MT19937) == CURAND_STATUS_SUCCESS);
    part_bytes = 0;
    HWS_CHECK(curandGeneratePoissonMethod(generator, numbers, COUNT, 3.5, CURAND_KNUTH) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(part_bytes == COUNT * sizeof *numbers && numbers[COUNT] == 77);
    for (size_t i = 0; i < COUNT * sizeof *numbers; i++) {
        HWS_CHECK(((unsigned char *) numbers)[i] == (unsigned char) i);
    }
    answer = CURAND_STATUS_ALLOCATION_FAILED;
    HWS_CHECK(curandGenerate(generator, numbers, 4) == CURAND_STATUS_ALLOCATION_FAILED);
    HwsRandWork work = last_work(HWS_OPCODE_hwsRandGenerateHost);
    HWS_CHECK(work.function == HWS_RAND_BITS && work.lambda == 0);
    answer = 0;
    HWS_CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
    free(numbers);
}

static void should_read_a_table_once(void) {
    curandDirectionVectors32_t *vectors = NULL, *again = NULL;
    curandDirectionVectors64_t *others = NULL;
    unsigned int *constants = NULL;
    HWS_CHECK(curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_64_JOEKUO6) == CURAND_STATUS_OUT_OF_RANGE);
    HWS_CHECK(curandGetDirectionVectors64(&others, CURAND_DIRECTION_VECTORS_32_JOEKUO6) == CURAND_STATUS_OUT_OF_RANGE);
    HWS_CHECK(curandGetScrambleConstants32(NULL) == CURAND_STATUS_OUT_OF_RANGE);
    answer = CURAND_STATUS_INTERNAL_ERROR;
    HWS_CHECK(curandGetScrambleConstants32(&constants) == CURAND_STATUS_INTERNAL_ERROR && constants == NULL);
    answer = 0;
    part_bytes = 0;
    HWS_CHECK(curandGetScrambleConstants32(&constants) == CURAND_STATUS_SUCCESS && part_bytes == CONSTANTS_BYTES);
    HWS_CHECK(((unsigned char *) constants)[CONSTANTS_BYTES - 1] == (unsigned char) (CONSTANTS_BYTES - 1));
    curandDirectionVectorSet_t set = CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6;
    HWS_CHECK(curandGetDirectionVectors32(&vectors, set) == CURAND_STATUS_SUCCESS);
    int before = session.records;
    HWS_CHECK(curandGetDirectionVectors32(&again, set) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(again == vectors && session.records == before);
    HWS_CHECK(curandGetDirectionVectors32(&again, CURAND_DIRECTION_VECTORS_32_JOEKUO6) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(again != vectors && session.records > before);
    free(constants);
    free(vectors);
    free(again);
}

static void should_ask_for_the_version_once(void) {
    int value = 0;
    HWS_CHECK(curandGetVersion(NULL) == CURAND_STATUS_OUT_OF_RANGE);
    HWS_CHECK(curandGetVersion(&value) == CURAND_STATUS_SUCCESS && value == 10407);
    int before = session.records;
    HWS_CHECK(curandGetProperty(MAJOR_VERSION, &value) == CURAND_STATUS_SUCCESS && value == 10);
    HWS_CHECK(curandGetProperty(MINOR_VERSION, &value) == CURAND_STATUS_SUCCESS && value == 4);
    HWS_CHECK(curandGetProperty(PATCH_LEVEL, &value) == CURAND_STATUS_SUCCESS && value == 7);
    HWS_CHECK(curandGetProperty((libraryPropertyType) 3, &value) == CURAND_STATUS_OUT_OF_RANGE);
    HWS_CHECK(session.records == before);
}

static void should_pass_the_addresses_of_distributions(void) {
    curandDiscreteDistribution_t made_here = NULL;
    HWS_CHECK(curandCreatePoissonDistribution(2.5, NULL) == CURAND_STATUS_OUT_OF_RANGE);
    HWS_CHECK(curandCreatePoissonDistribution(2.5, &made_here) == CURAND_STATUS_SUCCESS);
    HWS_CHECK((uintptr_t) made_here == 0x7000);
    HWS_CHECK(curandDestroyDistribution(made_here) == CURAND_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsRandDropDistribution);
    HWS_CHECK(curandDestroyDistribution(NULL) == CURAND_STATUS_NOT_INITIALIZED);
}

int main(void) {
    session.kind = HWS_KIND_CURAND;
    should_refuse_what_is_no_generator();
    should_send_changed_settings_with_the_next_numbers();
    should_wait_for_settings_whose_value_decides();
    should_read_numbers_of_the_host_in_parts();
    should_read_a_table_once();
    should_ask_for_the_version_once();
    should_pass_the_addresses_of_distributions();
    return 0;
}

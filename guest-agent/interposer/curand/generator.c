/* Generators and their settings, which stay in the guest until a call generates numbers. */
#include "hws_curand.h"

#include "hws_curand_calls.h"

#include <stdatomic.h>

/*
 * The settings that the library has accepted, by type and place of the generator: further ones of the same kind do not
 * wait for its status. Others, whose value decides the status, wait each time.
 */
#define TYPES 256 /* more than the highest curandRngType_t */
static atomic_bool accepted[TYPES][2][HWS_RAND_SETTINGS];

hws_rand_generator_t *hws_rand_find(curandGenerator_t generator) {
    const hws_service_t *service = hws_math_service();
    return service == NULL ? NULL : service->handle_data(HWS_KIND_CURAND, (uintptr_t) generator);
}

static curandStatus_t create(curandGenerator_t *generator, curandRngType_t type, bool is_host) {
    HWS_REQUIRE(generator != NULL);
    HWS_NEED(hws_math_need_context(), CURAND_STATUS_INITIALIZATION_FAILED);
    HWS_ENTER();
    uint64_t id;
    hws_rand_generator_t *state = hws_math_new_handle(HWS_KIND_CURAND, sizeof *state, &id);
    HWS_NEED(state != NULL, CURAND_STATUS_ALLOCATION_FAILED);
    state->type = (int) type;
    state->is_host = is_host;
    curandGenerator_t created = (curandGenerator_t) (uintptr_t) id;
    curandStatus_t status = hws_call_hwsRandCreate(created, type, is_host ? 1 : 0);
    if (status != CURAND_STATUS_SUCCESS) {
        hws_handle_drop(HWS_KIND_CURAND, id);
        return status;
    }
    *generator = created;
    return CURAND_STATUS_SUCCESS;
}

HWS_EXPORT curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t rng_type) {
    return create(generator, rng_type, false);
}

HWS_EXPORT curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t rng_type) {
    return create(generator, rng_type, true);
}

/* The settings of a generator; leaves the calling function without one. */
#define HWS_STATE(generator)                                                                                           \
    (__extension__({                                                                                                   \
        hws_rand_generator_t *hws_found = hws_rand_find(generator);                                                    \
        HWS_NEED(hws_found != NULL, CURAND_STATUS_NOT_INITIALIZED);                                                    \
        hws_found;                                                                                                     \
    }))

HWS_EXPORT curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
    (void) HWS_STATE(generator);
    curandStatus_t status = hws_math_gate() != 0 ? CURAND_STATUS_SUCCESS : hws_call_hwsRandDestroy(generator);
    hws_handle_drop(HWS_KIND_CURAND, (uintptr_t) generator);
    return status;
}

HWS_EXPORT curandStatus_t curandSetStream(curandGenerator_t generator, CUstream stream) {
    HWS_STATE(generator)->stream = (uintptr_t) stream;
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t set(curandGenerator_t generator, HwsRandSetting setting, uint64_t value) {
    hws_rand_generator_t *state = HWS_STATE(generator);
    bool decides = setting == HWS_RAND_ORDERING || setting == HWS_RAND_DIMENSIONS;
    atomic_bool *known = &accepted[(unsigned int) state->type % TYPES][state->is_host][setting];
    if (decides || !atomic_load_explicit(known, memory_order_relaxed)) {
        HWS_ENTER();
        HWS_TRY(hws_call_hwsRandSet(generator, setting, value));
        atomic_store_explicit(known, true, memory_order_relaxed);
        state->changed &= ~(1u << setting); /* the library has the newer one */
    } else {
        state->changed |= 1u << setting;
    }
    state->settings[setting] = value;
    return CURAND_STATUS_SUCCESS;
}

HWS_EXPORT curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
    return set(generator, HWS_RAND_SEED, seed);
}

HWS_EXPORT curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
    return set(generator, HWS_RAND_OFFSET, offset);
}

HWS_EXPORT curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
    return set(generator, HWS_RAND_ORDERING, (unsigned int) order);
}

HWS_EXPORT curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator,
                                                                  unsigned int num_dimensions) {
    return set(generator, HWS_RAND_DIMENSIONS, num_dimensions);
}

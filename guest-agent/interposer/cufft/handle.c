/* Handles and their state, which stay in the guest. A handle is a number from 1 on. */
#include "hws_cufft.h"

#include "hws_cufft_calls.h"

#include <pthread.h>
#include <stdlib.h>

#define HANDLES 16384           /* stops a program that never destroys its handles */
#define DEFAULT_HOST_THREADS 27 /* documented for NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, as the next one */
#define MAX_HOST_THREADS 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of creation and destruction */
static hws_fft_plan_t *_Atomic plans[HANDLES];
static unsigned int last; /* searched from here on, so that a number returns late */

cufftResult hws_unsupported(const char *name) {
    hws_math_unsupported(name);
    return CUFFT_NOT_SUPPORTED;
}

hws_fft_plan_t *hws_fft_find(cufftHandle handle) {
    return handle < 1 || handle > HANDLES ? NULL : atomic_load_explicit(&plans[handle - 1], memory_order_acquire);
}

static void reset(hws_fft_plan_t *plan, int property) {
    plan->properties[property - 1] =
        property == NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS ? DEFAULT_HOST_THREADS : 0;
}

cufftResult hws_fft_create(cufftHandle *handle) {
    hws_fft_plan_t *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return CUFFT_ALLOC_FAILED;
    }
    plan->auto_allocate = true;
    reset(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT);
    reset(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS);
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < HANDLES; i++) {
        unsigned int at = (last + i) % HANDLES;
        if (atomic_load_explicit(&plans[at], memory_order_relaxed) == NULL) {
            atomic_store_explicit(&plans[at], plan, memory_order_release);
            last = at + 1;
            pthread_mutex_unlock(&lock);
            *handle = (cufftHandle) at + 1;
            return CUFFT_SUCCESS;
        }
    }
    pthread_mutex_unlock(&lock);
    free(plan);
    return CUFFT_ALLOC_FAILED;
}

cufftResult hws_fft_destroy(cufftHandle handle) {
    if (handle < 1 || handle > HANDLES) {
        return CUFFT_INVALID_PLAN;
    }
    hws_fft_plan_t *plan = atomic_exchange(&plans[handle - 1], NULL);
    if (plan == NULL) {
        return CUFFT_INVALID_PLAN;
    }
    uint64_t id = plan->id;
    free(plan);
    if (id == 0 || hws_math_gate() != 0) {
        return CUFFT_SUCCESS;
    }
    cufftResult status = hws_call_hwsFftDestroy((HwsFftPlanId) (uintptr_t) id);
    hws_handle_drop(HWS_KIND_CUFFT, id);
    return status;
}

HWS_EXPORT cufftResult cufftCreate(cufftHandle *handle) {
    HWS_REQUIRE(handle != NULL);
    return hws_fft_create(handle);
}

HWS_EXPORT cufftResult cufftDestroy(cufftHandle plan) {
    return hws_fft_destroy(plan);
}

/* The state of a handle; leaves the calling function without one. */
#define HWS_STATE(handle)                                                                                              \
    (__extension__({                                                                                                   \
        hws_fft_plan_t *hws_found = hws_fft_find(handle);                                                              \
        if (__builtin_expect(hws_found == NULL, 0)) {                                                                  \
            return CUFFT_INVALID_PLAN;                                                                                 \
        }                                                                                                              \
        hws_found;                                                                                                     \
    }))

HWS_EXPORT cufftResult cufftSetStream(cufftHandle plan, CUstream stream) {
    HWS_STATE(plan)->stream = (uintptr_t) stream;
    return CUFFT_SUCCESS;
}

HWS_EXPORT cufftResult cufftSetWorkArea(cufftHandle plan, void *workArea) {
    HWS_STATE(plan)->work_area = (uintptr_t) workArea;
    return CUFFT_SUCCESS;
}

/* After the plan is made there is a work area or none. */
HWS_EXPORT cufftResult cufftSetAutoAllocation(cufftHandle plan, int autoAllocate) {
    hws_fft_plan_t *state = HWS_STATE(plan);
    if (state->id != 0 && state->auto_allocate != (autoAllocate != 0)) {
        return CUFFT_INVALID_PLAN;
    }
    state->auto_allocate = autoAllocate != 0;
    return CUFFT_SUCCESS;
}

static bool is_known(cufftProperty property) {
    return property >= NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT
        && property <= NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS;
}

/*
 * Properties are hints for how a plan is made. Hawser keeps them, but does not pass them on: the threads would be the
 * broker's, and a worker opens no files for a compiler.
 */
HWS_EXPORT cufftResult cufftSetPlanPropertyInt64(cufftHandle plan, cufftProperty property, long long inputValueInt) {
    hws_fft_plan_t *state = HWS_STATE(plan);
    if (state->id != 0 || !is_known(property)) { /* documented: both are "not supported" */
        return CUFFT_NOT_SUPPORTED;
    }
    if (property == NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS) {
        HWS_REQUIRE(inputValueInt >= 1 && inputValueInt <= MAX_HOST_THREADS);
    } else {
        HWS_REQUIRE(inputValueInt == 0 || inputValueInt == 1);
    }
    state->properties[property - 1] = inputValueInt;
    return CUFFT_SUCCESS;
}

HWS_EXPORT cufftResult cufftGetPlanPropertyInt64(cufftHandle plan, cufftProperty property, long long *returnPtrValue) {
    const hws_fft_plan_t *state = HWS_STATE(plan);
    HWS_REQUIRE(returnPtrValue != NULL);
    if (!is_known(property)) {
        return CUFFT_NOT_SUPPORTED;
    }
    *returnPtrValue = state->properties[property - 1];
    return CUFFT_SUCCESS;
}

HWS_EXPORT cufftResult cufftResetPlanProperty(cufftHandle plan, cufftProperty property) {
    hws_fft_plan_t *state = HWS_STATE(plan);
    if (state->id != 0 || !is_known(property)) { /* documented: both are "not supported" */
        return CUFFT_NOT_SUPPORTED;
    }
    reset(state, (int) property);
    return CUFFT_SUCCESS;
}

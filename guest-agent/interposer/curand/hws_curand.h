/* Included by every file of libcurand.so: the entry of a call, and the settings of a generator. */
#ifndef HWS_CURAND_H
#define HWS_CURAND_H

#include "hws_curand_types.h"
#include "hws_math.h"

#include <stdbool.h>
#include <stddef.h>

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CURAND_STATUS_PREEXISTING_FAILURE)

/* Returns CURAND_STATUS_OUT_OF_RANGE unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CURAND_STATUS_OUT_OF_RANGE)

/* Leaves the calling function with a status other than CURAND_STATUS_SUCCESS. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        curandStatus_t hws_tried = (call);                                                                             \
        HWS_NEED(hws_tried == CURAND_STATUS_SUCCESS, hws_tried);                                                       \
    } while (0)

/* The settings of a generator. As NVIDIA's, a generator is for one thread at a time. */
typedef struct hws_rand_generator {
    uint64_t stream;
    uint64_t settings[HWS_RAND_SETTINGS]; /* what the program has set last; 0 for nothing */
    uint32_t changed;                     /* settings that the worker does not know yet, as bits */
    int type;                             /* curandRngType_t */
    bool is_host;
} hws_rand_generator_t;

/* The settings of a generator; NULL for an invalid handle. Any thread. */
hws_rand_generator_t *hws_rand_find(curandGenerator_t generator);

#endif

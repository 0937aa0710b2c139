/* Included by every file of libcufft.so: the entry of a call, handles and their state. */
#ifndef HWS_CUFFT_H
#define HWS_CUFFT_H

#include "hws_cufft_types.h"
#include "hws_math.h"

#include <stdbool.h>
#include <stddef.h>

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CUFFT_SETUP_FAILED)

/* Returns CUFFT_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CUFFT_INVALID_VALUE)

/* Leaves the calling function with a result other than CUFFT_SUCCESS. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        cufftResult hws_tried = (call);                                                                                \
        HWS_NEED(hws_tried == CUFFT_SUCCESS, hws_tried);                                                               \
    } while (0)

#define HWS_FFT_PROPERTIES 2 /* of cufftProperty, which counts from 1 */

/* The state of a handle. As NVIDIA's, it is for one thread at a time. */
typedef struct hws_fft_plan {
    uint64_t id; /* of the worker's plan; 0 before the plan is made */
    uint64_t stream;
    uint64_t work_area; /* 0 for the worker's */
    size_t work_size;   /* after the plan is made */
    long long properties[HWS_FFT_PROPERTIES];
    bool auto_allocate;
} hws_fft_plan_t;

/* The state of a handle; NULL for an invalid one. Any thread. */
hws_fft_plan_t *hws_fft_find(cufftHandle handle);

/* Makes a handle without a plan. */
cufftResult hws_fft_create(cufftHandle *handle);

/* Ends a handle and its plan. */
cufftResult hws_fft_destroy(cufftHandle handle);

/* The arguments of a plan in one, two or three dimensions; `n` has 3 numbers. */
HwsFftPlan hws_fft_simple(int rank, const int *n, cufftType type, int batch);

/* The arguments of the functions for several transforms; CUFFT_INVALID_VALUE for those that cannot be read. */
cufftResult hws_fft_many(HwsFftPlan *content, int rank, const int *n, const int *inembed, int istride, int idist,
                         const int *onembed, int ostride, int odist, cufftType type, int batch);
cufftResult hws_fft_many64(HwsFftPlan *content, int rank, const long long *n, const long long *inembed,
                           long long istride, long long idist, const long long *onembed, long long ostride,
                           long long odist, cufftType type, long long batch);
cufftResult hws_fft_xt(HwsFftPlan *content, int rank, const long long *n, const long long *inembed, long long istride,
                       long long idist, cudaDataType inputtype, const long long *onembed, long long ostride,
                       long long odist, cudaDataType outputtype, long long batch, cudaDataType executiontype);

/* Logs once that a function has no implementation. Returns CUFFT_NOT_SUPPORTED. */
cufftResult hws_unsupported(const char *name);

#endif

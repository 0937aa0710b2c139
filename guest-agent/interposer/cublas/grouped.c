/* Groups of products. A record holds HWS_GROUPS groups; a call with more is sent in several records. */
#include "hws_cublas.h"

#include "hws_cublas_calls.h"

#define HWS_GROUPS 1024 /* 1,024 64-bit numbers are the maximum of each array in the description */

/* The products in groups [begin, begin + count) of sizes; leaves the calling function if one is negative. */
#define HWS_PRODUCTS(sizes, begin, count)                                                                              \
    (__extension__({                                                                                                   \
        size_t hws_sum = 0;                                                                                            \
        for (int64_t hws_i = (begin); hws_i < (begin) + (count); hws_i++) {                                            \
            HWS_REQUIRE((sizes)[hws_i] >= 0);                                                                          \
            hws_sum += (size_t) (sizes)[hws_i];                                                                        \
        }                                                                                                              \
        hws_sum;                                                                                                       \
    }))

#define HWS_ARRAYS                                                                                                     \
    (transa_array != NULL && transb_array != NULL && m_array != NULL && n_array != NULL && k_array != NULL             \
     && alpha_array != NULL && lda_array != NULL && ldb_array != NULL && beta_array != NULL && ldc_array != NULL       \
     && group_size != NULL)

/* The body of a function: `call` sends the groups [at, at + count), whose products begin at `first`. */
#define HWS_SPLIT(call)                                                                                                \
    HWS_ENTER_CONTEXT();                                                                                               \
    const HwsCublasHandle *hws_handle = HWS_DESCRIPTOR(HwsCublasHandle, handle);                                       \
    HWS_REQUIRE(group_count >= 0 && (group_count == 0 || HWS_ARRAYS));                                                 \
    (void) HWS_PRODUCTS(group_size, 0, group_count);                                                                   \
    size_t first = 0;                                                                                                  \
    for (int64_t at = 0; at < group_count; at += HWS_GROUPS) {                                                         \
        int64_t count = group_count - at < HWS_GROUPS ? group_count - at : HWS_GROUPS;                                 \
        cublasStatus_t status = (call);                                                                                \
        if (status != CUBLAS_STATUS_SUCCESS) {                                                                         \
            return status;                                                                                             \
        }                                                                                                              \
        first += HWS_PRODUCTS(group_size, at, count);                                                                  \
    }                                                                                                                  \
    return CUBLAS_STATUS_SUCCESS;

#define HWS_GROUPED(form, width, integer, t)                                                                           \
    HWS_EXPORT cublasStatus_t cublas##form##gemmGroupedBatched##width(                                                 \
        cublasHandle_t handle, const cublasOperation_t *transa_array, const cublasOperation_t *transb_array,           \
        const integer *m_array, const integer *n_array, const integer *k_array, const t *alpha_array,                  \
        const t *const *Aarray, const integer *lda_array, const t *const *Barray, const integer *ldb_array,            \
        const t *beta_array, t *const *Carray, const integer *ldc_array, integer group_count,                          \
        const integer *group_size) {                                                                                   \
        HWS_SPLIT(hws_call_cublas##form##gemmGroupedBatched##width(                                                    \
            hws_handle, transa_array + at, transb_array + at, m_array + at, n_array + at, k_array + at,                \
            alpha_array + at, Aarray + first, lda_array + at, Barray + first, ldb_array + at, beta_array + at,         \
            Carray + first, ldc_array + at, (integer) count, group_size + at))                                         \
    }

HWS_GROUPED(S, , int, float)
HWS_GROUPED(S, _64, int64_t, float)
HWS_GROUPED(D, , int, double)
HWS_GROUPED(D, _64, int64_t, double)

#define HWS_GROUPED_EX(width, integer)                                                                                 \
    HWS_EXPORT cublasStatus_t cublasGemmGroupedBatchedEx##width(                                                       \
        cublasHandle_t handle, const cublasOperation_t *transa_array, const cublasOperation_t *transb_array,           \
        const integer *m_array, const integer *n_array, const integer *k_array, const void *alpha_array,               \
        const void *const *Aarray, cudaDataType Atype, const integer *lda_array, const void *const *Barray,            \
        cudaDataType Btype, const integer *ldb_array, const void *beta_array, void *const *Carray, cudaDataType Ctype, \
        const integer *ldc_array, integer group_count, const integer *group_size, cublasComputeType_t computeType) {   \
        size_t step = hws_size_compute(computeType, Atype);                                                            \
        HWS_SPLIT(hws_call_cublasGemmGroupedBatchedEx##width(                                                          \
            hws_handle, transa_array + at, transb_array + at, m_array + at, n_array + at, k_array + at,                \
            (const char *) alpha_array + (size_t) at * step, Aarray + first, Atype, lda_array + at, Barray + first,    \
            Btype, ldb_array + at, (const char *) beta_array + (size_t) at * step, Carray + first, Ctype,              \
            ldc_array + at, (integer) count, group_size + at, computeType))                                            \
    }

HWS_GROUPED_EX(, int)
HWS_GROUPED_EX(_64, int64_t)

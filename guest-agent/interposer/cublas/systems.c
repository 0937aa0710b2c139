/*
 * Batches of systems of equations whose functions report a wrong argument by a number in host memory. The report is
 * made here: the reply to a failed call carries no numbers.
 */
#include "hws_cublas.h"

#include "hws_cublas_calls.h"

/* The library's names of columns need room for a row each; at least 1. */
static int most(int a, int b) {
    return a > b ? a : b;
}

#define HWS_REPORT(info, wrong)                                                                                        \
    do {                                                                                                               \
        HWS_REQUIRE((info) != NULL);                                                                                   \
        *(info) = (wrong);                                                                                             \
        HWS_REQUIRE(*(info) == 0);                                                                                     \
    } while (0)

#define HWS_GETRS(form, t)                                                                                             \
    HWS_EXPORT cublasStatus_t cublas##form##getrsBatched(                                                              \
        cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs, const t *const *Aarray, int lda,              \
        const int *devIpiv, t *const *Barray, int ldb, int *info, int batchSize) {                                     \
        HWS_ENTER_CONTEXT();                                                                                           \
        const HwsCublasHandle *hws_handle = HWS_DESCRIPTOR(HwsCublasHandle, handle);                                   \
        HWS_REPORT(info,                                                                                               \
                   (uint32_t) trans > CUBLAS_OP_C ? -1                                                                 \
                       : n < 0                    ? -2                                                                 \
                       : nrhs < 0                 ? -3                                                                 \
                       : lda < most(1, n)         ? -5                                                                 \
                       : ldb < most(1, n)         ? -8                                                                 \
                       : batchSize < 0            ? -10                                                                \
                                                  : 0);                                                                           \
        return hws_call_cublas##form##getrsBatched(hws_handle, trans, n, nrhs, Aarray, lda, devIpiv, Barray, ldb,      \
                                                   info, batchSize);                                                   \
    }

#define HWS_GEQRF(form, t)                                                                                             \
    HWS_EXPORT cublasStatus_t cublas##form##geqrfBatched(cublasHandle_t handle, int m, int n, t *const *Aarray,        \
                                                         int lda, t *const *TauArray, int *info, int batchSize) {      \
        HWS_ENTER_CONTEXT();                                                                                           \
        const HwsCublasHandle *hws_handle = HWS_DESCRIPTOR(HwsCublasHandle, handle);                                   \
        HWS_REPORT(info, m < 0 ? -1 : n < 0 ? -2 : lda < most(1, m) ? -4 : batchSize < 0 ? -7 : 0);                    \
        return hws_call_cublas##form##geqrfBatched(hws_handle, m, n, Aarray, lda, TauArray, info, batchSize);          \
    }

#define HWS_GELS(form, t)                                                                                              \
    HWS_EXPORT cublasStatus_t cublas##form##gelsBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n,  \
                                                        int nrhs, t *const *Aarray, int lda, t *const *Carray,         \
                                                        int ldc, int *info, int *devInfoArray, int batchSize) {        \
        HWS_ENTER_CONTEXT();                                                                                           \
        const HwsCublasHandle *hws_handle = HWS_DESCRIPTOR(HwsCublasHandle, handle);                                   \
        HWS_REPORT(info,                                                                                               \
                   m < 0                  ? -2                                                                         \
                       : n < 0            ? -3                                                                         \
                       : nrhs < 0         ? -4                                                                         \
                       : lda < most(1, m) ? -6                                                                         \
                       : ldc < most(1, m) ? -8                                                                         \
                       : batchSize < 0    ? -11                                                                        \
                                          : 0);                                                                           \
        return hws_call_cublas##form##gelsBatched(hws_handle, trans, m, n, nrhs, Aarray, lda, Carray, ldc, info,       \
                                                  devInfoArray, batchSize);                                            \
    }

#define HWS_SYSTEMS(form, t)                                                                                           \
    HWS_GETRS(form, t)                                                                                                 \
    HWS_GEQRF(form, t)                                                                                                 \
    HWS_GELS(form, t)

HWS_SYSTEMS(S, float)
HWS_SYSTEMS(D, double)
HWS_SYSTEMS(C, cuComplex)
HWS_SYSTEMS(Z, cuDoubleComplex)

/* The arguments of a plan, as its record carries them. */
#include "hws_cufft.h"

#define MAX_RANK 3 /* cufft.h, MAX_SHIM_RANK */

HwsFftPlan hws_fft_simple(int rank, const int *n, cufftType type, int batch) {
    HwsFftPlan content = {
        .function = (uint32_t) (HWS_FFT_1D + rank - 1), .rank = rank, .type = (int32_t) type, .batch = batch};
    for (int i = 0; i < rank; i++) {
        content.n[i] = n[i];
    }
    return content;
}

/* Reads the arrays of `integer`. The strides of the caller are in the content. */
#define HWS_ARRAYS(integer)                                                                                            \
    static cufftResult arrays_##integer(HwsFftPlan *content, int rank, const integer *n, const integer *inembed,       \
                                        const integer *onembed) {                                                      \
        HWS_REQUIRE(rank >= 1 && rank <= MAX_RANK && n != NULL);                                                       \
        content->rank = rank;                                                                                          \
        content->hasInembed = inembed != NULL;                                                                         \
        content->hasOnembed = onembed != NULL;                                                                         \
        for (int i = 0; i < rank; i++) {                                                                               \
            content->n[i] = n[i];                                                                                      \
            content->inembed[i] = inembed == NULL ? 0 : inembed[i];                                                    \
            content->onembed[i] = onembed == NULL ? 0 : onembed[i];                                                    \
        }                                                                                                              \
        return CUFFT_SUCCESS;                                                                                          \
    }

typedef long long longs;
HWS_ARRAYS(int)
HWS_ARRAYS(longs)

cufftResult hws_fft_many(HwsFftPlan *content, int rank, const int *n, const int *inembed, int istride, int idist,
                         const int *onembed, int ostride, int odist, cufftType type, int batch) {
    *content = (HwsFftPlan) {.function = HWS_FFT_MANY,
                             .type = (int32_t) type,
                             .istride = istride,
                             .idist = idist,
                             .ostride = ostride,
                             .odist = odist,
                             .batch = batch};
    return arrays_int(content, rank, n, inembed, onembed);
}

cufftResult hws_fft_many64(HwsFftPlan *content, int rank, const long long *n, const long long *inembed,
                           long long istride, long long idist, const long long *onembed, long long ostride,
                           long long odist, cufftType type, long long batch) {
    *content = (HwsFftPlan) {.function = HWS_FFT_MANY64,
                             .type = (int32_t) type,
                             .istride = istride,
                             .idist = idist,
                             .ostride = ostride,
                             .odist = odist,
                             .batch = batch};
    return arrays_longs(content, rank, n, inembed, onembed);
}

cufftResult hws_fft_xt(HwsFftPlan *content, int rank, const long long *n, const long long *inembed, long long istride,
                       long long idist, cudaDataType inputtype, const long long *onembed, long long ostride,
                       long long odist, cudaDataType outputtype, long long batch, cudaDataType executiontype) {
    *content = (HwsFftPlan) {.function = HWS_FFT_XT,
                             .inputType = (int32_t) inputtype,
                             .outputType = (int32_t) outputtype,
                             .executionType = (int32_t) executiontype,
                             .istride = istride,
                             .idist = idist,
                             .ostride = ostride,
                             .odist = odist,
                             .batch = batch};
    return arrays_longs(content, rank, n, inembed, onembed);
}

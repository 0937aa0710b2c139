/* Facts that the guest knows. */
#include "hws_cublaslt.h"

HWS_EXPORT size_t cublasLtGetVersion(void) {
    return HWS_CUDART_VERSION / 1000 * 10000 + HWS_CUDART_VERSION % 1000 / 10 * 100; /* 13.0.0: 130000 */
}

HWS_EXPORT size_t cublasLtGetCudartVersion(void) {
    return HWS_CUDART_VERSION;
}

HWS_EXPORT const char *cublasLtGetStatusName(cublasStatus_t status) {
    return hws_math_status_name(status);
}

HWS_EXPORT const char *cublasLtGetStatusString(cublasStatus_t status) {
    return hws_math_status_text(status);
}

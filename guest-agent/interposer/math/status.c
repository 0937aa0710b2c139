/* Names and texts of cublasStatus_t, which cuBLAS and cublasLt share. */
#include "hws_math.h"

#include "hws_cublas_types.h"

const char *hws_math_status_name(int status) {
    switch (status) {
#define HWS_RESULT(name, value, text)                                                                                  \
    case value:                                                                                                        \
        return #name;
#include "hws_cublas_results.inc"
#undef HWS_RESULT
        default:
            return "CUBLAS_STATUS_UNKNOWN";
    }
}

const char *hws_math_status_text(int status) {
    switch (status) {
#define HWS_RESULT(name, value, text)                                                                                  \
    case value:                                                                                                        \
        return text;
#include "hws_cublas_results.inc"
#undef HWS_RESULT
        default:
            return "unknown status";
    }
}

/* Errors: the thread's last one, names, texts, and the translation of the driver's codes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static _Thread_local cudaError_t lastError = cudaSuccess;

cudaError_t hws_error_record(cudaError_t error) {
    if (error != cudaSuccess) {
        lastError = error;
    }
    return error;
}

HWS_API cudaError_t cudaGetLastError(void) {
    cudaError_t error = lastError;
    lastError = cudaSuccess;
    return error;
}

HWS_API cudaError_t cudaPeekAtLastError(void) {
    return lastError;
}

HWS_API const char *cudaGetErrorName(cudaError_t error) {
    switch ((int) error) {
#define HWS_ERROR(value, name, text)                                                                                   \
    case value:                                                                                                        \
        return #name;
#include "errors.def"
#undef HWS_ERROR
        default:
            return "unrecognized error code";
    }
}

HWS_API const char *cudaGetErrorString(cudaError_t error) {
    const char *text;
    if (error == cudaErrorIllegalAddress && cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS) {
        return text; /* the driver may know the cause */
    }
    switch ((int) error) {
#define HWS_ERROR(value, name, text)                                                                                   \
    case value:                                                                                                        \
        return text;
#include "errors.def"
#undef HWS_ERROR
        default:
            return "unrecognized error code";
    }
}

cudaError_t hws_error_from_driver(CUresult result) {
    /* Since CUDA 10.1 both APIs number their codes alike. A driver newer than this library may have further codes. */
    switch ((int) result) {
#define HWS_ERROR(value, name, text) case value:
#include "errors.def"
#undef HWS_ERROR
        return (cudaError_t) result;
        default:
            return cudaErrorUnknown;
    }
}

cudaError_t hws_error_unsupported(const char *name, atomic_flag *named) {
    if (!atomic_flag_test_and_set_explicit(named, memory_order_relaxed)) {
        const char *level = getenv("HAWSER_LOG");
        if (level == NULL || strcmp(level, "error") != 0) {
            fprintf(stderr, "hawser: %s is not supported yet and returns cudaErrorNotSupported\n", name);
        }
    }
    return hws_error_record(cudaErrorNotSupported);
}

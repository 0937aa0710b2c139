/*
 * The log of the library. A program may configure it, but nothing is logged: NVIDIA's library runs on the other machine.
 */
#include "hws_cublaslt.h"

#define MAX_LEVEL 5 /* cublasLtLoggerSetLevel: 0 is off, 5 is API trace */

HWS_EXPORT cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t callback) {
    (void) callback;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasLtLoggerSetFile(void *file) {
    (void) file;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasLtLoggerOpenFile(const char *logFile) {
    HWS_REQUIRE(logFile != NULL);
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasLtLoggerSetLevel(int level) {
    HWS_REQUIRE(level >= 0 && level <= MAX_LEVEL);
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasLtLoggerSetMask(int mask) {
    (void) mask;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasLtLoggerForceDisable(void) {
    return CUBLAS_STATUS_SUCCESS;
}

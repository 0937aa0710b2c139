/* Settings of the log and the report of wrong arguments. Hawser's library writes no log of its own. */
#include "hws_cublas.h"

#include <stdio.h>

static cublasLogCallback _Atomic logged;

HWS_EXPORT cublasStatus_t cublasLoggerConfigure(int logIsOn, int logToStdOut, int logToStdErr,
                                                const char *logFileName) {
    (void) logIsOn;
    (void) logToStdOut;
    (void) logToStdErr;
    (void) logFileName;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasSetLoggerCallback(cublasLogCallback userCallback) {
    logged = userCallback;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasGetLoggerCallback(cublasLogCallback *userCallback) {
    HWS_REQUIRE(userCallback != NULL);
    *userCallback = logged;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT void cublasXerbla(const char *srName, int info) {
    printf(" ** On entry to %-6s parameter number %d had an illegal value\n", srName == NULL ? "" : srName, info);
}

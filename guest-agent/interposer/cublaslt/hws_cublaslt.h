/* Included by every file of libcublasLt.so. */
#ifndef HWS_CUBLASLT_H
#define HWS_CUBLASLT_H

#include "hws_cublaslt_types.h"
#include "hws_math.h"

/* Logs once that a function has no implementation. Returns CUBLAS_STATUS_NOT_SUPPORTED. */
cublasStatus_t hws_unsupported(const char *name);

#endif

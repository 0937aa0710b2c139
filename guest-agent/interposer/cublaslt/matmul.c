/* Products and transforms: a record carries the content of the descriptors and the numbers behind pointers. */
#include "hws_cublaslt.h"

#include "hws_cublaslt_calls.h"

#include <string.h>

/* Bytes of alpha and beta, which have the scale type; 0 for a type that no product scales with. */
static uint32_t scale_bytes(int32_t type) {
    switch (type) {
        case CUDA_R_16F:
        case CUDA_R_16BF:
            return 2;
        case CUDA_R_32F:
        case CUDA_R_32I:
        case CUDA_C_16F:
        case CUDA_C_16BF:
            return 4;
        case CUDA_R_64F:
        case CUDA_C_32F:
            return 8;
        case CUDA_C_64F:
            return 16;
        default:
            return 0;
    }
}

/* Fills a number: its value, its address on the device, or zero for no pointer. */
static void scalar(HwsScalar *scalar, const void *pointer, uint32_t bytes, bool on_device) {
    memset(scalar, 0, sizeof *scalar);
    scalar->valueBytes = bytes;
    if (on_device) {
        scalar->onDevice = 1;
        scalar->address = (uintptr_t) pointer;
    } else if (pointer != NULL) {
        memcpy(scalar->value, pointer, bytes);
    }
}

/* Fills alpha and beta by the pointer mode. Returns what the call returns if one is wrong. */
static cublasStatus_t scalars(HwsScalar *alpha, HwsScalar *beta, const void *alpha_pointer, const void *beta_pointer,
                              uint32_t mode, int32_t type) {
    uint32_t bytes = scale_bytes(type);
    if (bytes == 0) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    bool zero = mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO;
    HWS_REQUIRE(mode <= CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST);
    HWS_REQUIRE(alpha_pointer != NULL && (beta_pointer != NULL || zero));
    scalar(alpha, alpha_pointer, bytes, mode != CUBLASLT_POINTER_MODE_HOST);
    scalar(beta, zero ? NULL : beta_pointer, bytes,
           mode == CUBLASLT_POINTER_MODE_DEVICE || mode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR);
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether a number is on the device or not zero. -0 is zero: C is not read then. */
static bool scales(const HwsScalar *scalar, int32_t type) {
    static const unsigned char zeros[sizeof scalar->value];
    if (scalar->onDevice) {
        return true;
    }
    switch (type) {
        case CUDA_R_32F: {
            float value;
            memcpy(&value, scalar->value, sizeof value);
            return value != 0;
        }
        case CUDA_R_64F: {
            double value;
            memcpy(&value, scalar->value, sizeof value);
            return value != 0;
        }
        default:
            return memcmp(scalar->value, zeros, scalar->valueBytes) != 0;
    }
}

HWS_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
                                         const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc, const void *B,
                                         cublasLtMatrixLayout_t Bdesc, const void *beta, const void *C,
                                         cublasLtMatrixLayout_t Cdesc, void *D, cublasLtMatrixLayout_t Ddesc,
                                         const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceSizeInBytes,
                                         CUstream stream) {
    HWS_ENTER();
    HwsLtTarget target = {hws_lt_handle(lightHandle), (uintptr_t) stream, (uintptr_t) workspace,
                          workspace == NULL ? 0 : workspaceSizeInBytes};
    if (target.handle == 0) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    cublasStatus_t status = hws_lt_check(__func__, computeDesc, Adesc, Bdesc, Cdesc, Ddesc);
    HwsScalar first, second;
    if (status == CUBLAS_STATUS_SUCCESS) {
        HWS_REQUIRE(D != NULL);
        status =
            scalars(&first, &second, alpha, beta, computeDesc->content.pointerMode, computeDesc->content.scaleType);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        /* Checked here, because calls that differ in the value of beta are of one kind. */
        HWS_REQUIRE(C != NULL || !scales(&second, computeDesc->content.scaleType));
        status = hws_math_may_issue(stream) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    HwsLtAlgo chosen = {0};
    if (algo != NULL) {
        chosen.isSet = 1;
        memcpy(chosen.data, algo->data, sizeof chosen.data);
    }
    return hws_call_hwsLtMatmul(&target, &computeDesc->content, hws_lt_emulation(computeDesc), &Adesc->content,
                                &Bdesc->content, &Cdesc->content, &Ddesc->content, &first, &second, A, B, C, D,
                                &chosen);
}

HWS_EXPORT cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t lightHandle,
                                                  cublasLtMatrixTransformDesc_t transformDesc, const void *alpha,
                                                  const void *A, cublasLtMatrixLayout_t Adesc, const void *beta,
                                                  const void *B, cublasLtMatrixLayout_t Bdesc, void *C,
                                                  cublasLtMatrixLayout_t Cdesc, CUstream stream) {
    static const struct hws_lt_layout absent; /* of a matrix that is NULL */
    HWS_ENTER();
    HwsLtTarget target = {hws_lt_handle(lightHandle), (uintptr_t) stream, 0, 0};
    if (target.handle == 0) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_REQUIRE(transformDesc != NULL && C != NULL && Cdesc != NULL);
    HWS_REQUIRE((A == NULL || Adesc != NULL) && (B == NULL || Bdesc != NULL)); /* documented */
    const struct hws_lt_layout *a = A == NULL ? &absent : Adesc, *b = B == NULL ? &absent : Bdesc;
    if (a->content.batchMode != CUBLASLT_BATCH_MODE_STRIDED || b->content.batchMode != CUBLASLT_BATCH_MODE_STRIDED
        || Cdesc->content.batchMode != CUBLASLT_BATCH_MODE_STRIDED) {
        return hws_unsupported(__func__);
    }
    uint32_t mode = (uint32_t) transformDesc->content.pointerMode;
    HWS_REQUIRE(mode <= CUBLASLT_POINTER_MODE_DEVICE);
    static const unsigned char zeros[sizeof((HwsScalar *) NULL)->value];
    HwsScalar first, second;
    cublasStatus_t status =
        scalars(&first, &second, alpha == NULL && A == NULL && mode == 0 ? zeros : alpha,
                beta == NULL && B == NULL && mode == 0 ? zeros : beta, mode, transformDesc->content.scaleType);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = hws_math_may_issue(stream) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    return hws_call_hwsLtMatrixTransform(&target, &transformDesc->content, &a->content, &b->content, &Cdesc->content,
                                         &first, &second, A, B, C);
}

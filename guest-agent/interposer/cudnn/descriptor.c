/* Descriptors of the older functions: objects of the guest, and those of tensors and filters. */
#include "hws_cudnn.h"

#include <stdlib.h>

#define NUMBERS (sizeof((hws_dnn_legacy_t *) NULL)->numbers / sizeof(int64_t))
#define MAX_NUMBERS 8000u /* so that a content of numbers fits into HWS_DNN_MAX_CONTENT */

hws_dnn_legacy_t *hws_dnn_legacy(const void *descriptor, int kind) {
    hws_dnn_legacy_t *legacy = (hws_dnn_legacy_t *) (uintptr_t) descriptor;
    return legacy != NULL && legacy->kind == kind ? legacy : NULL;
}

cudnnStatus_t hws_dnn_create(void *descriptor_p, int kind) {
    HWS_REQUIRE(descriptor_p != NULL);
    hws_dnn_legacy_t *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    made->kind = kind;
    made->reference.scaleBytes = sizeof(float);
    memcpy(descriptor_p, &made, sizeof made);
    return CUDNN_STATUS_SUCCESS;
}

void hws_dnn_changed(hws_dnn_legacy_t *legacy) {
    hws_dnn_release(legacy->node);
    legacy->node = NULL;
    legacy->reference.id = 0;
}

cudnnStatus_t hws_dnn_destroy(void *descriptor, int kind) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(descriptor, kind);
    HWS_REQUIRE(descriptor == NULL || legacy != NULL);
    if (legacy != NULL) {
        hws_dnn_release(legacy->node);
        hws_dnn_release(legacy->part);
        free(legacy->more);
        legacy->kind = 0;
        free(legacy);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hws_dnn_set(hws_dnn_legacy_t *legacy, const int64_t *numbers, uint32_t count) {
    int64_t *more = NULL;
    HWS_REQUIRE(count <= MAX_NUMBERS);
    if (count > NUMBERS) {
        more = malloc(count * sizeof *more);
        if (more == NULL) {
            return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
        }
    }
    memmove(more == NULL ? legacy->numbers : more, numbers, count * sizeof *numbers);
    free(legacy->more);
    legacy->more = more;
    legacy->count = count;
    hws_dnn_changed(legacy);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hws_dnn_resolve(hws_dnn_legacy_t *legacy) {
    HWS_REQUIRE(legacy->count > 0);
    hws_dnn_content_t content = {0};
    bool fits = hws_dnn_add(&content, HWS_DNN_NUMBERS, CUDNN_TYPE_INT64, legacy->count,
                            legacy->more == NULL ? legacy->numbers : legacy->more, NULL);
    fits = fits && hws_dnn_add(&content, HWS_DNN_REALS, CUDNN_TYPE_DOUBLE, legacy->real_count, legacy->reals, NULL);
    if (legacy->part != NULL) {
        fits = fits && hws_dnn_add(&content, HWS_DNN_PARTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &legacy->part);
    }
    if (legacy->handle != 0) {
        fits = fits && hws_dnn_add(&content, HWS_DNN_HANDLE, CUDNN_TYPE_HANDLE, 1, &legacy->handle, NULL);
        fits = fits && hws_dnn_add(&content, HWS_DNN_ADDRESS, CUDNN_TYPE_INT64, 1, &legacy->address, NULL);
    }
    cudnnStatus_t status = fits ? hws_dnn_make(legacy->kind, &content, true, &legacy->node)
                                : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    hws_dnn_clear(&content);
    if (status == CUDNN_STATUS_SUCCESS) {
        legacy->reference.id = hws_dnn_id(legacy->node);
    }
    return status;
}

#define CREATE(name, kind)                                                                                             \
    HWS_EXPORT cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t *descriptor) {                    \
        return hws_dnn_create(descriptor, kind);                                                                       \
    }                                                                                                                  \
    HWS_EXPORT cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t descriptor) {                    \
        return hws_dnn_destroy(descriptor, kind);                                                                      \
    }

CREATE(Tensor, HWS_DNN_TENSOR)
CREATE(Filter, HWS_DNN_FILTER)
CREATE(Convolution, HWS_DNN_CONVOLUTION)
CREATE(Activation, HWS_DNN_ACTIVATION)
CREATE(Pooling, HWS_DNN_POOLING)
CREATE(Dropout, HWS_DNN_DROPOUT)
CREATE(RNN, HWS_DNN_RNN)
CREATE(RNNData, HWS_DNN_RNN_DATA)
CREATE(CTCLoss, HWS_DNN_CTC)
CREATE(SpatialTransformer, HWS_DNN_SPATIAL)
CREATE(OpTensor, HWS_DNN_OP_TENSOR)
CREATE(ReduceTensor, HWS_DNN_REDUCE)
CREATE(LRN, HWS_DNN_LRN)

/* Sets a tensor: its type, the number of dimensions, their sizes and strides. */
static cudnnStatus_t set_tensor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type, int dims, const int *sizes,
                                const int *strides) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(descriptor, HWS_DNN_TENSOR);
    HWS_REQUIRE(legacy != NULL && sizes != NULL && strides != NULL && dims > 0);
    if (dims > CUDNN_DIM_MAX) {
        return CUDNN_STATUS_NOT_SUPPORTED; /* documented */
    }
    int64_t numbers[2 + 2 * CUDNN_DIM_MAX] = {(int64_t) type, dims};
    for (int i = 0; i < dims; i++) {
        HWS_REQUIRE(sizes[i] > 0);
        numbers[2 + i] = sizes[i];
        numbers[2 + dims + i] = strides[i];
    }
    legacy->reference.scaleBytes = type == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float); /* documented */
    return hws_dnn_set(legacy, numbers, 2 + 2 * (uint32_t) dims);
}

HWS_EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType,
                                                    int nbDims, const int *dimA, const int *strideA) {
    return set_tensor(tensorDesc, dataType, nbDims, dimA, strideA);
}

HWS_EXPORT cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType,
                                                      int n, int c, int h, int w, int nStride, int cStride, int hStride,
                                                      int wStride) {
    return set_tensor(tensorDesc, dataType, 4, (int[]) {n, c, h, w}, (int[]) {nStride, cStride, hStride, wStride});
}

HWS_EXPORT cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                                      cudnnDataType_t dataType, int nbDims, const int *dimA) {
    HWS_REQUIRE(dimA != NULL && nbDims > 1);
    if (nbDims > CUDNN_DIM_MAX || (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC)) {
        return hws_unsupported(__func__);
    }
    int strides[CUDNN_DIM_MAX];
    int64_t next = format == CUDNN_TENSOR_NCHW ? 1 : dimA[1];
    for (int i = nbDims - 1; i >= 0; i--) {
        if (format == CUDNN_TENSOR_NHWC && i == 1) {
            strides[i] = 1; /* the channels lie next to each other */
            continue;
        }
        HWS_REQUIRE(dimA[i] > 0 && next <= INT32_MAX);
        strides[i] = (int) next;
        next *= dimA[i];
    }
    return set_tensor(tensorDesc, dataType, nbDims, dimA, strides);
}

HWS_EXPORT cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                                    cudnnDataType_t dataType, int n, int c, int h, int w) {
    return cudnnSetTensorNdDescriptorEx(tensorDesc, format, dataType, 4, (int[]) {n, c, h, w});
}

HWS_EXPORT cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, int nbDimsRequested,
                                                    cudnnDataType_t *dataType, int *nbDims, int *dimA, int *strideA) {
    const hws_dnn_legacy_t *legacy = hws_dnn_legacy(tensorDesc, HWS_DNN_TENSOR);
    HWS_REQUIRE(legacy != NULL && legacy->count > 0 && nbDimsRequested >= 0);
    int dims = (int) legacy->numbers[1];
    if (dataType != NULL) {
        *dataType = (cudnnDataType_t) legacy->numbers[0];
    }
    if (nbDims != NULL) {
        *nbDims = dims;
    }
    for (int i = 0; i < dims && i < nbDimsRequested; i++) {
        if (dimA != NULL) {
            dimA[i] = (int) legacy->numbers[2 + i];
        }
        if (strideA != NULL) {
            strideA[i] = (int) legacy->numbers[2 + dims + i];
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t *dataType,
                                                    int *n, int *c, int *h, int *w, int *nStride, int *cStride,
                                                    int *hStride, int *wStride) {
    int dims = 0, sizes[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
    HWS_TRY(cudnnGetTensorNdDescriptor(tensorDesc, CUDNN_DIM_MAX, dataType, &dims, sizes, strides));
    HWS_REQUIRE(dims == 4);
    int *outputs[] = {n, c, h, w, nStride, cStride, hStride, wStride};
    for (int i = 0; i < 8; i++) {
        if (outputs[i] != NULL) {
            *outputs[i] = i < 4 ? sizes[i] : strides[i - 4];
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t tensorDesc, size_t *size) {
    cudnnDataType_t type;
    int dims = 0, sizes[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
    HWS_REQUIRE(size != NULL);
    HWS_TRY(cudnnGetTensorNdDescriptor(tensorDesc, CUDNN_DIM_MAX, &type, &dims, sizes, strides));
    size_t elements = 1;
    for (int i = 0; i < dims; i++) {
        elements += (size_t) (sizes[i] - 1) * (size_t) strides[i];
    }
    *size = elements * hws_dnn_element_bytes((int) type);
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                                    cudnnTensorFormat_t format, int nbDims, const int *filterDimA) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(filterDesc, HWS_DNN_FILTER);
    HWS_REQUIRE(legacy != NULL && filterDimA != NULL && nbDims > 0 && nbDims <= CUDNN_DIM_MAX);
    int64_t numbers[3 + CUDNN_DIM_MAX] = {(int64_t) dataType, (int64_t) format, nbDims};
    for (int i = 0; i < nbDims; i++) {
        HWS_REQUIRE(filterDimA[i] > 0);
        numbers[3 + i] = filterDimA[i];
    }
    legacy->reference.scaleBytes = dataType == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
    return hws_dnn_set(legacy, numbers, 3 + (uint32_t) nbDims);
}

HWS_EXPORT cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                                    cudnnTensorFormat_t format, int k, int c, int h, int w) {
    return cudnnSetFilterNdDescriptor(filterDesc, dataType, format, 4, (int[]) {k, c, h, w});
}

HWS_EXPORT cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, int nbDimsRequested,
                                                    cudnnDataType_t *dataType, cudnnTensorFormat_t *format, int *nbDims,
                                                    int *filterDimA) {
    const hws_dnn_legacy_t *legacy = hws_dnn_legacy(filterDesc, HWS_DNN_FILTER);
    HWS_REQUIRE(legacy != NULL && legacy->count > 0 && nbDimsRequested >= 0);
    HWS_REQUIRE(dataType != NULL && format != NULL && nbDims != NULL && filterDimA != NULL);
    *dataType = (cudnnDataType_t) legacy->numbers[0];
    *format = (cudnnTensorFormat_t) legacy->numbers[1];
    *nbDims = (int) legacy->numbers[2];
    for (int i = 0; i < *nbDims && i < nbDimsRequested; i++) {
        filterDimA[i] = (int) legacy->numbers[3 + i];
    }
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnGetFilterSizeInBytes(cudnnFilterDescriptor_t filterDesc, size_t *size) {
    const hws_dnn_legacy_t *legacy = hws_dnn_legacy(filterDesc, HWS_DNN_FILTER);
    HWS_REQUIRE(legacy != NULL && legacy->count > 0 && size != NULL);
    size_t bytes = hws_dnn_element_bytes((int) legacy->numbers[0]);
    for (int64_t i = 0; i < legacy->numbers[2]; i++) {
        bytes *= (size_t) legacy->numbers[3 + i];
    }
    *size = bytes;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derivedBnDesc,
                                                       cudnnTensorDescriptor_t xDesc, cudnnBatchNormMode_t mode) {
    cudnnDataType_t type;
    int dims = 0, sizes[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
    HWS_TRY(cudnnGetTensorNdDescriptor(xDesc, CUDNN_DIM_MAX, &type, &dims, sizes, strides));
    HWS_REQUIRE(dims >= 4 && dims <= 5);
    for (int i = 0; i < dims; i++) { /* one number a channel, or one an activation */
        sizes[i] = i == 0 || (i > 1 && mode != CUDNN_BATCHNORM_PER_ACTIVATION) ? 1 : sizes[i];
    }
    cudnnDataType_t derived = type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? CUDNN_DATA_FLOAT : type;
    return cudnnSetTensorNdDescriptorEx(derivedBnDesc, CUDNN_TENSOR_NCHW, derived, dims, sizes);
}

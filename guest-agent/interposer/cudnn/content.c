/* Contents of the other older descriptors. The worker sets them in its library in the same order. */
#include "hws_cudnn.h"

#include "hws_cudnn_calls.h"

#include <stdlib.h>

#define CONVOLUTION_DIMS 6 /* CUDNN_DIM_MAX less batch and channels */
#define MAX_BATCH 7000     /* sequences of a descriptor, as far as a content holds them */

/* Convolution: number of dimensions, paddings, strides, dilations, mode, type, groups, kind of computation, reordering. */
HWS_EXPORT cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc, int arrayLength,
                                                         const int *padA, const int *filterStrideA,
                                                         const int *dilationA, cudnnConvolutionMode_t mode,
                                                         cudnnDataType_t computeType) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(convDesc, HWS_DNN_CONVOLUTION);
    HWS_REQUIRE(legacy != NULL && arrayLength > 0 && arrayLength <= CONVOLUTION_DIMS && padA != NULL
                && filterStrideA != NULL && dilationA != NULL);
    int64_t numbers[6 + 3 * CONVOLUTION_DIMS] = {arrayLength};
    for (int i = 0; i < arrayLength; i++) {
        numbers[1 + i] = padA[i];
        numbers[1 + arrayLength + i] = filterStrideA[i];
        numbers[1 + 2 * arrayLength + i] = dilationA[i];
    }
    int64_t *rest = numbers + 1 + 3 * arrayLength;
    rest[0] = (int64_t) mode;
    rest[1] = (int64_t) computeType;
    rest[2] = 1;
    uint32_t count = 6 + 3 * (uint32_t) arrayLength;
    if (legacy->count == count) { /* documented: these stay */
        memcpy(rest + 2, legacy->numbers + count - 3, 3 * sizeof *rest);
    }
    return hws_dnn_set(legacy, numbers, count);
}

HWS_EXPORT cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w,
                                                         int u, int v, int dilation_h, int dilation_w,
                                                         cudnnConvolutionMode_t mode, cudnnDataType_t computeType) {
    return cudnnSetConvolutionNdDescriptor(convDesc, 2, (int[]) {pad_h, pad_w}, (int[]) {u, v},
                                           (int[]) {dilation_h, dilation_w}, mode, computeType);
}

/* Sets one of the last three numbers of a convolution. */
static cudnnStatus_t set_last(cudnnConvolutionDescriptor_t descriptor, uint32_t from_end, int64_t value) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(descriptor, HWS_DNN_CONVOLUTION);
    HWS_REQUIRE(legacy != NULL);
    if (legacy->count == 0) { /* as a new descriptor of two dimensions */
        HWS_TRY(cudnnSetConvolution2dDescriptor(descriptor, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
    }
    legacy->numbers[legacy->count - from_end] = value;
    hws_dnn_changed(legacy);
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount) {
    return set_last(convDesc, 3, groupCount);
}

HWS_EXPORT cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType) {
    return set_last(convDesc, 2, (int64_t) mathType);
}

HWS_EXPORT cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                                        cudnnReorderType_t reorderType) {
    return set_last(convDesc, 1, (int64_t) reorderType);
}

HWS_EXPORT cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(cudnnConvolutionDescriptor_t convDesc,
                                                               cudnnTensorDescriptor_t inputTensorDesc,
                                                               cudnnFilterDescriptor_t filterDesc, int nbDims,
                                                               int *tensorOuputDimA) {
    const hws_dnn_legacy_t *conv = hws_dnn_legacy(convDesc, HWS_DNN_CONVOLUTION);
    const hws_dnn_legacy_t *x = hws_dnn_legacy(inputTensorDesc, HWS_DNN_TENSOR);
    const hws_dnn_legacy_t *w = hws_dnn_legacy(filterDesc, HWS_DNN_FILTER);
    HWS_REQUIRE(conv != NULL && x != NULL && w != NULL && tensorOuputDimA != NULL);
    HWS_REQUIRE(conv->count > 0 && x->count > 0 && w->count > 0);
    int64_t dims = conv->numbers[0];
    HWS_REQUIRE(nbDims == dims + 2 && x->numbers[1] == nbDims && w->numbers[2] == nbDims);
    tensorOuputDimA[0] = (int) x->numbers[2];
    tensorOuputDimA[1] = (int) w->numbers[3];
    for (int64_t i = 0; i < dims; i++) {
        int64_t reach = (w->numbers[5 + i] - 1) * conv->numbers[1 + 2 * dims + i] + 1;
        int64_t stride = conv->numbers[1 + dims + i];
        HWS_REQUIRE(stride > 0);
        tensorOuputDimA[2 + i] = (int) (1 + (x->numbers[4 + i] + 2 * conv->numbers[1 + i] - reach) / stride);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_reals(hws_dnn_legacy_t *legacy, const int64_t *numbers, uint32_t count, const double *reals,
                               uint32_t real_count) {
    memcpy(legacy->reals, reals, real_count * sizeof *reals);
    legacy->real_count = real_count;
    return hws_dnn_set(legacy, numbers, count);
}

HWS_EXPORT cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                                                      cudnnActivationMode_t mode, cudnnNanPropagation_t reluNanOpt,
                                                      double coef) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(activationDesc, HWS_DNN_ACTIVATION);
    HWS_REQUIRE(legacy != NULL);
    double beta = legacy->real_count == 2 ? legacy->reals[1] : 1; /* documented default */
    return set_reals(legacy, (int64_t[]) {(int64_t) mode, (int64_t) reluNanOpt}, 2, (double[]) {coef, beta}, 2);
}

HWS_EXPORT cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activationDesc,
                                                               double swish_beta) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(activationDesc, HWS_DNN_ACTIVATION);
    HWS_REQUIRE(legacy != NULL);
    legacy->reals[1] = swish_beta;
    legacy->real_count = 2;
    hws_dnn_changed(legacy);
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
                                                     cudnnNanPropagation_t maxpoolingNanOpt, int nbDims,
                                                     const int *windowDimA, const int *paddingA, const int *strideA) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(poolingDesc, HWS_DNN_POOLING);
    HWS_REQUIRE(legacy != NULL && nbDims > 0 && nbDims <= CONVOLUTION_DIMS && windowDimA != NULL && paddingA != NULL
                && strideA != NULL);
    int64_t numbers[3 + 3 * CONVOLUTION_DIMS] = {(int64_t) mode, (int64_t) maxpoolingNanOpt, nbDims};
    for (int i = 0; i < nbDims; i++) {
        numbers[3 + i] = windowDimA[i];
        numbers[3 + nbDims + i] = paddingA[i];
        numbers[3 + 2 * nbDims + i] = strideA[i];
    }
    return hws_dnn_set(legacy, numbers, 3 + 3 * (uint32_t) nbDims);
}

HWS_EXPORT cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
                                                     cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight,
                                                     int windowWidth, int verticalPadding, int horizontalPadding,
                                                     int verticalStride, int horizontalStride) {
    return cudnnSetPoolingNdDescriptor(poolingDesc, mode, maxpoolingNanOpt, 2, (int[]) {windowHeight, windowWidth},
                                       (int[]) {verticalPadding, horizontalPadding},
                                       (int[]) {verticalStride, horizontalStride});
}

static cudnnStatus_t set_dropout(cudnnDropoutDescriptor_t descriptor, const HwsDnnHandle *handle, float dropout,
                                 void *states, size_t bytes, unsigned long long seed) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(descriptor, HWS_DNN_DROPOUT);
    HWS_REQUIRE(legacy != NULL);
    legacy->handle = handle->id;
    legacy->address = (uintptr_t) states;
    return set_reals(legacy, (int64_t[]) {(int64_t) bytes, (int64_t) seed}, 2, (double[]) {dropout}, 1);
}

/* Fills the states on the device now; the object of the worker is that of cudnnRestoreDropoutDescriptor. */
HWS_EXPORT cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                                   float dropout, void *states, size_t stateSizeInBytes,
                                                   unsigned long long seed) {
    HWS_ENTER();
    const HwsDnnHandle *state = hws_dnn_handle(handle);
    HWS_REQUIRE(state != NULL);
    if (states != NULL) {
        const HwsDnnHandle *issuing = HWS_DESCRIPTOR(HwsDnnHandle, handle);
        HWS_TRY(hws_call_hwsDnnSetDropout(issuing, dropout, states, stateSizeInBytes, seed));
    }
    return set_dropout(dropoutDesc, state, dropout, states, stateSizeInBytes, seed);
}

HWS_EXPORT cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                                       float dropout, void *states, size_t stateSizeInBytes,
                                                       unsigned long long seed) {
    HWS_ENTER();
    const HwsDnnHandle *state = hws_dnn_handle(handle);
    HWS_REQUIRE(state != NULL);
    return set_dropout(dropoutDesc, state, dropout, states, stateSizeInBytes, seed);
}

HWS_EXPORT cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo,
                                                  cudnnRNNMode_t cellMode, cudnnRNNBiasMode_t biasMode,
                                                  cudnnDirectionMode_t dirMode, cudnnRNNInputMode_t inputMode,
                                                  cudnnDataType_t dataType, cudnnDataType_t mathPrec,
                                                  cudnnMathType_t mathType, int inputSize, int hiddenSize, int projSize,
                                                  int numLayers, cudnnDropoutDescriptor_t dropoutDesc,
                                                  unsigned int auxFlags) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(rnnDesc, HWS_DNN_RNN);
    HWS_REQUIRE(legacy != NULL);
    hws_dnn_node_t *part = NULL;
    if (dropoutDesc != NULL) {
        HWS_ENTER();
        hws_dnn_legacy_t *dropout = hws_dnn_legacy(dropoutDesc, HWS_DNN_DROPOUT);
        HWS_REQUIRE(dropout != NULL);
        if (dropout->node == NULL) {
            HWS_TRY(hws_dnn_resolve(dropout));
        }
        part = dropout->node;
        hws_dnn_use(part);
    }
    hws_dnn_release(legacy->part);
    legacy->part = part;
    const int64_t numbers[] = {
        (int64_t) algo,     (int64_t) cellMode, (int64_t) biasMode, (int64_t) dirMode,  (int64_t) inputMode,
        (int64_t) dataType, (int64_t) mathPrec, (int64_t) mathType, inputSize,          hiddenSize,
        projSize,           numLayers,          auxFlags,           CUDNN_RNN_CLIP_NONE};
    return set_reals(legacy, numbers, sizeof numbers / sizeof *numbers, (double[]) {0, 0}, 2);
}

HWS_EXPORT cudnnStatus_t cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnnDesc, cudnnRNNClipMode_t clipMode, double lclip,
                                            double rclip) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(rnnDesc, HWS_DNN_RNN);
    HWS_REQUIRE(legacy != NULL && legacy->count > 0);
    legacy->numbers[legacy->count - 1] = (int64_t) clipMode;
    legacy->reals[0] = lclip;
    legacy->reals[1] = rclip;
    hws_dnn_changed(legacy);
    return CUDNN_STATUS_SUCCESS;
}

/* The library of cuDNN 9 always propagates NaN here. */
HWS_EXPORT cudnnStatus_t cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNClipMode_t clipMode,
                                            cudnnNanPropagation_t clipNanOpt, double lclip, double rclip) {
    return clipNanOpt == CUDNN_PROPAGATE_NAN || clipMode == CUDNN_RNN_CLIP_NONE
        ? cudnnRNNSetClip_v9(rnnDesc, clipMode, lclip, rclip)
        : hws_unsupported(__func__);
}

/* Type, layout, longest sequence, sequences, size of a vector, whether there is a padding, its bits, the lengths. */
HWS_EXPORT cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc, cudnnDataType_t dataType,
                                                   cudnnRNNDataLayout_t layout, int maxSeqLength, int batchSize,
                                                   int vectorSize, const int *seqLengthArray, void *paddingFill) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(rnnDataDesc, HWS_DNN_RNN_DATA);
    HWS_REQUIRE(legacy != NULL && batchSize > 0 && seqLengthArray != NULL);
    if (batchSize > MAX_BATCH) {
        return hws_unsupported(__func__);
    }
    int64_t *numbers = calloc(7 + (size_t) batchSize, sizeof *numbers);
    if (numbers == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    const int64_t head[] = {(int64_t) dataType, (int64_t) layout, maxSeqLength,
                            batchSize,          vectorSize,       paddingFill != NULL};
    memcpy(numbers, head, sizeof head);
    if (paddingFill != NULL) {
        memcpy(&numbers[6], paddingFill,
               hws_dnn_element_bytes((int) dataType) > 8 ? 8 : hws_dnn_element_bytes((int) dataType));
    }
    for (int i = 0; i < batchSize; i++) {
        numbers[7 + i] = seqLengthArray[i];
    }
    cudnnStatus_t status = hws_dnn_set(legacy, numbers, 7 + (uint32_t) batchSize);
    free(numbers);
    return status;
}

/* Whether the setter is that of version 9, type, normalization, gradients or NaN, longest label. */
static cudnnStatus_t set_ctc(cudnnCTCLossDescriptor_t descriptor, bool newer, int64_t type, int64_t normalization,
                             int64_t gradients, int64_t longest) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(descriptor, HWS_DNN_CTC);
    HWS_REQUIRE(legacy != NULL);
    return hws_dnn_set(legacy, (int64_t[]) {newer, type, normalization, gradients, longest}, 5);
}

HWS_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
                                                     cudnnLossNormalizationMode_t normMode,
                                                     cudnnNanPropagation_t gradMode) {
    return set_ctc(ctcLossDesc, false, (int64_t) compType, (int64_t) normMode, (int64_t) gradMode, 0);
}

HWS_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType) {
    return set_ctc(ctcLossDesc, false, (int64_t) compType, CUDNN_LOSS_NORMALIZATION_NONE, CUDNN_NOT_PROPAGATE_NAN, 0);
}

HWS_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
                                                      cudnnLossNormalizationMode_t normMode,
                                                      cudnnCTCGradMode_t ctcGradMode, int maxLabelLength) {
    return set_ctc(ctcLossDesc, true, (int64_t) compType, (int64_t) normMode, (int64_t) ctcGradMode, maxLabelLength);
}

HWS_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
                                                      cudnnLossNormalizationMode_t normMode,
                                                      cudnnNanPropagation_t gradMode, int maxLabelLength) {
    /* NaN propagation was the former name of the gradients' mode. */
    return set_ctc(ctcLossDesc, true, (int64_t) compType, (int64_t) normMode, (int64_t) gradMode, maxLabelLength);
}

HWS_EXPORT cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t stDesc,
                                                                cudnnSamplerType_t samplerType,
                                                                cudnnDataType_t dataType, int nbDims, const int *dimA) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(stDesc, HWS_DNN_SPATIAL);
    HWS_REQUIRE(legacy != NULL && dimA != NULL && nbDims > 0 && nbDims <= CUDNN_DIM_MAX);
    int64_t numbers[3 + CUDNN_DIM_MAX] = {(int64_t) samplerType, (int64_t) dataType, nbDims};
    for (int i = 0; i < nbDims; i++) {
        numbers[3 + i] = dimA[i];
    }
    return hws_dnn_set(legacy, numbers, 3 + (uint32_t) nbDims);
}

HWS_EXPORT cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                                                    cudnnOpTensorOp_t opTensorOp, cudnnDataType_t opTensorCompType,
                                                    cudnnNanPropagation_t opTensorNanOpt) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(opTensorDesc, HWS_DNN_OP_TENSOR);
    HWS_REQUIRE(legacy != NULL);
    return hws_dnn_set(legacy, (int64_t[]) {(int64_t) opTensorOp, (int64_t) opTensorCompType, (int64_t) opTensorNanOpt},
                       3);
}

HWS_EXPORT cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                                        cudnnReduceTensorOp_t reduceTensorOp,
                                                        cudnnDataType_t reduceTensorCompType,
                                                        cudnnNanPropagation_t reduceTensorNanOpt,
                                                        cudnnReduceTensorIndices_t reduceTensorIndices,
                                                        cudnnIndicesType_t reduceTensorIndicesType) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(reduceTensorDesc, HWS_DNN_REDUCE);
    HWS_REQUIRE(legacy != NULL);
    return hws_dnn_set(legacy,
                       (int64_t[]) {(int64_t) reduceTensorOp, (int64_t) reduceTensorCompType,
                                    (int64_t) reduceTensorNanOpt, (int64_t) reduceTensorIndices,
                                    (int64_t) reduceTensorIndicesType},
                       5);
}

HWS_EXPORT cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned int lrnN, double lrnAlpha,
                                               double lrnBeta, double lrnK) {
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(normDesc, HWS_DNN_LRN);
    HWS_REQUIRE(legacy != NULL);
    return set_reals(legacy, (int64_t[]) {lrnN}, 1, (double[]) {lrnAlpha, lrnBeta, lrnK}, 3);
}

/*
 * Searches by trial without tensors of the program, whose content does not matter. The guest allocates them and a
 * workspace, because memory that the worker allocated would not count on the vGPU's quota.
 */
#include "hws_cudnn.h"

#include "hws_cuda_functions.h"
#include "hws_cudnn_functions.h"

enum { FIRST, SECOND, RESULT, WORKSPACE, PARTS };

/* The memory of a search. */
typedef struct trial {
    CUdeviceptr parts[PARTS]; /* 0: none */
    size_t workspace_bytes;
} trial_t;

static cudnnStatus_t allocate(trial_t *trial, int part, size_t bytes) {
    HWS_REQUIRE(bytes > 0);
    return cuMemAlloc_v2(&trial->parts[part], bytes) == CUDA_SUCCESS
        ? CUDNN_STATUS_SUCCESS
        : CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

static cudnnStatus_t add_tensor(trial_t *trial, int part, cudnnTensorDescriptor_t tensor) {
    size_t bytes = 0;
    HWS_TRY(cudnnGetTensorSizeInBytes(tensor, &bytes));
    return allocate(trial, part, bytes);
}

static cudnnStatus_t add_filter(trial_t *trial, int part, cudnnFilterDescriptor_t filter) {
    size_t bytes = 0;
    HWS_TRY(cudnnGetFilterSizeInBytes(filter, &bytes));
    return allocate(trial, part, bytes);
}

/* Without memory for the workspace, the library reports the algorithms that need one as failed. */
static void add_workspace(trial_t *trial, size_t bytes) {
    if (bytes > 0 && allocate(trial, WORKSPACE, bytes) == CUDNN_STATUS_SUCCESS) {
        trial->workspace_bytes = bytes;
    }
}

static void *address(const trial_t *trial, int part) {
    return (void *) (uintptr_t) trial->parts[part];
}

static void end(const trial_t *trial) {
    for (int part = 0; part < PARTS; part++) {
        if (trial->parts[part] != 0) {
            cuMemFree_v2(trial->parts[part]);
        }
    }
}

/* The largest workspace that an algorithm of a direction needs; 0 if none needs one. */
#define HWS_LARGEST(direction, type, count, ...)                                                                       \
    (__extension__({                                                                                                   \
        size_t hws_largest = 0;                                                                                        \
        for (int hws_algo = 0; hws_algo < (int) (count); hws_algo++) {                                                 \
            size_t hws_bytes = 0;                                                                                      \
            if (cudnnGetConvolution##direction##WorkspaceSize(__VA_ARGS__, (type) hws_algo, &hws_bytes)                \
                    == CUDNN_STATUS_SUCCESS                                                                            \
                && hws_bytes > hws_largest) {                                                                          \
                hws_largest = hws_bytes;                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        hws_largest;                                                                                                   \
    }))

HWS_EXPORT cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc,
                                                              cudnnFilterDescriptor_t wDesc,
                                                              cudnnConvolutionDescriptor_t convDesc,
                                                              cudnnTensorDescriptor_t yDesc, int requestedAlgoCount,
                                                              int *returnedAlgoCount,
                                                              cudnnConvolutionFwdAlgoPerf_t *perfResults) {
    trial_t trial = {0};
    cudnnStatus_t status = add_tensor(&trial, FIRST, xDesc);
    status = status != CUDNN_STATUS_SUCCESS ? status : add_filter(&trial, SECOND, wDesc);
    status = status != CUDNN_STATUS_SUCCESS ? status : add_tensor(&trial, RESULT, yDesc);
    if (status == CUDNN_STATUS_SUCCESS) {
        add_workspace(&trial,
                      HWS_LARGEST(Forward, cudnnConvolutionFwdAlgo_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, handle, xDesc,
                                  wDesc, convDesc, yDesc));
        status = cudnnFindConvolutionForwardAlgorithmEx(handle, xDesc, address(&trial, FIRST), wDesc,
                                                        address(&trial, SECOND), convDesc, yDesc,
                                                        address(&trial, RESULT), requestedAlgoCount, returnedAlgoCount,
                                                        perfResults, address(&trial, WORKSPACE), trial.workspace_bytes);
    }
    end(&trial);
    return status;
}

HWS_EXPORT cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc,
                                                                   cudnnTensorDescriptor_t dyDesc,
                                                                   cudnnConvolutionDescriptor_t convDesc,
                                                                   cudnnTensorDescriptor_t dxDesc,
                                                                   int requestedAlgoCount, int *returnedAlgoCount,
                                                                   cudnnConvolutionBwdDataAlgoPerf_t *perfResults) {
    trial_t trial = {0};
    cudnnStatus_t status = add_filter(&trial, FIRST, wDesc);
    status = status != CUDNN_STATUS_SUCCESS ? status : add_tensor(&trial, SECOND, dyDesc);
    status = status != CUDNN_STATUS_SUCCESS ? status : add_tensor(&trial, RESULT, dxDesc);
    if (status == CUDNN_STATUS_SUCCESS) {
        add_workspace(&trial,
                      HWS_LARGEST(BackwardData, cudnnConvolutionBwdDataAlgo_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
                                  handle, wDesc, dyDesc, convDesc, dxDesc));
        status = cudnnFindConvolutionBackwardDataAlgorithmEx(
            handle, wDesc, address(&trial, FIRST), dyDesc, address(&trial, SECOND), convDesc, dxDesc,
            address(&trial, RESULT), requestedAlgoCount, returnedAlgoCount, perfResults, address(&trial, WORKSPACE),
            trial.workspace_bytes);
    }
    end(&trial);
    return status;
}

HWS_EXPORT cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc, int requestedAlgoCount,
    int *returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t *perfResults) {
    trial_t trial = {0};
    cudnnStatus_t status = add_tensor(&trial, FIRST, xDesc);
    status = status != CUDNN_STATUS_SUCCESS ? status : add_tensor(&trial, SECOND, dyDesc);
    status = status != CUDNN_STATUS_SUCCESS ? status : add_filter(&trial, RESULT, dwDesc);
    if (status == CUDNN_STATUS_SUCCESS) {
        add_workspace(&trial,
                      HWS_LARGEST(BackwardFilter, cudnnConvolutionBwdFilterAlgo_t,
                                  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, handle, xDesc, dyDesc, convDesc, dwDesc));
        status = cudnnFindConvolutionBackwardFilterAlgorithmEx(
            handle, xDesc, address(&trial, FIRST), dyDesc, address(&trial, SECOND), convDesc, dwDesc,
            address(&trial, RESULT), requestedAlgoCount, returnedAlgoCount, perfResults, address(&trial, WORKSPACE),
            trial.workspace_bytes);
    }
    end(&trial);
    return status;
}

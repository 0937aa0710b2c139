/* CTC losses whose labels and lengths lie in host memory: they travel with the call. */
#include "hws_cudnn.h"

#include "hws_cudnn_calls.h"

#define MAX_NUMBERS 16384 /* of an array: the description's limit in bytes, by 4 */

/* The sequences of a batch: the tensor of probabilities has times, sequences and letters. */
static cudnnStatus_t batch_of(cudnnTensorDescriptor_t probsDesc, uint64_t *batch_p) {
    const hws_dnn_legacy_t *probs = hws_dnn_legacy(probsDesc, HWS_DNN_TENSOR);
    HWS_REQUIRE(probs != NULL && probs->count >= 2 && probs->numbers[1] == 3);
    HWS_REQUIRE(probs->numbers[3] > 0 && probs->numbers[3] <= MAX_NUMBERS);
    *batch_p = (uint64_t) probs->numbers[3];
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t count_of(const int *lengths, uint64_t batch, uint64_t *count_p) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < batch; i++) {
        HWS_REQUIRE(lengths[i] >= 0 && lengths[i] <= MAX_NUMBERS);
        count += (uint64_t) lengths[i];
    }
    HWS_REQUIRE(count <= MAX_NUMBERS);
    *count_p = count;
    return CUDNN_STATUS_SUCCESS;
}

/* The descriptors of a loss; leaves the calling function when one is wrong. */
#define HWS_LOSS(probsDesc_, gradientsDesc_, algo_, ctcLossDesc_)                                                      \
    {.probsDesc = HWS_DESCRIPTOR(HwsDnnTensor, probsDesc_)->id,                                                        \
     .gradientsDesc = HWS_DESCRIPTOR(HwsDnnTensor, gradientsDesc_)->id,                                                \
     .ctcLossDesc = HWS_DESCRIPTOR(HwsDnnCtc, ctcLossDesc_)->id,                                                       \
     .algo = (int32_t) (algo_)}

HWS_EXPORT cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t probsDesc, const void *probs,
                                      const int *hostLabels, const int *hostLabelLengths, const int *hostInputLengths,
                                      void *costs, cudnnTensorDescriptor_t gradientsDesc, void *gradients,
                                      cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc, void *workspace,
                                      size_t workSpaceSizeInBytes) {
    HWS_ENTER();
    uint64_t batch, count;
    HWS_REQUIRE(hostLabels != NULL && hostLabelLengths != NULL && hostInputLengths != NULL);
    HWS_TRY(batch_of(probsDesc, &batch));
    HWS_TRY(count_of(hostLabelLengths, batch, &count));
    HwsDnnCtcLoss loss = HWS_LOSS(probsDesc, gradientsDesc, algo, ctcLossDesc);
    loss.probs = (uintptr_t) probs;
    loss.costs = (uintptr_t) costs;
    loss.gradients = (uintptr_t) gradients;
    loss.workspace = (uintptr_t) workspace;
    loss.workspaceBytes = workSpaceSizeInBytes;
    return hws_call_hwsDnnCtcLoss(HWS_DESCRIPTOR(HwsDnnHandle, handle), &loss, count, hostLabels, batch,
                                  hostLabelLengths, hostInputLengths);
}

HWS_EXPORT cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t probsDesc,
                                                      cudnnTensorDescriptor_t gradientsDesc, const int *labels,
                                                      const int *labelLengths, const int *inputLengths,
                                                      cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
                                                      size_t *sizeInBytes) {
    HWS_ENTER();
    uint64_t batch, count;
    unsigned long long bytes;
    HWS_REQUIRE(labels != NULL && labelLengths != NULL && inputLengths != NULL && sizeInBytes != NULL);
    HWS_TRY(batch_of(probsDesc, &batch));
    HWS_TRY(count_of(labelLengths, batch, &count));
    const HwsDnnCtcLoss loss = HWS_LOSS(probsDesc, gradientsDesc, algo, ctcLossDesc);
    HWS_TRY(hws_call_hwsDnnCtcSize(HWS_DESCRIPTOR(HwsDnnQuery, handle), &loss, count, labels, batch, labelLengths,
                                   inputLengths, &bytes));
    *sizeInBytes = bytes;
    return CUDNN_STATUS_SUCCESS;
}

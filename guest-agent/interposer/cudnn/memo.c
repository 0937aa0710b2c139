/* Answers to questions about contents, such as sizes of workspaces. An object's id is never used again. */
#include "hws_cudnn.h"

#include "hws_cudnn_calls.h"
#include "hws_cudnn_opcodes.h"

#include <pthread.h>

#define ENTRIES 1024u /* a power of two; a newer answer takes the place of an older one */
#define QUESTION_WORDS 12
#define ANSWER_BYTES 176

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t question[QUESTION_WORDS];
    uint8_t answer[ANSWER_BYTES];
} entries[ENTRIES];

static uint32_t place(const uint64_t *question, uint64_t *key, uint32_t words) {
    uint64_t hash = 0xcbf29ce484222325u;
    memset(key, 0, QUESTION_WORDS * sizeof *key);
    for (uint32_t i = 0; i < words; i++) {
        key[i] = question[i];
        hash = (hash ^ question[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return (uint32_t) hash % ENTRIES;
}

bool hws_dnn_recall(const uint64_t *question, uint32_t words, void *answer, uint32_t bytes) {
    uint64_t key[QUESTION_WORDS];
    uint32_t at = place(question, key, words);
    pthread_mutex_lock(&lock);
    bool found = memcmp(entries[at].question, key, sizeof key) == 0;
    if (found) {
        memcpy(answer, entries[at].answer, bytes);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void hws_dnn_remember(const uint64_t *question, uint32_t words, const void *answer, uint32_t bytes) {
    uint64_t key[QUESTION_WORDS];
    uint32_t at = place(question, key, words);
    pthread_mutex_lock(&lock);
    memcpy(entries[at].question, key, sizeof key);
    memcpy(entries[at].answer, answer, bytes);
    pthread_mutex_unlock(&lock);
}

/* Returns the sizes of an earlier equal question, or asks. The opcode is the question's first word, and not 0. */
#define ASK_ONCE(call, sizes, count, ...)                                                                              \
    do {                                                                                                               \
        const uint64_t question[] = {__VA_ARGS__};                                                                     \
        const uint32_t words = sizeof question / sizeof *question;                                                     \
        _Static_assert(sizeof question / sizeof *question <= QUESTION_WORDS, "the longest question");                  \
        if (hws_dnn_recall(question, words, (sizes), (count) * sizeof(size_t))) {                                      \
            return CUDNN_STATUS_SUCCESS;                                                                               \
        }                                                                                                              \
        HWS_TRY(call);                                                                                                 \
        hws_dnn_remember(question, words, (sizes), (count) * sizeof(size_t));                                          \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    } while (0)

HWS_EXPORT cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, cudnnTensorDescriptor_t xDesc,
    cudnnTensorDescriptor_t zDesc, cudnnTensorDescriptor_t yDesc, cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes) {
    HWS_ENTER();
    HWS_REQUIRE(sizeInBytes != NULL);
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    const HwsDnnTensor *x = HWS_DESCRIPTOR(HwsDnnTensor, xDesc), *z = HWS_DESCRIPTOR(HwsDnnTensor, zDesc);
    const HwsDnnTensor *y = HWS_DESCRIPTOR(HwsDnnTensor, yDesc);
    const HwsDnnTensor *scale = HWS_DESCRIPTOR(HwsDnnTensor, bnScaleBiasMeanVarDesc);
    const HwsDnnActivation *activation = HWS_DESCRIPTOR(HwsDnnActivation, activationDesc);
    ASK_ONCE(hws_call_cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(query, mode, bnOps, x, z, y, scale,
                                                                               activation, sizeInBytes),
             sizeInBytes, 1, HWS_OPCODE_cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, query->id,
             (uint64_t) mode, (uint64_t) bnOps, x->id, z->id, y->id, scale->id, activation->id);
}

HWS_EXPORT cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, cudnnTensorDescriptor_t xDesc,
    cudnnTensorDescriptor_t yDesc, cudnnTensorDescriptor_t dyDesc, cudnnTensorDescriptor_t dzDesc,
    cudnnTensorDescriptor_t dxDesc, cudnnTensorDescriptor_t dBnScaleBiasDesc,
    cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes) {
    HWS_ENTER();
    HWS_REQUIRE(sizeInBytes != NULL);
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    const HwsDnnTensor *x = HWS_DESCRIPTOR(HwsDnnTensor, xDesc), *y = HWS_DESCRIPTOR(HwsDnnTensor, yDesc);
    const HwsDnnTensor *dy = HWS_DESCRIPTOR(HwsDnnTensor, dyDesc), *dz = HWS_DESCRIPTOR(HwsDnnTensor, dzDesc);
    const HwsDnnTensor *dx = HWS_DESCRIPTOR(HwsDnnTensor, dxDesc);
    const HwsDnnTensor *scale = HWS_DESCRIPTOR(HwsDnnTensor, dBnScaleBiasDesc);
    const HwsDnnActivation *activation = HWS_DESCRIPTOR(HwsDnnActivation, activationDesc);
    ASK_ONCE(hws_call_cudnnGetBatchNormalizationBackwardExWorkspaceSize(query, mode, bnOps, x, y, dy, dz, dx, scale,
                                                                        activation, sizeInBytes),
             sizeInBytes, 1, HWS_OPCODE_cudnnGetBatchNormalizationBackwardExWorkspaceSize, query->id, (uint64_t) mode,
             (uint64_t) bnOps, x->id, y->id, dy->id, dz->id, dx->id, scale->id, activation->id);
}

HWS_EXPORT cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    cudnnActivationDescriptor_t activationDesc, cudnnTensorDescriptor_t xDesc, size_t *sizeInBytes) {
    HWS_ENTER();
    HWS_REQUIRE(sizeInBytes != NULL);
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    const HwsDnnActivation *activation = HWS_DESCRIPTOR(HwsDnnActivation, activationDesc);
    const HwsDnnTensor *x = HWS_DESCRIPTOR(HwsDnnTensor, xDesc);
    ASK_ONCE(
        hws_call_cudnnGetBatchNormalizationTrainingExReserveSpaceSize(query, mode, bnOps, activation, x, sizeInBytes),
        sizeInBytes, 1, HWS_OPCODE_cudnnGetBatchNormalizationTrainingExReserveSpaceSize, query->id, (uint64_t) mode,
        (uint64_t) bnOps, activation->id, x->id);
}

HWS_EXPORT cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *sizeInBytes) {
    HWS_ENTER();
    HWS_REQUIRE(sizeInBytes != NULL);
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    ASK_ONCE(hws_call_cudnnDropoutGetStatesSize(query, sizeInBytes), sizeInBytes, 1,
             HWS_OPCODE_cudnnDropoutGetStatesSize, query->id);
}

HWS_EXPORT cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                   cudnnForwardMode_t fwdMode, cudnnRNNDataDescriptor_t xDesc,
                                                   size_t *workSpaceSize, size_t *reserveSpaceSize) {
    HWS_ENTER();
    HWS_REQUIRE(workSpaceSize != NULL || reserveSpaceSize != NULL); /* documented: either may be NULL */
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    const HwsDnnRnn *rnn = HWS_DESCRIPTOR(HwsDnnRnn, rnnDesc);
    const HwsDnnRnnData *x = HWS_DESCRIPTOR(HwsDnnRnnData, xDesc);
    const uint64_t question[] = {HWS_OPCODE_cudnnGetRNNTempSpaceSizes, query->id, rnn->id, (uint64_t) fwdMode, x->id};
    size_t sizes[2] = {0, 0};
    if (!hws_dnn_recall(question, 5, sizes, sizeof sizes)) {
        HWS_TRY(hws_call_cudnnGetRNNTempSpaceSizes(query, rnn, fwdMode, x, &sizes[0], &sizes[1]));
        hws_dnn_remember(question, 5, sizes, sizeof sizes);
    }
    if (workSpaceSize != NULL) {
        *workSpaceSize = sizes[0];
    }
    if (reserveSpaceSize != NULL) {
        *reserveSpaceSize = sizes[1];
    }
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                    size_t *weightSpaceSize) {
    HWS_ENTER();
    HWS_REQUIRE(weightSpaceSize != NULL);
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    const HwsDnnRnn *rnn = HWS_DESCRIPTOR(HwsDnnRnn, rnnDesc);
    ASK_ONCE(hws_call_cudnnGetRNNWeightSpaceSize(query, rnn, weightSpaceSize), weightSpaceSize, 1,
             HWS_OPCODE_cudnnGetRNNWeightSpaceSize, query->id, rnn->id);
}

HWS_EXPORT cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                                                         cudnnCTCLossDescriptor_t ctcLossDesc,
                                                         cudnnTensorDescriptor_t probsDesc,
                                                         cudnnTensorDescriptor_t gradientsDesc, size_t *sizeInBytes) {
    HWS_ENTER();
    HWS_REQUIRE(sizeInBytes != NULL);
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    const HwsDnnCtc *ctc = HWS_DESCRIPTOR(HwsDnnCtc, ctcLossDesc);
    const HwsDnnTensor *probs = HWS_DESCRIPTOR(HwsDnnTensor, probsDesc);
    const HwsDnnTensor *gradients = HWS_DESCRIPTOR(HwsDnnTensor, gradientsDesc);
    ASK_ONCE(hws_call_cudnnGetCTCLossWorkspaceSize_v8(query, algo, ctc, probs, gradients, sizeInBytes), sizeInBytes, 1,
             HWS_OPCODE_cudnnGetCTCLossWorkspaceSize_v8, query->id, (uint64_t) algo, ctc->id, probs->id, gradients->id);
}

/* Fills a descriptor with what the library says; a program that does not want it passes none. */
static cudnnStatus_t describe(cudnnTensorDescriptor_t descriptor, const HwsDnnWeights *weights) {
    if (descriptor == NULL) {
        return CUDNN_STATUS_SUCCESS;
    }
    hws_dnn_legacy_t *legacy = hws_dnn_legacy(descriptor, HWS_DNN_TENSOR);
    HWS_REQUIRE(legacy != NULL && weights->dims >= 0 && weights->dims <= CUDNN_DIM_MAX);
    int64_t numbers[2 + 2 * CUDNN_DIM_MAX] = {weights->dataType, weights->dims};
    for (int i = 0; i < weights->dims; i++) {
        numbers[2 + i] = weights->sizes[i];
        numbers[2 + weights->dims + i] = weights->strides[i];
    }
    return hws_dnn_set(legacy, numbers, 2 + 2 * (uint32_t) weights->dims);
}

HWS_EXPORT cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int pseudoLayer,
                                                 size_t weightSpaceSize, const void *weightSpace, int linLayerID,
                                                 cudnnTensorDescriptor_t mDesc, void **mAddr,
                                                 cudnnTensorDescriptor_t bDesc, void **bAddr) {
    HWS_ENTER();
    const HwsDnnQuery *query = HWS_DESCRIPTOR(HwsDnnQuery, handle);
    const HwsDnnRnn *rnn = HWS_DESCRIPTOR(HwsDnnRnn, rnnDesc);
    const uint64_t question[] = {HWS_OPCODE_hwsDnnRnnWeights, query->id,       rnn->id,
                                 (uint64_t) pseudoLayer,      weightSpaceSize, (uint64_t) linLayerID};
    HwsDnnWeights answer[2];
    _Static_assert(sizeof answer <= ANSWER_BYTES, "the longest answer");
    if (!hws_dnn_recall(question, 6, answer, sizeof answer)) {
        HWS_TRY(
            hws_call_hwsDnnRnnWeights(query, rnn, pseudoLayer, weightSpaceSize, linLayerID, &answer[0], &answer[1]));
        hws_dnn_remember(question, 6, answer, sizeof answer);
    }
    HWS_TRY(describe(mDesc, &answer[0]));
    HWS_TRY(describe(bDesc, &answer[1]));
    char *start = (char *) (uintptr_t) weightSpace; /* NULL: offsets, as the library returns them */
    if (mAddr != NULL) {
        *mAddr = answer[0].isPresent ? (void *) ((uintptr_t) start + answer[0].offset) : NULL;
    }
    if (bAddr != NULL) {
        *bAddr = answer[1].isPresent ? (void *) ((uintptr_t) start + answer[1].offset) : NULL;
    }
    return CUDNN_STATUS_SUCCESS;
}

/*
 * The guest's descriptors of cuDNN: objects by their contents, questions that are asked once, and the record of an
 * execution. The session is replaced by functions that count requests and keep the last one.
 */
#include "hws_test.h"

#include "hws_cudnn.h"
#include "hws_cudnn_calls.h"
#include "hws_cudnn_functions.h"
#include "hws_cudnn_opcodes.h"

#include <limits.h>
#include <stdlib.h>

#define HWS_CHECK_EQ(expected, got) HWS_CHECK((long long) (expected) == (long long) (got))
#define CONTENTS 100000
#define RECORD_BYTES 4096

static _Atomic int gate;
static int makes, asks, drops, executions, losses, searches, make_status;
static int allocations, live, failing; /* of memory; the number of the allocation that fails */
static size_t allocated[4];            /* bytes of the last allocations */
static unsigned char last[RECORD_BYTES];
static uint32_t last_bytes;
static hws_vary_t last_varies[64];
static uint32_t last_vary_count;
_Thread_local uint64_t hws_math_stream;
_Thread_local hws_tls_t hws_tls;
hws_stream_watcher_t *_Atomic hws_stream_watcher;
static HwsDnnHandle handle_state = {.id = 77};

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    if (++allocations == failing) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocated[(allocations - 1) % 4] = bytes;
    *address = (CUdeviceptr) (0x1000 * allocations);
    live++;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    HWS_CHECK(address != 0);
    live--;
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags) {
    (void) flags;
    return CUDA_SUCCESS;
}

bool hws_math_need_context(void) {
    return true;
}

static CUresult may_issue(CUstream stream) {
    return stream == NULL ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static void *handle_data(hws_kind_t kind, uint64_t handle) {
    return kind == HWS_KIND_CUDNN && handle == handle_state.id ? &handle_state : NULL;
}

static CUresult unsupported(const char *name) {
    (void) name;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static const hws_service_t service = {
    .gate = &gate, .handle_data = handle_data, .may_issue = may_issue, .unsupported = unsupported};

const hws_service_t *hws_math_service(void) {
    return &service;
}

void hws_handle_drop(hws_kind_t kind, uint64_t handle) {
    (void) kind;
    (void) handle;
}

int hws_channel_status(void) {
    return -1;
}

int hws_channel_fail(int status, const char *format, ...) {
    (void) format;
    return status;
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) flags;
    (void) payload;
    (void) payload_bytes;
    (void) bulk;
    (void) bulk_bytes;
    drops += opcode == HWS_OPCODE_hwsDnnDrop;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    (void) flags;
    HWS_CHECK(opcode == HWS_OPCODE_hwsDnnExecute && payload_bytes <= sizeof last && count <= 64);
    memcpy(last, payload, payload_bytes);
    memcpy(last_varies, ranges, count * sizeof *ranges);
    last_bytes = payload_bytes;
    last_vary_count = count;
    executions++;
    return 0;
}

/* One result, though the reply has room for all that the program has requested. */
static int answer_search(const void *payload, uint32_t payload_bytes, void *reply, uint32_t reply_capacity,
                         uint32_t *reply_bytes_p) {
    HWS_CHECK(payload_bytes <= sizeof last);
    memcpy(last, payload, payload_bytes);
    last_bytes = payload_bytes;
    searches++;
    memset(reply, 0, reply_capacity);
    uint32_t results = reply_capacity - 8;
    memcpy(reply, &(int32_t) {1}, 4);
    memcpy((char *) reply + 4, &results, sizeof results);
    memcpy((char *) reply + 8, &(cudnnConvolutionFwdAlgoPerf_t) {.algo = 6, .time = 0.25F, .memory = 512},
           sizeof(cudnnConvolutionFwdAlgoPerf_t));
    *reply_bytes_p = reply_capacity;
    return 0;
}

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    *reply_bytes_p = 0;
    if (opcode == HWS_OPCODE_hwsDnnMake) {
        makes++;
        return make_status;
    }
    if (opcode == HWS_OPCODE_cudnnFindConvolutionForwardAlgorithmEx) {
        return answer_search(payload, payload_bytes, reply, reply_capacity, reply_bytes_p);
    }
    if (opcode == HWS_OPCODE_cudnnGetConvolutionForwardWorkspaceSize) {
        int32_t algo;
        memcpy(&algo, (const char *) payload + payload_bytes - 8, sizeof algo);
        memcpy(reply, &(uint64_t) {640 * (uint64_t) algo}, 8);
        *reply_bytes_p = 8;
        return algo > 5 ? CUDNN_STATUS_NOT_SUPPORTED : 0;
    }
    if (opcode == HWS_OPCODE_hwsDnnCtcLoss || opcode == HWS_OPCODE_hwsDnnCtcSize) {
        HWS_CHECK(payload_bytes <= sizeof last);
        memcpy(last, payload, payload_bytes);
        last_bytes = payload_bytes;
        losses++;
        if (opcode == HWS_OPCODE_hwsDnnCtcSize) {
            memcpy(reply, &(uint64_t) {640}, 8);
            *reply_bytes_p = 8;
        }
        return 0;
    }
    HWS_CHECK(opcode == HWS_OPCODE_hwsDnnAsk);
    asks++;
    int32_t type;
    uint32_t requested;
    memcpy(&type, (const char *) payload + 12, sizeof type);
    memcpy(&requested, (const char *) payload + 16, sizeof requested);
    uint32_t bytes = type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? 0 : requested * hws_dnn_type_bytes(type);
    int64_t count = type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? 2 : 1;
    HWS_CHECK(reply_capacity >= 16 + hws_padded(bytes));
    memset(reply, 0, 16 + hws_padded(bytes));
    memcpy(reply, &count, sizeof count);
    memcpy((char *) reply + 8, &bytes, sizeof bytes);
    memset((char *) reply + 16, asks, bytes);
    *reply_bytes_p = 16 + (uint32_t) hws_padded(bytes);
    return 0;
}

static cudnnBackendDescriptor_t create(cudnnBackendDescriptorType_t kind) {
    cudnnBackendDescriptor_t made = NULL;
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendCreateDescriptor(kind, &made));
    return made;
}

static cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, int name, int type, int64_t count, const void *values) {
    return cudnnBackendSetAttribute(descriptor, (cudnnBackendAttributeName_t) name, (cudnnBackendAttributeType_t) type,
                                    count, values);
}

static cudnnBackendDescriptor_t tensor(int64_t uid, int64_t size, bool by_value) {
    cudnnBackendDescriptor_t made = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int type = CUDNN_DATA_FLOAT;
    HWS_CHECK_EQ(0, set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
    HWS_CHECK_EQ(0, set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 1, &size));
    HWS_CHECK_EQ(0, set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid));
    HWS_CHECK_EQ(0, set(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value));
    HWS_CHECK_EQ(0, cudnnBackendFinalize(made));
    return made;
}

static void should_make_one_object_for_equal_contents(void) {
    int before = makes;
    cudnnBackendDescriptor_t first = tensor(1, 10, false), same = tensor(1, 10, false);
    HWS_CHECK_EQ(before + 1, makes);
    cudnnBackendDescriptor_t others[] = {tensor(2, 10, false), tensor(1, 11, false), tensor(1, 10, true)};
    HWS_CHECK_EQ(before + 4, makes);
    cudnnBackendDestroyDescriptor(first);
    cudnnBackendDestroyDescriptor(same);
    cudnnBackendDestroyDescriptor(tensor(1, 10, false)); /* remembered without a user */
    HWS_CHECK_EQ(before + 4, makes);
    for (int i = 0; i < 3; i++) {
        cudnnBackendDestroyDescriptor(others[i]);
    }
}

/* Random contents: the same object exactly when the bytes are the same. */
static void should_compare_whole_contents(void) {
    uint64_t state = 7;
    for (int i = 0; i < CONTENTS; i++) {
        int64_t numbers[2][3];
        bool equal = true;
        for (int j = 0; j < 3; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            numbers[0][j] = (int64_t) (state >> 61);
            numbers[1][j] = (state >> 33 & 7) == 0 ? (int64_t) (state >> 40 & 7) : numbers[0][j];
            equal = equal && numbers[0][j] == numbers[1][j];
        }
        hws_dnn_node_t *nodes[2] = {NULL, NULL};
        for (int j = 0; j < 2; j++) {
            hws_dnn_content_t content = {0};
            HWS_CHECK(hws_dnn_add(&content, 902, CUDNN_TYPE_INT64, 3, numbers[j], NULL));
            HWS_CHECK_EQ(0, hws_dnn_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &content, true, &nodes[j]));
            hws_dnn_clear(&content);
        }
        HWS_CHECK_EQ(equal, nodes[0] == nodes[1]);
        hws_dnn_release(nodes[0]);
        hws_dnn_release(nodes[1]);
    }
}

static void should_bound_objects_without_users(void) {
    int before = drops;
    for (int64_t i = 0; i < 10000; i++) {
        cudnnBackendDestroyDescriptor(tensor(1000 + i, 5, false));
    }
    HWS_CHECK(drops - before >= 10000 - 4096);
}

static void should_not_remember_failures(void) {
    int before = makes;
    make_status = CUDNN_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < 2; i++) {
        cudnnBackendDescriptor_t made = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
        HWS_CHECK_EQ(CUDNN_STATUS_NOT_SUPPORTED, cudnnBackendFinalize(made));
        cudnnBackendDestroyDescriptor(made);
    }
    make_status = 0;
    HWS_CHECK_EQ(before + 2, makes);
}

static cudnnBackendDescriptor_t with_part(cudnnBackendDescriptorType_t kind, int name, cudnnBackendDescriptor_t *parts,
                                          int64_t count) {
    cudnnBackendDescriptor_t made = create(kind);
    HWS_CHECK_EQ(0, set(made, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, parts));
    HWS_CHECK_EQ(0, cudnnBackendFinalize(made));
    return made;
}

/* cudnn_frontend names the largest number of elements for an array with as many as there are. */
static void should_write_no_more_elements_than_there_are(void) {
    cudnnBackendDescriptor_t part = tensor(91, 3, false);
    cudnnBackendDescriptor_t engine =
        with_part(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, &part, 1);
    int notes[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int64_t count = 0;
    for (int turn = 0; turn < 2; turn++) { /* asked and remembered */
        HWS_CHECK_EQ(0,
                     cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 8,
                                              &count, notes));
        HWS_CHECK(count == 1 && notes[0] != -1);
        for (int i = 1; i < 8; i++) {
            HWS_CHECK_EQ(-1, notes[i]);
        }
    }
    cudnnBackendDescriptor_t knobs[5] = {create(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR),
                                         create(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR)};
    HWS_CHECK_EQ(
        0,
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, 5, &count, knobs));
    HWS_CHECK_EQ(2, count);
    for (int i = 0; i < 2; i++) {
        HWS_CHECK_EQ(0, cudnnBackendDestroyDescriptor(knobs[i]));
    }
    cudnnBackendDestroyDescriptor(engine);
    cudnnBackendDestroyDescriptor(part);
}

static void should_execute_with_numbers_by_value(void) {
    cudnnBackendDescriptor_t tensors[2] = {tensor(5, 16, false), tensor(6, 1, true)};
    cudnnBackendDescriptor_t graph =
        with_part(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, tensors, 2);
    cudnnBackendDescriptor_t heuristics =
        with_part(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &graph, 1);
    int64_t count = 0;
    int before = asks;
    cudnnBackendDescriptor_t configs[2], again[2];
    for (int i = 0; i < 2; i++) {
        configs[i] = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        again[i] = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    for (int turn = 0; turn < 2; turn++) {
        HWS_CHECK_EQ(0,
                     cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              2, &count, turn ? again : configs));
        HWS_CHECK_EQ(2, count);
    }
    HWS_CHECK_EQ(before + 2, asks); /* the count and the results, each once */
    int made = makes;
    cudnnBackendDescriptor_t plan =
        with_part(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs, 1);
    cudnnBackendDescriptor_t same =
        with_part(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, again, 1);
    HWS_CHECK_EQ(made + 1, makes);
    float number = 2.5f;
    int64_t uids[2] = {5, 6};
    void *pointers[2] = {(void *) (uintptr_t) 0x7000, &number}, *workspace = (void *) (uintptr_t) 0x9000;
    cudnnBackendDescriptor_t pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    HWS_CHECK_EQ(0, set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 2, uids));
    HWS_CHECK_EQ(0, set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2, pointers));
    HWS_CHECK_EQ(0, set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, cudnnBackendExecute((cudnnHandle_t) (uintptr_t) 77, plan, pack));
    HWS_CHECK_EQ(0, cudnnBackendFinalize(pack));
    made = makes;
    HWS_CHECK_EQ(0, cudnnBackendExecute((cudnnHandle_t) (uintptr_t) 77, plan, pack));
    HWS_CHECK_EQ(made, makes);
    HwsDnnBinding bindings[2];
    HWS_CHECK_EQ(40 + sizeof bindings, last_bytes);
    memcpy(bindings, last + 40, sizeof bindings);
    HWS_CHECK(bindings[0].uid == 5 && bindings[0].valueBytes == 0 && bindings[0].data[0] == 0x7000);
    HWS_CHECK(bindings[1].uid == 6 && bindings[1].valueBytes == sizeof number
              && memcmp(bindings[1].data, &number, sizeof number) == 0);
    HWS_CHECK(last_vary_count == 5 && last_varies[3].address && !last_varies[4].address);
    /* The generated call has the same bytes. */
    unsigned char ours[RECORD_BYTES];
    memcpy(ours, last, last_bytes);
    uint64_t id;
    memcpy(&id, ours + 16, sizeof id);
    HWS_CHECK_EQ(0, hws_call_hwsDnnExecute(&handle_state, id, workspace, sizeof bindings, bindings));
    HWS_CHECK(memcmp(ours, last, last_bytes) == 0);
    cudnnBackendDescriptor_t all[] = {tensors[0], tensors[1], graph, heuristics, configs[0], configs[1],
                                      again[0],   again[1],   plan,  same,       pack};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cudnnBackendDestroyDescriptor(all[i]);
    }
}

static void should_count_each_number_by_value_once(void) {
    enum { OPERATIONS = 1000 };
    cudnnBackendDescriptor_t tensors[2] = {tensor(21, 1, true), tensor(22, 1, true)};
    static cudnnBackendDescriptor_t operations[OPERATIONS + 1];
    for (int i = 0; i <= OPERATIONS; i++) {
        operations[i] = with_part(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                  &tensors[i == OPERATIONS], 1);
    }
    cudnnBackendDescriptor_t graph =
        with_part(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, operations, OPERATIONS + 1);
    cudnnBackendDescriptor_t engine =
        with_part(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, &graph, 1);
    hws_dnn_content_t content = {0};
    hws_dnn_node_t *node = NULL;
    int64_t one = 1;
    HWS_CHECK(hws_dnn_add(&content, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, NULL));
    HWS_CHECK_EQ(0, hws_dnn_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &content, true, &node));
    HWS_CHECK_EQ(0, hws_dnn_value_bytes(node, 21)); /* of no graph */
    hws_dnn_clear(&content);
    hws_dnn_release(node);
    cudnnBackendDescriptor_t plan =
        with_part(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &engine, 1);
    int64_t uids[2] = {21, 22};
    float numbers[2] = {1, 2};
    void *pointers[2] = {&numbers[0], &numbers[1]};
    cudnnBackendDescriptor_t pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    HWS_CHECK_EQ(0, set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 2, uids));
    HWS_CHECK_EQ(0, set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2, pointers));
    HWS_CHECK_EQ(0, cudnnBackendFinalize(pack));
    HWS_CHECK_EQ(0, cudnnBackendExecute((cudnnHandle_t) (uintptr_t) 77, plan, pack));
    HwsDnnBinding bindings[2];
    memcpy(bindings, last + 40, sizeof bindings);
    HWS_CHECK(bindings[0].valueBytes == sizeof(float) && bindings[1].valueBytes == sizeof(float));
    for (int i = 0; i <= OPERATIONS; i++) {
        cudnnBackendDestroyDescriptor(operations[i]);
    }
    cudnnBackendDescriptor_t all[] = {tensors[0], tensors[1], graph, engine, plan, pack};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cudnnBackendDestroyDescriptor(all[i]);
    }
}

static void should_refuse_attributes_that_cannot_travel(void) {
    cudnnBackendDescriptor_t descriptor = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnnBackendDescriptor_t open = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    void *pointer = descriptor;
    HWS_CHECK_EQ(CUDNN_STATUS_NOT_SUPPORTED, set(descriptor, 902, CUDNN_TYPE_VOID_PTR, 1, &pointer));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, set(descriptor, 902, 99, 1, &pointer));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, set(descriptor, 902, CUDNN_TYPE_INT64, -1, &pointer));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, set(descriptor, 913, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &open));
    HWS_CHECK_EQ(CUDNN_STATUS_NOT_SUPPORTED, set(descriptor, 902, CUDNN_TYPE_INT64, 1 << 20, &pointer));
    cudnnBackendDestroyDescriptor(descriptor);
    cudnnBackendDestroyDescriptor(open);
}

static void should_make_older_descriptors_when_a_call_needs_them(void) {
    int before = makes, sizes[8], strides[8], dims = 0;
    cudnnTensorDescriptor_t first = NULL, second = NULL;
    cudnnDataType_t type;
    HWS_CHECK_EQ(0, cudnnCreateTensorDescriptor(&first));
    HWS_CHECK_EQ(0, cudnnCreateTensorDescriptor(&second));
    HWS_CHECK_EQ(0, cudnnSetTensor4dDescriptor(first, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 3, 4, 5));
    HWS_CHECK_EQ(0, cudnnGetTensorNdDescriptor(first, 8, &type, &dims, sizes, strides));
    HWS_CHECK(type == CUDNN_DATA_HALF && dims == 4 && sizes[1] == 3);
    HWS_CHECK(strides[0] == 60 && strides[1] == 1 && strides[2] == 15 && strides[3] == 3);
    HWS_CHECK_EQ(0, cudnnSetTensorNdDescriptor(second, CUDNN_DATA_HALF, 4, sizes, strides));
    HWS_CHECK_EQ(before, makes);
    HWS_CHECK_EQ(0, hws_dnn_resolve(hws_dnn_legacy(first, HWS_DNN_TENSOR)));
    HWS_CHECK_EQ(0, hws_dnn_resolve(hws_dnn_legacy(second, HWS_DNN_TENSOR)));
    HWS_CHECK_EQ(before + 1, makes);
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, cudnnDestroyFilterDescriptor((cudnnFilterDescriptor_t) (void *) first));
    HWS_CHECK_EQ(0, cudnnSetTensor4dDescriptor(first, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 2, 3, 4, 5));
    HWS_CHECK(hws_dnn_legacy(first, HWS_DNN_TENSOR)->node == NULL);
    HWS_CHECK_EQ(sizeof(double), hws_dnn_legacy(first, HWS_DNN_TENSOR)->reference.scaleBytes);
    cudnnDestroyTensorDescriptor(first);
    cudnnDestroyTensorDescriptor(second);
}

/* Labels and lengths in host memory travel with a loss, as many as the tensor has sequences. */
static void should_send_the_labels_of_a_loss(void) {
    cudnnHandle_t handle = (cudnnHandle_t) (uintptr_t) 77;
    cudnnTensorDescriptor_t probs = NULL, flat = NULL;
    cudnnCTCLossDescriptor_t ctc = NULL;
    int sizes[3] = {4, 2, 8}, strides[3] = {16, 8, 1};
    int labels[4] = {1, 2, 3, 4}, lengths[2] = {1, 2}, inputs[2] = {4, 3}, wrong[2] = {-1, 4}, endless[2] = {16384, 1};
    char memory[8];
    size_t bytes = 0;
    HWS_CHECK_EQ(0, cudnnCreateTensorDescriptor(&probs));
    HWS_CHECK_EQ(0, cudnnCreateTensorDescriptor(&flat));
    HWS_CHECK_EQ(0, cudnnCreateCTCLossDescriptor(&ctc));
    HWS_CHECK_EQ(0, cudnnSetCTCLossDescriptor(ctc, CUDNN_DATA_FLOAT));
    HWS_CHECK_EQ(0, cudnnSetTensorNdDescriptor(probs, CUDNN_DATA_FLOAT, 3, sizes, strides));
    HWS_CHECK_EQ(0, cudnnSetTensor4dDescriptor(flat, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, 2, 8, 1));
#define LOSS(handle, probs, labels, lengths)                                                                           \
    cudnnCTCLoss((handle), (probs), memory, (labels), (lengths), inputs, memory + 1, (probs), NULL,                    \
                 CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC, ctc, memory + 2, 5)
    HWS_CHECK_EQ(0, LOSS(handle, probs, labels, lengths));
    HwsDnnCtcLoss loss;
    uint64_t count, batch;
    uint32_t label_bytes;
    memcpy(&loss, last + sizeof(HwsDnnHandle), sizeof loss);
    memcpy(&count, last + 88, sizeof count);
    memcpy(&label_bytes, last + 96, sizeof label_bytes);
    memcpy(&batch, last + 104, sizeof batch);
    HWS_CHECK(count == 3 && label_bytes == 12 && batch == 2);
    HWS_CHECK(memcmp(last + 120, labels, 12) == 0);
    HWS_CHECK(loss.probs == (uintptr_t) memory && loss.costs == (uintptr_t) memory + 1 && loss.gradients == 0);
    HWS_CHECK(loss.workspace == (uintptr_t) memory + 2 && loss.workspaceBytes == 5);
    HWS_CHECK(loss.algo == CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC && loss.probsDesc != 0 && loss.ctcLossDesc != 0);
    HWS_CHECK_EQ(0,
                 cudnnGetCTCLossWorkspaceSize(handle, probs, probs, labels, lengths, inputs,
                                              CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, ctc, &bytes));
    HWS_CHECK_EQ(640, bytes);
    int before = losses;
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, LOSS(handle, flat, labels, lengths)); /* four dimensions */
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, LOSS(handle, NULL, labels, lengths));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, LOSS(handle, probs, NULL, lengths));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, LOSS(handle, probs, labels, NULL));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, LOSS(handle, probs, labels, wrong));
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM, LOSS(handle, probs, labels, endless));
    HWS_CHECK_EQ(CUDNN_STATUS_NOT_INITIALIZED, LOSS((cudnnHandle_t) (uintptr_t) 78, probs, labels, lengths));
    HWS_CHECK_EQ(before, losses);
    cudnnDestroyTensorDescriptor(probs);
    cudnnDestroyTensorDescriptor(flat);
    cudnnDestroyCTCLossDescriptor(ctc);
}

typedef struct layer {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t convolution;
} layer_t;

static layer_t make_layer(void) {
    layer_t l;
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&l.x));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&l.y));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateFilterDescriptor(&l.w));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateConvolutionDescriptor(&l.convolution));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS,
                 cudnnSetTensor4dDescriptor(l.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 8, 8));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS,
                 cudnnSetTensor4dDescriptor(l.y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 5, 6, 6));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS,
                 cudnnSetFilter4dDescriptor(l.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, 2, 3, 3));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS,
                 cudnnSetConvolution2dDescriptor(l.convolution, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
    return l;
}

static void end_layer(const layer_t *l) {
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(l->x));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(l->y));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyFilterDescriptor(l->w));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyConvolutionDescriptor(l->convolution));
}

static uint64_t last_word(uint32_t offset) {
    uint64_t word;
    memcpy(&word, last + offset, sizeof word);
    return word;
}

/* Offsets of a record of cudnnFindConvolutionForwardAlgorithmEx. */
enum { SEARCH_X = 32, SEARCH_W = 56, SEARCH_Y = 96, SEARCH_WORKSPACE = 112, SEARCH_WORKSPACE_BYTES = 120 };

static void should_send_the_tensors_of_a_search(void) {
    layer_t l = make_layer();
    cudnnHandle_t handle = (cudnnHandle_t) (uintptr_t) handle_state.id;
    cudnnConvolutionFwdAlgoPerf_t results[100];
    int count = 0, before = searches;
    void *x = (void *) 0x100, *w = (void *) 0x200, *y = (void *) 0x300, *room = (void *) 0x400;
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS,
                 cudnnFindConvolutionForwardAlgorithmEx(handle, l.x, x, l.w, w, l.convolution, l.y, y, 3, &count,
                                                        results, room, 77));
    HWS_CHECK(count == 1 && results[0].algo == 6 && results[0].time == 0.25F && results[0].memory == 512);
    HWS_CHECK_EQ(0x100, last_word(SEARCH_X));
    HWS_CHECK_EQ(0x200, last_word(SEARCH_W));
    HWS_CHECK_EQ(0x300, last_word(SEARCH_Y));
    HWS_CHECK_EQ(0x400, last_word(SEARCH_WORKSPACE));
    HWS_CHECK_EQ(77, last_word(SEARCH_WORKSPACE_BYTES));
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS,
                 cudnnFindConvolutionForwardAlgorithmEx(handle, l.x, x, l.w, w, l.convolution, l.y, y, 100, &count,
                                                        results, NULL, 0));
    HWS_CHECK_EQ(before + 2, searches);
    static const int wrong[] = {101, INT_MAX, -1, INT_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM,
                     cudnnFindConvolutionForwardAlgorithmEx(handle, l.x, x, l.w, w, l.convolution, l.y, y, wrong[i],
                                                            &count, results, room, 77));
    }
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM,
                 cudnnFindConvolutionForwardAlgorithmEx(handle, l.x, x, l.w, w, l.convolution, l.y, y, 3, NULL, results,
                                                        room, 77));
    HWS_CHECK_EQ(CUDNN_STATUS_NOT_INITIALIZED,
                 cudnnFindConvolutionForwardAlgorithmEx(NULL, l.x, x, l.w, w, l.convolution, l.y, y, 3, &count, results,
                                                        room, 77));
    HWS_CHECK_EQ(before + 2, searches);
    end_layer(&l);
}

static void should_allocate_the_tensors_of_a_search(void) {
    layer_t l = make_layer();
    cudnnHandle_t handle = (cudnnHandle_t) (uintptr_t) handle_state.id;
    cudnnConvolutionFwdAlgoPerf_t results[3];
    int count = 0, before = searches;
    allocations = 0;
    HWS_CHECK_EQ(CUDNN_STATUS_SUCCESS,
                 cudnnFindConvolutionForwardAlgorithm(handle, l.x, l.w, l.convolution, l.y, 3, &count, results));
    HWS_CHECK(searches == before + 1 && count == 1 && results[0].algo == 6);
    HWS_CHECK(allocations == 4 && live == 0);
    HWS_CHECK(allocated[0] == 2 * 8 * 8 * 4 && allocated[1] == 5 * 2 * 3 * 3 * 4 && allocated[2] == 5 * 6 * 6 * 4);
    HWS_CHECK_EQ(640 * 5, allocated[3]); /* the most that an algorithm needs */
    HWS_CHECK_EQ(0x1000, last_word(SEARCH_X));
    HWS_CHECK_EQ(0x3000, last_word(SEARCH_Y));
    HWS_CHECK_EQ(0x4000, last_word(SEARCH_WORKSPACE));
    HWS_CHECK_EQ(640 * 5, last_word(SEARCH_WORKSPACE_BYTES));
    for (failing = 1; failing <= 4; failing++) {
        allocations = 0;
        bool is_workspace = failing == 4;
        HWS_CHECK_EQ(is_workspace ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                     cudnnFindConvolutionForwardAlgorithm(handle, l.x, l.w, l.convolution, l.y, 3, &count, results));
        HWS_CHECK(live == 0 && searches == before + (is_workspace ? 2 : 1));
    }
    HWS_CHECK(last_word(SEARCH_WORKSPACE) == 0 && last_word(SEARCH_WORKSPACE_BYTES) == 0);
    failing = 0;
    HWS_CHECK_EQ(CUDNN_STATUS_BAD_PARAM,
                 cudnnFindConvolutionForwardAlgorithm(handle, NULL, l.w, l.convolution, l.y, 3, &count, results));
    HWS_CHECK_EQ(0, live);
    end_layer(&l);
}

int main(void) {
    should_make_one_object_for_equal_contents();
    should_compare_whole_contents();
    should_bound_objects_without_users();
    should_not_remember_failures();
    should_write_no_more_elements_than_there_are();
    should_execute_with_numbers_by_value();
    should_count_each_number_by_value_once();
    should_refuse_attributes_that_cannot_travel();
    should_make_older_descriptors_when_a_call_needs_them();
    should_send_the_labels_of_a_loss();
    should_send_the_tensors_of_a_search();
    should_allocate_the_tensors_of_a_search();
    return 0;
}

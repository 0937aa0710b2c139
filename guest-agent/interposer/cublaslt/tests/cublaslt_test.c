/*
 * The guest's state of cublasLt: attributes of descriptors, and answers of heuristics that are remembered. The session
 * is replaced by a table that counts requests.
 */
#include "hws_test.h"

#include "hws_cublaslt.h"
#include "hws_cublaslt_opcodes.h"

#include <stdlib.h>
#include <string.h>

#define QUESTIONS 100000
#define MOST 4096 /* answers that are remembered */
#define REQUEST_BYTES 1024
#define FIRST_ROWS 1000000000000u /* in no other test */

static _Atomic int gate;
static int requests;            /* of heuristics */
static uint64_t handle_data_of; /* the only valid handle */
static unsigned char last[REQUEST_BYTES];
static uint32_t last_bytes;
_Thread_local uint64_t hws_math_stream;
_Thread_local hws_tls_t hws_tls;
hws_stream_watcher_t *_Atomic hws_stream_watcher;

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = (CUcontext) (uintptr_t) 7;
    return CUDA_SUCCESS;
}

bool hws_math_need_context(void) {
    return true;
}

static void *handle_data(hws_kind_t kind, uint64_t handle) {
    return kind == HWS_KIND_CUBLAS && handle == handle_data_of ? &handle_data_of : NULL;
}

static CUresult may_issue(CUstream stream) {
    return stream == NULL ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
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
    return 0;
}

int hws_channel_fail(int status, const char *format, ...) {
    (void) format;
    return status;
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) opcode;
    (void) flags;
    (void) payload;
    (void) payload_bytes;
    (void) bulk;
    (void) bulk_bytes;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    (void) flags;
    (void) ranges;
    (void) count;
    HWS_CHECK(opcode == HWS_OPCODE_hwsLtMatmul || opcode == HWS_OPCODE_hwsLtMatrixTransform);
    HWS_CHECK(payload_bytes <= sizeof last);
    memcpy(last, payload, payload_bytes);
    last_bytes = payload_bytes;
    return 0;
}

/* Answers a heuristic with one result that holds the number of the request. */
int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) flags;
    (void) payload;
    (void) payload_bytes;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK(opcode == HWS_OPCODE_hwsLtAlgoGetHeuristic);
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_SUCCESS};
    result.workspaceSize = (size_t) ++requests;
    uint32_t bytes = sizeof result;
    HWS_CHECK(reply_capacity >= 8 + bytes);
    memset(reply, 0, 8);
    memcpy(reply, &bytes, sizeof bytes);
    memcpy((char *) reply + 8, &result, bytes);
    *reply_bytes_p = 8 + bytes;
    return 0;
}

/* Each attribute of a kind, with a value, is read back; no other size is accepted, and nothing is written beyond. */
#define CHECK_ATTRIBUTES(name, make, opaque_bytes, ...)                                                                \
    do {                                                                                                               \
        static const struct {                                                                                          \
            int number;                                                                                                \
            size_t bytes;                                                                                              \
        } attributes[] = {__VA_ARGS__};                                                                                \
        unsigned char memory[(opaque_bytes) + 16];                                                                     \
        memset(memory, 0x5a, sizeof memory);                                                                           \
        void *desc = memory;                                                                                           \
        HWS_CHECK((make) == CUBLAS_STATUS_SUCCESS);                                                                    \
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {                                          \
            int attribute = attributes[i].number;                                                                      \
            size_t size = attributes[i].bytes, written = 0;                                                            \
            unsigned char value[16] = {1}, got[16] = {0};                                                              \
            HWS_CHECK(cublasLt##name##SetAttribute(desc, attribute, value, size) == CUBLAS_STATUS_SUCCESS);            \
            HWS_CHECK(cublasLt##name##GetAttribute(desc, attribute, got, size, &written) == CUBLAS_STATUS_SUCCESS);    \
            HWS_CHECK(written == size && memcmp(value, got, sizeof got) == 0);                                         \
            for (size_t other = 0; other <= 16; other++) {                                                             \
                if (other != size) {                                                                                   \
                    HWS_CHECK(cublasLt##name##SetAttribute(desc, attribute, value, other)                              \
                              == CUBLAS_STATUS_INVALID_VALUE);                                                         \
                    HWS_CHECK(other == 0                                                                               \
                              || cublasLt##name##GetAttribute(desc, attribute, got, other, &written)                   \
                                  == CUBLAS_STATUS_INVALID_VALUE);                                                     \
                }                                                                                                      \
            }                                                                                                          \
            written = 0;                                                                                               \
            HWS_CHECK(cublasLt##name##GetAttribute(desc, attribute, NULL, 0, &written) == CUBLAS_STATUS_SUCCESS);      \
            HWS_CHECK(written == size);                                                                                \
            HWS_CHECK(cublasLt##name##GetAttribute(desc, attribute, NULL, 0, NULL) == CUBLAS_STATUS_INVALID_VALUE);    \
            HWS_CHECK(cublasLt##name##GetAttribute(desc, attribute, NULL, size, NULL) == CUBLAS_STATUS_INVALID_VALUE); \
            HWS_CHECK(cublasLt##name##SetAttribute(NULL, attribute, value, size) == CUBLAS_STATUS_INVALID_VALUE);      \
            HWS_CHECK(cublasLt##name##SetAttribute(desc, attribute, NULL, size) == CUBLAS_STATUS_INVALID_VALUE);       \
        }                                                                                                              \
        for (int unknown = 41; unknown < 48; unknown++) {                                                              \
            uint64_t value = 0;                                                                                        \
            HWS_CHECK(cublasLt##name##SetAttribute(desc, unknown, &value, 4) == CUBLAS_STATUS_INVALID_VALUE);          \
            HWS_CHECK(cublasLt##name##SetAttribute(desc, -unknown, &value, 4) == CUBLAS_STATUS_INVALID_VALUE);         \
        }                                                                                                              \
        for (size_t i = (opaque_bytes); i < sizeof memory; i++) {                                                      \
            HWS_CHECK(memory[i] == 0x5a);                                                                              \
        }                                                                                                              \
    } while (0)

/* The sizes that cublasLt.h of CUDA 13.1 documents. */
static void should_keep_every_attribute(void) {
    CHECK_ATTRIBUTES(MatrixLayout, cublasLtMatrixLayoutInit_internal(desc, 64, CUDA_R_32F, 1, 1, 1), 64, {0, 4}, {1, 4},
                     {2, 8}, {3, 8}, {4, 8}, {5, 4}, {6, 8}, {7, 8}, {8, 4}, {9, 8}, {10, 8}, {11, 8}, {12, 4},
                     {13, 4});
    CHECK_ATTRIBUTES(MatmulDesc, cublasLtMatmulDescInit_internal(desc, 184, CUBLAS_COMPUTE_32F, CUDA_R_32F), 184,
                     {0, 4}, {1, 4}, {2, 4}, {3, 4}, {4, 4}, {5, 4}, {6, 4}, {7, 4}, {8, 8}, {10, 8}, {11, 8}, {12, 8},
                     {13, 8}, {14, 8}, {15, 4}, {17, 8}, {18, 8}, {19, 8}, {20, 8}, {21, 8}, {22, 4}, {23, 8}, {24, 8},
                     {25, 1}, {26, 4}, {27, 4}, {28, 4}, {29, 8}, {30, 8}, {31, 4}, {32, 4}, {33, 4}, {34, 4}, {35, 4},
                     {36, 8}, {37, 4}, {38, 8}, {39, 8}, {40, 8});
    CHECK_ATTRIBUTES(MatrixTransformDesc, cublasLtMatrixTransformDescInit_internal(desc, 64, CUDA_R_32F), 64, {0, 4},
                     {1, 4}, {2, 4}, {3, 4});
    CHECK_ATTRIBUTES(MatmulPreference, cublasLtMatmulPreferenceInit_internal(desc, 64), 64, {0, 4}, {1, 8}, {3, 4},
                     {5, 4}, {6, 4}, {7, 4}, {8, 4}, {9, 4}, {12, 8}, {13, 8}, {14, 8}, {15, 8});
    CHECK_ATTRIBUTES(EmulationDesc, cublasLtEmulationDescInit_internal(desc, 64), 64, {0, 4}, {1, 4}, {2, 4}, {3, 4},
                     {4, 4}, {5, 8});
}

static int32_t number(cublasLtMatmulDesc_t desc, int attribute) {
    int32_t value = 12345;
    HWS_CHECK(cublasLtMatmulDescGetAttribute(desc, attribute, &value, sizeof value, NULL) == CUBLAS_STATUS_SUCCESS);
    return value;
}

static void should_have_documented_defaults(void) {
    cublasLtMatmulDesc_t desc = NULL;
    HWS_CHECK(cublasLtMatmulDescCreate(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_INVALID_VALUE);
    HWS_CHECK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_C_32F) == CUBLAS_STATUS_SUCCESS);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE) == CUBLAS_COMPUTE_32F);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE) == CUDA_C_32F);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_FILL_MODE) == CUBLAS_FILL_MODE_FULL);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_EPILOGUE) == CUBLASLT_EPILOGUE_DEFAULT);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) == -1);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE) == -1);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_N);
    int32_t wide = 0x10001; /* would be 1 in two bytes */
    HWS_CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &wide, 4)
              == CUBLAS_STATUS_INVALID_VALUE);
    HWS_CHECK(number(desc, CUBLASLT_MATMUL_DESC_EPILOGUE) == CUBLASLT_EPILOGUE_DEFAULT);
    HWS_CHECK(cublasLtMatmulDescDestroy(desc) == CUBLAS_STATUS_SUCCESS);
    unsigned char small[8];
    HWS_CHECK(cublasLtMatmulPreferenceInit_internal((cublasLtMatmulPreference_t) small, sizeof small)
              == CUBLAS_STATUS_ALLOC_FAILED);
    HWS_CHECK(cublasLtMatmulPreferenceInit_internal(NULL, 64) == CUBLAS_STATUS_INVALID_VALUE);
}

typedef struct descriptors {
    struct hws_lt_matmul desc;
    struct hws_lt_layout layouts[4];
    struct hws_lt_preference preference;
} descriptors_t;

static void init(descriptors_t *made) {
    memset(made, 0, sizeof *made);
    cublasLtMatmulDescInit_internal(&made->desc, sizeof made->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    for (int i = 0; i < 4; i++) {
        cublasLtMatrixLayoutInit_internal(&made->layouts[i], sizeof made->layouts[i], CUDA_R_32F, 8, 8, 8);
    }
    cublasLtMatmulPreferenceInit_internal(&made->preference, sizeof made->preference);
}

/* The answer to a question; whether the worker was asked. */
static bool ask(descriptors_t *made, int requested, size_t *answer) {
    cublasLtMatmulHeuristicResult_t results[4];
    int before = requests, count = 0;
    HWS_CHECK(cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t) (uintptr_t) handle_data_of, &made->desc,
                                             &made->layouts[0], &made->layouts[1], &made->layouts[2], &made->layouts[3],
                                             &made->preference, requested, results, &count)
              == CUBLAS_STATUS_SUCCESS);
    HWS_CHECK(count == 1);
    *answer = results[0].workspaceSize;
    return requests != before;
}

/* Changes any byte of a content: the answer must be a new one; changed back, the old one. */
static void should_ask_exactly_for_new_contents(void) {
    descriptors_t made;
    init(&made);
    size_t first, again, other;
    HWS_CHECK(ask(&made, 1, &first));
    HWS_CHECK(!ask(&made, 1, &again) && again == first);
    HWS_CHECK(ask(&made, 2, &other) && other != first);
    size_t compared = 0;
    unsigned char *parts[] = {(unsigned char *) &made.desc.content,       (unsigned char *) &made.layouts[0].content,
                              (unsigned char *) &made.layouts[1].content, (unsigned char *) &made.layouts[2].content,
                              (unsigned char *) &made.layouts[3].content, (unsigned char *) &made.preference.content};
    size_t sizes[] = {offsetof(HwsLtMatmulDesc, bias),
                      sizeof(HwsLtLayout),
                      sizeof(HwsLtLayout),
                      sizeof(HwsLtLayout),
                      sizeof(HwsLtLayout),
                      sizeof(HwsLtPreference)};
    for (int part = 0; part < 6; part++) {
        for (size_t i = 0; i < sizes[part]; i++) {
            bool refused = (part == 0
                            && (i == offsetof(HwsLtMatmulDesc, alphaBatchStride)
                                || i == offsetof(HwsLtMatmulDesc, betaBatchStride)))
                || (part > 0 && part < 5
                    && (i == offsetof(HwsLtLayout, batchMode) || i == offsetof(HwsLtLayout, batchMode) + 1))
                || (part == 5 && i < 2); /* a limited search is never remembered */
            if (!refused) {
                parts[part][i] ^= 1;
                HWS_CHECK(ask(&made, 1, &other) && other != first);
                HWS_CHECK(!ask(&made, 1, &again) && again == other);
                parts[part][i] ^= 1;
                compared++;
            }
        }
    }
    HWS_CHECK(compared > 300 && !ask(&made, 1, &again) && again == first);
    /* Of an address, the alignment counts, and whether it is NULL. */
    made.desc.content.bias = 0x10000;
    HWS_CHECK(ask(&made, 1, &other));
    made.desc.content.bias = 0x7f0000000000;
    HWS_CHECK(!ask(&made, 1, &again) && again == other);
    made.desc.content.bias = 0x10010;
    HWS_CHECK(ask(&made, 1, &again));
}

static void should_bound_the_answers(void) {
    descriptors_t made;
    init(&made);
    size_t answer;
    int before = requests, repeated = 0;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < QUESTIONS; i++) {
            made.layouts[1].content.rows = FIRST_ROWS + i;
            bool asked = ask(&made, 1, &answer);
            HWS_CHECK(round == 1 || asked);
            repeated += round == 1 && !asked;
        }
    }
    HWS_CHECK(repeated > 0 && repeated <= MOST && requests - before == 2 * QUESTIONS - repeated);
    size_t capacity;
    HWS_CHECK(cublasLtHeuristicsCacheGetCapacity(&capacity) == CUBLAS_STATUS_SUCCESS);
    HWS_CHECK(cublasLtHeuristicsCacheSetCapacity(0) == CUBLAS_STATUS_SUCCESS);
    made.layouts[1].content.rows = FIRST_ROWS;
    HWS_CHECK(ask(&made, 1, &answer));
    HWS_CHECK(cublasLtHeuristicsCacheSetCapacity(capacity) == CUBLAS_STATUS_SUCCESS);
    HWS_CHECK(!ask(&made, 1, &answer));
}

static cublasStatus_t multiply(descriptors_t *made, const float *alpha, const float *beta, const void *c, void *d,
                               CUstream stream) {
    return cublasLtMatmul((cublasLtHandle_t) (uintptr_t) handle_data_of, &made->desc, alpha, (void *) 0x1000,
                          &made->layouts[0], (void *) 0x2000, &made->layouts[1], beta, c, &made->layouts[2], d,
                          &made->layouts[3], NULL, NULL, 0, stream);
}

static void should_refuse_wrong_products(void) {
    descriptors_t made;
    init(&made);
    float one = 1, zero = 0;
    void *d = (void *) 0x4000;
    HWS_CHECK(multiply(&made, &one, &one, d, d, NULL) == CUBLAS_STATUS_SUCCESS && last_bytes != 0);
    HWS_CHECK(multiply(&made, NULL, &one, d, d, NULL) == CUBLAS_STATUS_INVALID_VALUE);
    HWS_CHECK(multiply(&made, &one, NULL, d, d, NULL) == CUBLAS_STATUS_INVALID_VALUE);
    HWS_CHECK(multiply(&made, &one, &one, d, NULL, NULL) == CUBLAS_STATUS_INVALID_VALUE);
    HWS_CHECK(multiply(&made, &one, &one, NULL, d, NULL) == CUBLAS_STATUS_INVALID_VALUE);
    HWS_CHECK(multiply(&made, &one, &zero, NULL, d, NULL) == CUBLAS_STATUS_SUCCESS); /* C is not read */
    HWS_CHECK(multiply(&made, &one, &one, d, d, (CUstream) (uintptr_t) 9) == CUBLAS_STATUS_EXECUTION_FAILED);
    made.layouts[3].content.batchMode = CUBLASLT_BATCH_MODE_GROUPED;
    HWS_CHECK(multiply(&made, &one, &one, d, d, NULL) == CUBLAS_STATUS_NOT_SUPPORTED);
    made.layouts[3].content.batchMode = 0;
    made.desc.sync_rows = 1;
    HWS_CHECK(multiply(&made, &one, &one, d, d, NULL) == CUBLAS_STATUS_NOT_SUPPORTED);
    made.desc.sync_rows = 0;
    made.desc.content.pointerMode = 9;
    HWS_CHECK(multiply(&made, &one, &one, d, d, NULL) == CUBLAS_STATUS_INVALID_VALUE);
    made.desc.content.pointerMode = CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO;
    HWS_CHECK(multiply(&made, &one, NULL, d, d, NULL) == CUBLAS_STATUS_SUCCESS);
    uint64_t valid = handle_data_of;
    HWS_CHECK(cublasLtMatmul((cublasLtHandle_t) (uintptr_t) (valid + 1), &made.desc, &one, d, &made.layouts[0], d,
                             &made.layouts[1], &one, d, &made.layouts[2], d, &made.layouts[3], NULL, NULL, 0, NULL)
              == CUBLAS_STATUS_NOT_INITIALIZED);
}

int main(void) {
    handle_data_of = (uint64_t) HWS_KIND_CUBLAS << 40 | 1;
    should_keep_every_attribute();
    should_have_documented_defaults();
    should_ask_exactly_for_new_contents();
    should_refuse_wrong_products();
    should_bound_the_answers();
    return 0;
}

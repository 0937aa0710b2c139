/*
 * The guest's contents of cuSPARSELt, which lie in the program's structures: attributes, questions that are remembered,
 * algorithms that a search finds, and wrong calls. The session is replaced by a table that keeps the last record.
 */
#include "hws_test.h"
#include "replaced_session.h"

#include "hws_cusparselt.h"
#include "hws_cusparselt_opcodes.h"

#include <math.h>
#include <string.h>

#define MAX_ID 7
#define WORKSPACE_BYTES 4096
#define CAPTURING 21 /* a stream */

/* Where a record of work has its parts. */
#define MATMUL_OFFSET sizeof(HwsSltTarget)
#define MATRICES_OFFSET (MATMUL_OFFSET + sizeof(HwsSltMatmul))
#define ALGORITHM_OFFSET (MATRICES_OFFSET + 4 * sizeof(HwsSltMatrix))
#define AFTER_OFFSET (ALGORITHM_OFFSET + sizeof(HwsSltAlgorithm))

static int destroyed;         /* counted */
static int answer;            /* to the next call */
static int compressed_answer; /* in the facts */

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK(opcode == HWS_OPCODE_hwsSltDestroy);
    session_keep(opcode, payload, payload_bytes);
    destroyed++;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    (void) flags;
    HWS_CHECK(opcode == HWS_OPCODE_hwsSltMatmul || opcode == HWS_OPCODE_hwsSltChange);
    for (uint32_t i = 0; i < count; i++) { /* matrices and algorithms belong to the kind of a call */
        HWS_CHECK(ranges[i].offset < MATRICES_OFFSET || ranges[i].offset >= AFTER_OFFSET);
    }
    session_keep(opcode, payload, payload_bytes);
    return answer;
}

static uint32_t facts(HwsSltStage stage, void *reply) {
    HwsSltFacts facts = {.compressedBytes = 640,
                         .compressBufferBytes = 64,
                         .compressedStatus = compressed_answer,
                         .workspaceBytes = stage == HWS_SLT_PLAN ? WORKSPACE_BYTES : 0};
    if (stage >= HWS_SLT_SELECTION) {
        facts.hasValues = 0x1f; /* all but the number of buffers */
        facts.values[CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID] = MAX_ID;
        facts.values[CUSPARSELT_MATMUL_SEARCH_ITERATIONS] = 5;
        facts.values[CUSPARSELT_MATMUL_SPLIT_K] = 1;
    }
    memcpy(reply, &facts, sizeof facts);
    return sizeof facts;
}

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    session_keep(opcode, payload, payload_bytes);
    *reply_bytes_p = 0;
    if (answer != 0) {
        return answer;
    }
    HwsSltAlgorithm found = {.isSet = 1u << CUSPARSELT_MATMUL_ALG_CONFIG_ID | 1u << CUSPARSELT_MATMUL_SPLIT_K,
                             .values = {[CUSPARSELT_MATMUL_ALG_CONFIG_ID] = 3, [CUSPARSELT_MATMUL_SPLIT_K] = 2}};
    switch (opcode) {
        case HWS_OPCODE_hwsSltVersion:
            HWS_CHECK(reply_capacity >= 8);
            memcpy(reply, &(uint64_t) {800}, 8);
            *reply_bytes_p = 8;
            break;
        case HWS_OPCODE_hwsSltMake: {
            uint32_t stage;
            memcpy(&stage, session.last + 8, sizeof stage);
            HWS_CHECK(reply_capacity >= sizeof(HwsSltFacts));
            *reply_bytes_p = facts((HwsSltStage) stage, reply);
            break;
        }
        case HWS_OPCODE_hwsSltSearch:
            HWS_CHECK(reply_capacity >= sizeof found + sizeof(HwsSltFacts));
            memcpy(reply, &found, sizeof found);
            *reply_bytes_p = (uint32_t) sizeof found + facts(HWS_SLT_PLAN, (char *) reply + sizeof found);
            break;
        default:
            break;
    }
    return 0;
}

static HwsSltMatmul last_matmul(void) {
    HwsSltMatmul matmul;
    memcpy(&matmul, session.last + MATMUL_OFFSET, sizeof matmul);
    return matmul;
}

static HwsSltMatrix last_matrix(int number) {
    HwsSltMatrix matrix;
    memcpy(&matrix, session.last + MATRICES_OFFSET + (size_t) number * sizeof matrix, sizeof matrix);
    return matrix;
}

static HwsSltAlgorithm last_algorithm(void) {
    HwsSltAlgorithm algorithm;
    memcpy(&algorithm, session.last + ALGORITHM_OFFSET, sizeof algorithm);
    return algorithm;
}

static HwsSltTarget last_target(void) {
    HwsSltTarget target;
    memcpy(&target, session.last, sizeof target);
    return target;
}

/* The structures of a program. */
typedef struct program {
    cusparseLtHandle_t handle;
    cusparseLtMatDescriptor_t a, b, c;
    cusparseLtMatmulDescriptor_t matmul;
    cusparseLtMatmulAlgSelection_t selection;
    cusparseLtMatmulPlan_t plan;
} program_t;

static void begin(program_t *p, int64_t rows) {
    memset(p, 0x5a, sizeof *p); /* a program need not zero them */
    HWS_CHECK(cusparseLtInit(&p->handle) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtStructuredDescriptorInit(&p->handle, &p->a, rows, 64, rows, 16, CUDA_R_16F, CUSPARSE_ORDER_COL,
                                                 CUSPARSELT_SPARSITY_50_PERCENT)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtDenseDescriptorInit(&p->handle, &p->b, 64, 48, 64, 16, CUDA_R_16F, CUSPARSE_ORDER_COL)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtDenseDescriptorInit(&p->handle, &p->c, rows, 48, rows, 16, CUDA_R_16F, CUSPARSE_ORDER_ROW)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtMatmulDescriptorInit(&p->handle, &p->matmul, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                             CUSPARSE_OPERATION_TRANSPOSE, &p->a, &p->b, &p->c, &p->c,
                                             CUSPARSE_COMPUTE_32F)
              == CUSPARSE_STATUS_SUCCESS);
}

static void plan(program_t *p) {
    HWS_CHECK(cusparseLtMatmulAlgSelectionInit(&p->handle, &p->selection, &p->matmul, CUSPARSELT_MATMUL_ALG_DEFAULT)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtMatmulPlanInit(&p->handle, &p->plan, &p->matmul, &p->selection) == CUSPARSE_STATUS_SUCCESS);
}

static void end(program_t *p) {
    (void) cusparseLtMatmulPlanDestroy(&p->plan); /* if there is one */
    int before = destroyed;
    HWS_CHECK(cusparseLtDestroy(&p->handle) == CUSPARSE_STATUS_SUCCESS && destroyed == before + 1);
    HWS_CHECK(cusparseLtDestroy(&p->handle) == CUSPARSE_STATUS_NOT_INITIALIZED);
}

static void *const device = (void *) (uintptr_t) 0x10000;
static void *const scratch = (void *) (uintptr_t) 0x20000;

static cusparseStatus_t multiply(program_t *p, CUstream *streams, int32_t count) {
    float alpha = 1.5f, beta = 0.5f;
    return cusparseLtMatmul(&p->handle, &p->plan, &alpha, device, device, &beta, device, device, scratch, streams,
                            count);
}

static void should_refuse_what_is_not_initialized(void) {
    program_t p;
    int number;
    size_t size;
    memset(&p, 0, sizeof p);
    HWS_CHECK(cusparseLtInit(NULL) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtDestroy(NULL) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtDestroy(&p.handle) == CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_CHECK(cusparseLtGetVersion(&p.handle, &number) == CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_CHECK(cusparseLtDenseDescriptorInit(&p.handle, &p.b, 64, 48, 64, 16, CUDA_R_16F, CUSPARSE_ORDER_COL)
              == CUSPARSE_STATUS_NOT_INITIALIZED);
    session.has_context = false;
    HWS_CHECK(cusparseLtInit(&p.handle) == CUSPARSE_STATUS_NOT_INITIALIZED);
    session.has_context = true;
    HWS_CHECK(session.records == 0);
    answer = CUSPARSE_STATUS_NOT_SUPPORTED;
    HWS_CHECK(cusparseLtInit(&p.handle) == CUSPARSE_STATUS_NOT_SUPPORTED && session.dropped == 1);
    answer = 0;
    HWS_CHECK(cusparseLtDestroy(&p.handle) == CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_CHECK(cusparseLtInit(&p.handle) == CUSPARSE_STATUS_SUCCESS);
    int before = session.records;
    HWS_CHECK(cusparseLtMatmulDescriptorInit(&p.handle, &p.matmul, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                             CUSPARSE_OPERATION_NON_TRANSPOSE, &p.a, &p.b, &p.c, &p.c,
                                             CUSPARSE_COMPUTE_32F)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatmulAlgSelectionInit(&p.handle, &p.selection, &p.matmul, CUSPARSELT_MATMUL_ALG_DEFAULT)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatmulPlanInit(&p.handle, &p.plan, &p.matmul, &p.selection) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatmulGetWorkspace(&p.handle, &p.plan, &size) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtSpMMACompressedSize2(&p.handle, &p.a, &size, &size) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatDescriptorDestroy(&p.a) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatmulPlanDestroy(&p.plan) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatmulAlgSelectionDestroy(&p.selection) == CUSPARSE_STATUS_INVALID_VALUE);
    /* A structure of another kind is none of the wanted kind. */
    HWS_CHECK(cusparseLtMatDescriptorDestroy((void *) &p.handle) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(session.records == before);
    end(&p);
}

static void should_ask_for_each_content_once(void) {
    program_t p, q;
    begin(&p, 32);
    plan(&p);
    int before = session.records;
    HWS_CHECK(cusparseLtInit(&q.handle) == CUSPARSE_STATUS_SUCCESS && session.records == before + 1);
    end(&q);
    before = session.records;
    begin(&q, 32);
    plan(&q);
    HWS_CHECK(session.records == before + 1); /* the handle alone */
    size_t size = 0, buffer = 0;
    HWS_CHECK(cusparseLtMatmulGetWorkspace(&q.handle, &q.plan, &size) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(size == WORKSPACE_BYTES);
    HWS_CHECK(cusparseLtSpMMACompressedSize(&q.handle, &q.plan, &size, &buffer) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(size == 640 && buffer == 64);
    HWS_CHECK(cusparseLtSpMMACompressedSize2(&q.handle, &q.a, &size, &buffer) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(session.records == before + 1);
    HWS_CHECK(cusparseLtSpMMACompressedSize2(&q.handle, &q.b, &size, &buffer) == CUSPARSE_STATUS_INVALID_VALUE);
    int batches = 2;
    HWS_CHECK(cusparseLtMatDescSetAttribute(&q.handle, &q.a, CUSPARSELT_MAT_NUM_BATCHES, &batches, sizeof batches)
              == CUSPARSE_STATUS_SUCCESS);
    compressed_answer = CUSPARSE_STATUS_ALLOC_FAILED;
    HWS_CHECK(cusparseLtSpMMACompressedSize2(&q.handle, &q.a, &size, &buffer) == CUSPARSE_STATUS_ALLOC_FAILED);
    compressed_answer = 0;
    HWS_CHECK(session.records == before + 2 && session.last_opcode == HWS_OPCODE_hwsSltMake);
    answer = CUSPARSE_STATUS_NOT_SUPPORTED; /* errors are not remembered, and leave the descriptor as it was */
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(cusparseLtDenseDescriptorInit(&q.handle, &q.b, 7, 7, 7, 16, CUDA_R_16F, CUSPARSE_ORDER_COL)
                  == CUSPARSE_STATUS_NOT_SUPPORTED);
    }
    answer = 0;
    HWS_CHECK(session.records == before + 4 && multiply(&q, NULL, 0) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_matrix(1).rows == 64);
    end(&p);
    end(&q);
}

static void should_keep_attributes_with_their_sizes(void) {
    program_t p;
    begin(&p, 32);
    int before = session.records, whole = 3;
    int64_t stride = 4096, got_stride = 0;
    float real = 2.5f, got = 0;
    HWS_CHECK(cusparseLtMatDescSetAttribute(&p.handle, &p.b, CUSPARSELT_MAT_BATCH_STRIDE, &stride, sizeof stride)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(
        cusparseLtMatDescGetAttribute(&p.handle, &p.b, CUSPARSELT_MAT_BATCH_STRIDE, &got_stride, sizeof got_stride)
        == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(got_stride == stride);
    HWS_CHECK(cusparseLtMatDescSetAttribute(&p.handle, &p.b, CUSPARSELT_MAT_BATCH_STRIDE, &stride, 4)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatDescSetAttribute(&p.handle, &p.b, CUSPARSELT_MAT_NUM_BATCHES, &(int) {0}, 4)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatDescSetAttribute(&p.handle, &p.b, CUSPARSELT_MAT_NUM_BATCHES, NULL, 4)
              == CUSPARSE_STATUS_INVALID_VALUE);
    for (int i = 2; i < 1000; i += 331) {
        HWS_CHECK(cusparseLtMatDescGetAttribute(&p.handle, &p.b, (cusparseLtMatDescAttribute_t) i, &whole, 4)
                  == CUSPARSE_STATUS_INVALID_VALUE);
    }
    HWS_CHECK(cusparseLtMatmulDescGetAttribute(&p.handle, &p.matmul, CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND, &got,
                                               sizeof got)
                  == CUSPARSE_STATUS_SUCCESS
              && isinf(got) && got > 0);
    HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &p.matmul, CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND,
                                               &real, sizeof real)
              == CUSPARSE_STATUS_SUCCESS);
    for (int i = CUSPARSELT_MATMUL_ACTIVATION_RELU; i <= CUSPARSELT_MATMUL_D_OUT_SCALE_POINTER; i++) {
        cusparseLtMatmulDescAttribute_t attribute = (cusparseLtMatmulDescAttribute_t) i;
        bool is_long = i == CUSPARSELT_MATMUL_BIAS_STRIDE || i == CUSPARSELT_MATMUL_BIAS_POINTER
            || i == CUSPARSELT_MATMUL_SPARSE_MAT_POINTER || i >= CUSPARSELT_MATMUL_A_SCALE_POINTER;
        uint64_t value = is_long ? 0x123456789aull : 1, read = 0;
        HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &p.matmul, attribute, &value, is_long ? 4 : sizeof value)
                  == CUSPARSE_STATUS_INVALID_VALUE);
        HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &p.matmul, attribute, &value, is_long ? sizeof value : 4)
                  == CUSPARSE_STATUS_SUCCESS);
        HWS_CHECK(cusparseLtMatmulDescGetAttribute(&p.handle, &p.matmul, attribute, &read, is_long ? sizeof read : 4)
                      == CUSPARSE_STATUS_SUCCESS
                  && read == value);
    }
    HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &p.matmul, CUSPARSELT_MATMUL_D_OUT_SCALE_MODE, &(int) {4}, 4)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &p.matmul, (cusparseLtMatmulDescAttribute_t) 20, &whole, 4)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(session.records == before);
    plan(&p);
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_SUCCESS);
    HwsSltMatmul sent = last_matmul();
    HWS_CHECK(sent.opA == CUSPARSE_OPERATION_NON_TRANSPOSE && sent.opB == CUSPARSE_OPERATION_TRANSPOSE);
    HWS_CHECK(sent.computeType == CUSPARSE_COMPUTE_32F && sent.relu == 1 && sent.alphaVector == 1);
    HWS_CHECK(sent.biasStride == 0x123456789all && sent.dOutScale == 0x123456789aull);
    HWS_CHECK(last_matrix(0).isStructured == 1 && last_matrix(1).batchStride == 0); /* set after the product was made */
    HWS_CHECK(last_matrix(3).order == CUSPARSE_ORDER_ROW && last_matrix(3).ld == 32);
    HwsScalar scalars[2];
    memcpy(scalars, session.last + AFTER_OFFSET, sizeof scalars);
    HWS_CHECK(scalars[0].onDevice == 1 && scalars[1].onDevice == 1 && scalars[0].address != 0);
    end(&p);
}

static int32_t attribute_of(program_t *p, cusparseLtMatmulAlgAttribute_t attribute) {
    int32_t value = -1;
    HWS_CHECK(cusparseLtMatmulAlgGetAttribute(&p->handle, &p->selection, attribute, &value, sizeof value)
              == CUSPARSE_STATUS_SUCCESS);
    return value;
}

static cusparseStatus_t set(program_t *p, cusparseLtMatmulAlgAttribute_t attribute, int32_t value) {
    return cusparseLtMatmulAlgSetAttribute(&p->handle, &p->selection, attribute, &value, sizeof value);
}

static void should_carry_the_found_algorithm_to_plan_and_selection(void) {
    program_t p;
    float alpha = 1, beta = 0;
    begin(&p, 32);
    plan(&p);
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID) == 0);
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID) == MAX_ID);
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_SEARCH_ITERATIONS) == 5);
    int32_t value;
    HWS_CHECK(cusparseLtMatmulAlgGetAttribute(&p.handle, &p.selection, CUSPARSELT_MATMUL_SPLIT_K_BUFFERS, &value, 4)
              == CUSPARSE_STATUS_NOT_SUPPORTED); /* the library does not tell it */
    HWS_CHECK(set(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID, MAX_ID) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(set(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID, -1) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(set(&p, CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID, 1) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(set(&p, CUSPARSELT_MATMUL_SEARCH_ITERATIONS, 0) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(set(&p, CUSPARSELT_MATMUL_SPLIT_K_MODE, 7) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(set(&p, (cusparseLtMatmulAlgAttribute_t) 6, 1) == CUSPARSE_STATUS_INVALID_VALUE);
    cusparseLtMatmulAlgSelection_t copy = p.selection;
    answer = CUSPARSE_STATUS_EXECUTION_FAILED;
    HWS_CHECK(cusparseLtMatmulSearch(&p.handle, &p.plan, &alpha, device, device, &beta, NULL, device, NULL, NULL, 0)
              == CUSPARSE_STATUS_EXECUTION_FAILED);
    answer = 0;
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID) == 0);
    HWS_CHECK(cusparseLtMatmulSearch(&p.handle, &p.plan, &alpha, device, device, &beta, NULL, device, NULL, NULL, 0)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsSltSearch);
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID) == 3);
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_SPLIT_K) == 2);
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_algorithm().values[CUSPARSELT_MATMUL_ALG_CONFIG_ID] == 3 && last_algorithm().isSet == 9);
    /* A plan made of the selection, or of a copy of it, has the found algorithm as well. */
    p.selection = copy;
    HWS_CHECK(cusparseLtMatmulPlanInit(&p.handle, &p.plan, &p.matmul, &p.selection) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_SUCCESS && last_algorithm().isSet == 9);
    /* Later settings of the program count from then on. */
    HWS_CHECK(set(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID, 5) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtMatmulSearch(&p.handle, &p.plan, &alpha, device, device, &beta, NULL, device, NULL, NULL, 0)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID) == 5);
    HWS_CHECK(attribute_of(&p, CUSPARSELT_MATMUL_SPLIT_K) == 2);
    HWS_CHECK(cusparseLtMatmulPlanDestroy(&p.plan) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtMatmulPlanDestroy(&p.plan) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtMatmulAlgSelectionDestroy(&p.selection) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(set(&p, CUSPARSELT_MATMUL_ALG_CONFIG_ID, 5) == CUSPARSE_STATUS_INVALID_VALUE);
    end(&p);
}

static void should_send_numbers_and_streams_with_products(void) {
    program_t p;
    float alpha = 1, beta = 0.5f, zero = 0;
    begin(&p, 32);
    plan(&p);
    CUstream streams[9] = {(CUstream) (uintptr_t) 5, (CUstream) (uintptr_t) 6};
    HWS_CHECK(multiply(&p, streams, 2) == CUSPARSE_STATUS_SUCCESS && hws_math_stream == 5);
    HwsSltTarget target = last_target();
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsSltMatmul && target.streamCount == 2 && target.streams[1] == 6);
    HWS_CHECK(target.handle == session_handle(session.made));
    HWS_CHECK(target.workspace == (uintptr_t) scratch);
    HwsScalar scalars[2];
    memcpy(scalars, session.last + AFTER_OFFSET, sizeof scalars);
    float sent;
    memcpy(&sent, scalars[1].value, sizeof sent);
    HWS_CHECK(sent == 0.5f && scalars[1].valueBytes == 4 && scalars[1].onDevice == 0);
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_SUCCESS && hws_math_stream == 0);
    int before = session.records;
    HWS_CHECK(multiply(&p, NULL, 1) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(multiply(&p, streams, -1) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(multiply(&p, streams, 9) == CUSPARSE_STATUS_NOT_SUPPORTED && session.unsupported == 1);
    streams[1] = (CUstream) (uintptr_t) CAPTURING;
    HWS_CHECK(multiply(&p, streams, 2) == CUSPARSE_STATUS_NOT_SUPPORTED && session.unsupported == 2);
    HWS_CHECK(
        cusparseLtMatmulSearch(&p.handle, &p.plan, &alpha, device, device, &zero, NULL, device, NULL, &streams[1], 1)
            == CUSPARSE_STATUS_NOT_SUPPORTED
        && session.unsupported == 3);
    streams[0] = (CUstream) (uintptr_t) SESSION_INVALIDATED;
    HWS_CHECK(multiply(&p, streams, 1) == CUSPARSE_STATUS_EXECUTION_FAILED);
#define MATMUL(...) cusparseLtMatmul(&p.handle, &p.plan, __VA_ARGS__, NULL, 0)
    HWS_CHECK(MATMUL(NULL, device, device, &beta, device, device, scratch) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(MATMUL(&alpha, NULL, device, &beta, device, device, scratch) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(MATMUL(&alpha, device, device, NULL, device, device, scratch) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(MATMUL(&alpha, device, device, &beta, NULL, device, scratch) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(MATMUL(&alpha, device, device, &beta, device, NULL, scratch) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(MATMUL(&alpha, device, device, &beta, device, device, NULL) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(session.records == before);
    HWS_CHECK(MATMUL(&alpha, device, device, &zero, NULL, device, scratch) == CUSPARSE_STATUS_SUCCESS);
    session.gate = 1;
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_INTERNAL_ERROR);
    session.gate = 0;
    streams[0] = (CUstream) (uintptr_t) CAPTURING; /* one stream becomes a node */
    HWS_CHECK(multiply(&p, streams, 1) == CUSPARSE_STATUS_SUCCESS);
    end(&p);
}

static void should_give_plans_the_attributes_that_their_descriptor_gets_later(void) {
    program_t p;
    begin(&p, 32);
    plan(&p);
    cusparseLtMatmulDescriptor_t copy = p.matmul;
    cusparseLtMatmulPlan_t other;
    HWS_CHECK(cusparseLtMatmulPlanInit(&p.handle, &other, &copy, &p.selection) == CUSPARSE_STATUS_SUCCESS);
    uint64_t address = 0x8800, one = 1;
    HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &copy, CUSPARSELT_MATMUL_ACTIVATION_RELU, &one, 4)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &p.matmul, CUSPARSELT_MATMUL_SPARSE_MAT_POINTER, &address,
                                               sizeof address)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_matmul().sparseMatrix == address && last_matmul().relu == 0); /* not what its copy has got */
    HWS_CHECK(cusparseLtSpMMACompress(&p.handle, &other, device, device, NULL, NULL) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_matmul().sparseMatrix == 0 && last_matmul().relu == 1);
    /* Another descriptor in the same place is another one. */
    HWS_CHECK(cusparseLtMatmulDescriptorInit(&p.handle, &p.matmul, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                             CUSPARSE_OPERATION_TRANSPOSE, &p.a, &p.b, &p.c, &p.c, CUSPARSE_COMPUTE_32F)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtMatmulDescSetAttribute(&p.handle, &p.matmul, CUSPARSELT_MATMUL_ACTIVATION_RELU, &one, 4)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(multiply(&p, NULL, 0) == CUSPARSE_STATUS_SUCCESS && last_matmul().relu == 0);
    HWS_CHECK(cusparseLtMatmulPlanDestroy(&p.plan) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtMatmulPlanDestroy(&other) == CUSPARSE_STATUS_SUCCESS);
    end(&p);
}

static HwsSltWork last_work(void) {
    HwsSltWork work;
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsSltChange);
    memcpy(&work, session.last + AFTER_OFFSET, sizeof work);
    return work;
}

static void should_send_work_on_the_matrix_with_structure(void) {
    program_t p;
    CUstream stream = (CUstream) (uintptr_t) 9;
    begin(&p, 32);
    plan(&p);
    HWS_CHECK(cusparseLtSpMMAPrune(&p.handle, &p.matmul, device, device, CUSPARSELT_PRUNE_SPMMA_STRIP, stream)
              == CUSPARSE_STATUS_SUCCESS);
    HwsSltWork work = last_work();
    HWS_CHECK(work.function == HWS_SLT_PRUNE && work.pruneAlg == CUSPARSELT_PRUNE_SPMMA_STRIP);
    HWS_CHECK(last_matrix(2).rows == 32 && last_target().streams[0] == 9 && hws_math_stream == 9);
    HWS_CHECK(cusparseLtSpMMAPrune2(&p.handle, &p.a, 1, CUSPARSE_OPERATION_TRANSPOSE, device, device,
                                    CUSPARSELT_PRUNE_SPMMA_TILE, stream)
              == CUSPARSE_STATUS_SUCCESS);
    work = last_work();
    HWS_CHECK(work.function == HWS_SLT_PRUNE2 && work.isSparseA == 1 && work.op == CUSPARSE_OPERATION_TRANSPOSE);
    HWS_CHECK(last_matrix(0).rows == 32 && last_matrix(1).rows == 0);
    HWS_CHECK(cusparseLtSpMMAPruneCheck(&p.handle, &p.matmul, device, device, stream) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_work().function == HWS_SLT_CHECK);
    HWS_CHECK(cusparseLtSpMMAPruneCheck2(&p.handle, &p.a, 0, CUSPARSE_OPERATION_NON_TRANSPOSE, device, device, stream)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_work().function == HWS_SLT_CHECK2);
    HWS_CHECK(cusparseLtSpMMACompress(&p.handle, &p.plan, device, device, scratch, stream) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_work().function == HWS_SLT_COMPRESS && last_matrix(3).rows == 32);
    uint64_t addresses[3];
    memcpy(addresses, session.last + AFTER_OFFSET + sizeof work, sizeof addresses);
    HWS_CHECK(addresses[0] == (uintptr_t) device && addresses[2] == (uintptr_t) scratch);
    HWS_CHECK(
        cusparseLtSpMMACompress2(&p.handle, &p.a, 1, CUSPARSE_OPERATION_NON_TRANSPOSE, device, device, NULL, stream)
        == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(last_work().function == HWS_SLT_COMPRESS2);
    int before = session.records;
    HWS_CHECK(
        cusparseLtSpMMACompress2(&p.handle, &p.b, 1, CUSPARSE_OPERATION_NON_TRANSPOSE, device, device, NULL, stream)
        == CUSPARSE_STATUS_INVALID_VALUE); /* a dense matrix */
    HWS_CHECK(cusparseLtSpMMAPrune(&p.handle, &p.matmul, NULL, device, CUSPARSELT_PRUNE_SPMMA_STRIP, stream)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtSpMMAPruneCheck(&p.handle, &p.matmul, device, NULL, stream) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(
        cusparseLtSpMMACompress(&p.handle, &p.plan, device, device, NULL, (CUstream) (uintptr_t) SESSION_INVALIDATED)
        == CUSPARSE_STATUS_EXECUTION_FAILED);
    HWS_CHECK(session.records == before);
    HWS_CHECK(cusparseLtMatDescriptorDestroy(&p.a) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseLtSpMMAPrune2(&p.handle, &p.a, 1, CUSPARSE_OPERATION_NON_TRANSPOSE, device, device,
                                    CUSPARSELT_PRUNE_SPMMA_TILE, stream)
              == CUSPARSE_STATUS_INVALID_VALUE);
    end(&p);
}

static void should_ask_for_the_version_once(void) {
    program_t p;
    int value = 0;
    begin(&p, 32);
    HWS_CHECK(cusparseLtGetProperty(MAJOR_VERSION, NULL) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtGetProperty((libraryPropertyType) 3, &value) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseLtGetVersion(&p.handle, &value) == CUSPARSE_STATUS_SUCCESS && value == 800);
    int before = session.records;
    HWS_CHECK(cusparseLtGetProperty(MAJOR_VERSION, &value) == CUSPARSE_STATUS_SUCCESS && value == 0);
    HWS_CHECK(cusparseLtGetProperty(MINOR_VERSION, &value) == CUSPARSE_STATUS_SUCCESS && value == 8);
    HWS_CHECK(cusparseLtGetProperty(PATCH_LEVEL, &value) == CUSPARSE_STATUS_SUCCESS && value == 0);
    HWS_CHECK(session.records == before);
    HWS_CHECK(strcmp(cusparseLtGetErrorName(CUSPARSE_STATUS_NOT_SUPPORTED), "CUSPARSE_STATUS_NOT_SUPPORTED") == 0);
    HWS_CHECK(strcmp(cusparseLtGetErrorString((cusparseStatus_t) 99), "unrecognized error code") == 0);
    end(&p);
}

int main(void) {
    session.kind = HWS_KIND_CUSPARSELT;
    session.capturing = CAPTURING;
    should_refuse_what_is_not_initialized();
    should_ask_for_each_content_once();
    should_keep_attributes_with_their_sizes();
    should_carry_the_found_algorithm_to_plan_and_selection();
    should_send_numbers_and_streams_with_products();
    should_give_plans_the_attributes_that_their_descriptor_gets_later();
    should_send_work_on_the_matrix_with_structure();
    should_ask_for_the_version_once();
    return 0;
}

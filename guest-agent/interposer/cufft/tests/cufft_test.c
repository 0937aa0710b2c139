/*
 * The guest's state of cuFFT: numbers of handles, what a plan and an execution send, and what sends nothing. The session
 * is replaced by a table that keeps the last record.
 */
#include "hws_test.h"
#include "replaced_session.h"

#include "hws_cufft.h"
#include "hws_cufft_opcodes.h"

#include <string.h>

#define HANDLES 16384 /* of the library */
#define WORK_BYTES 4096

static int destroyed; /* counted */
static int questions; /* for sizes: each has another answer */
static int answer;    /* to the next plan */

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK(opcode == HWS_OPCODE_hwsFftDestroy);
    session_keep(opcode, payload, payload_bytes);
    destroyed++;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    (void) flags;
    HWS_CHECK(opcode == HWS_OPCODE_hwsFftExec);
    for (uint32_t i = 0; i < count; i++) { /* plan, type, direction and place belong to the kind */
        HWS_CHECK(ranges[i].offset >= offsetof(HwsFftExec, stream));
        HWS_CHECK(ranges[i].offset < offsetof(HwsFftExec, type) || ranges[i].offset >= sizeof(HwsFftExec));
    }
    session_keep(opcode, payload, payload_bytes);
    return 0;
}

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    session_keep(opcode, payload, payload_bytes);
    if (answer != 0) {
        return answer;
    }
    uint64_t bytes = opcode == HWS_OPCODE_hwsFftGetSize ? (uint64_t) (WORK_BYTES + ++questions) : WORK_BYTES;
    HWS_CHECK(reply_capacity >= sizeof bytes);
    memcpy(reply, &bytes, sizeof bytes);
    *reply_bytes_p = sizeof bytes;
    return 0;
}

static HwsFftExec last_execution(void) {
    HwsFftExec execution;
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsFftExec);
    memcpy(&execution, session.last, sizeof execution);
    return execution;
}

/* A plan's record: the id, the arguments, whether the worker allocates. */
static HwsFftPlan last_plan(void) {
    HwsFftPlan plan;
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsFftMakePlan);
    memcpy(&plan, session.last + 8, sizeof plan);
    return plan;
}

static void should_give_every_handle_another_number(void) {
    static cufftHandle handles[HANDLES];
    int before = session.records;
    for (int i = 0; i < HANDLES; i++) {
        HWS_CHECK(cufftCreate(&handles[i]) == CUFFT_SUCCESS);
        HWS_CHECK(i == 0 || handles[i] != handles[i - 1]);
    }
    cufftHandle more = 77;
    HWS_CHECK(cufftCreate(&more) == CUFFT_ALLOC_FAILED && more == 77);
    HWS_CHECK(cufftDestroy(handles[5]) == CUFFT_SUCCESS);
    HWS_CHECK(cufftDestroy(handles[5]) == CUFFT_INVALID_PLAN);
    HWS_CHECK(cufftCreate(&more) == CUFFT_SUCCESS && more == handles[5]);
    for (int i = 0; i < HANDLES; i++) {
        HWS_CHECK(cufftDestroy(handles[i]) == CUFFT_SUCCESS);
    }
    cufftHandle first, second;
    HWS_CHECK(cufftCreate(&first) == CUFFT_SUCCESS && cufftDestroy(first) == CUFFT_SUCCESS);
    HWS_CHECK(cufftCreate(&second) == CUFFT_SUCCESS && first != second); /* a number returns late */
    HWS_CHECK(cufftDestroy(second) == CUFFT_SUCCESS);
    HWS_CHECK(session.records == before); /* handles without plans are the guest's alone */
}

static void should_refuse_numbers_of_no_handle(void) {
    static const cufftHandle wrong[] = {0, -1, HANDLES, HANDLES + 1, INT32_MAX, INT32_MIN};
    int before = session.records;
    size_t size;
    char data[16];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        HWS_CHECK(cufftDestroy(wrong[i]) == CUFFT_INVALID_PLAN);
        HWS_CHECK(cufftSetStream(wrong[i], NULL) == CUFFT_INVALID_PLAN);
        HWS_CHECK(cufftGetSize(wrong[i], &size) == CUFFT_INVALID_PLAN);
        HWS_CHECK(cufftGetSize1d(wrong[i], 8, CUFFT_C2C, 1, &size) == CUFFT_INVALID_PLAN);
        HWS_CHECK(cufftMakePlan1d(wrong[i], 8, CUFFT_C2C, 1, &size) == CUFFT_INVALID_PLAN);
        HWS_CHECK(cufftXtExec(wrong[i], data, data, CUFFT_FORWARD) == CUFFT_INVALID_PLAN);
    }
    HWS_CHECK(session.records == before);
}

static void should_send_the_state_with_an_execution(void) {
    cufftHandle plan;
    char in[8], out[8];
    HWS_CHECK(cufftPlan1d(&plan, 8, CUFFT_C2C, 1) == CUFFT_SUCCESS);
    int before = session.records;
    HWS_CHECK(cufftSetStream(plan, (CUstream) (uintptr_t) 5) == CUFFT_SUCCESS);
    HWS_CHECK(cufftSetWorkArea(plan, in) == CUFFT_SUCCESS);
    HWS_CHECK(session.records == before); /* setters send nothing */
    HWS_CHECK(cufftExecC2C(plan, (cufftComplex *) in, (cufftComplex *) out, CUFFT_INVERSE) == CUFFT_SUCCESS);
    HwsFftExec sent = last_execution();
    HWS_CHECK(sent.plan == session_handle(session.made));
    HWS_CHECK(sent.stream == 5 && sent.workArea == (uintptr_t) in && hws_math_stream == 5);
    HWS_CHECK(sent.type == CUFFT_C2C && sent.direction == CUFFT_INVERSE && sent.isInPlace == 0);
    HWS_CHECK(cufftXtExec(plan, in, in, CUFFT_FORWARD) == CUFFT_SUCCESS);
    sent = last_execution();
    HWS_CHECK(sent.type == 0 && sent.direction == CUFFT_FORWARD && sent.isInPlace == 1);
    before = session.records;
    HWS_CHECK(cufftXtExec(plan, NULL, in, CUFFT_FORWARD) == CUFFT_INVALID_VALUE);
    HWS_CHECK(cufftXtExec(plan, in, NULL, CUFFT_FORWARD) == CUFFT_INVALID_VALUE);
    HWS_CHECK(cufftSetStream(plan, (CUstream) (uintptr_t) 13) == CUFFT_SUCCESS);
    HWS_CHECK(cufftXtExec(plan, in, in, CUFFT_FORWARD) == CUFFT_EXEC_FAILED); /* its capture has become invalid */
    HWS_CHECK(session.records == before);
    int ended = destroyed;
    HWS_CHECK(cufftDestroy(plan) == CUFFT_SUCCESS && destroyed == ended + 1);
    HWS_CHECK(cufftXtExec(plan, in, in, CUFFT_FORWARD) == CUFFT_INVALID_PLAN);
}

static void should_make_a_plan_once(void) {
    cufftHandle plan;
    size_t size = 0;
    HWS_CHECK(cufftCreate(&plan) == CUFFT_SUCCESS);
    HWS_CHECK(cufftGetSize(plan, &size) == CUFFT_INVALID_PLAN);
    HWS_CHECK(cufftSetAutoAllocation(plan, 0) == CUFFT_SUCCESS);
    answer = CUFFT_INVALID_SIZE;
    int ended = session.dropped;
    HWS_CHECK(cufftMakePlan2d(plan, -1, 3, CUFFT_Z2Z, &size) == CUFFT_INVALID_SIZE && size == 0);
    HWS_CHECK(session.dropped == ended + 1);
    answer = 0;
    HWS_CHECK(cufftMakePlan2d(plan, 7, 3, CUFFT_Z2Z, &size) == CUFFT_SUCCESS && size == WORK_BYTES);
    HwsFftPlan sent = last_plan();
    HWS_CHECK(sent.function == HWS_FFT_2D && sent.rank == 2 && sent.n[0] == 7 && sent.n[1] == 3 && sent.n[2] == 0);
    HWS_CHECK(sent.type == CUFFT_Z2Z && sent.batch == 1 && session.last[8 + sizeof sent] == 0);
    int before = session.records;
    HWS_CHECK(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size) == CUFFT_INVALID_PLAN);
    HWS_CHECK(cufftSetAutoAllocation(plan, 1) == CUFFT_INVALID_PLAN);
    size = 0;
    HWS_CHECK(cufftGetSize(plan, &size) == CUFFT_SUCCESS && size == WORK_BYTES);
    HWS_CHECK(session.records == before);
    HWS_CHECK(cufftDestroy(plan) == CUFFT_SUCCESS);
    answer = CUFFT_ALLOC_FAILED;
    plan = 99;
    HWS_CHECK(cufftPlan3d(&plan, 2, 2, 2, CUFFT_R2C) == CUFFT_ALLOC_FAILED && plan == 99);
    answer = 0;
    session.has_context = false;
    HWS_CHECK(cufftPlan3d(&plan, 2, 2, 2, CUFFT_R2C) == CUFFT_SETUP_FAILED);
    session.has_context = true;
}

static void should_pack_every_argument(void) {
    cufftHandle plan;
    size_t size;
    long long n[2] = {1LL << 33, 2}, in[2] = {3, 4}, out[2] = {5, 6};
    int shorts[2] = {-7, 8};
    HWS_CHECK(cufftCreate(&plan) == CUFFT_SUCCESS);
    HWS_CHECK(cufftXtMakePlanMany(plan, 2, n, in, 9, 10, CUDA_R_16BF, out, 11, -12, CUDA_C_16BF, 13, &size, CUDA_C_16BF)
              == CUFFT_SUCCESS);
    HwsFftPlan sent = last_plan();
    HWS_CHECK(sent.function == HWS_FFT_XT && sent.rank == 2 && sent.n[0] == 1LL << 33 && sent.n[1] == 2);
    HWS_CHECK(sent.hasInembed == 1 && sent.inembed[0] == 3 && sent.inembed[1] == 4);
    HWS_CHECK(sent.hasOnembed == 1 && sent.onembed[0] == 5 && sent.onembed[1] == 6);
    HWS_CHECK(sent.istride == 9 && sent.idist == 10 && sent.ostride == 11 && sent.odist == -12 && sent.batch == 13);
    HWS_CHECK(sent.inputType == CUDA_R_16BF && sent.outputType == CUDA_C_16BF && sent.executionType == CUDA_C_16BF);
    HWS_CHECK(cufftDestroy(plan) == CUFFT_SUCCESS);
    HWS_CHECK(cufftPlanMany(&plan, 2, shorts, NULL, 1, 2, shorts, 3, 4, CUFFT_D2Z, 5) == CUFFT_SUCCESS);
    sent = last_plan();
    HWS_CHECK(sent.function == HWS_FFT_MANY && sent.n[0] == -7 && sent.hasInembed == 0 && sent.inembed[0] == 0);
    HWS_CHECK(sent.hasOnembed == 1 && sent.onembed[0] == -7 && sent.onembed[1] == 8 && sent.type == CUFFT_D2Z);
    HWS_CHECK(session.last[8 + sizeof sent] == 1); /* the worker allocates the work area */
    HWS_CHECK(cufftDestroy(plan) == CUFFT_SUCCESS);
    int before = session.records;
    HWS_CHECK(cufftPlanMany(&plan, 4, shorts, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1) == CUFFT_INVALID_VALUE);
    HWS_CHECK(cufftPlanMany(&plan, 0, shorts, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1) == CUFFT_INVALID_VALUE);
    HWS_CHECK(cufftPlanMany(&plan, 1, NULL, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1) == CUFFT_INVALID_VALUE);
    HWS_CHECK(session.records == before);
    HWS_CHECK(cufftEstimate3d(2, 3, 4, CUFFT_R2C, &size) == CUFFT_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsFftGetSize && session.last[sizeof(HwsFftPlan)] == 1);
}

/* Sizes of many contents, whose answers take the places of others: each must be that of its own question. */
static void should_ask_for_the_size_of_equal_arguments_once(void) {
    size_t first, second, size;
    cufftHandle plan;
    HWS_CHECK(cufftCreate(&plan) == CUFFT_SUCCESS);
    HWS_CHECK(cufftEstimate1d(64, CUFFT_C2C, 2, &first) == CUFFT_SUCCESS);
    int before = questions;
    HWS_CHECK(cufftEstimate1d(64, CUFFT_C2C, 2, &size) == CUFFT_SUCCESS && size == first && questions == before);
    HWS_CHECK(cufftGetSize1d(plan, 64, CUFFT_C2C, 2, &second) == CUFFT_SUCCESS && second != first);
    HWS_CHECK(cufftGetSize1d(plan, 64, CUFFT_C2C, 3, &size) == CUFFT_SUCCESS && size != second && size != first);
    HWS_CHECK(cufftEstimate1d(64, CUFFT_C2R, 2, &size) == CUFFT_SUCCESS && size != second && size != first);
    session.context = 8;
    HWS_CHECK(cufftEstimate1d(64, CUFFT_C2C, 2, &size) == CUFFT_SUCCESS && size != first); /* another GPU, perhaps */
    session.context = 7;
    size_t sizes[500];
    for (int n = 0; n < 500; n++) {
        HWS_CHECK(cufftGetSize1d(plan, n + 1, CUFFT_Z2Z, 1, &sizes[n]) == CUFFT_SUCCESS);
        HWS_CHECK(n == 0 || sizes[n] > sizes[n - 1]);
        HWS_CHECK(cufftGetSize1d(plan, n + 1, CUFFT_Z2Z, 1, &size) == CUFFT_SUCCESS && size == sizes[n]);
    }
    before = questions;
    answer = CUFFT_INVALID_SIZE;
    HWS_CHECK(cufftEstimate1d(-5, CUFFT_C2C, 1, &size) == CUFFT_INVALID_SIZE);
    HWS_CHECK(cufftEstimate1d(-5, CUFFT_C2C, 1, &size) == CUFFT_INVALID_SIZE);
    answer = 0;
    HWS_CHECK(cufftEstimate1d(-5, CUFFT_C2C, 1, &size) == CUFFT_SUCCESS && questions == before + 1);
    HWS_CHECK(cufftDestroy(plan) == CUFFT_SUCCESS);
}

static void should_keep_properties(void) {
    cufftHandle plan;
    long long value = 0;
    HWS_CHECK(cufftCreate(&plan) == CUFFT_SUCCESS);
    cufftProperty threads = NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS;
    HWS_CHECK(cufftSetPlanPropertyInt64(plan, threads, 4) == CUFFT_SUCCESS);
    HWS_CHECK(cufftGetPlanPropertyInt64(plan, threads, &value) == CUFFT_SUCCESS && value == 4);
    HWS_CHECK(cufftSetPlanPropertyInt64(plan, threads, 0) == CUFFT_INVALID_VALUE);
    HWS_CHECK(cufftResetPlanProperty(plan, threads) == CUFFT_SUCCESS);
    HWS_CHECK(cufftGetPlanPropertyInt64(plan, threads, &value) == CUFFT_SUCCESS && value == 27);
    HWS_CHECK(cufftSetPlanPropertyInt64(plan, (cufftProperty) 3, 1) == CUFFT_NOT_SUPPORTED);
    size_t size;
    HWS_CHECK(cufftMakePlan1d(plan, 64, CUFFT_C2C, 1, &size) == CUFFT_SUCCESS);
    HWS_CHECK(cufftSetPlanPropertyInt64(plan, threads, 4) == CUFFT_NOT_SUPPORTED); /* too late */
    HWS_CHECK(cufftResetPlanProperty(plan, threads) == CUFFT_NOT_SUPPORTED);
    HWS_CHECK(cufftDestroy(plan) == CUFFT_SUCCESS);
}

int main(void) {
    session.kind = HWS_KIND_CUFFT;
    should_give_every_handle_another_number();
    should_refuse_numbers_of_no_handle();
    should_send_the_state_with_an_execution();
    should_make_a_plan_once();
    should_pack_every_argument();
    should_ask_for_the_size_of_equal_arguments_once();
    should_keep_properties();
    return 0;
}

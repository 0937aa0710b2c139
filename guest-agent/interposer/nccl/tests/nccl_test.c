/*
 * The guest's state of NCCL: communicators, groups of a thread, and what an operation sends. The session is replaced by
 * a table that keeps the last record.
 */
#include "hws_test.h"
#include "replaced_session.h"

#include "hws_nccl.h"
#include "hws_nccl_functions.h"
#include "hws_nccl_opcodes.h"

#include <string.h>

static int answer;    /* to the next records */
static int ranks = 2; /* of the next communicators */
static int async_error;
static uint64_t expected_use; /* by the next operation, in the context of device 1; 0: no matter */
static int seen_captures;

CUresult cuCtxSetCurrent(CUcontext context) {
    session.context = (uintptr_t) context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    *device = (CUdevice) session.context - 7;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = (CUcontext) (uintptr_t) (device + 7);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    (void) bytes;
    *address = 4096;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    return address == 4096 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) opcode;
    (void) flags;
    (void) payload;
    (void) payload_bytes;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK(false); /* nothing is sent without a probe */
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    (void) flags;
    HWS_CHECK(opcode == HWS_OPCODE_hwsNcclRun && payload_bytes == sizeof(HwsNcclOperation));
    for (uint32_t i = 0; i < count; i++) { /* what it does, with how many numbers and by whom, belongs to the kind */
        HWS_CHECK(ranges[i].offset >= offsetof(HwsNcclOperation, stream));
    }
    if (expected_use != 0) {
        HWS_CHECK(session.in_use == expected_use && session.context == 8);
        seen_captures++;
    }
    session_keep(opcode, payload, payload_bytes);
    return answer;
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
    *reply_bytes_p = 0;
    if (opcode == HWS_OPCODE_hwsNcclAsyncError) {
        memcpy(reply, &async_error, sizeof async_error);
        *reply_bytes_p = 8;
    }
    if (opcode == HWS_OPCODE_hwsNcclMake) { /* the length of the places, then the places */
        uint32_t count;
        memcpy(&count, (const unsigned char *) payload + 4, sizeof count);
        uint32_t bytes = count * (uint32_t) sizeof(HwsNcclPlace);
        HWS_CHECK(reply_capacity >= 8 + bytes);
        memset(reply, 0, 8 + bytes);
        memcpy(reply, &bytes, sizeof bytes);
        for (uint32_t i = 0; i < count; i++) {
            HwsNcclPlace place = {.ranks = ranks, .rank = (int32_t) i};
            memcpy((unsigned char *) reply + 8 + i * sizeof place, &place, sizeof place);
        }
        *reply_bytes_p = 8 + bytes;
    }
    return 0;
}

static ncclComm_t comms[2];

static void make(void) {
    HWS_CHECK(ncclCommInitAll(comms, 2, NULL) == ncclSuccess);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsNcclMake);
    int value = -1;
    HWS_CHECK(ncclCommCount(comms[1], &value) == ncclSuccess && value == 2);
    HWS_CHECK(ncclCommUserRank(comms[1], &value) == ncclSuccess && value == 1);
    HWS_CHECK(ncclCommCuDevice(comms[1], &value) == ncclSuccess && value == 1);
    HWS_CHECK(session.context == 7); /* the thread's context stays */
}

#define BUFFER ((void *) (uintptr_t) 4096)

static void should_send_single_operations_at_once(void) {
    int before = session.records;
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 5, ncclFloat32, ncclMax, comms[0], NULL) == ncclSuccess);
    HWS_CHECK(session.records == before + 1 && session.last_opcode == HWS_OPCODE_hwsNcclRun);
    HwsNcclOperation operation;
    memcpy(&operation, session.last, sizeof operation);
    HWS_CHECK(operation.kind == HWS_NCCL_ALL_REDUCE && operation.count == 5 && operation.reduction == ncclMax);
    HWS_CHECK(operation.comm == (uintptr_t) comms[0] && operation.sendbuff == 4096);
    HWS_CHECK(ncclBroadcast(BUFFER, BUFFER, 5, ncclFloat32, 1, comms[0], NULL) == ncclSuccess);
    memcpy(&operation, session.last, sizeof operation);
    HWS_CHECK(operation.sendbuff == 0 && operation.peer == 1); /* not the root: its buffer is not looked at */
    before = session.records;
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 0, ncclFloat32, ncclMax, comms[0], NULL) == ncclSuccess);
    HWS_CHECK(session.records == before); /* no numbers */
}

static void should_send_a_group_at_its_end(void) {
    int before = session.records;
    HWS_CHECK(ncclGroupStart() == ncclSuccess && ncclGroupStart() == ncclSuccess);
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(ncclSend(BUFFER, 3, ncclInt8, 1 - i, comms[i], NULL) == ncclSuccess);
        HWS_CHECK(ncclRecv(BUFFER, 3, ncclInt8, 1 - i, comms[i], NULL) == ncclSuccess);
    }
    HWS_CHECK(ncclGroupEnd() == ncclSuccess && session.records == before);
    HWS_CHECK(ncclGroupEnd() == ncclSuccess && session.records == before + 1);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsNcclRunGroup && session.last_bytes >= 4 * sizeof(HwsNcclOperation));
    HWS_CHECK(ncclAlltoAll(BUFFER, BUFFER, 3, ncclInt8, comms[0], NULL) == ncclSuccess);
    HWS_CHECK(session.records == before + 2 && session.last_opcode == HWS_OPCODE_hwsNcclRunGroup);
    HWS_CHECK(ncclGroupStart() == ncclSuccess);
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclInt8, ncclSum, comms[0], NULL) == ncclSuccess);
    HWS_CHECK(ncclGroupEnd() == ncclSuccess
              && session.last_opcode == HWS_OPCODE_hwsNcclRun); /* alone, it is no group */
}

static void should_report_errors_of_a_group_at_its_end(void) {
    int before = session.records;
    HWS_CHECK(ncclGroupEnd() == ncclInvalidUsage);
    HWS_CHECK(ncclGroupStart() == ncclSuccess);
    HWS_CHECK(ncclSend(BUFFER, 3, ncclInt8, 2, comms[0], NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclSend(BUFFER, 3, ncclInt8, 1, comms[0], NULL) == ncclSuccess);
    HWS_CHECK(ncclGroupEnd() == ncclInvalidArgument && session.records == before);
    HWS_CHECK(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess); /* the next one has no error */
    HWS_CHECK(ncclGroupStart() == ncclSuccess);
    for (int i = 0; i <= HWS_NCCL_OPERATIONS; i++) {
        HWS_CHECK(ncclSend(BUFFER, 3, ncclInt8, 1, comms[0], NULL)
                  == (i < HWS_NCCL_OPERATIONS ? ncclSuccess : ncclInvalidUsage));
    }
    HWS_CHECK(ncclGroupEnd() == ncclInvalidUsage && session.records == before);
}

static void should_refuse_wrong_arguments(void) {
    int before = session.records;
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclInt8, ncclSum, NULL, NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, (ncclDataType_t) 12, ncclSum, comms[0], NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclInt8, (ncclRedOp_t) 5, comms[0], NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclAllReduce(NULL, BUFFER, 1, ncclInt8, ncclSum, comms[0], NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclAllGather(BUFFER, BUFFER, SIZE_MAX / 2, ncclInt8, comms[0], NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclReduce(BUFFER, NULL, 1, ncclInt8, ncclSum, -1, comms[0], NULL) == ncclInvalidArgument);
    for (int root = -1; root <= 2; root += 3) { /* of two ranks */
        HWS_CHECK(ncclGather(BUFFER, BUFFER, 1, ncclInt8, root, comms[0], NULL) == ncclInvalidArgument);
        HWS_CHECK(ncclScatter(BUFFER, BUFFER, 1, ncclInt8, root, comms[0], NULL) == ncclInvalidArgument);
    }
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclInt8, ncclSum, comms[0], (CUstream) (uintptr_t) SESSION_INVALIDATED)
              == ncclUnhandledCudaError);
    HWS_CHECK(session.records == before);
}

#define CAPTURING ((CUstream) (uintptr_t) 21)
#define DIRECT ((CUstream) (uintptr_t) 22)

static void should_capture_in_the_communicators_context(void) {
    int before = session.records;
    session.capturing = 21;
    expected_use = (uintptr_t) comms[1];
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclInt8, ncclSum, comms[1], CAPTURING) == ncclSuccess);
    HWS_CHECK(session.records == before + 1 && session.last_opcode == HWS_OPCODE_hwsNcclRun);
    answer = ncclInvalidUsage;
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclInt8, ncclSum, comms[1], CAPTURING) == ncclInvalidUsage);
    answer = 0;
    HWS_CHECK(seen_captures == 2 && session.in_use == 0 && session.context == 7); /* as before */
    expected_use = 0;
    session.capturing = 0;
}

static void should_split_groups_by_streams_when_one_captures(void) {
    int before = session.records;
    session.capturing = 21;
    HWS_CHECK(ncclGroupStart() == ncclSuccess);
    HWS_CHECK(ncclSend(BUFFER, 3, ncclInt8, 1, comms[0], DIRECT) == ncclSuccess);
    HWS_CHECK(ncclSend(BUFFER, 3, ncclInt8, 0, comms[1], CAPTURING) == ncclSuccess);
    HWS_CHECK(ncclRecv(BUFFER, 3, ncclInt8, 0, comms[1], CAPTURING) == ncclSuccess);
    HWS_CHECK(ncclGroupEnd() == ncclSuccess && session.records == before + 2);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_hwsNcclRunGroup && session.in_use == 0);
    HWS_CHECK(ncclGroupStart() == ncclSuccess);
    HWS_CHECK(ncclSend(BUFFER, 3, ncclInt8, 1, comms[0], DIRECT) == ncclSuccess);
    HWS_CHECK(ncclRecv(BUFFER, 3, ncclInt8, 1, comms[0], CAPTURING) == ncclSuccess);
    HWS_CHECK(ncclGroupEnd() == ncclInvalidUsage && session.records == before + 2 && session.unsupported == 1);
    HWS_CHECK(strcmp(ncclGetLastError(comms[0]), ncclGetErrorString(ncclInvalidUsage)) == 0);
    session.capturing = 0;
}

static void should_carry_factors(void) {
    ncclRedOp_t op;
    double factor = 0.5;
    HWS_CHECK(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat64, ncclScalarHostImmediate, comms[0]) == ncclSuccess);
    factor = 7; /* has been read */
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclFloat64, op, comms[0], NULL) == ncclSuccess);
    HwsNcclOperation operation;
    memcpy(&operation, session.last, sizeof operation);
    memcpy(&factor, &operation.factor, sizeof factor);
    HWS_CHECK(operation.reduction == HWS_NCCL_PRE_MUL_SUM && factor == 0.5 && operation.isFactorOnDevice == 0);
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclFloat32, op, comms[0], NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclFloat64, op, comms[1], NULL) == ncclInvalidArgument);
    HWS_CHECK(ncclRedOpDestroy(op, comms[0]) == ncclSuccess);
    HWS_CHECK(ncclRedOpDestroy(op, comms[0]) == ncclInvalidArgument);
    HWS_CHECK(ncclAllReduce(BUFFER, BUFFER, 1, ncclFloat64, op, comms[0], NULL) == ncclInvalidArgument);
}

static void should_make_the_communicators_of_a_group_together(void) {
    ncclUniqueId id = {{1}};
    ncclComm_t more[2];
    int before = session.records;
    HWS_CHECK(ncclGroupStart() == ncclSuccess);
    HWS_CHECK(ncclCommInitRank(&more[0], 2, id, 0) == ncclSuccess);
    HWS_CHECK(ncclCommInitRank(&more[1], 2, id, 1) == ncclSuccess && more[1] == NULL);
    HWS_CHECK(ncclGroupEnd() == ncclSuccess && session.records == before + 1 && more[0] != NULL && more[1] != more[0]);
    HWS_CHECK(ncclCommInitRank(&more[0], 2, id, 2) == ncclInvalidArgument);
    HWS_CHECK(ncclCommDestroy(more[1]) == ncclSuccess && ncclCommAbort(comms[1]) == ncclSuccess
              && session.dropped == 2);
    HWS_CHECK(ncclCommDestroy(more[1]) == ncclInvalidArgument && ncclCommDestroy(NULL) == ncclSuccess);
    answer = ncclRemoteError;
    int communicators = session.made - session.dropped;
    HWS_CHECK(ncclCommInitRank(&more[1], 2, id, 0) == ncclRemoteError && more[1] == NULL);
    HWS_CHECK(session.made - session.dropped == communicators);
    answer = 0;
}

static void should_ask_for_errors_once_in_a_while(ncclComm_t comm) {
    ncclResult_t error = ncclInternalError;
    int before = session.records;
    for (int i = 0; i < 1000; i++) {
        HWS_CHECK(ncclCommGetAsyncError(comm, &error) == ncclSuccess && error == ncclSuccess);
    }
    HWS_CHECK(session.records > before && session.records < before + 1000);
    async_error = ncclRemoteError;
    while (error == ncclSuccess) { /* the last answer holds for a millisecond */
        HWS_CHECK(ncclCommGetAsyncError(comm, &error) == ncclSuccess);
    }
    HWS_CHECK(error == ncclRemoteError);
    HWS_CHECK(ncclCommGetAsyncError(comm, &error) == ncclSuccess && error == ncclRemoteError);
    async_error = ncclSuccess;
}

static void should_take_the_choices_of_a_program(void) {
    ncclUniqueId id = {{1}};
    ncclComm_t comm = NULL;
    /* The number that programs are compiled with, by its value: a description with another one refuses them all. */
    ncclConfig_t config = {.size = sizeof config, .magic = 0xcafebeef, .version = 22809, .maxCTAs = 16};
    HWS_CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclSuccess && comm != NULL);
    should_ask_for_errors_once_in_a_while(comm);
    HWS_CHECK(ncclCommAbort(comm) == ncclSuccess);
    config.magic++;
    HWS_CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInvalidArgument);
}

int main(void) {
    session.kind = HWS_KIND_NCCL;
    make();
    should_send_single_operations_at_once();
    should_send_a_group_at_its_end();
    should_report_errors_of_a_group_at_its_end();
    should_refuse_wrong_arguments();
    should_capture_in_the_communicators_context();
    should_split_groups_by_streams_when_one_captures();
    should_carry_factors();
    should_make_the_communicators_of_a_group_together();
    should_take_the_choices_of_a_program();
    session_close();
    return 0;
}

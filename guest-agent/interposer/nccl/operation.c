/* Operations: their arguments in a record. The functions without a record of their own are sends and receives. */
#include "hws_nccl.h"

#include "hws_nccl_calls.h"
#include "hws_nccl_functions.h"

#include <stdlib.h>

static ncclResult_t run_all(const HwsNcclOperation *operations, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        HWS_NEED(hws_math_may_issue((CUstream) (uintptr_t) operations[i].stream) == CUDA_SUCCESS,
                 ncclUnhandledCudaError);
    }
    return count == 1 ? hws_call_hwsNcclRun(operations) : hws_call_hwsNcclRunGroup(operations, count);
}

/* The operations of one stream, which captures. Their node is made in the communicator's context, as NCCL does. */
static ncclResult_t run_captured(const HwsNcclOperation *operations, uint32_t count) {
    const hws_service_t *service = hws_math_service();
    const hws_nccl_comm_t *comm = hws_nccl_find((ncclComm_t) (uintptr_t) operations->comm);
    HWS_NEED(comm != NULL, ncclInvalidArgument);
    CUcontext before = NULL;
    HWS_NEED(cuCtxGetCurrent(&before) == CUDA_SUCCESS
                 && cuCtxSetCurrent((CUcontext) (uintptr_t) comm->context) == CUDA_SUCCESS,
             ncclUnhandledCudaError);
    for (uint32_t i = 0; i < count; i++) {
        service->begin_use(operations->stream, operations[i].comm);
    }
    ncclResult_t result = run_all(operations, count);
    for (uint32_t i = 0; i < count; i++) {
        service->end_use(operations->stream, operations[i].comm);
    }
    HWS_NEED(cuCtxSetCurrent(before) == CUDA_SUCCESS, ncclUnhandledCudaError);
    return result;
}

/* Whether a communicator has operations in two streams. Such a group cannot be split by streams. */
static bool is_spread(const HwsNcclOperation *operations, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (operations[i].comm == operations[j].comm && operations[i].stream != operations[j].stream) {
                return true;
            }
        }
    }
    return false;
}

/*
 * A group with a stream that captures: the operations of each stream become a node of its own, or run. A kernel of NCCL
 * waits for the other ranks only, so it may begin before those of the group's other streams are issued.
 */
static ncclResult_t run_by_streams(const HwsNcclOperation *operations, uint32_t count) {
    if (is_spread(operations, count)) {
        hws_math_unsupported("a group of NCCL with several streams of a communicator, of which one captures");
        return ncclInvalidUsage;
    }
    HwsNcclOperation *some = calloc(count, sizeof *some);
    bool *done = calloc(count, sizeof *done);
    ncclResult_t result = some == NULL || done == NULL ? ncclSystemError : ncclSuccess;
    for (uint32_t i = 0; result == ncclSuccess && i < count; i++) {
        uint32_t found = 0;
        for (uint32_t j = i; j < count; j++) {
            if (!done[j] && operations[j].stream == operations[i].stream) {
                some[found++] = operations[j];
                done[j] = true;
            }
        }
        if (found > 0) {
            result =
                hws_math_service()->captures(operations[i].stream) ? run_captured(some, found) : run_all(some, found);
        }
    }
    free(some);
    free(done);
    return result;
}

ncclResult_t hws_nccl_send(const HwsNcclOperation *operations, uint32_t count) {
    HWS_ENTER();
    bool captures = false;
    for (uint32_t i = 0; i < count; i++) {
        captures = captures || hws_math_service()->captures(operations[i].stream);
    }
    return hws_nccl_note(__builtin_expect(captures, 0) ? run_by_streams(operations, count)
                                                       : run_all(operations, count));
}

/* Whether a number of numbers fits into memory, for all ranks. */
static bool fits(size_t count, size_t bytes, int ranks) {
    size_t total = 0;
    return !__builtin_mul_overflow(count, bytes, &total) && !__builtin_mul_overflow(total, (size_t) ranks, &total)
        && total <= INT64_MAX;
}

/* Checks an operation with all but its communicator's number; then sends it, or adds it to the thread's group. */
static ncclResult_t run(HwsNcclOperation *operation, ncclComm_t comm, bool needs_send, bool needs_receive) {
    const hws_nccl_comm_t *state = hws_nccl_find(comm);
    size_t bytes = hws_nccl_bytes((ncclDataType_t) operation->datatype);
    HWS_REQUIRE(state != NULL && bytes > 0 && fits(operation->count, bytes, state->ranks));
    HWS_REQUIRE(operation->peer >= 0 && operation->peer < state->ranks);
    if (operation->count == 0) {
        return ncclSuccess; /* as NVIDIA's library, on every rank */
    }
    HWS_REQUIRE((!needs_send || operation->sendbuff != 0) && (!needs_receive || operation->recvbuff != 0));
    operation->comm = (uintptr_t) comm;
    return hws_nccl_is_group() ? hws_nccl_group_operation(operation) : hws_nccl_send(operation, 1);
}

#define ADDRESS(pointer) ((uint64_t) (uintptr_t) (pointer))

/* As run(), for a reduction. */
static ncclResult_t reduce(HwsNcclOperation *operation, ncclRedOp_t op, ncclComm_t comm, bool needs_receive) {
    HWS_REQUIRE((int) op >= ncclSum);
    operation->reduction = (int) op;
    if (op > ncclAvg) {
        hws_nccl_factor_t factor;
        HWS_REQUIRE(hws_nccl_factor(op, (ncclDataType_t) operation->datatype, comm, &factor));
        operation->reduction = HWS_NCCL_PRE_MUL_SUM;
        operation->factor = factor.value;
        operation->isFactorOnDevice = factor.is_on_device;
    }
    return run(operation, comm, true, needs_receive);
}

static bool is_rank(ncclComm_t comm, int rank) {
    const hws_nccl_comm_t *state = hws_nccl_find(comm);
    return state != NULL && state->rank == rank;
}

HWS_EXPORT ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                      ncclRedOp_t op, ncclComm_t comm, CUstream stream) {
    HwsNcclOperation operation = {.kind = HWS_NCCL_ALL_REDUCE,
                                  .datatype = datatype,
                                  .count = count,
                                  .stream = ADDRESS(stream),
                                  .sendbuff = ADDRESS(sendbuff),
                                  .recvbuff = ADDRESS(recvbuff)};
    return hws_nccl_group_error(reduce(&operation, op, comm, true));
}

HWS_EXPORT ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                   ncclRedOp_t op, int root, ncclComm_t comm, CUstream stream) {
    HwsNcclOperation operation = {.kind = HWS_NCCL_REDUCE,
                                  .datatype = datatype,
                                  .peer = root,
                                  .count = count,
                                  .stream = ADDRESS(stream),
                                  .sendbuff = ADDRESS(sendbuff),
                                  .recvbuff = ADDRESS(recvbuff)};
    bool is_root = is_rank(comm, root);
    if (!is_root) {
        operation.recvbuff = 0; /* documented: only the root's is used */
    }
    return hws_nccl_group_error(reduce(&operation, op, comm, is_root));
}

HWS_EXPORT ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                      int root, ncclComm_t comm, CUstream stream) {
    bool is_root = is_rank(comm, root);
    HwsNcclOperation operation = {.kind = HWS_NCCL_BROADCAST,
                                  .datatype = datatype,
                                  .peer = root,
                                  .count = count,
                                  .stream = ADDRESS(stream),
                                  .sendbuff = is_root ? ADDRESS(sendbuff) : 0,
                                  .recvbuff = ADDRESS(recvbuff)};
    return hws_nccl_group_error(run(&operation, comm, is_root, true));
}

HWS_EXPORT ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                                  CUstream stream) {
    return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

HWS_EXPORT ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                                      ncclComm_t comm, CUstream stream) {
    HwsNcclOperation operation = {.kind = HWS_NCCL_ALL_GATHER,
                                  .datatype = datatype,
                                  .count = sendcount,
                                  .stream = ADDRESS(stream),
                                  .sendbuff = ADDRESS(sendbuff),
                                  .recvbuff = ADDRESS(recvbuff)};
    return hws_nccl_group_error(run(&operation, comm, true, true));
}

HWS_EXPORT ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                          ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, CUstream stream) {
    HwsNcclOperation operation = {.kind = HWS_NCCL_REDUCE_SCATTER,
                                  .datatype = datatype,
                                  .count = recvcount,
                                  .stream = ADDRESS(stream),
                                  .sendbuff = ADDRESS(sendbuff),
                                  .recvbuff = ADDRESS(recvbuff)};
    return hws_nccl_group_error(reduce(&operation, op, comm, true));
}

HWS_EXPORT ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                                 CUstream stream) {
    HwsNcclOperation operation = {.kind = HWS_NCCL_SEND,
                                  .datatype = datatype,
                                  .peer = peer,
                                  .count = count,
                                  .stream = ADDRESS(stream),
                                  .sendbuff = ADDRESS(sendbuff)};
    return hws_nccl_group_error(run(&operation, comm, true, false));
}

HWS_EXPORT ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                                 CUstream stream) {
    HwsNcclOperation operation = {.kind = HWS_NCCL_RECEIVE,
                                  .datatype = datatype,
                                  .peer = peer,
                                  .count = count,
                                  .stream = ADDRESS(stream),
                                  .recvbuff = ADDRESS(recvbuff)};
    return hws_nccl_group_error(run(&operation, comm, false, true));
}

/* The part of a rank in a buffer with one part for each. */
static void *part(const void *buffer, size_t count, ncclDataType_t datatype, int rank) {
    return (void *) (ADDRESS(buffer) + (size_t) rank * count * hws_nccl_bytes(datatype));
}

/* Sends to the ranks [0, to) and receives from the ranks [0, from), in one group. The counts fit. */
static ncclResult_t exchange(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                             ncclComm_t comm, CUstream stream, const int *to, const int *from) {
    const hws_nccl_comm_t *state = hws_nccl_find(comm);
    HWS_REQUIRE(state != NULL && fits(count, hws_nccl_bytes(datatype), state->ranks));
    int ranks = state->ranks;
    HWS_TRY(ncclGroupStart());
    for (int rank = 0; rank < ranks; rank++) {
        if (to == NULL || *to == rank) { /* an error shows at the group's end */
            ncclSend(to == NULL ? part(sendbuff, count, datatype, rank) : sendbuff, count, datatype, rank, comm,
                     stream);
        }
        if (from == NULL || *from == rank) {
            ncclRecv(from == NULL ? part(recvbuff, count, datatype, rank) : recvbuff, count, datatype, rank, comm,
                     stream);
        }
    }
    return ncclGroupEnd();
}

HWS_EXPORT ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                     ncclComm_t comm, CUstream stream) {
    HWS_NEED(sendbuff != NULL && recvbuff != NULL, hws_nccl_group_error(ncclInvalidArgument));
    return exchange(sendbuff, recvbuff, count, datatype, comm, stream, NULL, NULL);
}

static const int nobody = -1;

static bool has_rank(ncclComm_t comm, int rank) {
    const hws_nccl_comm_t *state = hws_nccl_find(comm);
    return state != NULL && rank >= 0 && rank < state->ranks;
}

HWS_EXPORT ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                   int root, ncclComm_t comm, CUstream stream) {
    bool is_root = is_rank(comm, root);
    HWS_NEED(sendbuff != NULL && (!is_root || recvbuff != NULL) && has_rank(comm, root),
             hws_nccl_group_error(ncclInvalidArgument));
    return exchange(sendbuff, recvbuff, count, datatype, comm, stream, &root, is_root ? NULL : &nobody);
}

HWS_EXPORT ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                    int root, ncclComm_t comm, CUstream stream) {
    bool is_root = is_rank(comm, root);
    HWS_NEED(recvbuff != NULL && (!is_root || sendbuff != NULL) && has_rank(comm, root),
             hws_nccl_group_error(ncclInvalidArgument));
    return exchange(sendbuff, recvbuff, count, datatype, comm, stream, is_root ? NULL : &nobody, &root);
}

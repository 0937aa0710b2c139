/* Included by every file of libnccl.so: communicators, reductions with a factor, and the groups of a thread. */
#ifndef HWS_NCCL_H
#define HWS_NCCL_H

#include "hws_math.h"
#include "hws_nccl_types.h"

#include <stdbool.h>
#include <stddef.h>

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, ncclSystemError)

/* Returns ncclInvalidArgument unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, ncclInvalidArgument)

/* Leaves the calling function with a result other than ncclSuccess. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        ncclResult_t hws_tried = (call);                                                                               \
        HWS_NEED(hws_tried == ncclSuccess, hws_tried);                                                                 \
    } while (0)

#define HWS_NCCL_MEMBERS 64      /* of one group; as the description's limit of a record */
#define HWS_NCCL_OPERATIONS 1024 /* of one group, likewise */

/* The guest's facts about a communicator. The library's table of handles owns it. */
typedef struct hws_nccl_comm {
    uint64_t context; /* of its device */
    int ranks, rank, device;
    _Atomic uint64_t fine_until_ns; /* CLOCK_MONOTONIC; until then ncclCommGetAsyncError() asks nobody */
} hws_nccl_comm_t;

/* A factor of HWS_NCCL_PRE_MUL_SUM. */
typedef struct hws_nccl_factor {
    uint64_t comm;  /* 0: the entry is free */
    uint64_t value; /* the number, or its address */
    ncclDataType_t datatype;
    bool is_on_device;
} hws_nccl_factor_t;

/* What a communicator is; NULL for an invalid one. Any thread. */
hws_nccl_comm_t *hws_nccl_find(ncclComm_t comm);

/* Makes the session begin, as the first call of any library does. Returns whether there is one. */
bool hws_nccl_begin(void);

/* Keeps the result for ncclGetLastError(), unless it is ncclSuccess; returns it. */
ncclResult_t hws_nccl_note(ncclResult_t result);

/* Makes communicators with their members, and waits for all ranks. outs[i] receives the one of members[i]. */
ncclResult_t hws_nccl_make(HwsNcclMember *members, ncclComm_t **outs, uint32_t count);

/* Ends or finalizes a communicator. */
ncclResult_t hws_nccl_end(ncclComm_t comm);
ncclResult_t hws_nccl_finalize(ncclComm_t comm);

/* Bytes of a number; 0 for an unknown type. */
size_t hws_nccl_bytes(ncclDataType_t datatype);

/* Finds the factor of a reduction from ncclRedOpCreatePreMulSum(); false for an invalid one. */
bool hws_nccl_factor(ncclRedOp_t op, ncclDataType_t datatype, ncclComm_t comm, hws_nccl_factor_t *factor);

/* Forgets the factors of a communicator that ends. */
void hws_nccl_forget_factors(ncclComm_t comm);

/* Whether the calling thread has a group. */
bool hws_nccl_is_group(void);

/* Add to the calling thread's group, which runs it when it ends. */
ncclResult_t hws_nccl_group_member(const HwsNcclMember *member, ncclComm_t *out);
ncclResult_t hws_nccl_group_operation(const HwsNcclOperation *operation);
ncclResult_t hws_nccl_group_end(ncclComm_t comm, ncclResult_t (*end)(ncclComm_t comm));

/* Keeps an error for the end of the calling thread's group, if there is one; returns it. */
ncclResult_t hws_nccl_group_error(ncclResult_t error);

/* Sends operations; a single one without waiting, once an operation of its kind has succeeded. */
ncclResult_t hws_nccl_send(const HwsNcclOperation *operations, uint32_t count);

/* Logs once that a function has no implementation. Returns ncclInvalidUsage. */
ncclResult_t hws_unsupported(const char *name);

#endif

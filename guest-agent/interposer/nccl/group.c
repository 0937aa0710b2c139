/* Groups. They belong to a thread, and send their content in one record when the outermost one ends. */
#include "hws_nccl.h"

#include "hws_nccl_functions.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct group_end {
    ncclComm_t comm;
    ncclResult_t (*end)(ncclComm_t comm);
} group_end_t;

/* The content of a group; its arrays stay for the thread's next one. */
typedef struct group {
    HwsNcclOperation operations[HWS_NCCL_OPERATIONS];
    HwsNcclMember members[HWS_NCCL_MEMBERS];
    ncclComm_t *outs[HWS_NCCL_MEMBERS];
    group_end_t ends[HWS_NCCL_MEMBERS];
    uint32_t operation_count, member_count, end_count;
} group_t;

static _Thread_local int depth;
static _Thread_local ncclResult_t failure;
static _Thread_local group_t *group; /* made by the first group of a thread that is not empty */

/* A thread's memory ends with it. */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void) {
    pthread_key_create(&key, free);
}

static group_t *content(void) {
    if (__builtin_expect(group == NULL, 0)) {
        pthread_once(&once, make_key);
        group = calloc(1, sizeof *group);
        pthread_setspecific(key, group);
    }
    return group;
}

bool hws_nccl_is_group(void) {
    return depth > 0;
}

ncclResult_t hws_nccl_group_error(ncclResult_t error) {
    if (__builtin_expect(error != ncclSuccess && depth > 0 && failure == ncclSuccess, 0)) {
        failure = error;
    }
    return hws_nccl_note(error);
}

ncclResult_t hws_nccl_group_member(const HwsNcclMember *member, ncclComm_t *out) {
    group_t *all = content();
    HWS_NEED(all != NULL, ncclSystemError);
    HWS_NEED(all->member_count < HWS_NCCL_MEMBERS && all->operation_count == 0, ncclInvalidUsage);
    all->members[all->member_count] = *member;
    all->outs[all->member_count++] = out;
    return ncclSuccess;
}

ncclResult_t hws_nccl_group_operation(const HwsNcclOperation *operation) {
    group_t *all = content();
    HWS_NEED(all != NULL, ncclSystemError);
    /* Documented: a group has either operations or new communicators. */
    HWS_NEED(all->operation_count < HWS_NCCL_OPERATIONS && all->member_count == 0, ncclInvalidUsage);
    all->operations[all->operation_count++] = *operation;
    return ncclSuccess;
}

ncclResult_t hws_nccl_group_end(ncclComm_t comm, ncclResult_t (*end)(ncclComm_t comm)) {
    group_t *all = content();
    HWS_NEED(all != NULL, ncclSystemError);
    HWS_NEED(all->end_count < HWS_NCCL_MEMBERS, ncclInvalidUsage);
    all->ends[all->end_count++] = (group_end_t) {comm, end};
    return ncclSuccess;
}

HWS_EXPORT ncclResult_t ncclGroupStart(void) {
    if (depth++ == 0) {
        failure = ncclSuccess;
        if (group != NULL) {
            group->operation_count = group->member_count = group->end_count = 0;
        }
    }
    return ncclSuccess;
}

static ncclResult_t run(void) {
    if (group == NULL || failure != ncclSuccess) {
        return failure;
    }
    if (group->member_count > 0) {
        HWS_TRY(hws_nccl_make(group->members, group->outs, group->member_count));
    }
    if (group->operation_count > 0) {
        HWS_TRY(hws_nccl_send(group->operations, group->operation_count));
    }
    ncclResult_t result = ncclSuccess;
    for (uint32_t i = 0; i < group->end_count; i++) {
        ncclResult_t ended = group->ends[i].end(group->ends[i].comm);
        result = result == ncclSuccess ? ended : result;
    }
    return result;
}

HWS_EXPORT ncclResult_t ncclGroupEnd(void) {
    HWS_NEED(depth > 0, hws_nccl_note(ncclInvalidUsage));
    return --depth > 0 ? ncclSuccess : hws_nccl_note(run());
}

/* Ends the group without running it. The time is unknown, as for an empty group of NVIDIA's library. */
HWS_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo) {
    HWS_REQUIRE(simInfo != NULL);
    HWS_NEED(depth > 0, hws_nccl_note(ncclInvalidUsage));
    depth--;
    return hws_unsupported("ncclGroupSimulateEnd");
}

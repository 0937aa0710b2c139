/* Communicators. One record makes those of a group; the worker answers when all ranks have joined. */
#include "hws_nccl.h"

#include "hws_nccl_calls.h"
#include "hws_nccl_functions.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define FINE_NS 1000000 /* how long an answer holds that there is no asynchronous error */

hws_nccl_comm_t *hws_nccl_find(ncclComm_t comm) {
    const hws_service_t *service = comm == NULL ? NULL : hws_math_service();
    return service == NULL ? NULL : service->handle_data(HWS_KIND_NCCL, (uintptr_t) comm);
}

static ncclComm_t new_comm(const HwsNcclMember *member, int device) {
    uint64_t id;
    hws_nccl_comm_t *state = hws_math_new_handle(HWS_KIND_NCCL, sizeof *state, &id);
    HWS_NEED(state != NULL, NULL);
    state->context = member->context;
    state->device = device;
    return (ncclComm_t) (uintptr_t) id;
}

static void drop(const HwsNcclMember *members, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (members[i].comm != 0) {
            hws_handle_drop(HWS_KIND_NCCL, members[i].comm);
        }
    }
}

/* The device of a context, which stays current only for the question. */
static bool find_device(uint64_t context, int *device) {
    CUcontext before = NULL;
    if (cuCtxGetCurrent(&before) != CUDA_SUCCESS || cuCtxSetCurrent((CUcontext) (uintptr_t) context) != CUDA_SUCCESS) {
        return false;
    }
    bool found = cuCtxGetDevice(device) == CUDA_SUCCESS;
    return cuCtxSetCurrent(before) == CUDA_SUCCESS && found;
}

ncclResult_t hws_nccl_make(HwsNcclMember *members, ncclComm_t **outs, uint32_t count) {
    HWS_ENTER();
    HwsNcclPlace places[HWS_NCCL_MEMBERS] = {0};
    for (uint32_t i = 0; i < count; i++) {
        int device = 0;
        bool is_member = members[i].parent == 0 || members[i].color != NCCL_SPLIT_NOCOLOR;
        ncclComm_t made = is_member && find_device(members[i].context, &device) ? new_comm(&members[i], device) : NULL;
        if (is_member && made == NULL) {
            drop(members, i);
            return hws_nccl_note(ncclSystemError);
        }
        members[i].comm = (uintptr_t) made;
    }
    ncclResult_t result = hws_call_hwsNcclMake(members, count, places);
    if (result != ncclSuccess) {
        drop(members, count);
        return hws_nccl_note(result);
    }
    for (uint32_t i = 0; i < count; i++) {
        ncclComm_t made = (ncclComm_t) (uintptr_t) members[i].comm;
        hws_nccl_comm_t *state = hws_nccl_find(made);
        if (state != NULL) {
            state->ranks = places[i].ranks;
            state->rank = places[i].rank;
        }
        *outs[i] = made;
    }
    return ncclSuccess;
}

static ncclResult_t make_or_group(HwsNcclMember *member, ncclComm_t *out) {
    *out = NULL;
    return hws_nccl_is_group() ? hws_nccl_group_member(member, out) : hws_nccl_make(member, &out, 1);
}

/* Fields of a program's ncclConfig_t that its size includes. */
#define HAS(config, field) ((config)->size >= offsetof(ncclConfig_t, field) + sizeof(config)->field)

static ncclResult_t configure(HwsNcclMember *member, const ncclConfig_t *config) {
    member->minCtas = member->maxCtas = member->cgaClusterSize = member->splitShare = NCCL_CONFIG_UNDEF_INT;
    if (config == NULL) {
        return ncclSuccess;
    }
    HWS_REQUIRE(HAS(config, version) && config->magic == NCCL_API_MAGIC);
    /* A communicator with blocking == 0 blocks all the same: a function may succeed instead of "in progress". */
    if (HAS(config, cgaClusterSize)) {
        member->cgaClusterSize = config->cgaClusterSize;
    }
    if (HAS(config, maxCTAs)) {
        member->minCtas = config->minCTAs;
        member->maxCtas = config->maxCTAs;
    }
    if (HAS(config, splitShare)) {
        member->splitShare = config->splitShare;
    }
    return ncclSuccess;
}

/* A member in the calling thread's device. */
static ncclResult_t init_rank(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
                              const ncclConfig_t *config) {
    HWS_REQUIRE(comm != NULL && ranks >= 1 && rank >= 0 && rank < ranks);
    HwsNcclMember member = {.ranks = ranks, .rank = rank};
    HWS_TRY(configure(&member, config));
    memcpy(member.id, id, sizeof member.id);
    CUcontext context = NULL;
    HWS_NEED(hws_math_need_context() && cuCtxGetCurrent(&context) == CUDA_SUCCESS,
             hws_nccl_note(ncclUnhandledCudaError));
    member.context = (uintptr_t) context;
    return make_or_group(&member, comm);
}

HWS_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank) {
    return hws_nccl_group_error(init_rank(comm, nranks, &commId, rank, NULL));
}

HWS_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
                                               ncclConfig_t *config) {
    return hws_nccl_group_error(init_rank(comm, nranks, &commId, rank, config));
}

/* The first id is enough to find the other ranks; NVIDIA's library uses several to be faster. */
HWS_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId,
                                                 ncclUniqueId *commIds, ncclConfig_t *config) {
    HWS_NEED(nId >= 1 && nId <= nranks && commIds != NULL, hws_nccl_group_error(ncclInvalidArgument));
    return hws_nccl_group_error(init_rank(newcomm, nranks, commIds, myrank, config));
}

/* The primary context of a device, which the communicators of ncclCommInitAll() keep, as NVIDIA's library does. */
static ncclResult_t init_all(ncclComm_t *comm, int count, const int *devices) {
    HWS_REQUIRE(comm != NULL && count >= 1 && count <= HWS_NCCL_MEMBERS);
    HWS_NEED(hws_nccl_begin(), hws_nccl_note(ncclSystemError));
    HwsNcclMember members[HWS_NCCL_MEMBERS] = {0};
    ncclComm_t *outs[HWS_NCCL_MEMBERS];
    for (int i = 0; i < count; i++) {
        CUcontext context = NULL;
        int device = devices == NULL ? i : devices[i];
        for (int before = 0; devices != NULL && before < i; before++) {
            HWS_NEED(devices[before] != device, hws_nccl_note(ncclInvalidUsage)); /* two ranks on one device */
        }
        HWS_NEED(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS, hws_nccl_note(ncclUnhandledCudaError));
        HWS_TRY(configure(&members[i], NULL));
        members[i].context = (uintptr_t) context;
        members[i].ranks = count;
        members[i].rank = i;
        outs[i] = &comm[i];
        comm[i] = NULL;
    }
    return hws_nccl_make(members, outs, (uint32_t) count); /* no id: all ranks are in this record */
}

HWS_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist) {
    return init_all(comm, ndev, devlist);
}

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, const ncclConfig_t *config) {
    const hws_nccl_comm_t *parent = hws_nccl_find(comm);
    HWS_REQUIRE(parent != NULL && newcomm != NULL && color >= NCCL_SPLIT_NOCOLOR);
    HwsNcclMember member = {.context = parent->context, .parent = (uintptr_t) comm, .color = color, .key = key};
    HWS_TRY(configure(&member, config));
    return make_or_group(&member, newcomm);
}

HWS_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config) {
    return hws_nccl_group_error(split(comm, color, key, newcomm, config));
}

ncclResult_t hws_nccl_finalize(ncclComm_t comm) {
    HWS_ENTER();
    return hws_nccl_note(hws_call_hwsNcclFinalize((HwsNcclCommId) comm));
}

static ncclResult_t end(ncclComm_t comm, bool is_abort) {
    hws_nccl_forget_factors(comm);
    ncclResult_t result = hws_math_gate() != 0 ? ncclSuccess : hws_call_hwsNcclEnd((HwsNcclCommId) comm, is_abort);
    hws_handle_drop(HWS_KIND_NCCL, (uintptr_t) comm);
    return hws_nccl_note(result);
}

ncclResult_t hws_nccl_end(ncclComm_t comm) {
    return end(comm, false);
}

HWS_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    HWS_REQUIRE(hws_nccl_find(comm) != NULL);
    return hws_nccl_is_group() ? hws_nccl_group_end(comm, hws_nccl_finalize) : hws_nccl_finalize(comm);
}

HWS_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (comm == NULL) {
        return ncclSuccess; /* as NVIDIA's library */
    }
    HWS_REQUIRE(hws_nccl_find(comm) != NULL);
    return hws_nccl_is_group() ? hws_nccl_group_end(comm, hws_nccl_end) : hws_nccl_end(comm);
}

HWS_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (comm == NULL) {
        return ncclSuccess;
    }
    HWS_REQUIRE(hws_nccl_find(comm) != NULL);
    return end(comm, true);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* PyTorch asks several times for each operation in flight. An error may come at any time, also right after an answer. */
HWS_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError) {
    hws_nccl_comm_t *state = hws_nccl_find(comm);
    HWS_REQUIRE(state != NULL && asyncError != NULL);
    HWS_ENTER();
    uint64_t now = now_ns();
    if (now < atomic_load_explicit(&state->fine_until_ns, memory_order_relaxed)) {
        *asyncError = ncclSuccess;
        return ncclSuccess;
    }
    int error = ncclSuccess;
    HWS_TRY(hws_call_hwsNcclAsyncError((HwsNcclCommId) comm, &error));
    if (error == ncclSuccess) {
        atomic_store_explicit(&state->fine_until_ns, now + FINE_NS, memory_order_relaxed);
    }
    *asyncError = hws_nccl_note((ncclResult_t) error);
    return ncclSuccess;
}

HWS_EXPORT ncclResult_t ncclCommCount(ncclComm_t comm, int *count) {
    const hws_nccl_comm_t *state = hws_nccl_find(comm);
    HWS_REQUIRE(state != NULL && count != NULL);
    *count = state->ranks;
    return ncclSuccess;
}

HWS_EXPORT ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device) {
    const hws_nccl_comm_t *state = hws_nccl_find(comm);
    HWS_REQUIRE(state != NULL && device != NULL);
    *device = state->device;
    return ncclSuccess;
}

HWS_EXPORT ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
    const hws_nccl_comm_t *state = hws_nccl_find(comm);
    HWS_REQUIRE(state != NULL && rank != NULL);
    *rank = state->rank;
    return ncclSuccess;
}

/* A registration only makes operations faster, so Hawser keeps none. A program may compare the handle with NULL. */
HWS_EXPORT ncclResult_t ncclCommRegister(ncclComm_t comm, void *buff, size_t size, void **handle) {
    HWS_REQUIRE(hws_nccl_find(comm) != NULL && buff != NULL && size > 0 && handle != NULL);
    *handle = buff;
    return ncclSuccess;
}

HWS_EXPORT ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle) {
    (void) handle;
    HWS_REQUIRE(hws_nccl_find(comm) != NULL);
    return ncclSuccess;
}

/*
 * Host functions in streams. The guest keeps them by id and runs them on a thread of the channel when a CALLBACK
 * arrives.
 */
#include "callback.h"

#include "capture.h"
#include "graph_call.h"
#include "mirror.h"

#include "hws_cuda_calls.h"
#include "hws_driver.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct hws_hostcall {
    struct hws_hostcall *next;
    uint64_t id;
    CUhostFn function;           /* of cuLaunchHostFunc, or */
    CUstreamCallback callback;   /* of cuStreamAddCallback, or */
    hws_hostcall_copy_t *copies; /* of the library itself */
    CUstream stream;
    void *user_data;
} hws_hostcall_t;

#define BUCKETS 256u

static hws_hostcall_t *buckets[BUCKETS];
static uint64_t last_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static hws_hostcall_t **bucket_of(uint64_t id) {
    return &buckets[(id >> 2) % BUCKETS];
}

static void keep(hws_hostcall_t *call) {
    pthread_mutex_lock(&lock);
    call->id = ++last_id << 2 | (call->copies != NULL ? HWS_CALLBACK_COPY_BIT : 0); /* even: not a graph's */
    call->next = *bucket_of(call->id);
    *bucket_of(call->id) = call;
    pthread_mutex_unlock(&lock);
}

static hws_hostcall_t *take(uint64_t id) {
    pthread_mutex_lock(&lock);
    hws_hostcall_t **link = bucket_of(id);
    while (*link != NULL && (*link)->id != id) {
        link = &(*link)->next;
    }
    hws_hostcall_t *call = *link;
    if (call != NULL) {
        *link = call->next;
    }
    pthread_mutex_unlock(&lock);
    return call;
}

void hws_hostcall_run(uint64_t id, int status) {
    hws_mirror_waited(0, false);
    if ((id & HWS_GRAPH_CALL_BIT) != 0) {
        hws_graph_call_run(id, status);
        hws_mirror_called();
        return;
    }
    hws_hostcall_t *call = take(id);
    if (call == NULL) {
        hws_log(HWS_WARN, "the worker called an unknown host function: %llu", (unsigned long long) id);
        return;
    }
    if (call->copies != NULL) {
        call->copies(call->user_data, status);
    } else if (call->callback != NULL) {
        call->callback(call->stream, (CUresult) status, call->user_data);
    } else if (status == 0) {
        call->function(call->user_data); /* CUDA does not run a host function after an error of its context */
    }
    if (call->copies == NULL) {
        hws_mirror_called();
    }
    free(call);
}

static CUresult issue(const hws_hostcall_t *wanted) {
    hws_hostcall_t *call = malloc(sizeof *call);
    if (call == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *call = *wanted;
    hws_lane_t lane = call->copies != NULL ? HWS_LANE_COPIES : HWS_LANE_PROGRAM;
    CUresult result = (CUresult) hws_channel_expect_callback(lane);
    if (result != CUDA_SUCCESS) {
        free(call);
        return result;
    }
    keep(call);
    uint64_t id = call->id; /* the call may run and be freed before the next line returns */
    result = hws_call_hwsHostFunction(wanted->stream, id);
    if (result != CUDA_SUCCESS) {
        hws_channel_unexpect_callback(lane);
        free(take(id));
    }
    return result;
}

CUresult hws_hostcall_issue_copy(CUstream stream, hws_hostcall_copy_t *run, void *argument) {
    const hws_hostcall_t call = {.copies = run, .stream = stream, .user_data = argument};
    return issue(&call);
}

HWS_EXPORT CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(fn != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_CAPTURE(hStream, hws_capture_host(hStream, fn, userData));
    const hws_hostcall_t call = {.function = fn, .stream = hStream, .user_data = userData};
    return issue(&call);
}

HWS_EXPORT CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                        unsigned int flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(callback != NULL && flags == 0);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_CAPTURES(hStream); /* it would have to receive errors, and a host node does not */
    const hws_hostcall_t call = {.callback = callback, .stream = hStream, .user_data = userData};
    return issue(&call);
}

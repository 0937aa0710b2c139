#include "graph_call.h"

#include <pthread.h>
#include <stdlib.h>

struct hws_graph_call {
    struct hws_graph_call *next;
    uint64_t id;
    unsigned holders;
    unsigned expected; /* CALLBACKs of launches that have not arrived */
    CUhostFn function; /* NULL: the call is a copy */
    hws_node_copy_t copy;
    void *user_data;
};

#define BUCKETS 256u

static hws_graph_call_t *buckets[BUCKETS];
static uint64_t last_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static hws_graph_call_t **bucket_of(uint64_t id) {
    return &buckets[(id >> 2) % BUCKETS];
}

static hws_graph_call_t *keep(const hws_graph_call_t *wanted) {
    hws_graph_call_t *call = malloc(sizeof *call);
    if (call == NULL) {
        return NULL;
    }
    *call = *wanted;
    pthread_mutex_lock(&lock);
    call->id = ++last_id << 2 | HWS_GRAPH_CALL_BIT | (call->function == NULL ? HWS_CALLBACK_COPY_BIT : 0);
    call->holders = 1;
    call->next = *bucket_of(call->id);
    *bucket_of(call->id) = call;
    pthread_mutex_unlock(&lock);
    return call;
}

hws_graph_call_t *hws_graph_call_host(CUhostFn function, void *user_data) {
    const hws_graph_call_t call = {.function = function, .user_data = user_data};
    return keep(&call);
}

hws_graph_call_t *hws_graph_call_copy(const hws_node_copy_t *copy) {
    const hws_graph_call_t call = {.copy = *copy};
    return keep(&call);
}

/* Frees the call when it has no holders and expects no CALLBACK. Lock held. */
static void settle(hws_graph_call_t *call) {
    if (call->holders != 0 || call->expected != 0) {
        return;
    }
    hws_graph_call_t **link = bucket_of(call->id);
    while (*link != call) {
        link = &(*link)->next;
    }
    *link = call->next;
    free(call);
}

hws_graph_call_t *hws_graph_call_hold(hws_graph_call_t *call) {
    if (call != NULL) {
        pthread_mutex_lock(&lock);
        call->holders++;
        pthread_mutex_unlock(&lock);
    }
    return call;
}

void hws_graph_call_release(hws_graph_call_t *call) {
    if (call != NULL) {
        pthread_mutex_lock(&lock);
        call->holders--;
        settle(call);
        pthread_mutex_unlock(&lock);
    }
}

uint64_t hws_graph_call_id(const hws_graph_call_t *call) {
    return call == NULL ? 0 : call->id;
}

static hws_lane_t lane_of(const hws_graph_call_t *call) {
    return call->function == NULL ? HWS_LANE_COPIES : HWS_LANE_PROGRAM;
}

CUresult hws_graph_call_expect(hws_graph_call_t *call) {
    HWS_TRY(hws_channel_expect_callback(lane_of(call)));
    pthread_mutex_lock(&lock);
    call->expected++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

void hws_graph_call_unexpect(hws_graph_call_t *call) {
    hws_channel_unexpect_callback(lane_of(call));
    pthread_mutex_lock(&lock);
    call->expected--;
    settle(call);
    pthread_mutex_unlock(&lock);
}

void hws_graph_call_run(uint64_t id, int status) {
    pthread_mutex_lock(&lock);
    hws_graph_call_t *call = *bucket_of(id);
    while (call != NULL && call->id != id) {
        call = call->next;
    }
    bool expected = call != NULL && call->expected != 0;
    pthread_mutex_unlock(&lock);
    if (!expected) { /* an expected call stays: only its lane's thread can end that */
        hws_log(HWS_WARN, "the worker called a graph's host node that expects no call: %llu", (unsigned long long) id);
        return;
    }
    if (status == CUDA_SUCCESS) { /* CUDA does not run a host node after an error of its context */
        if (call->function != NULL) {
            call->function(call->user_data);
        } else {
            hws_copy_run(&call->copy, id);
        }
    }
    pthread_mutex_lock(&lock);
    call->expected--;
    settle(call);
    pthread_mutex_unlock(&lock);
}

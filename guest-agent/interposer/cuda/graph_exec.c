/* Executable graphs: instantiates, updates and destroys them. */
#include "graph_exec.h"

#include "capture.h"

#include "hws_cuda_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS                                                                                                    \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD                              \
     | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static void count_call(hws_node_t *node, void *count) {
    *(size_t *) count += node->params.call != NULL ? 1 : 0;
}

typedef struct hws_exec_calls {
    hws_exec_call_t *items;
    size_t count;
} hws_exec_calls_t;

static void collect_call(hws_node_t *node, void *argument) {
    hws_exec_calls_t *calls = argument;
    if (node->params.call != NULL) {
        calls->items[calls->count++] = (hws_exec_call_t) {.node = {node->graph->handle, node->index},
                                                          .call = hws_graph_call_hold(node->params.call)};
    }
}

/* The calls that an execution of the graph makes, held; NULL when memory is short. */
static hws_exec_call_t *calls_of(const hws_graph_t *graph, size_t *count_p) {
    size_t count = 0;
    hws_graph_each(graph, count_call, &count);
    hws_exec_calls_t calls = {.items = malloc((count + 1) * sizeof *calls.items)};
    if (calls.items != NULL) {
        hws_graph_each(graph, collect_call, &calls);
    }
    *count_p = calls.count;
    return calls.items;
}

static void release_calls(hws_exec_call_t *calls, size_t count) {
    for (size_t i = 0; i < count; i++) {
        hws_graph_call_release(calls[i].call);
    }
    free(calls);
}

/* Frees the contents of an executable graph except its user objects. */
static void clear(hws_exec_t *exec) {
    release_calls(exec->calls, exec->call_count);
    hws_graph_effects_drop(&exec->effects);
    free(exec->disabled);
    exec->calls = NULL;
    exec->disabled = NULL;
    exec->call_count = exec->disabled_count = 0;
}

/* Makes the guest's part and sends the worker all changes of the graph. Lock held. */
static CUresult prepare(CUgraph handle, cuuint64_t flags, hws_exec_t **exec_p, CUgraphNode *error_p,
                        CUgraphInstantiateResult *result_p) {
    HWS_TAKE_GRAPH(graph, handle);
    HWS_REQUIRE(!graph->moved && !graph->capturing && !hws_conditional_is_body(graph));
    if (hws_graph_has_cycle(graph, error_p)) {
        *result_p = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool single =
        hws_graph_memory_check_copy(graph) != CUDA_SUCCESS || hws_conditional_check_copy(graph) != CUDA_SUCCESS;
    if (single && graph->instances != 0) {
        return CUDA_ERROR_NOT_SUPPORTED; /* CUDA: one at a time while there are memory or conditional nodes */
    }
    HWS_TRY(hws_graph_flush(graph));
    hws_exec_t *exec = calloc(1, sizeof *exec);
    if (exec == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->graph = graph->handle;
    exec->end = graph->next_index;
    exec->flags = flags;
    exec->calls = calls_of(graph, &exec->call_count);
    CUresult result = exec->calls == NULL ? CUDA_ERROR_OUT_OF_MEMORY : hws_graph_effects_of(graph, &exec->effects);
    if (result == CUDA_SUCCESS) {
        result = hws_retained_collect(graph, &exec->retained);
    }
    exec->handle = result == CUDA_SUCCESS ? hws_handle_new(HWS_KIND_GRAPH_EXEC) : 0;
    if (exec->handle == 0) {
        clear(exec);
        hws_retained_drop(exec->retained);
        free(exec);
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->single = single;
    graph->instances += single ? 1 : 0;
    *exec_p = exec;
    return CUDA_SUCCESS;
}

static void end_instance(const hws_exec_t *exec) {
    hws_graph_lock();
    hws_graph_t *graph = hws_graph_get((CUgraph) (uintptr_t) exec->graph);
    if (graph != NULL && graph->instances != 0 && exec->single) {
        graph->instances--;
    }
    hws_graph_unlock();
}

/* The node that the worker means; NULL for none. */
static CUgraphNode node_named(uint64_t graph_handle, uint32_t index) {
    hws_graph_lock();
    const hws_graph_t *graph = hws_graph_get((CUgraph) (uintptr_t) graph_handle);
    CUgraphNode node = graph == NULL ? NULL : hws_node_handle(hws_graph_node(graph, index));
    hws_graph_unlock();
    return node;
}

static pthread_mutex_t launchable_lock = PTHREAD_MUTEX_INITIALIZER;
static hws_exec_t *launchable; /* by kernels */

static void enter(hws_exec_t *exec, uint64_t device_handle) {
    exec->device_handle = device_handle;
    if (device_handle != 0) {
        pthread_mutex_lock(&launchable_lock);
        exec->next = launchable;
        launchable = exec;
        pthread_mutex_unlock(&launchable_lock);
    }
}

static void leave(const hws_exec_t *exec) {
    pthread_mutex_lock(&launchable_lock);
    hws_exec_t **link = &launchable;
    while (*link != NULL && *link != exec) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = exec->next;
    }
    pthread_mutex_unlock(&launchable_lock);
}

hws_exec_t *hws_exec_find(CUgraphExec device_handle) {
    pthread_mutex_lock(&launchable_lock);
    hws_exec_t *exec = launchable;
    while (exec != NULL && exec->device_handle != (uint64_t) (uintptr_t) device_handle) {
        exec = exec->next;
    }
    pthread_mutex_unlock(&launchable_lock);
    return exec;
}

static CUresult instantiate(CUgraphExec *exec_p, CUgraph graph, cuuint64_t flags, CUgraphNode *error_p,
                            CUgraphInstantiateResult *result_p) {
    *error_p = NULL;
    *result_p = CUDA_GRAPH_INSTANTIATE_ERROR;
    HWS_UNSAFE();
    hws_exec_t *exec;
    uint32_t outcome = 0, reason = 0, error_index = 0;
    uint64_t error_graph = 0, device_handle = 0;
    hws_graph_lock();
    CUresult result = prepare(graph, flags, &exec, error_p, result_p);
    hws_graph_unlock();
    HWS_TRY(result);
    CUgraphExec handle = (CUgraphExec) (uintptr_t) exec->handle;
    const cuuint64_t travelling = flags & ~(cuuint64_t) CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    result = hws_call_hwsGraphInstantiate(handle, graph, travelling, &outcome, &reason, &error_graph, &error_index,
                                          &device_handle);
    if (result == CUDA_SUCCESS && outcome != CUDA_SUCCESS) {
        result = (CUresult) outcome;
        *result_p = (CUgraphInstantiateResult) reason;
        *error_p = node_named(error_graph, error_index);
    }
    if (result != CUDA_SUCCESS) {
        end_instance(exec);
        clear(exec);
        hws_retained_drop(exec->retained);
        hws_handle_drop(HWS_KIND_GRAPH_EXEC, exec->handle);
        free(exec);
        return result;
    }
    hws_handle_attach(HWS_KIND_GRAPH_EXEC, exec->handle, exec);
    enter(exec, device_handle);
    *result_p = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *exec_p = device_handle == 0 ? handle : (CUgraphExec) (uintptr_t) device_handle;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
    CUgraphNode error;
    CUgraphInstantiateResult result;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(phGraphExec != NULL && (flags & ~(unsigned long long) KNOWN_FLAGS) == 0
                && (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0); /* no stream is given to upload in */
    return instantiate(phGraphExec, hGraph, flags, &error, &result);
}

HWS_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                                          char *logBuffer, size_t bufferSize) {
    CUgraphNode error;
    CUgraphInstantiateResult reason;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(phGraphExec != NULL);
    if (logBuffer != NULL && bufferSize != 0) {
        logBuffer[0] = '\0';
    }
    CUresult result = instantiate(phGraphExec, hGraph, 0, &error, &reason);
    if (phErrorNode != NULL) {
        *phErrorNode = error;
    }
    return result;
}

HWS_EXPORT CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                                       char *logBuffer, size_t bufferSize) {
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

static CUresult instantiate_with(CUgraphExec *exec_p, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                                 CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(exec_p != NULL && params != NULL && (params->flags & ~(cuuint64_t) KNOWN_FLAGS) == 0);
    HWS_TRY(instantiate(exec_p, graph, params->flags, &params->hErrNode_out, &params->result_out));
    return (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0 ? cuGraphUpload(*exec_p, stream) : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                 CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    return instantiate_with(phGraphExec, hGraph, instantiateParams,
                            instantiateParams == NULL ? NULL : instantiateParams->hUploadStream);
}

HWS_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    return instantiate_with(phGraphExec, hGraph, instantiateParams,
                            instantiateParams == NULL ? NULL : HWS_PTSZ(instantiateParams->hUploadStream));
}

HWS_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
    HWS_ENTER_LOCAL();
    const hws_exec_t *exec = hws_exec_get(hGraphExec);
    HWS_REQUIRE(exec != NULL && flags != NULL);
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

/* Releases references of the executable graph, if it has been launched after its last launch. */
static void release_objects(const hws_exec_t *exec, struct hws_retained *retained) {
    if (exec->launched) {
        hws_retained_drop_behind(retained, exec->last_stream);
    } else {
        hws_retained_drop(retained);
    }
}

HWS_EXPORT CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    hws_exec_t *exec = hws_exec_get(hGraphExec);
    HWS_REQUIRE(exec != NULL);
    end_instance(exec);
    CUresult result = hws_call_hwsGraphExecDestroy(hws_exec_handle(exec));
    leave(exec);
    clear(exec);
    const hws_exec_t ended = *exec; /* a destructor may create an executable graph, which reuses the slot */
    exec->retained = NULL;
    hws_handle_drop(HWS_KIND_GRAPH_EXEC, ended.handle);
    release_objects(&ended, ended.retained);
    return result;
}

/* Adopts the actions of the graph's nodes after the worker has updated. Nodes keep the names of the first graph. */
static void adopt(hws_exec_t *exec, hws_exec_call_t *calls, size_t count) {
    for (size_t i = 0; i < count && i < exec->call_count; i++) {
        calls[i].node = exec->calls[i].node; /* updatable graphs have the same nodes in the same order */
        calls[i].disabled = exec->calls[i].disabled;
    }
    release_calls(exec->calls, exec->call_count);
    exec->calls = calls;
    exec->call_count = count;
}

static CUresult prepare_update(CUgraph handle, hws_exec_call_t **calls_p, size_t *count_p,
                               struct hws_retained **retained_p) {
    HWS_TAKE_GRAPH(graph, handle);
    HWS_REQUIRE(!graph->moved && !graph->capturing && !hws_conditional_is_body(graph));
    HWS_TRY(hws_graph_flush(graph));
    HWS_TRY(hws_retained_collect(graph, retained_p));
    *calls_p = calls_of(graph, count_p);
    return *calls_p == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                         CUgraphExecUpdateResultInfo *resultInfo) {
    hws_exec_call_t *calls;
    size_t count;
    struct hws_retained *retained = NULL;
    uint32_t outcome = 0, reason = 0, error_index = 0, from_index = 0;
    uint64_t error_graph = 0, from_graph = 0;
    HWS_ENTER_LOCAL();
    hws_exec_t *exec = hws_exec_get(hGraphExec);
    HWS_REQUIRE(exec != NULL);
    CUgraphExecUpdateResultInfo unwanted;
    resultInfo = resultInfo == NULL ? &unwanted : resultInfo;
    *resultInfo = (CUgraphExecUpdateResultInfo) {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    hws_graph_lock();
    CUresult result = prepare_update(hGraph, &calls, &count, &retained);
    hws_graph_unlock();
    if (result != CUDA_SUCCESS) {
        hws_retained_drop(retained);
        return result;
    }
    result = hws_call_hwsGraphExecUpdate(hws_exec_handle(exec), hGraph, &outcome, &reason, &error_graph, &error_index,
                                         &from_graph, &from_index);
    if (result == CUDA_SUCCESS) {
        result = (CUresult) outcome;
        resultInfo->result = (CUgraphExecUpdateResult) reason;
        resultInfo->errorNode = node_named(error_graph, error_index);
        resultInfo->errorFromNode = node_named(from_graph, from_index);
    }
    if (result == CUDA_SUCCESS) {
        adopt(exec, calls, count);
        struct hws_retained *replaced = exec->retained;
        exec->retained = retained;
        release_objects(exec, replaced);
    } else {
        release_calls(calls, count);
        hws_retained_drop(retained);
    }
    return result;
}

HWS_EXPORT CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                                      CUgraphExecUpdateResult *updateResult_out) {
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUresult result = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
    if (updateResult_out != NULL) {
        *updateResult_out = info.result;
    }
    if (hErrorNode_out != NULL) {
        *hErrorNode_out = info.errorNode;
    }
    return result;
}

/* Stream capture: begins and ends captures and answers queries about them. */
#include "capture_state.h"

#include "stream.h"

#include <stdlib.h>
#include <string.h>

_Atomic unsigned hws_captures;
hws_capture_stream_t *hws_capture_streams;

static _Thread_local char own_thread; /* its address identifies the thread */
static _Thread_local CUstreamCaptureMode own_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static unsigned long long last_id;

hws_stream_key_t hws_capture_key(CUstream stream) {
    return (hws_stream_key_t) {stream, stream == CU_STREAM_PER_THREAD ? &own_thread : NULL};
}

static bool same_key(const hws_stream_key_t *some, const hws_stream_key_t *other) {
    return some->stream == other->stream && some->thread == other->thread;
}

hws_capture_stream_t *hws_capture_find(CUstream stream) {
    const hws_stream_key_t key = hws_capture_key(stream);
    hws_capture_stream_t *entry = hws_capture_streams;
    while (entry != NULL && !same_key(&entry->key, &key)) {
        entry = entry->next;
    }
    return entry;
}

hws_capture_t *hws_capture_of(unsigned long long id) {
    const hws_capture_stream_t *entry = hws_capture_streams;
    while (entry != NULL && entry->capture->id != id) {
        entry = entry->next;
    }
    return entry == NULL ? NULL : entry->capture;
}

hws_capture_stream_t *hws_capture_enter(CUstream stream, hws_capture_t *capture) {
    hws_capture_stream_t *entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        entry->key = hws_capture_key(stream);
        entry->capture = capture;
        entry->context = hws_tls.context;
        entry->blocking = hws_stream_is_blocking(stream);
        entry->next = hws_capture_streams;
        hws_capture_streams = entry;
        atomic_fetch_add(&hws_captures, 1);
    }
    return entry;
}

static bool reserve(hws_frontier_t *frontier, size_t count) {
    if (frontier->capacity >= count) {
        return true;
    }
    size_t wanted = count < 8 ? 8 : 2 * count;
    CUgraphNode *nodes = realloc(frontier->nodes, wanted * sizeof *nodes);
    frontier->nodes = nodes != NULL ? nodes : frontier->nodes;
    CUgraphEdgeData *data = nodes == NULL ? NULL : realloc(frontier->data, wanted * sizeof *data);
    frontier->data = data != NULL ? data : frontier->data;
    frontier->capacity = data != NULL ? wanted : frontier->capacity;
    return data != NULL;
}

static void put(hws_frontier_t *frontier, CUgraphNode node, const CUgraphEdgeData *data) {
    frontier->nodes[frontier->count] = node;
    frontier->data[frontier->count++] = data == NULL ? (CUgraphEdgeData) {0} : *data;
}

bool hws_frontier_set(hws_frontier_t *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count) {
    if (!reserve(frontier, count)) {
        return false;
    }
    frontier->count = 0;
    for (size_t i = 0; i < count; i++) {
        put(frontier, nodes[i], data == NULL ? NULL : &data[i]);
    }
    return true;
}

bool hws_frontier_join(hws_frontier_t *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < frontier->count && frontier->nodes[at] != nodes[i]) {
            at++;
        }
        if (at == frontier->count) {
            /*
             * Only here: `nodes` may be this frontier's array, which cuStreamGetCaptureInfo shows; no node is new then.
             */
            if (!reserve(frontier, frontier->count + 1)) {
                return false;
            }
            put(frontier, nodes[i], data == NULL ? NULL : &data[i]);
        }
    }
    return true;
}

void hws_frontier_free(hws_frontier_t *frontier) {
    free(frontier->nodes);
    free(frontier->data);
    *frontier = (hws_frontier_t) {0};
}

static bool is_legacy(CUstream stream) {
    return stream == NULL || stream == CU_STREAM_LEGACY;
}

/* Whether work in the legacy stream would wait for a stream that captures. With `ends`, ends such captures. */
static bool legacy_waits(bool ends) {
    bool waits = false;
    for (hws_capture_stream_t *entry = hws_capture_streams; entry != NULL; entry = entry->next) {
        if (entry->blocking && entry->context == hws_tls.context) {
            entry->capture->invalid = entry->capture->invalid || ends;
            waits = true;
        }
    }
    return waits;
}

static CUresult ask(CUstream stream, bool ends) {
    const hws_capture_stream_t *entry = hws_capture_find(stream);
    if (entry != NULL) {
        return entry->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : HWS_CAPTURED;
    }
    return is_legacy(stream) && legacy_waits(ends) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult hws_capture_ask_query(CUstream stream) {
    hws_graph_lock();
    CUresult result = ask(stream, false);
    hws_graph_unlock();
    return result == HWS_CAPTURED ? CUDA_SUCCESS : result;
}

CUresult hws_capture_refuse_query(CUstream stream) {
    hws_graph_lock();
    CUresult result = ask(stream, false);
    hws_graph_unlock();
    return result == HWS_CAPTURED || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        : result;
}

bool hws_capture_fills(uint64_t graph) {
    const hws_capture_stream_t *entry = hws_capture_streams;
    while (entry != NULL && entry->capture->graph != graph) {
        entry = entry->next;
    }
    return entry != NULL;
}

bool hws_capture_captures(CUstream stream) {
    hws_graph_lock();
    const hws_capture_stream_t *entry = hws_capture_find(stream);
    bool captures = entry != NULL && !entry->capture->invalid;
    hws_graph_unlock();
    return captures;
}

CUresult hws_capture_ask_locked(CUstream stream) {
    return ask(stream, true);
}

CUresult hws_capture_ask(CUstream stream) {
    hws_graph_lock();
    CUresult result = hws_capture_ask_locked(stream);
    hws_graph_unlock();
    return result;
}

CUresult hws_capture_refuse(CUstream stream) {
    hws_graph_lock();
    hws_capture_stream_t *entry = hws_capture_find(stream);
    if (entry != NULL) {
        entry->capture->invalid = true;
    }
    hws_graph_unlock();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult hws_capture_spoil(CUstream stream, CUresult error) {
    (void) hws_capture_refuse(stream);
    return error;
}

/* Whether the capture forbids unsafe calls to this thread. */
static bool forbids(const hws_capture_t *capture) {
    if (own_mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    return capture->thread == &own_thread
        || (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult hws_capture_unsafe(void) {
    CUresult result = CUDA_SUCCESS;
    hws_graph_lock();
    for (hws_capture_stream_t *entry = hws_capture_streams; entry != NULL; entry = entry->next) {
        if (forbids(entry->capture)) {
            entry->capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    hws_graph_unlock();
    return result;
}

CUresult hws_capture_ask_context(uint32_t context) {
    CUresult result = CUDA_SUCCESS;
    hws_graph_lock();
    for (hws_capture_stream_t *entry = hws_capture_streams; entry != NULL; entry = entry->next) {
        if (entry->context == context) {
            entry->capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    hws_graph_unlock();
    return result;
}

/* Begins a capture into a new graph, or into the program's graph after the given nodes. */
static CUresult begin_locked(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                             size_t count, CUstreamCaptureMode mode) {
    if (hws_capture_find(stream) != NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    hws_graph_t *own = hws_graph_get(graph);
    HWS_REQUIRE(graph == NULL || own != NULL);
    for (size_t i = 0; i < count; i++) {
        HWS_TAKE_NODE(node, nodes[i]);
        HWS_REQUIRE(node->graph == own);
    }
    hws_capture_t *capture = calloc(1, sizeof *capture);
    hws_capture_stream_t *entry = NULL;
    CUresult result = capture == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && own == NULL) {
        result = hws_graph_make(&own);
        if (result == CUDA_SUCCESS) {
            own->capturing = capture->own = true;
        }
    }
    if (result == CUDA_SUCCESS) {
        capture->id = ++last_id;
        capture->mode = mode;
        capture->origin = hws_capture_key(stream);
        capture->thread = &own_thread;
        capture->graph = own->handle;
        entry = hws_capture_enter(stream, capture);
        result = entry != NULL && hws_frontier_set(&entry->frontier, nodes, data, count) ? CUDA_SUCCESS
                                                                                         : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS && entry == NULL) {
        if (capture != NULL && capture->own) {
            hws_graph_end(own);
        }
        free(capture);
    }
    return result;
}

static CUresult begin(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                      size_t count, CUstreamCaptureMode mode) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE((unsigned) mode <= CU_STREAM_CAPTURE_MODE_RELAXED); /* CUDA checks this before the error of a kernel */
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_REQUIRE(count == 0 || nodes != NULL);
    hws_graph_lock();
    if (is_legacy(stream)) {
        CUresult asked = ask(stream, true);
        hws_graph_unlock();
        return asked != CUDA_SUCCESS ? asked : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CUresult result = begin_locked(stream, graph, nodes, data, count, mode);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
    return begin(hStream, NULL, NULL, NULL, 0, mode);
}

/* The first version knew no modes and forbade no calls: driver 580 lets the thread make unsafe calls. */
HWS_EXPORT CUresult cuStreamBeginCapture(CUstream hStream) {
    return begin(hStream, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
}

HWS_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                                const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                                CUstreamCaptureMode mode) {
    HWS_REQUIRE(hws_graph_get(hGraph) != NULL);
    return begin(hStream, hGraph, dependencies, dependencyData, numDependencies, mode);
}

/* Marks the nodes and everything that they depend on. */
static void mark_behind(hws_node_t **stack, const hws_frontier_t *frontier) {
    size_t depth = 0;
    for (size_t i = 0; i < frontier->count; i++) {
        hws_node_t *node = hws_node_get(frontier->nodes[i]);
        if (node != NULL && node->mark == 0) {
            node->mark = 1;
            stack[depth++] = node;
        }
    }
    while (depth > 0) {
        const hws_edges_t *in = &stack[--depth]->in;
        for (size_t i = 0; i < in->count; i++) {
            hws_node_t *node = in->items[i].node;
            if (node->mark == 0) {
                node->mark = 1;
                stack[depth++] = node;
            }
        }
    }
}

/* Checks that the origin's next work would depend on everything that other streams have captured. */
static CUresult check_joined(const hws_capture_stream_t *origin, hws_graph_t *graph) {
    CUresult result = CUDA_SUCCESS;
    hws_node_t **stack = malloc((graph->count + 1) * sizeof *stack);
    if (stack == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->mark = 0;
    }
    mark_behind(stack, &origin->frontier);
    for (const hws_capture_stream_t *entry = hws_capture_streams; entry != NULL; entry = entry->next) {
        for (size_t i = 0; entry->capture == origin->capture && i < entry->frontier.count; i++) {
            const hws_node_t *node = hws_node_get(entry->frontier.nodes[i]);
            result = node != NULL && node->mark == 0 ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : result;
        }
    }
    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->mark = 0;
    }
    free(stack);
    return result;
}

/* Removes all streams from the capture and frees it. */
static void leave(hws_capture_t *capture) {
    for (hws_capture_stream_t **link = &hws_capture_streams; *link != NULL;) {
        hws_capture_stream_t *entry = *link;
        if (entry->capture == capture) {
            *link = entry->next;
            hws_frontier_free(&entry->frontier);
            free(entry);
            atomic_fetch_sub(&hws_captures, 1);
        } else {
            link = &entry->next;
        }
    }
    while (capture->uses != NULL) {
        hws_capture_use_t *use = capture->uses;
        capture->uses = use->next;
        free(use);
    }
    free(capture);
}

/* Discards the graph that was made for a capture. */
static void discard(hws_capture_t *capture) {
    hws_graph_t *graph = capture->own ? hws_graph_get((CUgraph) (uintptr_t) capture->graph) : NULL;
    if (graph != NULL) {
        hws_graph_end(graph);
    }
}

void hws_capture_destroy_stream(CUstream stream) {
    hws_graph_lock();
    hws_capture_stream_t *entry = hws_capture_find(stream);
    if (entry != NULL && same_key(&entry->key, &entry->capture->origin)) {
        discard(entry->capture);
        leave(entry->capture);
    }
    /* Another thread's entry stays: its handle is never found again, but its captured work must be joined. */
    hws_graph_unlock();
}

static CUresult end_locked(CUstream stream, CUgraph *graph_p) {
    const hws_capture_stream_t *entry = hws_capture_find(stream);
    if (entry == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    HWS_REQUIRE(graph_p != NULL);
    *graph_p = NULL;
    hws_capture_t *capture = entry->capture;
    if (!same_key(&entry->key, &capture->origin)) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &own_thread) {
        discard(capture); /* as CUDA: the capture ends all the same */
        leave(capture);
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    hws_graph_t *graph = hws_graph_get((CUgraph) (uintptr_t) capture->graph);
    CUresult result =
        capture->invalid || graph == NULL ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(entry, graph);
    if (result != CUDA_SUCCESS) {
        discard(capture);
    } else {
        graph->capturing = false;
        *graph_p = hws_graph_handle(graph);
    }
    leave(capture);
    return result;
}

HWS_EXPORT CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    hws_graph_lock();
    CUresult result = end_locked(hStream, phGraph);
    hws_graph_unlock();
    return result;
}

static CUstreamCaptureStatus status_of(const hws_capture_stream_t *entry) {
    return entry == NULL          ? CU_STREAM_CAPTURE_STATUS_NONE
        : entry->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

HWS_EXPORT CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(captureStatus != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!HWS_CAPTURING()) {
        return CUDA_SUCCESS;
    }
    hws_graph_lock();
    CUresult result = ask(hStream, false); /* CUDA: a query ends no capture */
    *captureStatus = status_of(hws_capture_find(hStream));
    hws_graph_unlock();
    return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ? result : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                              cuuint64_t *id_out, CUgraph *graph_out,
                                              const CUgraphNode **dependencies_out,
                                              const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out) {
    HWS_TRY(cuStreamIsCapturing(hStream, captureStatus_out));
    if (*captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        return CUDA_SUCCESS; /* without a capture CUDA sets only the status */
    }
    hws_graph_lock();
    const hws_capture_stream_t *entry = hws_capture_find(hStream);
    if (entry != NULL) {
        if (id_out != NULL) {
            *id_out = entry->capture->id;
        }
        if (graph_out != NULL) {
            *graph_out = (CUgraph) (uintptr_t) entry->capture->graph;
        }
        if (dependencies_out != NULL) {
            *dependencies_out = entry->frontier.nodes;
        }
        if (edgeData_out != NULL) {
            *edgeData_out = entry->frontier.data;
        }
        if (numDependencies_out != NULL) {
            *numDependencies_out = entry->frontier.count;
        }
    }
    hws_graph_unlock();
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                              cuuint64_t *id_out, CUgraph *graph_out,
                                              const CUgraphNode **dependencies_out, size_t *numDependencies_out) {
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL,
                                     numDependencies_out);
}

HWS_EXPORT CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                           cuuint64_t *id_out) {
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

static CUresult update(CUstream stream, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
                       unsigned flags) {
    hws_capture_stream_t *entry = hws_capture_find(stream);
    if (entry == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (entry->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    HWS_REQUIRE((count == 0 || nodes != NULL) && flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    for (size_t i = 0; i < count; i++) {
        HWS_TAKE_NODE(node, nodes[i]);
        HWS_REQUIRE(node->graph->handle == entry->capture->graph);
        HWS_TRY(hws_edges_check(node, data == NULL ? NULL : &data[i]));
    }
    bool done = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES ? hws_frontier_set(&entry->frontier, nodes, data, count)
                                                            : hws_frontier_join(&entry->frontier, nodes, data, count);
    return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

HWS_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                         const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                                         unsigned int flags) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    if (hStream == NULL || hStream == CU_STREAM_LEGACY) {
        HWS_REFUSE_QUERY(hStream);
    }
    hws_graph_lock();
    CUresult result = update(hStream, dependencies, dependencyData, numDependencies, flags);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                                      size_t numDependencies, unsigned int flags) {
    return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies, flags);
}

HWS_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(mode != NULL); /* CUDA keeps any number */
    CUstreamCaptureMode before = own_mode;
    own_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

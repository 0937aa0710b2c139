/*
 * Conditional nodes: nodes with graphs inside, of which a number on the device chooses one at each execution. The
 * worker creates the condition and the node at once, because the program gets the driver's own value of a condition.
 */
#include "context.h"
#include "graph.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>

#define MAX_BODIES 1024u /* graph.yaml, hwsGraphAddConditional; a known deviation: CUDA documents no maximum */

static bool is_conditional(const hws_node_t *node) {
    return node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

CUresult hws_conditional_check_copy(const hws_graph_t *graph) {
    return hws_graph_contains(graph, is_conditional) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

bool hws_conditional_is_body(const hws_graph_t *graph) {
    while (graph->owner != NULL && !is_conditional(graph->owner)) {
        graph = graph->owner->graph;
    }
    return graph->owner != NULL;
}

void hws_conditional_drop(hws_node_conditional_t *conditional) {
    for (unsigned i = 0; conditional->bodies != NULL && i < conditional->shown.size; i++) {
        if (conditional->bodies[i] != NULL) {
            hws_graph_end(conditional->bodies[i]);
        }
    }
    free(conditional->bodies);
    free(conditional->shown.phGraph_out);
    conditional->bodies = NULL;
    conditional->shown.phGraph_out = NULL;
    conditional->shown.size = 0;
}

/* Sends the worker the graph as it is, which makes it known there. Lock held. */
static CUresult send_graph(CUgraph handle) {
    HWS_TAKE_GRAPH(graph, handle);
    return hws_graph_flush(graph);
}

HWS_EXPORT CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
                                                   unsigned int defaultLaunchValue, unsigned int flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pHandle_out != NULL && (flags & ~(unsigned) CU_GRAPH_COND_ASSIGN_DEFAULT) == 0);
    hws_graph_lock();
    bool known = hws_graph_get(hGraph) != NULL;
    hws_graph_unlock();
    HWS_REQUIRE(known);
    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    HWS_ENTER_OBJECT(HWS_KIND_CONTEXT, ctx);
    hws_graph_lock();
    CUresult result = send_graph(hGraph);
    hws_graph_unlock();
    HWS_TRY(result);
    return hws_call_hwsGraphAddCondition(hGraph, ctx, defaultLaunchValue, flags, pHandle_out);
}

static CUresult check(const CUDA_CONDITIONAL_NODE_PARAMS *params) {
    switch (params->type) {
        case CU_GRAPH_COND_TYPE_IF:
            HWS_REQUIRE(params->size == 1 || params->size == 2);
            return CUDA_SUCCESS;
        case CU_GRAPH_COND_TYPE_WHILE:
            HWS_REQUIRE(params->size == 1);
            return CUDA_SUCCESS;
        case CU_GRAPH_COND_TYPE_SWITCH:
            HWS_REQUIRE(params->size != 0 && params->size <= MAX_BODIES);
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Makes the bodies. A failure owns nothing. Lock held. */
static CUresult make_bodies(const CUDA_CONDITIONAL_NODE_PARAMS *from, hws_params_t *params_p) {
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .conditional.shown = *from};
    HWS_TRY(hws_params_context(from->ctx, &params_p->context));
    hws_node_conditional_t *made = &params_p->conditional;
    made->shown.ctx = params_p->context;
    made->bodies = calloc(from->size, sizeof(hws_graph_t *));
    made->shown.phGraph_out = calloc(from->size, sizeof(CUgraph));
    CUresult result = made->bodies == NULL || made->shown.phGraph_out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    for (unsigned i = 0; i < from->size && result == CUDA_SUCCESS; i++) {
        result = hws_graph_make(&made->bodies[i]);
        made->shown.phGraph_out[i] = hws_graph_handle(made->bodies[i]);
    }
    if (result != CUDA_SUCCESS) {
        hws_conditional_drop(made);
    }
    return result;
}

/* Adds the node to the guest's graph, after everything else has been sent. Lock held. */
static CUresult add_node(CUgraph handle, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                         const CUDA_CONDITIONAL_NODE_PARAMS *params, hws_node_t **node_p) {
    hws_params_t kept;
    HWS_TRY(send_graph(handle));
    HWS_TRY(make_bodies(params, &kept));
    HWS_TRY(hws_node_add(hws_graph_get(handle), dependencies, data, count, &kept, node_p));
    (*node_p)->travelled = true; /* the caller sends it */
    return CUDA_SUCCESS;
}

CUresult hws_conditional_add(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                             CUDA_CONDITIONAL_NODE_PARAMS *params, CUgraphNode *node_p) {
    hws_node_t *node = NULL;
    HWS_TRY(check(params));
    hws_graph_lock();
    CUresult result = add_node(graph, dependencies, data, count, params, &node);
    HwsGraphEdge *edges = result == CUDA_SUCCESS ? hws_edges_describe(node) : NULL;
    hws_graph_unlock();
    HWS_TRY(result);
    const CUDA_CONDITIONAL_NODE_PARAMS *shown = &node->params.conditional.shown;
    result = edges == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                           : hws_call_hwsGraphAddConditional(graph, shown->ctx, node->index, shown->handle, shown->type,
                                                             (uint32_t) node->in.count, edges, shown->size,
                                                             (const uint64_t *) shown->phGraph_out);
    free(edges);
    hws_graph_lock();
    if (result == CUDA_SUCCESS) {
        for (unsigned i = 0; i < shown->size; i++) {
            node->params.conditional.bodies[i]->travelled = true;
        }
        params->phGraph_out = shown->phGraph_out;
        *node_p = hws_node_handle(node);
    } else {
        node->travelled = false;
        hws_node_end(node);
    }
    hws_graph_unlock();
    return result;
}

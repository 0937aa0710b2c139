/* Adding nodes. */
#include "graph.h"
#include "graph_memory.h"

#include <string.h>

/* The graph of a new node and the nodes that it depends on. */
typedef struct hws_new_node {
    CUgraphNode *node_p;
    CUgraph graph;
    const CUgraphNode *dependencies;
    const CUgraphEdgeData *data;
    size_t count;
} hws_new_node_t;

/* CUDA's checks before the parameters of most nodes. */
static CUresult check_place(const hws_new_node_t *place) {
    HWS_REQUIRE(place->node_p != NULL);
    hws_graph_lock();
    const hws_graph_t *graph = hws_graph_get(place->graph);
    CUresult result = graph == NULL
        ? CUDA_ERROR_INVALID_VALUE
        : hws_graph_check_dependencies(graph, place->dependencies, place->data, place->count);
    hws_graph_unlock();
    return result;
}

/* Adds a node with these parameters. `taken` is the result of reading them from the program. */
static CUresult add_locked(const hws_new_node_t *place, CUresult taken, hws_params_t *params) {
    HWS_TRY(taken);
    static _Atomic bool logged;
    hws_graph_t *graph = hws_graph_get(place->graph);
    hws_node_t *node;
    if (graph == NULL) {
        hws_params_drop(params);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY && params->call != NULL && hws_conditional_is_body(graph)) {
        hws_params_drop(params);
        return hws_unsupported_use(&logged, "a copy of memory that only the guest has, in a conditional node");
    }
    HWS_TRY(hws_node_add(graph, place->dependencies, place->data, place->count, params, &node));
    *place->node_p = hws_node_handle(node);
    return CUDA_SUCCESS;
}

static CUresult add(const hws_new_node_t *place, CUresult taken, hws_params_t *params) {
    hws_graph_lock();
    CUresult result = add_locked(place, taken, params);
    hws_graph_unlock();
    return result;
}

#define DECLARE_PLACE()                                                                                                \
    const hws_new_node_t place = {                                                                                     \
        .node_p = phGraphNode, .graph = hGraph, .dependencies = dependencies, .count = numDependencies};               \
    hws_params_t params = {0}

/* First lines of a function that adds a node which belongs to no context. */
#define ENTER_PLACE()                                                                                                  \
    HWS_ENTER_LOCAL();                                                                                                 \
    DECLARE_PLACE();                                                                                                   \
    HWS_TRY(check_place(&place))

/* For a kernel, a copy or a memset: the error of a context comes before all other checks. */
#define ENTER_DEVICE_PLACE()                                                                                           \
    HWS_ENTER();                                                                                                       \
    DECLARE_PLACE();                                                                                                   \
    HWS_REQUIRE(phGraphNode != NULL)

HWS_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                            size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams) {
    ENTER_DEVICE_PLACE();
    return add(&place, hws_params_kernel(nodeParams, &params), &params);
}

HWS_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                         size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    HWS_REQUIRE(nodeParams != NULL);
    CUDA_KERNEL_NODE_PARAMS_v2 wider = {0};
    memcpy(&wider, nodeParams, sizeof *nodeParams); /* v2 begins with v1 */
    return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &wider);
}

HWS_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                         size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(copyParams != NULL); /* CUDA checks this before the error of a context */
    ENTER_DEVICE_PLACE();
    HWS_TRY(check_place(&place));
    return add(&place, hws_params_copy(copyParams, ctx, &params), &params);
}

HWS_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                         size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                         CUcontext ctx) {
    ENTER_DEVICE_PLACE();
    HWS_TRY(check_place(&place));
    return add(&place, hws_params_memset(memsetParams, ctx, &params), &params);
}

HWS_EXPORT CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                       size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    ENTER_PLACE();
    return add(&place, hws_params_host(nodeParams, &params), &params);
}

HWS_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                        size_t numDependencies) {
    ENTER_PLACE();
    params = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(&place, CUDA_SUCCESS, &params);
}

HWS_EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                              size_t numDependencies, CUevent event) {
    ENTER_PLACE();
    return add(&place, hws_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &params), &params);
}

HWS_EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                            size_t numDependencies, CUevent event) {
    ENTER_PLACE();
    return add(&place, hws_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &params), &params);
}

HWS_EXPORT CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                             size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    ENTER_PLACE();
    return add(&place, hws_params_memory_ops(nodeParams, &params), &params);
}

/* Copies or moves a graph into a child node. Holds the lock, because this reads the graph's contents. */
static CUresult add_child(const hws_new_node_t *place, CUgraph child, CUgraphChildGraphNodeOwnership ownership) {
    hws_params_t params;
    hws_graph_lock();
    const hws_graph_t *inner = hws_graph_get(child), *outer = hws_graph_get(place->graph);
    bool moved = ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (inner != NULL && outer != NULL && !(moved && inner == hws_graph_root(outer))) {
        result = add_locked(place, hws_params_child(child, ownership, &params), &params);
    }
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                             size_t numDependencies, CUgraph childGraph) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phGraphNode != NULL);
    const hws_new_node_t place = {
        .node_p = phGraphNode, .graph = hGraph, .dependencies = dependencies, .count = numDependencies};
    return add_child(&place, childGraph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
}

HWS_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                           size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phGraphNode != NULL && nodeParams != NULL);
    return hws_graph_memory_allocate(hGraph, dependencies, NULL, numDependencies, nodeParams, phGraphNode);
}

HWS_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                          size_t numDependencies, CUdeviceptr dptr) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phGraphNode != NULL);
    const hws_new_node_t place = {
        .node_p = phGraphNode, .graph = hGraph, .dependencies = dependencies, .count = numDependencies};
    hws_params_t params;
    hws_graph_lock();
    const hws_graph_t *graph = hws_graph_get(hGraph);
    CUresult result = graph == NULL ? CUDA_ERROR_INVALID_VALUE : hws_graph_memory_check_free(graph, dptr);
    if (result == CUDA_SUCCESS) {
        params = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = dptr};
        result = add_locked(&place, CUDA_SUCCESS, &params);
    }
    hws_graph_unlock();
    return result;
}

CUresult hws_params_of(const CUgraphNodeParams *from, hws_params_t *params_p) {
    static _Atomic bool logged;
    switch (from->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            CUDA_KERNEL_NODE_PARAMS_v2 kernel;
            memcpy(&kernel, &from->kernel, sizeof kernel); /* v3 is laid out as v2 */
            return hws_params_kernel(&kernel, params_p);
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            HWS_REQUIRE(from->memcpy.flags == 0 && from->memcpy.reserved == 0);
            return hws_params_copy(&from->memcpy.copyParams, from->memcpy.copyCtx, params_p);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS plain;
            memcpy(&plain, &from->memset, sizeof plain); /* v2 begins with v1 */
            return hws_params_memset(&plain, from->memset.ctx, params_p);
        }
        case CU_GRAPH_NODE_TYPE_HOST: {
            const CUDA_HOST_NODE_PARAMS host = {from->host.fn, from->host.userData};
            return hws_params_host(&host, params_p);
        }
        case CU_GRAPH_NODE_TYPE_EMPTY:
            *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_EMPTY};
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return hws_params_event(from->type, from->eventWait.event, params_p);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return hws_params_event(from->type, from->eventRecord.event, params_p);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
            CUDA_BATCH_MEM_OP_NODE_PARAMS ops;
            memcpy(&ops, &from->memOp, sizeof ops); /* v2 is laid out as v1 */
            return hws_params_memory_ops(&ops, params_p);
        }
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
            return hws_unsupported_use(&logged, "an external semaphore node");
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return CUDA_ERROR_NOT_SUPPORTED; /* CUDA: its parameters cannot be set */
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

HWS_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                      const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                      CUgraphNodeParams *nodeParams) {
    ENTER_PLACE();
    HWS_REQUIRE(nodeParams != NULL);
    hws_new_node_t with_data = place;
    with_data.data = dependencyData;
    switch (nodeParams->type) {
        case CU_GRAPH_NODE_TYPE_GRAPH:
            HWS_TRY(add_child(&with_data, nodeParams->graph.graph, nodeParams->graph.ownership));
            return cuGraphChildGraphNodeGetGraph(*phGraphNode, &nodeParams->graph.graph); /* CUDA: also an output */
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
            CUDA_MEM_ALLOC_NODE_PARAMS alloc;
            memcpy(&alloc, &nodeParams->alloc, sizeof alloc); /* v2 is laid out as v1 */
            HWS_TRY(
                hws_graph_memory_allocate(hGraph, dependencies, dependencyData, numDependencies, &alloc, phGraphNode));
            nodeParams->alloc.dptr = alloc.dptr;
            return CUDA_SUCCESS;
        }
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return hws_conditional_add(hGraph, dependencies, dependencyData, numDependencies, &nodeParams->conditional,
                                       phGraphNode);
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            /*
             * Known deviation: data of the edges is ignored; the edges of a free node can only have the default data.
             */
            return cuGraphAddMemFreeNode(phGraphNode, hGraph, dependencies, numDependencies, nodeParams->free.dptr);
        default:
            return add(&with_data, hws_params_of(nodeParams, &params), &params);
    }
}

HWS_EXPORT CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, CUgraphNodeParams *nodeParams) {
    return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

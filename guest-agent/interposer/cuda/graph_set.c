/* Parameters of nodes: queries and changes. A change travels with the next record that needs it. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* The node, if it has that type. */
static hws_node_t *node_of(CUgraphNode handle, CUgraphNodeType type) {
    hws_node_t *node = hws_node_get(handle);
    return node != NULL && node->params.type == type ? node : NULL;
}

/* Runs a getter with the lock: `body` uses `node`. */
#define GET(handle, wanted, body)                                                                                      \
    do {                                                                                                               \
        hws_graph_lock();                                                                                              \
        hws_node_t *node = node_of((handle), (wanted));                                                                \
        if (node != NULL) {                                                                                            \
            body;                                                                                                      \
        }                                                                                                              \
        hws_graph_unlock();                                                                                            \
        return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;                                                 \
    } while (0)

/*
 * First lines of a function that sets a node: CUDA checks the node before the parameters. Kernels, copies and fills
 * belong to a context, so they cannot be set after the error of a kernel.
 */
#define ENTER_SET(handle, type)                                                                                        \
    HWS_ENTER_LOCAL();                                                                                                 \
    HWS_REQUIRE(is_node((handle), (type)));                                                                            \
    if (hws_node_has_context(type)) {                                                                                  \
        HWS_ENTER();                                                                                                   \
    }                                                                                                                  \
    hws_params_t params

static bool is_node(CUgraphNode handle, CUgraphNodeType type) {
    hws_graph_lock();
    bool found = node_of(handle, type) != NULL;
    hws_graph_unlock();
    return found;
}

/* Sets the parameters of a node. `taken` is the result of reading them from the program. */
static CUresult set(CUgraphNode handle, CUresult taken, hws_params_t *params) {
    HWS_TRY(taken);
    hws_graph_lock();
    hws_node_t *node = node_of(handle, params->type);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (node != NULL) {
        result = hws_node_set(node, params);
    } else {
        hws_params_drop(params);
    }
    hws_graph_unlock();
    return result;
}

static void show_kernel(hws_node_t *node, CUDA_KERNEL_NODE_PARAMS_v2 *params_p) {
    hws_node_kernel_t *kernel = &node->params.kernel;
    const HwsLaunchShape *dims = &kernel->shape.dims;
    *params_p = (CUDA_KERNEL_NODE_PARAMS_v2) {
        .func = kernel->function,
        .gridDimX = dims->gridDimX,
        .gridDimY = dims->gridDimY,
        .gridDimZ = dims->gridDimZ,
        .blockDimX = dims->blockDimX,
        .blockDimY = dims->blockDimY,
        .blockDimZ = dims->blockDimZ,
        .sharedMemBytes = dims->sharedMemBytes,
        .ctx = node->params.context,
    };
    hws_arguments_t *arguments = kernel->arguments;
    arguments->shown = true;
    if (!kernel->packed_given) {
        params_p->kernelParams = arguments->pointers;
        return;
    }
    arguments->extra_bytes = kernel->params_bytes;
    arguments->extra[0] = CU_LAUNCH_PARAM_BUFFER_SIZE; /* in driver 580's order */
    arguments->extra[1] = &arguments->extra_bytes;
    arguments->extra[2] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    arguments->extra[3] = arguments->packed;
    arguments->extra[4] = CU_LAUNCH_PARAM_END;
    params_p->extra = arguments->extra;
}

HWS_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(nodeParams != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_KERNEL, show_kernel(node, nodeParams));
}

HWS_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    CUDA_KERNEL_NODE_PARAMS_v2 wider;
    HWS_REQUIRE(nodeParams != NULL);
    HWS_TRY(cuGraphKernelNodeGetParams_v2(hNode, &wider));
    memcpy(nodeParams, &wider, sizeof *nodeParams); /* v2 begins with v1 */
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams) {
    ENTER_SET(hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    return set(hNode, hws_params_kernel(nodeParams, &params), &params);
}

HWS_EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    CUDA_KERNEL_NODE_PARAMS_v2 wider = {0};
    HWS_REQUIRE(nodeParams != NULL);
    memcpy(&wider, nodeParams, sizeof *nodeParams);
    return cuGraphKernelNodeSetParams_v2(hNode, &wider);
}

/* Attributes that driver 580 accepts for a kernel node. It refuses the preferred cluster, although cuda.h lists it. */
static bool is_node_attribute(CUlaunchAttributeID id) {
    switch (id) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return true;
        default:
            return false;
    }
}

static void show_attribute(const hws_node_t *node, CUlaunchAttributeID id, CUlaunchAttributeValue *value_p) {
    const CUlaunchAttributeValue *value = hws_kernel_attribute(&node->params.kernel, id);
    memset(value_p, 0, sizeof *value_p);
    if (value != NULL) {
        *value_p = *value;
    } else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        value_p->cooperative = (node->params.kernel.shape.flags & HWS_LAUNCH_COOPERATIVE) != 0;
    } else if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) {
        value_p->memSyncDomainMap.remote = 1; /* the initial value of a context */
    }
}

HWS_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                                  CUkernelNodeAttrValue *value_out) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(value_out != NULL && is_node_attribute(attr));
    GET(hNode, CU_GRAPH_NODE_TYPE_KERNEL, show_attribute(node, attr, value_out));
}

HWS_EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                                  const CUkernelNodeAttrValue *value) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(value != NULL && is_node_attribute(attr));
    hws_graph_lock();
    hws_node_t *node = node_of(hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    CUresult result =
        node == NULL ? CUDA_ERROR_INVALID_VALUE : hws_kernel_set_attribute(&node->params.kernel, attr, value);
    if (result == CUDA_SUCCESS) {
        node->changed = node->travelled;
    }
    hws_graph_unlock();
    return result;
}

static CUresult copy_attributes(CUgraphNode to_handle, CUgraphNode from_handle) {
    hws_node_t *to = node_of(to_handle, CU_GRAPH_NODE_TYPE_KERNEL);
    const hws_node_t *from = node_of(from_handle, CU_GRAPH_NODE_TYPE_KERNEL);
    HWS_REQUIRE(to != NULL && from != NULL);
    const hws_shape_t *shape = &from->params.kernel.shape;
    for (unsigned i = 0; to != from && i < shape->attribute_count; i++) {
        HWS_TRY(hws_kernel_set_attribute(&to->params.kernel, shape->attributes[i].id, &shape->attributes[i].value));
    }
    to->changed = to->travelled;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
    HWS_ENTER_LOCAL();
    /* Driver 580 has no error of its own for a context that can do no more work. */
    HWS_REQUIRE(atomic_load_explicit(&hws_gate, memory_order_relaxed) == CUDA_SUCCESS);
    hws_graph_lock();
    CUresult result = copy_attributes(dst, src);
    hws_graph_unlock();
    return result;
}

/* The context that a node keeps when it is set again; false when the node has another type. */
static bool context_of(CUgraphNode handle, CUgraphNodeType type, CUcontext *context_p) {
    hws_graph_lock();
    const hws_node_t *node = node_of(handle, type);
    if (node != NULL) {
        *context_p = node->params.context;
    }
    hws_graph_unlock();
    return node != NULL;
}

HWS_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(nodeParams != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, *nodeParams = node->params.copy.copy);
}

HWS_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams) {
    hws_params_t params;
    CUcontext context;
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(context_of(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &context));
    HWS_ENTER();
    return set(hNode, hws_params_copy(nodeParams, context, &params), &params);
}

HWS_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(nodeParams != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_MEMSET, *nodeParams = node->params.memset);
}

HWS_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    hws_params_t params;
    CUcontext context;
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(context_of(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &context));
    HWS_ENTER();
    return set(hNode, hws_params_memset(nodeParams, context, &params), &params);
}

HWS_EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(nodeParams != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_HOST, *nodeParams = node->params.host);
}

HWS_EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    ENTER_SET(hNode, CU_GRAPH_NODE_TYPE_HOST);
    return set(hNode, hws_params_host(nodeParams, &params), &params);
}

HWS_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phGraph != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_GRAPH, *phGraph = hws_graph_handle(node->params.child));
}

HWS_EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(event_out != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, *event_out = node->params.event);
}

HWS_EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
    ENTER_SET(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    return set(hNode, hws_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &params), &params);
}

HWS_EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(event_out != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, *event_out = node->params.event);
}

HWS_EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
    ENTER_SET(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    return set(hNode, hws_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &params), &params);
}

HWS_EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(params_out != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, *params_out = node->params.alloc);
}

HWS_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(dptr_out != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, *dptr_out = node->params.address);
}

HWS_EXPORT CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(nodeParams_out != NULL);
    GET(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, *nodeParams_out = node->params.memory_ops);
}

HWS_EXPORT CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    ENTER_SET(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    return set(hNode, hws_params_memory_ops(nodeParams, &params), &params);
}

/* Gives the nodes of an inner graph the parameters of another graph's. Lock held. */
static CUresult set_inner(hws_graph_t *to, const hws_graph_t *from) {
    static _Atomic bool logged, logged_library;
    if (to == from) {
        return CUDA_SUCCESS;
    }
    if (!hws_graph_is_alike(from, to)) {
        return hws_unsupported_use(&logged, "a child graph with other nodes or edges in place of a node's own");
    }
    for (size_t i = 0; i < to->count; i++) {
        const hws_params_t *given = &from->nodes[i]->params;
        if (given->type == CU_GRAPH_NODE_TYPE_GRAPH) {
            HWS_TRY(set_inner(to->nodes[i]->params.child, given->child));
        } else if (given->type == HWS_NODE_LIBRARY && to->nodes[i]->travelled) {
            /* Known deviation: the worker sets such nodes in executable graphs only. */
            return hws_unsupported_use(&logged_library, "a math library's call in place of a child graph's own");
        } else if (given->type != CU_GRAPH_NODE_TYPE_EMPTY) {
            hws_params_t params;
            HWS_TRY(hws_params_duplicate(given, &params));
            HWS_TRY(hws_node_set(to->nodes[i], &params));
        }
    }
    return CUDA_SUCCESS;
}

/*
 * Known deviations: natively the node's graph may be replaced by one of another shape. When a node cannot be changed,
 * the nodes before it have already changed.
 */
static CUresult set_child(CUgraphNode handle, CUgraph child) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    hws_graph_lock();
    const hws_node_t *node = node_of(handle, CU_GRAPH_NODE_TYPE_GRAPH);
    const hws_graph_t *from = hws_graph_get(child);
    if (node != NULL && from != NULL) {
        result = set_inner(node->params.child, from);
    }
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    HWS_REQUIRE(nodeParams != NULL);
    ENTER_SET(hNode, nodeParams->type);
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_EMPTY) {
        return CUDA_SUCCESS;
    }
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        return set_child(hNode, nodeParams->graph.graph);
    }
    return set(hNode, hws_params_of(nodeParams, &params), &params);
}

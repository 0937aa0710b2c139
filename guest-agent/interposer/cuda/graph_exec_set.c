/* Changes single nodes of an executable graph. */
#include "graph_exec.h"

#include "copy.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

static bool same_name(const hws_node_name_t *name, const hws_node_t *node) {
    return name->graph == node->graph->handle && name->index == node->index;
}

/* The node, if it was instantiated. Lock held. */
static hws_node_t *node_of(const hws_exec_t *exec, CUgraphNode handle) {
    hws_node_t *node = hws_node_get(handle);
    if (node == NULL || exec == NULL) {
        return NULL;
    }
    const hws_node_t *outer = node;
    while (outer->graph->owner != NULL) {
        outer = outer->graph->owner;
    }
    return outer->graph->handle == exec->graph && outer->index < exec->end ? node : NULL;
}

static bool same_fill(const CUDA_MEMSET_NODE_PARAMS *a, const CUDA_MEMSET_NODE_PARAMS *b) {
    return a->width == b->width && a->height == b->height && a->elementSize == b->elementSize;
}

static CUmemorytype place_of(CUmemorytype type, CUdeviceptr address) {
    return type != CU_MEMORYTYPE_UNIFIED ? type
        : hws_copy_is_device(address)    ? CU_MEMORYTYPE_DEVICE
                                         : CU_MEMORYTYPE_HOST;
}

static bool same_places(const CUDA_MEMCPY3D *a, const CUDA_MEMCPY3D *b) {
    return place_of(a->srcMemoryType, a->srcDevice) == place_of(b->srcMemoryType, b->srcDevice)
        && place_of(a->dstMemoryType, a->dstDevice) == place_of(b->dstMemoryType, b->dstDevice);
}

static bool is_one_row(const CUDA_MEMCPY3D *copy) {
    return copy->Height == 1 && copy->Depth == 1;
}

/* As CUDA: a copy has one row and keeps its kinds of memory, and a fill of rows keeps their shape. */
static bool can_follow(const hws_params_t *old, const hws_params_t *params) {
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return (old->memset.height == 1 && params->memset.height == 1) || same_fill(&old->memset, &params->memset);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return is_one_row(&old->copy.copy) && is_one_row(&params->copy.copy)
                && same_places(&old->copy.copy, &params->copy.copy);
        default:
            return true;
    }
}

/* Describes the new parameters of a node for the worker. Lock held. */
static CUresult describe(const hws_exec_t *exec, CUgraphNode handle, hws_params_t *params, uint8_t **blob_p,
                         uint32_t *bytes_p, hws_node_name_t *name_p) {
    hws_node_t *node = node_of(exec, handle);
    HWS_REQUIRE(node != NULL && node->params.type == params->type && node->travelled);
    HWS_REQUIRE(can_follow(&node->params, params));
    *name_p = (hws_node_name_t) {node->graph->handle, node->index};
    if (params->type != CU_GRAPH_NODE_TYPE_KERNEL) {
        return hws_graph_describe(params, node->index, blob_p, bytes_p);
    }
    /* Attributes are not set: the description has those of the node. */
    hws_shape_t *shape = &params->kernel.shape;
    const hws_shape_t own = *shape, *kept = &node->params.kernel.shape;
    shape->attributes = kept->attributes;
    shape->attribute_count = kept->attribute_count;
    shape->flags = kept->flags;
    const hws_function_t *known = hws_function_get(params->kernel.function);
    CUresult result = known == NULL ? CUDA_ERROR_INVALID_HANDLE : hws_launch_check_clusters(known, shape);
    if (result == CUDA_SUCCESS) {
        result = hws_graph_describe(params, node->index, blob_p, bytes_p);
    }
    *shape = own;
    return result;
}

/* Replaces the guest's part of a node. */
static CUresult replace_call(hws_exec_t *exec, const hws_node_name_t *name, hws_graph_call_t *call) {
    for (size_t i = 0; i < exec->call_count; i++) {
        hws_exec_call_t *known = &exec->calls[i];
        if (known->node.graph == name->graph && known->node.index == name->index) {
            hws_graph_call_release(known->call);
            known->call = hws_graph_call_hold(call);
            if (call == NULL) {
                exec->calls[i] = exec->calls[--exec->call_count];
            }
            return CUDA_SUCCESS;
        }
    }
    if (call == NULL) {
        return CUDA_SUCCESS;
    }
    hws_exec_call_t *larger = realloc(exec->calls, (exec->call_count + 1) * sizeof *larger);
    if (larger == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    larger[exec->call_count++] = (hws_exec_call_t) {.node = *name, .call = hws_graph_call_hold(call)};
    exec->calls = larger;
    return CUDA_SUCCESS;
}

/* Whether the executable graph has the node, and the node has that type. */
static bool has_node(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeType type) {
    hws_graph_lock();
    const hws_exec_t *exec = hws_exec_get(handle);
    const hws_node_t *node = node_of(exec, node_handle);
    bool found = node != NULL && node->params.type == type;
    hws_graph_unlock();
    return found;
}

/*
 * First lines of a function that sets a node: CUDA checks the node before the parameters, and before the error of a
 * kernel. The functions for copies and fills check that error first.
 */
#define ENTER_SET(type)                                                                                                \
    HWS_ENTER_LOCAL();                                                                                                 \
    HWS_REQUIRE(has_node(hGraphExec, hNode, (type)));                                                                  \
    if (hws_node_has_context(type)) {                                                                                  \
        HWS_ENTER();                                                                                                   \
    }                                                                                                                  \
    hws_params_t params

/*
 * Sets the parameters of a node and then drops them in any case. `taken` is the result of reading them from the
 * program.
 */
static CUresult set(CUgraphExec handle, CUgraphNode node, CUresult taken, hws_params_t *params) {
    HWS_TRY(taken);
    hws_exec_t *exec = hws_exec_get(handle);
    hws_node_name_t name;
    uint8_t *blob = NULL;
    uint32_t bytes = 0;
    hws_graph_lock();
    CUresult result = describe(exec, node, params, &blob, &bytes, &name);
    hws_graph_unlock();
    if (result == CUDA_SUCCESS) {
        CUgraph graph = (CUgraph) (uintptr_t) name.graph;
        result = params->type == CU_GRAPH_NODE_TYPE_KERNEL
            ? hws_call_hwsGraphExecSetKernel(hws_exec_handle(exec), graph, bytes, blob)
            : hws_call_hwsGraphExecSetNode(hws_exec_handle(exec), graph, bytes, blob);
    }
    free(blob);
    if (result == CUDA_SUCCESS && params->type != CU_GRAPH_NODE_TYPE_KERNEL) {
        result = replace_call(exec, &name, params->call);
    }
    hws_params_drop(params);
    return result;
}

HWS_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                      const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams) {
    ENTER_SET(CU_GRAPH_NODE_TYPE_KERNEL);
    return set(hGraphExec, hNode, hws_params_kernel(nodeParams, &params), &params);
}

HWS_EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    CUDA_KERNEL_NODE_PARAMS_v2 wider = {0};
    HWS_REQUIRE(nodeParams != NULL);
    memcpy(&wider, nodeParams, sizeof *nodeParams); /* v2 begins with v1 */
    return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &wider);
}

HWS_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    HWS_ENTER();
    ENTER_SET(CU_GRAPH_NODE_TYPE_MEMCPY);
    return set(hGraphExec, hNode, hws_params_copy(copyParams, ctx, &params), &params);
}

HWS_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    HWS_REQUIRE(hGraphExec != NULL);
    HWS_ENTER();
    ENTER_SET(CU_GRAPH_NODE_TYPE_MEMSET);
    return set(hGraphExec, hNode, hws_params_memset(memsetParams, ctx, &params), &params);
}

HWS_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                 const CUDA_HOST_NODE_PARAMS *nodeParams) {
    ENTER_SET(CU_GRAPH_NODE_TYPE_HOST);
    return set(hGraphExec, hNode, hws_params_host(nodeParams, &params), &params);
}

HWS_EXPORT CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                       const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    ENTER_SET(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    return set(hGraphExec, hNode, hws_params_memory_ops(nodeParams, &params), &params);
}

HWS_EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    ENTER_SET(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    return set(hGraphExec, hNode, hws_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &params), &params);
}

HWS_EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    ENTER_SET(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    return set(hGraphExec, hNode, hws_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &params), &params);
}

/* Copies the child's parameters for the nodes at the same places; *count_p receives their number. */
static CUresult pair(const hws_exec_t *exec, CUgraphNode handle, CUgraph child, CUgraphNode **nodes_p,
                     hws_params_t **params_p, size_t *count_p) {
    hws_node_t *node = node_of(exec, handle);
    HWS_TAKE_GRAPH(from, child);
    HWS_REQUIRE(node != NULL && node->params.type == CU_GRAPH_NODE_TYPE_GRAPH);
    const hws_graph_t *to = node->params.child;
    if (!hws_graph_is_alike(from, to)) { /* a child's nodes have the names of the node's own graph */
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    CUgraphNode *nodes = malloc((to->count + 1) * sizeof *nodes);
    hws_params_t *params = malloc((to->count + 1) * sizeof *params);
    CUresult result = nodes == NULL || params == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    size_t count = 0;
    for (size_t i = 0; i < to->count && result == CUDA_SUCCESS; i++) {
        result = hws_params_duplicate(&from->nodes[i]->params, &params[count]);
        if (result == CUDA_SUCCESS) {
            nodes[count++] = hws_node_handle(to->nodes[i]);
        }
    }
    if (result != CUDA_SUCCESS) {
        for (size_t i = 0; i < count; i++) {
            hws_params_drop(&params[i]);
        }
        free(nodes);
        free(params);
        return result;
    }
    *nodes_p = nodes;
    *params_p = params;
    *count_p = count;
    return CUDA_SUCCESS;
}

/*
 * Sets the nodes of the inner graph one by one. Known deviation: when a node cannot be changed, the nodes before it
 * have already changed.
 */
HWS_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
    CUgraphNode *nodes;
    hws_params_t *params;
    size_t count;
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = pair(hws_exec_get(hGraphExec), hNode, childGraph, &nodes, &params, &count);
    hws_graph_unlock();
    HWS_TRY(result);
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type = params[i].type;
        if (result == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_GRAPH) {
            result = cuGraphExecChildGraphNodeSetParams(hGraphExec, nodes[i], hws_graph_handle(params[i].child));
        } else if (result == CUDA_SUCCESS && type != CU_GRAPH_NODE_TYPE_EMPTY) {
            result = set(hGraphExec, nodes[i], CUDA_SUCCESS, &params[i]);
            continue; /* set() has dropped them */
        }
        hws_graph_lock();
        hws_params_drop(&params[i]);
        hws_graph_unlock();
    }
    free(nodes);
    free(params);
    return result;
}

HWS_EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    HWS_REQUIRE(nodeParams != NULL);
    ENTER_SET(nodeParams->type);
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_EMPTY) {
        return CUDA_SUCCESS;
    }
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        return cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
    }
    return set(hGraphExec, hNode, hws_params_of(nodeParams, &params), &params);
}

/* Index of the node among the disabled ones; disabled_count when it is enabled. */
static size_t find_disabled(const hws_exec_t *exec, const hws_node_t *node) {
    size_t at = 0;
    while (at < exec->disabled_count && !same_name(&exec->disabled[at], node)) {
        at++;
    }
    return at;
}

static bool can_be_disabled(const hws_node_t *node) {
    return node->params.type == CU_GRAPH_NODE_TYPE_KERNEL || node->params.type == CU_GRAPH_NODE_TYPE_MEMCPY
        || node->params.type == CU_GRAPH_NODE_TYPE_MEMSET;
}

static CUresult enable(CUgraphExec handle, CUgraphNode node_handle, bool enabled) {
    hws_exec_t *exec = hws_exec_get(handle);
    const hws_node_t *node = node_of(exec, node_handle);
    HWS_REQUIRE(node != NULL && can_be_disabled(node));
    size_t at = find_disabled(exec, node);
    if ((at == exec->disabled_count) == enabled) {
        return CUDA_SUCCESS;
    }
    if (enabled) {
        exec->disabled[at] = exec->disabled[--exec->disabled_count];
    } else {
        hws_node_name_t *larger = realloc(exec->disabled, (at + 1) * sizeof *larger);
        if (larger == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        larger[at] = (hws_node_name_t) {node->graph->handle, node->index};
        exec->disabled = larger;
        exec->disabled_count++;
    }
    for (size_t i = 0; i < exec->call_count; i++) {
        if (same_name(&exec->calls[i].node, node)) {
            exec->calls[i].disabled = !enabled;
        }
    }
    return hws_call_hwsGraphEnable(hws_exec_handle(exec), hws_graph_handle(node->graph), node->index, enabled ? 1 : 0);
}

HWS_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = enable(hGraphExec, hNode, isEnabled != 0);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(isEnabled != NULL);
    hws_graph_lock();
    const hws_exec_t *exec = hws_exec_get(hGraphExec);
    const hws_node_t *node = node_of(exec, hNode);
    bool known = node != NULL && can_be_disabled(node);
    if (known) {
        *isEnabled = find_disabled(exec, node) == exec->disabled_count ? 1 : 0;
    }
    hws_graph_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Nodes of graphs, except copies. Structures with the driver's layout are passed on unchanged (tests/layout.c). */
#include <string.h>

#include "graph.h"

cudaError_t hws_graph_kernel(const struct cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *driver) {
    CUkernel kernel;
    cudaError_t error = hws_kernel_find(params->func, &kernel);
    if (error == cudaSuccess) {
        error = hws_context_ask();
    }
    if (error != cudaSuccess) {
        return error;
    }
    memset(driver, 0, sizeof *driver);
    driver->func = (CUfunction) kernel; /* the driver accepts both kinds of handle */
    driver->gridDimX = params->gridDim.x;
    driver->gridDimY = params->gridDim.y;
    driver->gridDimZ = params->gridDim.z;
    driver->blockDimX = params->blockDim.x;
    driver->blockDimY = params->blockDim.y;
    driver->blockDimZ = params->blockDim.z;
    driver->sharedMemBytes = params->sharedMemBytes;
    driver->kernelParams = params->kernelParams;
    driver->extra = params->extra;
    return cudaSuccess;
}

HWS_API cudaError_t cudaGraphAddKernelNode(HWS_GRAPH_ADD, const struct cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS params;
    HWS_REQUIRE(pGraphNode != NULL && pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_graph_kernel(pNodeParams, &params));
    return hws_result(cuGraphAddKernelNode_v2(HWS_GRAPH_ADD_ARGS, &params));
}

HWS_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS params;
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuGraphKernelNodeGetParams_v2(node, &params)));
    const void *func = hws_kernel_host(params.kern != NULL ? params.kern : (CUkernel) params.func);
    if (func == NULL) {
        /* The kernel belongs to another library, which has put it into the graph. */
        return hws_error_record(cudaErrorInvalidDeviceFunction);
    }
    *pNodeParams = (struct cudaKernelNodeParams) {
        .func = (void *) (uintptr_t) func,
        .gridDim = {params.gridDimX, params.gridDimY, params.gridDimZ},
        .blockDim = {params.blockDimX, params.blockDimY, params.blockDimZ},
        .sharedMemBytes = params.sharedMemBytes,
        .kernelParams = params.kernelParams,
        .extra = params.extra,
    };
    return cudaSuccess;
}

HWS_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS params;
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_graph_kernel(pNodeParams, &params));
    return hws_result(cuGraphKernelNodeSetParams_v2(node, &params));
}

HWS_API cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphKernelNodeCopyAttributes(hDst, hSrc));
}

HWS_API cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode, cudaKernelNodeAttrID attr,
                                                    cudaKernelNodeAttrValue *value_out) {
    HWS_REQUIRE(value_out != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuGraphKernelNodeGetAttribute(hNode, (CUkernelNodeAttrID) attr, (CUkernelNodeAttrValue *) value_out));
}

HWS_API cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode, cudaKernelNodeAttrID attr,
                                                    const cudaKernelNodeAttrValue *value) {
    HWS_REQUIRE(value != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuGraphKernelNodeSetAttribute(hNode, (CUkernelNodeAttrID) attr, (const CUkernelNodeAttrValue *) value));
}

HWS_API cudaError_t cudaGraphAddMemsetNode(HWS_GRAPH_ADD, const struct cudaMemsetParams *pMemsetParams) {
    HWS_REQUIRE(pGraphNode != NULL && pMemsetParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuGraphAddMemsetNode(HWS_GRAPH_ADD_ARGS, (const CUDA_MEMSET_NODE_PARAMS *) pMemsetParams, hws_graph_context()));
}

HWS_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *pNodeParams) {
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *) pNodeParams));
}

HWS_API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams) {
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphMemsetNodeSetParams(node, (const CUDA_MEMSET_NODE_PARAMS *) pNodeParams));
}

HWS_API cudaError_t cudaGraphAddHostNode(HWS_GRAPH_ADD, const struct cudaHostNodeParams *pNodeParams) {
    HWS_REQUIRE(pGraphNode != NULL && pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddHostNode(HWS_GRAPH_ADD_ARGS, (const CUDA_HOST_NODE_PARAMS *) pNodeParams));
}

HWS_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *pNodeParams) {
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *) pNodeParams));
}

HWS_API cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *pNodeParams) {
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphHostNodeSetParams(node, (const CUDA_HOST_NODE_PARAMS *) pNodeParams));
}

HWS_API cudaError_t cudaGraphAddChildGraphNode(HWS_GRAPH_ADD, cudaGraph_t childGraph) {
    HWS_REQUIRE(pGraphNode != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddChildGraphNode(HWS_GRAPH_ADD_ARGS, childGraph));
}

HWS_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *pGraph) {
    HWS_REQUIRE(pGraph != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphChildGraphNodeGetGraph(node, pGraph));
}

HWS_API cudaError_t cudaGraphAddEmptyNode(HWS_GRAPH_ADD) {
    HWS_REQUIRE(pGraphNode != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddEmptyNode(HWS_GRAPH_ADD_ARGS));
}

HWS_API cudaError_t cudaGraphAddEventRecordNode(HWS_GRAPH_ADD, cudaEvent_t event) {
    HWS_REQUIRE(pGraphNode != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddEventRecordNode(HWS_GRAPH_ADD_ARGS, event));
}

HWS_API cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out) {
    HWS_REQUIRE(event_out != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphEventRecordNodeGetEvent(node, event_out));
}

HWS_API cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphEventRecordNodeSetEvent(node, event));
}

HWS_API cudaError_t cudaGraphAddEventWaitNode(HWS_GRAPH_ADD, cudaEvent_t event) {
    HWS_REQUIRE(pGraphNode != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddEventWaitNode(HWS_GRAPH_ADD_ARGS, event));
}

HWS_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out) {
    HWS_REQUIRE(event_out != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphEventWaitNodeGetEvent(node, event_out));
}

HWS_API cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphEventWaitNodeSetEvent(node, event));
}

HWS_API cudaError_t cudaGraphAddMemAllocNode(HWS_GRAPH_ADD, struct cudaMemAllocNodeParams *nodeParams) {
    HWS_REQUIRE(pGraphNode != NULL && nodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddMemAllocNode(HWS_GRAPH_ADD_ARGS, (CUDA_MEM_ALLOC_NODE_PARAMS *) nodeParams));
}

HWS_API cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *params_out) {
    HWS_REQUIRE(params_out != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *) params_out));
}

HWS_API cudaError_t cudaGraphAddMemFreeNode(HWS_GRAPH_ADD, void *dptr) {
    HWS_REQUIRE(pGraphNode != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddMemFreeNode(HWS_GRAPH_ADD_ARGS, (CUdeviceptr) (uintptr_t) dptr));
}

HWS_API cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr_out) {
    CUdeviceptr address;
    HWS_REQUIRE(dptr_out != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuGraphMemFreeNodeGetParams(node, &address)));
    *(void **) dptr_out = (void *) (uintptr_t) address;
    return cudaSuccess;
}

/* ---- nodes of any type ---- */

cudaError_t hws_graph_node(const struct cudaGraphNodeParams *params, CUgraphNodeParams *driver) {
    cudaError_t error;
    memset(driver, 0, sizeof *driver);
    driver->type = (CUgraphNodeType) params->type;
    switch (params->type) {
        case cudaGraphNodeTypeKernel: {
            CUDA_KERNEL_NODE_PARAMS kernel;
            error = hws_graph_kernel((const struct cudaKernelNodeParams *) &params->kernel, &kernel);
            if (error != cudaSuccess) {
                return error;
            }
            memcpy(&driver->kernel, &kernel, sizeof kernel);
            return cudaSuccess;
        }
        case cudaGraphNodeTypeMemcpy:
            driver->memcpy.flags = params->memcpy.flags;
            driver->memcpy.copyCtx = hws_graph_context();
            return hws_graph_copy(&params->memcpy.copyParams, &driver->memcpy.copyParams);
        case cudaGraphNodeTypeMemset:
            memcpy(&driver->memset, &params->memset, sizeof params->memset);
            driver->memset.ctx = hws_graph_context();
            return cudaSuccess;
        case cudaGraphNodeTypeHost:
            memcpy(&driver->host, &params->host, sizeof params->host);
            return cudaSuccess;
        case cudaGraphNodeTypeGraph:
            memcpy(&driver->graph, &params->graph, sizeof params->graph);
            return cudaSuccess;
        case cudaGraphNodeTypeEmpty:
            return cudaSuccess;
        case cudaGraphNodeTypeWaitEvent:
            driver->eventWait.event = params->eventWait.event;
            return cudaSuccess;
        case cudaGraphNodeTypeEventRecord:
            driver->eventRecord.event = params->eventRecord.event;
            return cudaSuccess;
        case cudaGraphNodeTypeMemAlloc:
            memcpy(&driver->alloc, &params->alloc, sizeof params->alloc);
            return cudaSuccess;
        case cudaGraphNodeTypeMemFree:
            driver->free.dptr = (CUdeviceptr) (uintptr_t) params->free.dptr;
            return cudaSuccess;
        case cudaGraphNodeTypeConditional:
            memcpy(&driver->conditional, &params->conditional, sizeof params->conditional);
            driver->conditional.ctx = hws_graph_context();
            return cudaSuccess;
        default:
            memcpy(&driver->reserved1, &params->reserved1, sizeof params->reserved1);
            return cudaSuccess; /* the driver reports the error */
    }
}

void hws_graph_node_back(const CUgraphNodeParams *driver, struct cudaGraphNodeParams *params) {
    if (params->type == cudaGraphNodeTypeMemAlloc) {
        params->alloc.dptr = (void *) (uintptr_t) driver->alloc.dptr;
    } else if (params->type == cudaGraphNodeTypeGraph) {
        params->graph.graph = driver->graph.graph;
    } else if (params->type == cudaGraphNodeTypeConditional) {
        params->conditional.phGraph_out = driver->conditional.phGraph_out;
    }
}

#define HWS_ADD_NODE_V2                                                                                                \
    cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,                              \
        const cudaGraphEdgeData *dependencyData, size_t numDependencies, struct cudaGraphNodeParams *nodeParams

static cudaError_t hws_add_node(HWS_ADD_NODE_V2) {
    CUgraphNodeParams params;
    HWS_REQUIRE(pGraphNode != NULL && nodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_graph_node(nodeParams, &params));
    HWS_TRY(hws_error_from_driver(cuGraphAddNode_v2(
        pGraphNode, graph, pDependencies, (const CUgraphEdgeData *) dependencyData, numDependencies, &params)));
    hws_graph_node_back(&params, nodeParams);
    return cudaSuccess;
}

#if HWS_CUDART_MAJOR >= 13

HWS_API cudaError_t cudaGraphAddNode(HWS_ADD_NODE_V2) {
    return hws_add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
}

#else

cudaError_t cudaGraphAddNode_v2(HWS_ADD_NODE_V2);
HWS_API cudaError_t cudaGraphAddNode_v2(HWS_ADD_NODE_V2) {
    return hws_add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
}

cudaError_t cudaGraphAddNode(HWS_GRAPH_ADD, struct cudaGraphNodeParams *nodeParams);
HWS_API cudaError_t cudaGraphAddNode(HWS_GRAPH_ADD, struct cudaGraphNodeParams *nodeParams) {
    return hws_add_node(pGraphNode, graph, pDependencies, NULL, numDependencies, nodeParams);
}

#endif

HWS_API cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams) {
    CUgraphNodeParams params;
    HWS_REQUIRE(nodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_graph_node(nodeParams, &params));
    return hws_result(cuGraphNodeSetParams(node, &params));
}

/* Executable graphs. */
#include <string.h>

#include "graph.h"

HWS_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags) {
    HWS_REQUIRE(pGraphExec != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphInstantiateWithFlags(pGraphExec, graph, flags));
}

HWS_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                  unsigned long long flags) {
    return cudaGraphInstantiate(pGraphExec, graph, flags);
}

static cudaError_t hws_instantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                   cudaGraphInstantiateParams *instantiateParams, bool perThread) {
    HWS_REQUIRE(pGraphExec != NULL && instantiateParams != NULL);
    HWS_ENTER_CONTEXT();
    CUDA_GRAPH_INSTANTIATE_PARAMS params;
    memset(&params, 0, sizeof params);
    params.flags = instantiateParams->flags;
    params.hUploadStream =
        perThread ? hws_stream_ptsz(instantiateParams->uploadStream) : instantiateParams->uploadStream;
    CUresult result = cuGraphInstantiateWithParams(pGraphExec, graph, &params);
    instantiateParams->errNode_out = params.hErrNode_out;
    instantiateParams->result_out = (cudaGraphInstantiateResult) params.result_out;
    return hws_result(result);
}

HWS_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                   cudaGraphInstantiateParams *instantiateParams) {
    return hws_instantiate(pGraphExec, graph, instantiateParams, false);
}

cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams *instantiateParams);
HWS_API cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                        cudaGraphInstantiateParams *instantiateParams) {
    return hws_instantiate(pGraphExec, graph, instantiateParams, true);
}

HWS_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags) {
    cuuint64_t found;
    HWS_REQUIRE(flags != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuGraphExecGetFlags(graphExec, &found)));
    *flags = found;
    return cudaSuccess;
}

HWS_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphExecDestroy(graphExec));
}

HWS_API cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphLaunch(graphExec, stream));
}
HWS_TWIN(cudaGraphLaunch, (cudaGraphExec_t graphExec, cudaStream_t stream), (graphExec, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphUpload(graphExec, stream));
}
HWS_TWIN(cudaGraphUpload, (cudaGraphExec_t graphExec, cudaStream_t stream), (graphExec, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                        cudaGraphExecUpdateResultInfo *resultInfo) {
    HWS_REQUIRE(resultInfo != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphExecUpdate_v2(hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *) resultInfo));
}

HWS_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int isEnabled) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphNodeSetEnabled(hGraphExec, hNode, isEnabled));
}

HWS_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                            unsigned int *isEnabled) {
    HWS_REQUIRE(isEnabled != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphNodeGetEnabled(hGraphExec, hNode, isEnabled));
}

HWS_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                     const struct cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS params;
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_graph_kernel(pNodeParams, &params));
    return hws_result(cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, &params));
}

HWS_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                     const struct cudaMemsetParams *pNodeParams) {
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphExecMemsetNodeSetParams(hGraphExec, node, (const CUDA_MEMSET_NODE_PARAMS *) pNodeParams,
                                                     hws_graph_context()));
}

HWS_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                   const struct cudaHostNodeParams *pNodeParams) {
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphExecHostNodeSetParams(hGraphExec, node, (const CUDA_HOST_NODE_PARAMS *) pNodeParams));
}

HWS_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                         cudaGraph_t childGraph) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphExecChildGraphNodeSetParams(hGraphExec, node, childGraph));
}

HWS_API cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                                         cudaEvent_t event) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphExecEventRecordNodeSetEvent(hGraphExec, hNode, event));
}

HWS_API cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                                       cudaEvent_t event) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphExecEventWaitNodeSetEvent(hGraphExec, hNode, event));
}

HWS_API cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                               struct cudaGraphNodeParams *nodeParams) {
    CUgraphNodeParams params;
    HWS_REQUIRE(nodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_graph_node(nodeParams, &params));
    return hws_result(cuGraphExecNodeSetParams(graphExec, node, &params));
}

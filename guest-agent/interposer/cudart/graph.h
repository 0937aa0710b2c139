/* What the parts of graphs share: the Runtime API's parameters as the driver takes them. */
#ifndef HWS_CUDART_GRAPH_H
#define HWS_CUDART_GRAPH_H

#include "runtime.h"

/* Parameters of functions that add a node. */
#define HWS_GRAPH_ADD                                                                                                  \
    cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies
#define HWS_GRAPH_ADD_ARGS pGraphNode, graph, pDependencies, numDependencies

/* The context in which a node is to run: the calling thread's, which is there after HWS_ENTER_CONTEXT. */
static inline CUcontext hws_graph_context(void) {
    CUcontext context = NULL;
    (void)cuCtxGetCurrent(&context);
    return context;
}

/* A kernel's parameters; its image is loaded at the first use. */
cudaError_t hws_graph_kernel(const struct cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *driver);

/* A copy's parameters, either way. */
cudaError_t hws_graph_copy(const struct cudaMemcpy3DParms *params, CUDA_MEMCPY3D *driver);
cudaError_t hws_graph_copy_back(const CUDA_MEMCPY3D *driver, struct cudaMemcpy3DParms *params);

/* Parameters of any node; what the node gives back is put into params by hws_graph_node_back. */
cudaError_t hws_graph_node(const struct cudaGraphNodeParams *params, CUgraphNodeParams *driver);
void hws_graph_node_back(const CUgraphNodeParams *driver, struct cudaGraphNodeParams *params);

#endif

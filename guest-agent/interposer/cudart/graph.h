/* Shared by the files of graphs: translates the Runtime API's parameters for the driver. */
#ifndef HWS_CUDART_GRAPH_H
#define HWS_CUDART_GRAPH_H

#include "runtime.h"

/* Parameters of functions that add a node. */
#define HWS_GRAPH_ADD                                                                                                  \
    cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies
#define HWS_GRAPH_ADD_ARGS pGraphNode, graph, pDependencies, numDependencies

/* The context of a node: the calling thread's, which exists after HWS_ENTER_CONTEXT. */
static inline CUcontext hws_graph_context(void) {
    CUcontext context = NULL;
    (void) cuCtxGetCurrent(&context);
    return context;
}

/* A kernel's parameters; the first use loads its image. */
cudaError_t hws_graph_kernel(const struct cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *driver);

/* A copy's parameters. */
cudaError_t hws_graph_copy(const struct cudaMemcpy3DParms *params, CUDA_MEMCPY3D *driver);
cudaError_t hws_graph_copy_back(const CUDA_MEMCPY3D *driver, struct cudaMemcpy3DParms *params);

/* Parameters of any node; hws_graph_node_back copies the node's outputs back into params. */
cudaError_t hws_graph_node(const struct cudaGraphNodeParams *params, CUgraphNodeParams *driver);
void hws_graph_node_back(const CUgraphNodeParams *driver, struct cudaGraphNodeParams *params);

#endif

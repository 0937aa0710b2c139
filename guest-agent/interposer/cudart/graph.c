/* Whole graphs: creation, copies and queries, their edges, user objects and memory. */
#include "graph.h"

HWS_API cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags) {
    HWS_REQUIRE(pGraph != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphCreate(pGraph, flags));
}

HWS_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphDestroy(graph));
}

HWS_API cudaError_t cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph) {
    HWS_REQUIRE(pGraphClone != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphClone(pGraphClone, originalGraph));
}

HWS_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *pNode, cudaGraphNode_t originalNode,
                                             cudaGraph_t clonedGraph) {
    HWS_REQUIRE(pNode != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphNodeFindInClone(pNode, originalNode, clonedGraph));
}

HWS_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags) {
    HWS_REQUIRE(path != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphDebugDotPrint(graph, path, flags));
}

HWS_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes) {
    HWS_REQUIRE(numNodes != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphGetNodes(graph, nodes, numNodes));
}

HWS_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes, size_t *pNumRootNodes) {
    HWS_REQUIRE(pNumRootNodes != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphGetRootNodes(graph, pRootNodes, pNumRootNodes));
}

HWS_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType) {
    CUgraphNodeType type;
    HWS_REQUIRE(pType != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuGraphNodeGetType(node, &type)));
    *pType = (enum cudaGraphNodeType) type;
    return cudaSuccess;
}

HWS_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphDestroyNode(node));
}

/* ---- edges: CUDA 13's functions take data of edges; CUDA 12 has other names for such functions ---- */

#if HWS_CUDART_MAJOR >= 13
#define HWS_EDGES(name) HWS_API cudaError_t name
#else
#define HWS_EDGES(name)                                                                                                \
    cudaError_t name##_v2(HWS_EDGES_PARAMS);                                                                           \
    HWS_API cudaError_t name##_v2
#endif

#define HWS_EDGES_PARAMS                                                                                               \
    cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edgeData, size_t *numEdges
HWS_EDGES(cudaGraphGetEdges)(HWS_EDGES_PARAMS) {
    HWS_REQUIRE(numEdges != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphGetEdges_v2(graph, from, to, (CUgraphEdgeData *) edgeData, numEdges));
}
#undef HWS_EDGES_PARAMS

#define HWS_EDGES_PARAMS                                                                                               \
    cudaGraphNode_t node, cudaGraphNode_t *pDependencies, cudaGraphEdgeData *edgeData, size_t *pNumDependencies
HWS_EDGES(cudaGraphNodeGetDependencies)(HWS_EDGES_PARAMS) {
    HWS_REQUIRE(pNumDependencies != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuGraphNodeGetDependencies_v2(node, pDependencies, (CUgraphEdgeData *) edgeData, pNumDependencies));
}
#undef HWS_EDGES_PARAMS

#define HWS_EDGES_PARAMS                                                                                               \
    cudaGraphNode_t node, cudaGraphNode_t *pDependentNodes, cudaGraphEdgeData *edgeData, size_t *pNumDependentNodes
HWS_EDGES(cudaGraphNodeGetDependentNodes)(HWS_EDGES_PARAMS) {
    HWS_REQUIRE(pNumDependentNodes != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuGraphNodeGetDependentNodes_v2(node, pDependentNodes, (CUgraphEdgeData *) edgeData, pNumDependentNodes));
}
#undef HWS_EDGES_PARAMS

#define HWS_EDGES_PARAMS                                                                                               \
    cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *edgeData,      \
        size_t numDependencies
HWS_EDGES(cudaGraphAddDependencies)(HWS_EDGES_PARAMS) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphAddDependencies_v2(graph, from, to, (const CUgraphEdgeData *) edgeData, numDependencies));
}

HWS_EDGES(cudaGraphRemoveDependencies)(HWS_EDGES_PARAMS) {
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuGraphRemoveDependencies_v2(graph, from, to, (const CUgraphEdgeData *) edgeData, numDependencies));
}
#undef HWS_EDGES_PARAMS

#if HWS_CUDART_MAJOR < 13

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *numEdges);
HWS_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *numEdges) {
    return cudaGraphGetEdges_v2(graph, from, to, NULL, numEdges);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *pDependencies,
                                         size_t *pNumDependencies);
HWS_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *pDependencies,
                                                 size_t *pNumDependencies) {
    return cudaGraphNodeGetDependencies_v2(node, pDependencies, NULL, pNumDependencies);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *pDependentNodes,
                                           size_t *pNumDependentNodes);
HWS_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *pDependentNodes,
                                                   size_t *pNumDependentNodes) {
    return cudaGraphNodeGetDependentNodes_v2(node, pDependentNodes, NULL, pNumDependentNodes);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     size_t numDependencies);
HWS_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                             size_t numDependencies) {
    return cudaGraphAddDependencies_v2(graph, from, to, NULL, numDependencies);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        size_t numDependencies);
HWS_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                const cudaGraphNode_t *to, size_t numDependencies) {
    return cudaGraphRemoveDependencies_v2(graph, from, to, NULL, numDependencies);
}

#endif

HWS_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out, cudaGraph_t graph,
                                                     unsigned int defaultLaunchValue, unsigned int flags) {
    CUgraphConditionalHandle handle;
    HWS_REQUIRE(pHandle_out != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(
        cuGraphConditionalHandleCreate(&handle, graph, hws_graph_context(), defaultLaunchValue, flags)));
    *pHandle_out = handle;
    return cudaSuccess;
}

/* ---- user objects ---- */

HWS_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr, cudaHostFn_t destroy,
                                         unsigned int initialRefcount, unsigned int flags) {
    HWS_REQUIRE(object_out != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuUserObjectCreate(object_out, ptr, destroy, initialRefcount, flags));
}

HWS_API cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuUserObjectRetain(object, count));
}

HWS_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuUserObjectRelease(object, count));
}

HWS_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                              unsigned int flags) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphRetainUserObject(graph, object, count, flags));
}

HWS_API cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuGraphReleaseUserObject(graph, object, count));
}

/* ---- memory that devices keep for graphs ---- */

HWS_API cudaError_t cudaDeviceGraphMemTrim(int device) {
    CUdevice handle;
    HWS_TRY(hws_device_get(device, &handle));
    HWS_ENTER_CONTEXT();
    return hws_result(cuDeviceGraphMemTrim(handle));
}

HWS_API cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void *value) {
    CUdevice handle;
    HWS_TRY(hws_device_get(device, &handle));
    HWS_REQUIRE(value != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuDeviceGetGraphMemAttribute(handle, (CUgraphMem_attribute) attr, value));
}

HWS_API cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void *value) {
    CUdevice handle;
    HWS_REQUIRE(value != NULL);
    HWS_TRY(hws_device_get(device, &handle));
    HWS_ENTER_CONTEXT();
    return hws_result(cuDeviceSetGraphMemAttribute(handle, (CUgraphMem_attribute) attr, value));
}

/* Queries of a graph's shape: nodes, edges, types. */
#include "graph.h"

#include <string.h>

/* Whether the edge has default data and so only orders its two nodes. */
static bool is_plain(const CUgraphEdgeData *data) {
    return data->from_port == 0 && data->to_port == 0 && data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
}

/* Lists nodes of the graph, or those without dependencies, as CUDA does: as many as fit, NULL after the last. */
static CUresult get_nodes(CUgraph handle, bool roots, CUgraphNode *nodes, size_t *count_p) {
    HWS_TAKE_GRAPH(graph, handle);
    HWS_REQUIRE(count_p != NULL && (nodes == NULL || *count_p != 0));
    size_t found = 0;
    for (size_t i = 0; i < graph->count; i++) {
        if (roots && graph->nodes[i]->in.count != 0) {
            continue;
        }
        if (nodes != NULL && found < *count_p) {
            nodes[found] = hws_node_handle(graph->nodes[i]);
        }
        found++;
    }
    if (nodes != NULL) {
        for (size_t i = found; i < *count_p; i++) {
            nodes[i] = NULL;
        }
    }
    if (nodes == NULL || found < *count_p) {
        *count_p = found;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = get_nodes(hGraph, false, nodes, numNodes);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = get_nodes(hGraph, true, rootNodes, numRootNodes);
    hws_graph_unlock();
    return result;
}

/* The output of edges, and their number so far. */
typedef struct hws_edge_list {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t capacity, count;
} hws_edge_list_t;

static CUresult put_edge(hws_edge_list_t *list, const hws_node_t *from, const hws_node_t *to,
                         const CUgraphEdgeData *data) {
    bool wanted = list->from != NULL || list->to != NULL;
    if (wanted && list->count < list->capacity) {
        if (list->data == NULL && !is_plain(data)) {
            return CUDA_ERROR_LOSSY_QUERY;
        }
        if (list->from != NULL) {
            list->from[list->count] = hws_node_handle(from);
        }
        if (list->to != NULL) {
            list->to[list->count] = hws_node_handle(to);
        }
        if (list->data != NULL) {
            list->data[list->count] = *data;
        }
    }
    list->count++;
    return CUDA_SUCCESS;
}

static void end_edges(const hws_edge_list_t *list, size_t *count_p) {
    bool wanted = list->from != NULL || list->to != NULL;
    for (size_t i = list->count; wanted && i < list->capacity; i++) {
        if (list->from != NULL) {
            list->from[i] = NULL;
        }
        if (list->to != NULL) {
            list->to[i] = NULL;
        }
        if (list->data != NULL && list->to != NULL) { /* driver 580: not for a node's edges */
            memset(&list->data[i], 0, sizeof list->data[i]);
        }
    }
    if (!wanted || list->count < *count_p) {
        *count_p = list->count;
    }
}

static CUresult get_edges(CUgraph handle, hws_edge_list_t *list, size_t *count_p) {
    HWS_TAKE_GRAPH(graph, handle);
    HWS_REQUIRE(count_p != NULL && (list->from == NULL) == (list->to == NULL)
                && (list->data == NULL || list->from != NULL) && (list->from == NULL || *count_p != 0));
    list->capacity = *count_p;
    for (size_t i = 0; i < graph->count; i++) {
        const hws_edges_t *in = &graph->nodes[i]->in;
        for (size_t j = 0; j < in->count; j++) {
            HWS_TRY(put_edge(list, in->items[j].node, graph->nodes[i], &in->items[j].data));
        }
    }
    end_edges(list, count_p);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
                                       size_t *numEdges) {
    HWS_ENTER_LOCAL();
    hws_edge_list_t list = {.from = from, .to = to, .data = edgeData};
    hws_graph_lock();
    CUresult result = get_edges(hGraph, &list, numEdges);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges) {
    return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

/* The nodes at the other ends of a node's edges. */
static CUresult get_neighbours(CUgraphNode handle, bool dependencies, CUgraphNode *nodes, CUgraphEdgeData *data,
                               size_t *count_p) {
    HWS_TAKE_NODE(node, handle);
    HWS_REQUIRE(count_p != NULL && (data == NULL || nodes != NULL) && (nodes == NULL || *count_p != 0));
    const hws_edges_t *edges = dependencies ? &node->in : &node->out;
    hws_edge_list_t list = {.from = nodes, .data = data, .capacity = *count_p};
    for (size_t i = 0; i < edges->count; i++) {
        HWS_TRY(put_edge(&list, edges->items[i].node, NULL, &edges->items[i].data));
    }
    end_edges(&list, count_p);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                                  CUgraphEdgeData *edgeData, size_t *numDependencies) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = get_neighbours(hNode, true, dependencies, edgeData, numDependencies);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies) {
    return cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

HWS_EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                                    CUgraphEdgeData *edgeData, size_t *numDependentNodes) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = get_neighbours(hNode, false, dependentNodes, edgeData, numDependentNodes);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                                 size_t *numDependentNodes) {
    return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

HWS_EXPORT CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(type != NULL);
    hws_graph_lock();
    const hws_node_t *node = hws_node_get(hNode);
    CUresult result = node == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (node != NULL) {
        *type = node->params.type == HWS_NODE_LIBRARY ? CU_GRAPH_NODE_TYPE_KERNEL : node->params.type;
    }
    hws_graph_unlock();
    return result;
}

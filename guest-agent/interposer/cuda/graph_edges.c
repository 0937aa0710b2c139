/* Edges between nodes, and the order that they impose. */
#include "graph.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

static const CUgraphEdgeData plain_edge;

bool hws_edges_add(hws_edges_t *edges, hws_node_t *node, const CUgraphEdgeData *data) {
    if (edges->count == edges->capacity) {
        size_t wanted = edges->capacity == 0 ? 4 : 2 * edges->capacity;
        hws_edge_t *larger = realloc(edges->items, wanted * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        edges->items = larger;
        edges->capacity = wanted;
    }
    edges->items[edges->count++] = (hws_edge_t) {node, data == NULL ? plain_edge : *data};
    return true;
}

const hws_edge_t *hws_edges_find(const hws_edges_t *edges, const hws_node_t *node) {
    for (size_t i = 0; i < edges->count; i++) {
        if (edges->items[i].node == node) {
            return &edges->items[i];
        }
    }
    return NULL;
}

/* Removes the edge to this node; with data, only an edge that has the same data. */
bool hws_edges_remove(hws_edges_t *edges, const hws_node_t *node, const CUgraphEdgeData *data) {
    hws_edge_t *edge = (hws_edge_t *) (uintptr_t) hws_edges_find(edges, node);
    if (edge == NULL || (data != NULL && memcmp(&edge->data, data, sizeof *data) != 0)) {
        return false;
    }
    size_t behind = edges->count - (size_t) (edge - edges->items) - 1;
    memmove(edge, edge + 1, behind * sizeof *edge);
    edges->count--;
    return true;
}

/* Whether an edge may begin at the node: only kernels have ports and programmatic edges. */
CUresult hws_edges_check(const hws_node_t *from, const CUgraphEdgeData *data) {
    if (data == NULL) {
        return CUDA_SUCCESS;
    }
    static const unsigned char zeros[sizeof data->reserved];
    bool kernel = from->params.type == CU_GRAPH_NODE_TYPE_KERNEL;
    HWS_REQUIRE(data->to_port == 0 && memcmp(data->reserved, zeros, sizeof zeros) == 0);
    HWS_REQUIRE(data->from_port <= (kernel ? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER : 0));
    HWS_REQUIRE(data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT
                || (data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && kernel
                    && data->from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT));
    return CUDA_SUCCESS;
}

HwsGraphEdge *hws_edges_describe(const hws_node_t *node) {
    HwsGraphEdge *edges = malloc((node->in.count + 1) * sizeof *edges);
    for (size_t i = 0; edges != NULL && i < node->in.count; i++) {
        const hws_edge_t *edge = &node->in.items[i];
        edges[i] = (HwsGraphEdge) {.from = edge->node->index,
                                   .fromPort = edge->data.from_port,
                                   .toPort = edge->data.to_port,
                                   .type = edge->data.type};
    }
    return edges;
}

/* Keeps an edge between nodes that the worker already has. */
static bool add_link(hws_graph_t *graph, hws_node_t *from, hws_node_t *to, const CUgraphEdgeData *data) {
    if (graph->link_count == graph->link_capacity) {
        size_t wanted = graph->link_capacity == 0 ? 16 : 2 * graph->link_capacity;
        hws_link_t *larger = realloc(graph->links, wanted * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        graph->links = larger;
        graph->link_capacity = wanted;
    }
    graph->links[graph->link_count++] = (hws_link_t) {from, to, data == NULL ? plain_edge : *data};
    return true;
}

CUresult hws_graph_connect(hws_node_t *from, hws_node_t *to, const CUgraphEdgeData *data) {
    if (!hws_edges_add(&from->out, to, data)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!hws_edges_add(&to->in, from, data)) {
        from->out.count--;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (from->travelled && to->travelled && !add_link(from->graph, from, to, data)) {
        from->out.count--;
        to->in.count--;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/*
 * Removes nodes whose dependencies are all removed, until none is left to remove. The rest is on a cycle or after one.
 */
bool hws_graph_has_cycle(const hws_graph_t *graph, CUgraphNode *node_p) {
    hws_node_t **ready = malloc((graph->count + 1) * sizeof *ready);
    if (ready == NULL) {
        return false; /* the worker then finds the cycle */
    }
    size_t count = 0, done = 0;
    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->mark = (uint32_t) graph->nodes[i]->in.count;
        if (graph->nodes[i]->mark == 0) {
            ready[count++] = graph->nodes[i];
        }
    }
    while (done < count) {
        const hws_edges_t *out = &ready[done++]->out;
        for (size_t i = 0; i < out->count; i++) {
            if (--out->items[i].node->mark == 0) {
                ready[count++] = out->items[i].node;
            }
        }
    }
    free(ready);
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->mark != 0) {
            *node_p = hws_node_handle(graph->nodes[i]);
        }
        graph->nodes[i]->mark = 0; /* marks of check_dependencies() begin at 1 */
    }
    return count != graph->count;
}

static CUresult add_dependency(hws_graph_t *graph, CUgraphNode from_handle, CUgraphNode to_handle,
                               const CUgraphEdgeData *data) {
    HWS_TAKE_NODE(from, from_handle);
    HWS_TAKE_NODE(to, to_handle);
    HWS_REQUIRE(from->graph == graph && to->graph == graph && from != to);
    HWS_REQUIRE(hws_edges_find(&to->in, from) == NULL);
    HWS_TRY(hws_edges_check(from, data));
    return hws_graph_connect(from, to, data);
}

static CUresult remove_dependency(hws_graph_t *graph, CUgraphNode from_handle, CUgraphNode to_handle,
                                  const CUgraphEdgeData *data) {
    HWS_TAKE_NODE(from, from_handle);
    HWS_TAKE_NODE(to, to_handle);
    HWS_REQUIRE(from->graph == graph && to->graph == graph);
    const hws_edge_t *edge = hws_edges_find(&to->in, from);
    HWS_REQUIRE(edge != NULL);
    const HwsGraphLink link = {.from = from->index, .to = to->index, .data = edge->data};
    HWS_REQUIRE(hws_edges_remove(&to->in, from, data));
    hws_edges_remove(&from->out, to, NULL);
    for (size_t i = 0; i < graph->link_count; i++) {
        if (graph->links[i].from == from && graph->links[i].to == to) {
            graph->links[i] = graph->links[--graph->link_count];
            return CUDA_SUCCESS;
        }
    }
    return from->travelled && to->travelled ? hws_call_hwsGraphRemoveEdges(hws_graph_handle(graph), 1, &link)
                                            : CUDA_SUCCESS;
}

static CUresult change_dependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                    const CUgraphEdgeData *data, size_t count,
                                    CUresult (*change)(hws_graph_t *graph, CUgraphNode from, CUgraphNode to,
                                                       const CUgraphEdgeData *data)) {
    HWS_TAKE_GRAPH(graph, handle);
    HWS_REQUIRE(count == 0 || (from != NULL && to != NULL));
    if (graph->has_memory && change == remove_dependency) {
        return CUDA_ERROR_NOT_SUPPORTED; /* CUDA: edges of such a graph cannot be deleted */
    }
    for (size_t i = 0; i < count; i++) {
        HWS_TRY(change(graph, from[i], to[i], data == NULL ? NULL : &data[i]));
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                              const CUgraphEdgeData *edgeData, size_t numDependencies) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = change_dependencies(hGraph, from, to, edgeData, numDependencies, add_dependency);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                           size_t numDependencies) {
    return cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

HWS_EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                                 const CUgraphEdgeData *edgeData, size_t numDependencies) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = change_dependencies(hGraph, from, to, edgeData, numDependencies, remove_dependency);
    hws_graph_unlock();
    return result;
}

HWS_EXPORT CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                              size_t numDependencies) {
    return cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

static bool has_edge(const hws_node_t *node, uint32_t from_mark) {
    size_t at = 0;
    while (at < node->in.count && node->in.items[at].node->mark != from_mark) {
        at++;
    }
    return at < node->in.count;
}

static bool is_alike(const hws_node_t *some, const hws_node_t *other) {
    bool alike = some->params.type == other->params.type && some->in.count == other->in.count;
    for (size_t i = 0; i < some->in.count && alike; i++) {
        alike = has_edge(other, some->in.items[i].node->mark);
    }
    return alike;
}

/* Marks each node with its place, or with 0. */
static void mark(const hws_graph_t *graph, bool placed) {
    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->mark = placed ? (uint32_t) i : 0;
    }
}

bool hws_graph_is_alike(const hws_graph_t *some, const hws_graph_t *other) {
    bool alike = some->count == other->count;
    mark(some, true);
    mark(other, true);
    for (size_t i = 0; i < some->count && alike; i++) {
        alike = is_alike(some->nodes[i], other->nodes[i]);
    }
    mark(some, false);
    mark(other, false);
    return alike;
}

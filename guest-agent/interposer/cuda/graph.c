/* Graphs and their nodes: creates, copies and destroys them. */
#include "graph.h"

#include "capture.h"

#include "hws_cuda_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hws_retained *dropped; /* of ended graphs */

void hws_graph_lock(void) {
    pthread_mutex_lock(&lock);
}

void hws_graph_unlock(void) {
    struct hws_retained *over = dropped;
    dropped = NULL;
    pthread_mutex_unlock(&lock);
    hws_retained_drop(over);
}

const hws_graph_t *hws_graph_root(const hws_graph_t *graph) {
    while (graph->owner != NULL) {
        graph = graph->owner->graph;
    }
    return graph;
}

void hws_graph_each(const hws_graph_t *graph, hws_node_visitor_t *visit, void *argument) {
    for (size_t i = 0; i < graph->count; i++) {
        const hws_graph_t *inner;
        visit(graph->nodes[i], argument);
        for (size_t at = 0; (inner = hws_params_inner(&graph->nodes[i]->params, at)) != NULL; at++) {
            hws_graph_each(inner, visit, argument);
        }
    }
}

typedef struct hws_search {
    bool (*match)(const hws_node_t *node);
    bool found;
} hws_search_t;

static void search(hws_node_t *node, void *argument) {
    hws_search_t *open = argument;
    open->found = open->found || open->match(node);
}

bool hws_graph_contains(const hws_graph_t *graph, bool (*match)(const hws_node_t *node)) {
    hws_search_t open = {.match = match};
    hws_graph_each(graph, search, &open);
    return open.found;
}

hws_node_t *hws_graph_node(const hws_graph_t *graph, uint32_t index) {
    size_t low = 0, high = graph->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (graph->nodes[middle]->index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < graph->count && graph->nodes[low]->index == index ? graph->nodes[low] : NULL;
}

CUresult hws_graph_make(hws_graph_t **graph_p) {
    hws_graph_t *graph = calloc(1, sizeof *graph);
    uint64_t handle = graph == NULL ? 0 : hws_handle_new(HWS_KIND_GRAPH);
    if (handle == 0) {
        free(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->handle = handle;
    hws_handle_attach(HWS_KIND_GRAPH, handle, graph);
    *graph_p = graph;
    return CUDA_SUCCESS;
}

/* Frees the contents of the node; its structure stays with the handle's slot. */
static void clear_node(hws_node_t *node) {
    hws_params_drop(&node->params);
    free(node->in.items);
    free(node->out.items);
    node->in = node->out = (hws_edges_t) {0};
    hws_handle_drop(HWS_KIND_GRAPH_NODE, node->handle);
}

void hws_graph_end(hws_graph_t *graph) {
    bool travelled = graph->travelled;
    uint64_t handle = graph->handle;
    hws_graph_memory_forget(graph);
    if (travelled) {
        /* First: inner graphs follow their outer one. A later call reports an error, as for all such calls. */
        (void) hws_call_hwsGraphDestroy(hws_graph_handle(graph));
    }
    for (size_t i = 0; i < graph->count; i++) {
        clear_node(graph->nodes[i]);
    }
    free(graph->nodes);
    free(graph->links);
    dropped = hws_retained_join(graph->retained, dropped);
    graph->nodes = NULL;
    graph->links = NULL;
    graph->retained = NULL;
    graph->count = graph->link_count = 0;
    hws_handle_drop(HWS_KIND_GRAPH, handle);
}

static bool append(hws_graph_t *graph, hws_node_t *node) {
    if (graph->count == graph->capacity) {
        size_t wanted = graph->capacity == 0 ? 16 : 2 * graph->capacity;
        hws_node_t **larger = realloc(graph->nodes, wanted * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        graph->nodes = larger;
        graph->capacity = wanted;
    }
    graph->nodes[graph->count++] = node;
    return true;
}

/* Makes a node with that index, without edges; takes the parameters. */
static CUresult make_node(hws_graph_t *graph, uint32_t index, hws_params_t *params, hws_node_t **node_p) {
    hws_node_t *node = calloc(1, sizeof *node);
    uint64_t handle = node == NULL ? 0 : hws_handle_new(HWS_KIND_GRAPH_NODE);
    if (handle == 0 || !append(graph, node)) {
        if (handle != 0) {
            hws_handle_drop(HWS_KIND_GRAPH_NODE, handle);
        }
        free(node);
        hws_params_drop(params);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->handle = handle;
    node->graph = graph;
    node->index = index;
    node->params = *params;
    hws_graph_t *inner;
    for (size_t at = 0; (inner = hws_params_inner(params, at)) != NULL; at++) {
        inner->owner = node;
    }
    graph->has_memory = graph->has_memory || hws_params_use_memory(params);
    hws_handle_attach(HWS_KIND_GRAPH_NODE, handle, node);
    *node_p = node;
    return CUDA_SUCCESS;
}

CUresult hws_graph_check_dependencies(const hws_graph_t *graph, const CUgraphNode *dependencies,
                                      const CUgraphEdgeData *data, size_t count) {
    static uint32_t last_mark;
    HWS_REQUIRE(count == 0 || dependencies != NULL);
    uint32_t mark = ++last_mark;
    for (size_t i = 0; i < count; i++) {
        HWS_TAKE_NODE(from, dependencies[i]);
        HWS_REQUIRE(from->graph == graph && from->mark != mark);
        HWS_TRY(hws_edges_check(from, data == NULL ? NULL : &data[i]));
        from->mark = mark;
    }
    return CUDA_SUCCESS;
}

CUresult hws_node_add(hws_graph_t *graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                      hws_params_t *params, hws_node_t **node_p) {
    hws_node_t *node;
    CUresult result = hws_graph_check_dependencies(graph, dependencies, data, count);
    if (result != CUDA_SUCCESS) {
        hws_params_drop(params);
        return result;
    }
    HWS_TRY(make_node(graph, graph->next_index, params, &node));
    graph->next_index++;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = hws_graph_connect(hws_node_get(dependencies[i]), node, data == NULL ? NULL : &data[i]);
    }
    if (result != CUDA_SUCCESS) {
        hws_node_end(node);
        return result;
    }
    *node_p = node;
    return CUDA_SUCCESS;
}

void hws_node_end(hws_node_t *node) {
    hws_graph_t *graph = node->graph;
    for (size_t i = 0; i < node->in.count; i++) {
        hws_edges_remove(&node->in.items[i].node->out, node, NULL);
    }
    for (size_t i = 0; i < node->out.count; i++) {
        hws_edges_remove(&node->out.items[i].node->in, node, NULL);
    }
    size_t kept = 0;
    for (size_t i = 0; i < graph->link_count; i++) {
        if (graph->links[i].from != node && graph->links[i].to != node) {
            graph->links[kept++] = graph->links[i];
        }
    }
    graph->link_count = kept;
    if (node->travelled) {
        (void) hws_call_hwsGraphRemoveNode(hws_graph_handle(graph), node->index);
    }
    size_t at = 0;
    while (graph->nodes[at] != node) {
        at++;
    }
    memmove(&graph->nodes[at], &graph->nodes[at + 1], (graph->count - at - 1) * sizeof *graph->nodes);
    graph->count--;
    clear_node(node);
}

/* The kernel's arguments go into the block that the program may hold. Attributes are not set. */
static CUresult set_kernel(hws_node_kernel_t *kernel, const hws_node_kernel_t *to) {
    const hws_function_t *known = hws_function_get(to->function);
    if (known == NULL) {
        return CUDA_ERROR_INVALID_HANDLE; /* another thread has unloaded it in the meantime */
    }
    hws_shape_t shape = to->shape;
    shape.flags = kernel->shape.flags;
    shape.attributes = kernel->shape.attributes;
    shape.attribute_count = kernel->shape.attribute_count;
    HWS_TRY(hws_launch_check_clusters(known, &shape));
    if (!hws_arguments_replace(&kernel->arguments, to->arguments->packed, known)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    kernel->function = to->function;
    kernel->params_bytes = to->params_bytes;
    kernel->packed_given = to->packed_given;
    kernel->shape = shape;
    return CUDA_SUCCESS;
}

CUresult hws_node_set(hws_node_t *node, hws_params_t *params) {
    if (params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        CUresult result = set_kernel(&node->params.kernel, &params->kernel);
        if (result == CUDA_SUCCESS && params->context != NULL) { /* else the thread has no context */
            node->params.context = params->context;
        }
        hws_params_drop(params);
        HWS_TRY(result);
    } else {
        hws_params_drop(&node->params);
        node->params = *params;
    }
    node->changed = node->travelled;
    return CUDA_SUCCESS;
}

CUresult hws_graph_copy(const hws_graph_t *graph, hws_graph_t **copy_p) {
    hws_graph_t *copy;
    HWS_TRY(hws_graph_make(&copy));
    CUresult result = hws_retained_share(graph->retained, &copy->retained);
    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
        hws_params_t params;
        hws_node_t *node;
        result = hws_params_duplicate(&graph->nodes[i]->params, &params);
        if (result == CUDA_SUCCESS) {
            result = make_node(copy, graph->nodes[i]->index, &params, &node);
        }
    }
    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
        const hws_edges_t *in = &graph->nodes[i]->in;
        for (size_t j = 0; j < in->count && result == CUDA_SUCCESS; j++) {
            result =
                hws_graph_connect(hws_graph_node(copy, in->items[j].node->index), copy->nodes[i], &in->items[j].data);
        }
    }
    if (result != CUDA_SUCCESS) {
        hws_graph_end(copy);
        return result;
    }
    copy->next_index = copy->cloned_nodes = graph->next_index;
    copy->cloned_from = graph->handle;
    *copy_p = copy;
    return CUDA_SUCCESS;
}

CUresult hws_params_child(CUgraph graph, CUgraphChildGraphNodeOwnership ownership, hws_params_t *params_p) {
    HWS_TAKE_GRAPH(inner, graph);
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    HWS_TRY(hws_conditional_check_copy(inner));
    if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        HWS_REQUIRE(inner->owner == NULL && !inner->capturing);
        inner->moved = true;
        params_p->child = inner;
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
    HWS_TRY(hws_graph_memory_check_copy(inner));
    return hws_graph_copy(inner, &params_p->child);
}

HWS_EXPORT CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phGraph != NULL && flags == 0);
    hws_graph_t *graph;
    HWS_TRY(hws_graph_make(&graph));
    *phGraph = hws_graph_handle(graph);
    return CUDA_SUCCESS;
}

static CUresult destroy(CUgraph handle) {
    HWS_TAKE_GRAPH(graph, handle);
    if (graph->capturing) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    HWS_REQUIRE(graph->owner == NULL); /* it belongs to its node */
    hws_graph_end(graph);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphDestroy(CUgraph hGraph) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = destroy(hGraph);
    hws_graph_unlock();
    return result;
}

static CUresult clone_graph(CUgraph original, CUgraph *clone_p) {
    HWS_TAKE_GRAPH(graph, original);
    HWS_TRY(hws_graph_memory_check_copy(graph));
    HWS_TRY(hws_conditional_check_copy(graph));
    hws_graph_t *copy;
    HWS_TRY(hws_graph_copy(graph, &copy));
    *clone_p = hws_graph_handle(copy);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phGraphClone != NULL);
    hws_graph_lock();
    CUresult result = clone_graph(originalGraph, phGraphClone);
    hws_graph_unlock();
    return result;
}

static CUresult find_in_clone(CUgraphNode original, CUgraph clone, CUgraphNode *node_p) {
    HWS_TAKE_NODE(node, original);
    HWS_TAKE_GRAPH(graph, clone);
    HWS_REQUIRE(graph->cloned_from == node->graph->handle && node->index < graph->cloned_nodes);
    const hws_node_t *found = hws_graph_node(graph, node->index);
    HWS_REQUIRE(found != NULL);
    *node_p = hws_node_handle(found);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phNode != NULL);
    hws_graph_lock();
    CUresult result = find_in_clone(hOriginalNode, hClonedGraph, phNode);
    hws_graph_unlock();
    return result;
}

static CUresult destroy_node(CUgraphNode handle) {
    HWS_TAKE_NODE(node, handle);
    if (hws_capture_fills(node->graph->handle)) {
        return CUDA_ERROR_ILLEGAL_STATE; /* the capture's next node may depend on it */
    }
    HWS_TRY(hws_graph_memory_check_copy(node->graph)); /* CUDA: nor can a node of such a graph be removed */
    hws_node_end(node);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphDestroyNode(CUgraphNode hNode) {
    HWS_ENTER_LOCAL();
    hws_graph_lock();
    CUresult result = destroy_node(hNode);
    hws_graph_unlock();
    return result;
}

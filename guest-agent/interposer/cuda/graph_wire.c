/*
 * Sends the worker the changes of a graph: blobs of descriptions in the format of graph.yaml. A node travels once, and
 * again after its parameters have changed.
 */
#include "graph_call.h"
#include "stream_memory.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

/* Descriptions that are sent together. */
typedef struct hws_blob {
    hws_graph_t *graph;
    CUresult (*send)(CUgraph graph, uint32_t node_count, uint32_t blob_bytes, const void *blob);
    uint8_t *bytes;
    size_t used, capacity;
    uint32_t count;
} hws_blob_t;

static void *grow(hws_blob_t *blob, size_t bytes) {
    if (blob->capacity - blob->used < bytes) {
        size_t wanted = blob->capacity == 0 ? 4096 : blob->capacity;
        while (wanted - blob->used < bytes) {
            wanted *= 2;
        }
        uint8_t *larger = realloc(blob->bytes, wanted);
        if (larger == NULL) {
            return NULL;
        }
        blob->bytes = larger;
        blob->capacity = wanted;
    }
    void *at = blob->bytes + blob->used;
    memset(at, 0, bytes);
    blob->used += bytes;
    return at;
}

static CUresult send_blob(hws_blob_t *blob) {
    if (blob->count == 0) {
        return CUDA_SUCCESS;
    }
    CUresult result = blob->send(hws_graph_handle(blob->graph), blob->count, (uint32_t) blob->used, blob->bytes);
    blob->used = blob->count = 0;
    return result;
}

static bool put(hws_blob_t *blob, const void *value, size_t bytes) {
    void *at = grow(blob, (bytes + 7) / 8 * 8);
    if (at != NULL) {
        memcpy(at, value, bytes);
    }
    return at != NULL;
}

static bool put_kernel(hws_blob_t *blob, const hws_node_kernel_t *kernel) {
    const hws_shape_t *shape = &kernel->shape;
    const HwsLaunchShape *dims = &shape->dims;
    const uint32_t attributes_bytes = shape->attribute_count * (uint32_t) sizeof *shape->attributes;
    const HwsGraphKernel wire = {
        .function = (uint64_t) (uintptr_t) kernel->function,
        .gridDimX = dims->gridDimX,
        .gridDimY = dims->gridDimY,
        .gridDimZ = dims->gridDimZ,
        .blockDimX = dims->blockDimX,
        .blockDimY = dims->blockDimY,
        .blockDimZ = dims->blockDimZ,
        .sharedMemBytes = dims->sharedMemBytes,
        .launchFlags = shape->flags,
        .paramsBytes = kernel->params_bytes,
        .attributesBytes = attributes_bytes,
    };
    return put(blob, &wire, sizeof wire) && put(blob, kernel->arguments->packed, kernel->params_bytes)
        && put(blob, shape->attributes, attributes_bytes);
}

static bool put_memory_ops(hws_blob_t *blob, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params) {
    HwsMemoryOp *ops = grow(blob, params->count * sizeof *ops);
    if (ops != NULL) {
        hws_memory_ops_describe(params->paramArray, params->count, ops);
    }
    return ops != NULL;
}

static bool put_memset(hws_blob_t *blob, const CUDA_MEMSET_NODE_PARAMS *params) {
    const HwsGraphMemset wire = {.dst = params->dst,
                                 .pitch = params->pitch,
                                 .width = params->width,
                                 .height = params->height,
                                 .value = params->value,
                                 .elementSize = params->elementSize};
    return put(blob, &wire, sizeof wire);
}

/*
 * The guest does a copy within the process itself: the worker sees a host node. What a library does is a graph of the
 * worker.
 */
static CUgraphNodeType wire_type(const hws_params_t *params) {
    if (params->type == HWS_NODE_LIBRARY) {
        return CU_GRAPH_NODE_TYPE_GRAPH;
    }
    return params->type == CU_GRAPH_NODE_TYPE_MEMCPY && params->copy.on_host ? CU_GRAPH_NODE_TYPE_HOST : params->type;
}

static bool put_params(hws_blob_t *blob, const hws_params_t *params) {
    uint64_t word = hws_graph_call_id(params->call);
    HwsGraphCopy copy;
    switch (wire_type(params)) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return put_kernel(blob, &params->kernel);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            hws_copy_describe(params, &copy);
            return put(blob, &copy, sizeof copy);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return put_memset(blob, &params->memset);
        case CU_GRAPH_NODE_TYPE_HOST:
            return put(blob, &word, sizeof word);
        case CU_GRAPH_NODE_TYPE_GRAPH:
            word =
                params->type == HWS_NODE_LIBRARY ? (uint64_t) (uintptr_t) params->library.graph : params->child->handle;
            return put(blob, &word, sizeof word);
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            word = (uint64_t) (uintptr_t) params->event;
            return put(blob, &word, sizeof word);
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            word = params->address;
            return put(blob, &word, sizeof word);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return put_memory_ops(blob, &params->memory_ops);
        default:
            return true; /* an empty node */
    }
}

/* Appends one description with the dependencies of the node. */
static bool put_node(hws_blob_t *blob, const hws_params_t *params, uint32_t index, const hws_edges_t *in) {
    size_t start = blob->used;
    uint32_t dependencies = 0;
    if (grow(blob, sizeof(HwsGraphNode)) == NULL) {
        return false;
    }
    for (size_t i = 0; in != NULL && i < in->count; i++) {
        const hws_edge_t *edge = &in->items[i];
        if (edge->node->index < index) {
            const HwsGraphEdge wire = {.from = edge->node->index,
                                       .fromPort = edge->data.from_port,
                                       .toPort = edge->data.to_port,
                                       .type = edge->data.type};
            if (!put(blob, &wire, sizeof wire)) {
                return false;
            }
            dependencies++;
        }
    }
    size_t behind = blob->used;
    if (!put_params(blob, params)) {
        return false;
    }
    const HwsGraphNode node = {.index = index,
                               .type = wire_type(params),
                               .dependencyCount = dependencies,
                               .bytes = (uint32_t) (blob->used - behind),
                               .context = (uint64_t) (uintptr_t) params->context};
    memcpy(blob->bytes + start, &node, sizeof node);
    blob->count++;
    return true;
}

/* Appends a node's description. If the record would get too long, it first sends the descriptions before. */
static CUresult append(hws_blob_t *blob, const hws_params_t *params, uint32_t index, const hws_edges_t *in) {
    size_t before = blob->used;
    if (!put_node(blob, params, index, in)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint32_t limit = hws_channel_welcome()->max_bulk_bytes;
    if (blob->used <= limit) {
        return CUDA_SUCCESS;
    }
    size_t own = blob->used - before;
    if (before == 0 || own > limit) {
        return CUDA_ERROR_OUT_OF_MEMORY; /* a node with 130,000 dependencies */
    }
    uint8_t *rest = malloc(own);
    if (rest == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(rest, blob->bytes + before, own);
    blob->used = before;
    blob->count--;
    CUresult result = send_blob(blob);
    memcpy(blob->bytes, rest, own);
    blob->used = own;
    blob->count = 1;
    free(rest);
    return result;
}

static CUresult send_links(hws_graph_t *graph, const HwsGraphLink *links, size_t count) {
    size_t most = hws_channel_welcome()->max_bulk_bytes / sizeof *links;
    for (size_t at = 0; at < count; at += most) {
        size_t part = count - at < most ? count - at : most;
        HWS_TRY(hws_call_hwsGraphAddEdges(hws_graph_handle(graph), (uint32_t) part, links + at));
    }
    return CUDA_SUCCESS;
}

/* Sends edges that no description contains: to a node with a smaller index, or between nodes that the worker had. */
static CUresult flush_links(hws_graph_t *graph, uint32_t first_new) {
    size_t count = graph->link_count, at = 0;
    for (size_t i = 0; i < graph->count; i++) {
        count += graph->nodes[i]->index >= first_new ? graph->nodes[i]->out.count : 0;
    }
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    HwsGraphLink *links = malloc(count * sizeof *links);
    if (links == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < graph->link_count; i++) {
        const hws_link_t *link = &graph->links[i];
        links[at++] = (HwsGraphLink) {.from = link->from->index, .to = link->to->index, .data = link->data};
    }
    for (size_t i = 0; i < graph->count; i++) {
        const hws_node_t *node = graph->nodes[i];
        for (size_t j = 0; node->index >= first_new && j < node->out.count; j++) {
            const hws_edge_t *edge = &node->out.items[j];
            if (edge->node->index < node->index) {
                links[at++] = (HwsGraphLink) {.from = node->index, .to = edge->node->index, .data = edge->data};
            }
        }
    }
    CUresult result = at == 0 ? CUDA_SUCCESS : send_links(graph, links, at);
    free(links);
    graph->link_count = result == CUDA_SUCCESS ? 0 : graph->link_count;
    return result;
}

static void note_sent(const hws_node_t *node) {
    if (node->params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
        const hws_node_kernel_t *kernel = &node->params.kernel;
        memcpy(kernel->arguments->sent, kernel->arguments->packed, kernel->params_bytes);
    }
}

/* Whether the program has written into the arguments that it received. CUDA uses such values even without a set. */
static bool is_written(const hws_node_t *node) {
    const hws_node_kernel_t *kernel = &node->params.kernel;
    return node->params.type == CU_GRAPH_NODE_TYPE_KERNEL && kernel->arguments->shown
        && memcmp(kernel->arguments->sent, kernel->arguments->packed, kernel->params_bytes) != 0;
}

static CUresult flush_changed(hws_graph_t *graph) {
    hws_blob_t blob = {.graph = graph, .send = hws_call_hwsGraphSetNodes};
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
        hws_node_t *node = graph->nodes[i];
        if (node->travelled && (node->changed || is_written(node))) {
            result = append(&blob, &node->params, node->index, NULL);
            note_sent(node);
            node->changed = result != CUDA_SUCCESS;
        }
    }
    result = result == CUDA_SUCCESS ? send_blob(&blob) : result;
    free(blob.bytes);
    return result;
}

static CUresult flush_new(hws_graph_t *graph, uint32_t *first_new_p) {
    hws_blob_t blob = {.graph = graph, .send = hws_call_hwsGraphAddNodes};
    CUresult result = CUDA_SUCCESS;
    *first_new_p = UINT32_MAX;
    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
        hws_node_t *node = graph->nodes[i];
        if (!node->travelled) {
            *first_new_p = node->index < *first_new_p ? node->index : *first_new_p;
            result = append(&blob, &node->params, node->index, &node->in);
            note_sent(node);
            node->travelled = result == CUDA_SUCCESS;
            node->changed = false;
        }
    }
    result = result == CUDA_SUCCESS ? send_blob(&blob) : result;
    free(blob.bytes);
    return result;
}

/* The worker knows bodies since their node was added. A body that is not known yet belongs to a node being added. */
static CUresult flush_bodies(const hws_node_conditional_t *conditional) {
    for (unsigned i = 0; i < conditional->shown.size && conditional->bodies[i]->travelled; i++) {
        HWS_TRY(hws_graph_flush(conditional->bodies[i]));
    }
    return CUDA_SUCCESS;
}

CUresult hws_graph_flush(hws_graph_t *graph) {
    if (!graph->travelled) {
        HWS_TRY(hws_call_hwsGraphCreate(hws_graph_handle(graph), 0));
        graph->travelled = true;
    }
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->params.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            HWS_TRY(hws_graph_flush(graph->nodes[i]->params.child));
        }
    }
    uint32_t first_new;
    HWS_TRY(flush_changed(graph));
    HWS_TRY(flush_new(graph, &first_new));
    HWS_TRY(flush_links(graph, first_new));
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            HWS_TRY(flush_bodies(&graph->nodes[i]->params.conditional));
        }
    }
    return CUDA_SUCCESS;
}

CUresult hws_graph_describe(const hws_params_t *params, uint32_t index, uint8_t **blob_p, uint32_t *bytes_p) {
    hws_blob_t blob = {0};
    if (!put_node(&blob, params, index, NULL)) {
        free(blob.bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *blob_p = blob.bytes;
    *bytes_p = (uint32_t) blob.used;
    return CUDA_SUCCESS;
}

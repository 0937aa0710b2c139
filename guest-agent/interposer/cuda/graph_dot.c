/* cuGraphDebugDotPrint: a graph as text for graphviz. */
#include "graph.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = {
    "KERNEL",       "MEMCPY",           "MEMSET",         "HOST",      "GRAPH",    "EMPTY",        "WAIT_EVENT",
    "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL"};

static const char *name_of(const hws_params_t *params) {
    return params->type == HWS_NODE_LIBRARY ? "KERNEL\\nmath library" : names[params->type];
}

static bool is_kernel(const hws_params_t *params) {
    return params->type == CU_GRAPH_NODE_TYPE_KERNEL || params->type == HWS_NODE_LIBRARY;
}

static bool wants(unsigned flags, unsigned what) {
    return (flags & (what | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
}

static void put_params(FILE *file, const hws_params_t *params, unsigned flags) {
    const HwsLaunchShape *dims = &params->kernel.shape.dims;
    const CUDA_MEMCPY3D *copy = &params->copy.copy;
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            fprintf(file, "\\n%s",
                    hws_function_get(params->kernel.function) == NULL
                        ? "?"
                        : hws_function_get(params->kernel.function)->name);
            if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)) {
                fprintf(file, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", dims->gridDimX, dims->gridDimY, dims->gridDimZ,
                        dims->blockDimX, dims->blockDimY, dims->blockDimZ, dims->sharedMemBytes);
            }
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) {
                fprintf(file, "\\n%zu x %zu x %zu bytes", copy->WidthInBytes, copy->Height, copy->Depth);
            }
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) {
                fprintf(file, "\\n%zu x %zu of %u bytes: %u", params->memset.width, params->memset.height,
                        params->memset.elementSize, params->memset.value);
            }
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) {
                fprintf(file, "\\n%zu bytes", params->alloc.bytesize);
            }
            break;
        default:
            break;
    }
}

static void put_graph(FILE *file, const hws_graph_t *graph, unsigned flags) {
    fprintf(file, "subgraph \"cluster_%" PRIx64 "\" {\nlabel=\"graph_%u\"\n", graph->handle,
            (unsigned) (graph->handle & 0xFFFFF));
    for (size_t i = 0; i < graph->count; i++) {
        const hws_node_t *node = graph->nodes[i];
        fprintf(file, "\"n%" PRIx64 "\" [shape=%s label=\"%u %s", node->handle,
                is_kernel(&node->params) ? "octagon" : "rectangle", node->index, name_of(&node->params));
        put_params(file, &node->params, flags);
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) {
            fprintf(file, "\\nhandle 0x%" PRIx64, node->handle);
        }
        fputs("\"];\n", file);
        const hws_graph_t *inner;
        for (size_t at = 0; (inner = hws_params_inner(&node->params, at)) != NULL; at++) {
            put_graph(file, inner, flags);
        }
    }
    for (size_t i = 0; i < graph->count; i++) {
        const hws_edges_t *out = &graph->nodes[i]->out;
        for (size_t j = 0; j < out->count; j++) {
            fprintf(file, "\"n%" PRIx64 "\" -> \"n%" PRIx64 "\"%s;\n", graph->nodes[i]->handle,
                    out->items[j].node->handle,
                    out->items[j].data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ? " [style=dashed]" : "");
        }
    }
    fputs("}\n", file);
}

HWS_EXPORT CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(path != NULL);
    hws_graph_lock();
    const hws_graph_t *graph = hws_graph_get(hGraph);
    FILE *file = graph == NULL ? NULL : fopen(path, "we");
    CUresult result = graph == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (file == NULL) {
        result = graph == NULL ? result : CUDA_ERROR_OPERATING_SYSTEM;
    } else {
        fputs("digraph dot {\n", file);
        put_graph(file, graph, flags);
        bool written = fputs("}\n", file) >= 0;
        result = fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
    }
    hws_graph_unlock();
    return result;
}

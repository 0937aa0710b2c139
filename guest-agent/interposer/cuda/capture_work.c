/* Work in a stream that captures becomes nodes after the stream's earlier captured nodes. */
#include "capture_state.h"
#include "context.h"
#include "graph_memory.h"

#include <stdlib.h>

/* Finds the stream's entry if it still captures. */
static CUresult entry_of(CUstream stream, hws_capture_stream_t **entry_p) {
    *entry_p = hws_capture_find(stream);
    if (*entry_p == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE; /* another thread has ended it in the meantime */
    }
    return (*entry_p)->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

static CUresult add(CUstream stream, hws_params_t *params) {
    hws_capture_stream_t *entry;
    CUresult result = entry_of(stream, &entry);
    hws_graph_t *graph = result == CUDA_SUCCESS ? hws_graph_get((CUgraph) (uintptr_t) entry->capture->graph) : NULL;
    if (graph == NULL) {
        hws_params_drop(params);
        return result == CUDA_SUCCESS ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : result;
    }
    hws_node_t *node;
    const hws_frontier_t *before = &entry->frontier;
    result = hws_node_add(graph, before->nodes, before->data, before->count, params, &node);
    if (result != CUDA_SUCCESS) {
        entry->capture->invalid = true;
        return result;
    }
    const CUgraphNode handle = hws_node_handle(node);
    return hws_frontier_set(&entry->frontier, &handle, NULL, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hws_capture_add(CUstream stream, CUresult taken, struct hws_params *params) {
    HWS_TRY(taken);
    hws_graph_lock();
    CUresult result = add(stream, params);
    hws_graph_unlock();
    return result;
}

static hws_capture_use_t *use_of(const hws_capture_t *capture, uint64_t object) {
    hws_capture_use_t *use = capture->uses;
    while (use != NULL && use->object != object) {
        use = use->next;
    }
    return use;
}

void hws_capture_begin_use(CUstream stream, uint64_t object) {
    hws_graph_lock();
    hws_capture_stream_t *entry = hws_capture_find(stream);
    const hws_capture_use_t *use = entry == NULL ? NULL : use_of(entry->capture, object);
    const hws_node_t *last = use == NULL ? NULL : hws_node_get(use->node); /* NULL: the program has removed it */
    if (last != NULL && !hws_frontier_join(&entry->frontier, &use->node, NULL, 1)) {
        entry->capture->invalid = true;
    }
    hws_graph_unlock();
}

void hws_capture_end_use(CUstream stream, uint64_t object) {
    hws_graph_lock();
    hws_capture_stream_t *entry = hws_capture_find(stream);
    if (entry != NULL && entry->frontier.count == 1) { /* otherwise the use has made no node */
        hws_capture_use_t *use = use_of(entry->capture, object);
        if (use == NULL && (use = calloc(1, sizeof *use)) != NULL) {
            *use = (hws_capture_use_t) {.next = entry->capture->uses, .object = object};
            entry->capture->uses = use;
        }
        if (use != NULL) {
            use->node = entry->frontier.nodes[0];
        } else {
            entry->capture->invalid = true;
        }
    }
    hws_graph_unlock();
}

/*
 * Handles the attribute that lets a kernel start before the preceding kernel has ended. Removes it from the node, where
 * it would have no effect, and makes it the type of the edges from preceding kernels.
 */
static void serialise(CUstream stream, hws_params_t *params) {
    hws_shape_t *shape = &params->kernel.shape;
    CUlaunchAttribute *attributes = (CUlaunchAttribute *) (uintptr_t) shape->attributes;
    unsigned kept = 0;
    bool early = false;
    for (unsigned i = 0; i < shape->attribute_count; i++) {
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            early = attributes[i].value.programmaticStreamSerializationAllowed != 0;
        } else if (attributes[i].id != CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) {
            /*
             * Known deviation: a captured kernel loses its preferred cluster, because driver 580 accepts none for a
             * node.
             */
            attributes[kept++] = attributes[i];
        }
    }
    shape->attribute_count = kept;
    hws_capture_stream_t *entry = hws_capture_find(stream);
    for (size_t i = 0; early && entry != NULL && i < entry->frontier.count; i++) {
        const hws_node_t *node = hws_node_get(entry->frontier.nodes[i]);
        if (node != NULL && node->params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
            entry->frontier.data[i] = (CUgraphEdgeData) {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                                         .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
        }
    }
}

CUresult hws_capture_kernel(CUfunction function, const struct hws_shape *shape, void **kernel_params, void **extra) {
    hws_params_t params;
    CUresult taken = hws_params_launch(function, shape, kernel_params, extra, &params);
    if (taken != CUDA_SUCCESS) {
        return hws_capture_spoil(shape->stream, taken);
    }
    hws_graph_lock();
    if (params.kernel.shape.attribute_count != 0) {
        serialise(shape->stream, &params);
    }
    CUresult result = add(shape->stream, &params);
    hws_graph_unlock();
    return result;
}

CUresult hws_capture_box(const CUDA_MEMCPY3D *copy, CUstream stream) {
    hws_params_t params;
    if (copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0) {
        return CUDA_SUCCESS; /* CUDA captures no node for it */
    }
    return hws_capture_add(stream, hws_params_copy(copy, NULL, &params), &params);
}

CUresult hws_capture_bytes(CUdeviceptr dst, CUmemorytype dst_type, CUdeviceptr src, CUmemorytype src_type, size_t bytes,
                           CUstream stream) {
    const CUDA_MEMCPY3D copy = {
        .srcMemoryType = src_type,
        .srcDevice = src_type == CU_MEMORYTYPE_HOST ? 0 : src,
        .srcHost = src_type == CU_MEMORYTYPE_HOST ? (const void *) (uintptr_t) src : NULL,
        .srcPitch = bytes,
        .dstMemoryType = dst_type,
        .dstDevice = dst_type == CU_MEMORYTYPE_HOST ? 0 : dst,
        .dstHost = dst_type == CU_MEMORYTYPE_HOST ? (void *) (uintptr_t) dst : NULL,
        .dstPitch = bytes,
        .srcHeight = 1,
        .dstHeight = 1,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
    return hws_capture_box(&copy, stream);
}

CUresult hws_capture_memset(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element_bytes, size_t width,
                            size_t height, CUstream stream) {
    if (width == 0 || height == 0) {
        return CUDA_SUCCESS;
    }
    const CUDA_MEMSET_NODE_PARAMS from = {
        .dst = dst, .pitch = pitch, .value = value, .elementSize = element_bytes, .width = width, .height = height};
    hws_params_t params;
    return hws_capture_add(stream, hws_params_memset(&from, NULL, &params), &params);
}

CUresult hws_capture_memory_ops(CUstream stream, const CUstreamBatchMemOpParams *ops, unsigned count) {
    const CUDA_BATCH_MEM_OP_NODE_PARAMS from = {.count = count,
                                                .paramArray = (CUstreamBatchMemOpParams *) (uintptr_t) ops};
    hws_params_t params;
    return hws_capture_add(stream, hws_params_memory_ops(&from, &params), &params);
}

CUresult hws_capture_host(CUstream stream, CUhostFn function, void *user_data) {
    const CUDA_HOST_NODE_PARAMS from = {function, user_data};
    hws_params_t params;
    return hws_capture_add(stream, hws_params_host(&from, &params), &params);
}

/* Copies the stream's place in its graph, because the call to the worker runs without the lock. */
static CUresult place_of(CUstream stream, CUgraph *graph_p, hws_frontier_t *frontier_p) {
    hws_capture_stream_t *entry;
    HWS_TRY(entry_of(stream, &entry));
    *graph_p = (CUgraph) (uintptr_t) entry->capture->graph;
    const hws_frontier_t *from = &entry->frontier;
    return hws_frontier_set(frontier_p, from->nodes, from->data, from->count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hws_capture_allocate(CUstream stream, const CUmemPoolProps *props, size_t bytes, CUdeviceptr *dptr_p) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = *props, .bytesize = bytes};
    hws_frontier_t frontier = {0};
    CUgraph graph;
    CUgraphNode node;
    hws_graph_lock();
    CUresult result = place_of(stream, &graph, &frontier);
    hws_graph_unlock();
    if (result == CUDA_SUCCESS) {
        result = hws_graph_memory_allocate(graph, frontier.nodes, frontier.data, frontier.count, &params, &node);
    }
    hws_frontier_free(&frontier);
    HWS_TRY(result);
    hws_capture_stream_t *entry;
    hws_graph_lock();
    result = entry_of(stream, &entry);
    if (result == CUDA_SUCCESS && !hws_frontier_set(&entry->frontier, &node, NULL, 1)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_graph_unlock();
    *dptr_p = params.dptr;
    return result;
}

static CUresult free_locked(CUstream stream, CUdeviceptr address) {
    hws_capture_stream_t *entry;
    HWS_TRY(entry_of(stream, &entry));
    const hws_graph_t *graph = hws_graph_get((CUgraph) (uintptr_t) entry->capture->graph);
    CUresult result =
        graph == NULL ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : hws_graph_memory_check_free(graph, address);
    HWS_TRY(result);
    hws_params_t params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address};
    return add(stream, &params);
}

CUresult hws_capture_free(CUstream stream, CUdeviceptr address) {
    hws_graph_lock();
    CUresult result = free_locked(stream, address);
    hws_graph_unlock();
    return result;
}

/*
 * Library nodes: calls of math libraries in captured streams. The worker lets the library make the call at once, and
 * keeps what it does as a graph. So the library's own result decides, and later changes of its handle do not matter.
 */
#include "capture_state.h"
#include "graph.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

/* The flags of hwsGraphCapture (graph.yaml). */
#define CAPTURE_INVALIDATED 1u
#define CAPTURE_USES_MEMORY 2u

#define MAX_BULK_BYTES (1u << 20) /* the record of hwsGraphCapture carries no more */

/* The record of the call in one piece: the fixed part, a multiple of 8 bytes, then a buffer padded to that. */
static uint8_t *join(const void *payload, uint32_t payload_bytes, const void *bulk, uint64_t bulk_bytes,
                     uint32_t *bytes_p) {
    if (payload_bytes % 8 != 0 || bulk_bytes > MAX_BULK_BYTES) {
        return NULL; /* no description makes such a call */
    }
    size_t bytes = payload_bytes + ((size_t) bulk_bytes + 7) / 8 * 8;
    uint8_t *record = calloc(1, bytes + 1);
    if (record != NULL) {
        memcpy(record, payload, payload_bytes);
        if (bulk_bytes != 0) {
            memcpy(record + payload_bytes, bulk, (size_t) bulk_bytes);
        }
        *bytes_p = (uint32_t) bytes;
    }
    return record;
}

/* Asks the worker. *made_p receives a node's parameters; its graph is NULL when the call needs no node. */
static int ask(uint32_t opcode, const uint8_t *record, uint32_t record_bytes, void *reply, uint32_t reply_capacity,
               uint32_t *reply_bytes_p, hws_node_library_t *made_p, bool *invalidated_p) {
    uint64_t id = hws_handle_new(HWS_KIND_GRAPH);
    if (id == 0) {
        return CUDA_ERROR_UNKNOWN;
    }
    const CUgraph graph = (CUgraph) (uintptr_t) id;
    uint32_t status = 0, nodes = 0, flags = 0, written = 0;
    CUresult result = hws_call_hwsGraphCapture(graph, opcode, reply_capacity, record_bytes, record, &status, &nodes,
                                               &flags, &written, reply);
    if (result != CUDA_SUCCESS || status != 0 || nodes == 0) {
        hws_handle_drop(HWS_KIND_GRAPH, id);
    } else {
        *made_p = (hws_node_library_t) {.graph = graph, .has_memory = (flags & CAPTURE_USES_MEMORY) != 0};
    }
    *invalidated_p = result == CUDA_SUCCESS && (flags & CAPTURE_INVALIDATED) != 0;
    if (reply_bytes_p != NULL) {
        *reply_bytes_p = written;
    }
    /* A library takes no result of the driver; this one is an internal error of each. */
    return result == CUDA_SUCCESS ? (int) status : CUDA_ERROR_UNKNOWN;
}

int hws_library_capture(CUstream stream, uint32_t opcode, const void *payload, uint32_t payload_bytes, const void *bulk,
                        uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    uint32_t record_bytes = 0;
    uint8_t *record = join(payload, payload_bytes, bulk, bulk_bytes, &record_bytes);
    if (record == NULL) {
        return CUDA_ERROR_UNKNOWN;
    }
    hws_params_t params = {.type = HWS_NODE_LIBRARY};
    bool invalidated = false;
    int status = ask(opcode, record, record_bytes, reply, reply_capacity, reply_bytes_p, &params.library, &invalidated);
    free(record);
    if (invalidated) {
        (void) hws_capture_refuse(stream);
    }
    if (params.library.graph == NULL) {
        return status;
    }
    return hws_capture_add(stream, CUDA_SUCCESS, &params) == CUDA_SUCCESS ? 0 : CUDA_ERROR_UNKNOWN;
}

CUresult hws_library_duplicate(const hws_node_library_t *from, hws_node_library_t *to) {
    if (from->has_memory) {
        return CUDA_ERROR_NOT_SUPPORTED; /* CUDA: an address belongs to one node */
    }
    uint64_t id = hws_handle_new(HWS_KIND_GRAPH);
    if (id == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *to = (hws_node_library_t) {.graph = (CUgraph) (uintptr_t) id};
    CUresult result = hws_call_hwsGraphCopy(to->graph, from->graph);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_GRAPH, id);
        to->graph = NULL;
    }
    return result;
}

void hws_library_drop(hws_node_library_t *library) {
    if (library->graph != NULL) {
        /* After the node, or without one. A later call reports an error, as for all such calls. */
        (void) hws_call_hwsGraphDestroy(library->graph);
        hws_handle_drop(HWS_KIND_GRAPH, (uint64_t) (uintptr_t) library->graph);
        library->graph = NULL;
    }
}

/*
 * Memory that graphs allocate and free. Its addresses are known as long as a graph holds them or memory is allocated
 * there.
 */
#ifndef HWS_GRAPH_MEMORY_H
#define HWS_GRAPH_MEMORY_H

#include "graph.h"

typedef struct hws_graph_memory hws_graph_memory_t;

/* The effects of a launch of an executable graph that outlast it. */
typedef struct hws_graph_effects {
    hws_graph_memory_t **held; /* everything that nodes allocate */
    size_t held_count;
    hws_graph_memory_t **allocated; /* the part of it that no node frees */
    size_t allocated_count;
    hws_graph_memory_t **freed; /* memory that nodes free and no node allocates; also held */
    size_t freed_count;
} hws_graph_effects_t;

/* Adds an allocation node. Requests its address from the worker, so the graphs' lock must not be held. */
CUresult hws_graph_memory_allocate(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                                   size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params, CUgraphNode *node_p);

/* Whether a free node of the graph may free the address. Graphs' lock held. */
CUresult hws_graph_memory_check_free(const hws_graph_t *graph, CUdeviceptr address);

/* Handles the program's free of a graph's address. CUDA_ERROR_INVALID_VALUE when no memory is allocated there. */
CUresult hws_graph_memory_freed(CUdeviceptr address);

/* Collects the effects of the graph's nodes and holds their addresses. Graphs' lock held. */
CUresult hws_graph_effects_of(const hws_graph_t *graph, hws_graph_effects_t *effects_p);
void hws_graph_effects_drop(hws_graph_effects_t *effects);

/* Applies the effects of a launch. CUDA_ERROR_INVALID_VALUE when memory of an earlier launch is still allocated. */
CUresult hws_graph_effects_launch(const hws_graph_effects_t *effects, bool frees_itself);

#endif

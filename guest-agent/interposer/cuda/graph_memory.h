/* Memory that graphs allocate and free: addresses are known as long as a graph, or memory behind them, is. */
#ifndef HWS_GRAPH_MEMORY_H
#define HWS_GRAPH_MEMORY_H

#include "graph.h"

typedef struct hws_graph_memory hws_graph_memory_t;

/* What a launch of an executable graph does to memory beyond its end. */
typedef struct hws_graph_effects {
    hws_graph_memory_t **held;      /* everything that a node allocates */
    size_t held_count;
    hws_graph_memory_t **allocated; /* those of them that no node frees */
    size_t allocated_count;
    hws_graph_memory_t **freed;     /* what nodes free and none allocates; held, too */
    size_t freed_count;
} hws_graph_effects_t;

/* Adds an allocation node: asks the worker for its address, so not with the graphs' lock. */
CUresult hws_graph_memory_allocate(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                                   size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params, CUgraphNode *node_p);

/* Whether a free node of the graph may free the address. Graphs' lock held. */
CUresult hws_graph_memory_check_free(const hws_graph_t *graph, CUdeviceptr address);

/* The program frees an address of a graph itself. CUDA_ERROR_INVALID_VALUE when there is no memory behind it. */
CUresult hws_graph_memory_freed(CUdeviceptr address);

/* What the graph's nodes do; holds the addresses. Graphs' lock held. */
CUresult hws_graph_effects_of(const hws_graph_t *graph, hws_graph_effects_t *effects_p);
void hws_graph_effects_drop(hws_graph_effects_t *effects);

/* Enters what a launch does. CUDA_ERROR_INVALID_VALUE when memory of an earlier one is still there. */
CUresult hws_graph_effects_launch(const hws_graph_effects_t *effects, bool frees_itself);

#endif

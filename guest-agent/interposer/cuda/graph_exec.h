/* Executable graphs in the guest: the data that launches and queries need. */
#ifndef HWS_GRAPH_EXEC_H
#define HWS_GRAPH_EXEC_H

#include "graph_call.h"
#include "graph_memory.h"

/* Names a node of the instantiated graph, or of an inner one. */
typedef struct hws_node_name {
    uint64_t graph;
    uint32_t index;
} hws_node_name_t;

typedef struct hws_exec_call {
    hws_node_name_t node;
    bool disabled;
    hws_graph_call_t *call; /* held */
} hws_exec_call_t;

/* Freed with its handle's slot. CUDA: a program must not make calls on one executable graph at the same time. */
typedef struct hws_exec {
    uint64_t handle;
    uint64_t graph; /* handle of the graph that it was instantiated from */
    uint32_t end;   /* the graph's nodes with lower indices existed then */
    cuuint64_t flags;
    hws_exec_call_t *calls;
    size_t call_count;
    hws_node_name_t *disabled;
    size_t disabled_count;
    hws_graph_effects_t effects;
    struct hws_retained *retained;
    bool single;            /* CUDA allows its graph no second instance */
    uint64_t device_handle; /* the driver's, which kernels and the program have; 0: kernels cannot launch it */
    struct hws_exec *next;  /* that kernels can launch */
    CUstream last_stream;
    bool launched;
} hws_exec_t;

/* Finds an executable graph by the driver's handle; NULL for none. */
hws_exec_t *hws_exec_find(CUgraphExec device_handle);

/*
 * Finds an executable graph by the program's handle; NULL for another value. The driver's handles are addresses above
 * all of ours: their upper bits are no kind.
 */
static inline hws_exec_t *hws_exec_get(CUgraphExec exec) {
    hws_exec_t *own = hws_handle_data(HWS_KIND_GRAPH_EXEC, (uint64_t) (uintptr_t) exec);
    return __builtin_expect(own != NULL, 1) ? own : hws_exec_find(exec);
}

/* Its name on the wire. */
static inline CUgraphExec hws_exec_handle(const hws_exec_t *exec) {
    return (CUgraphExec) (uintptr_t) exec->handle;
}

#endif

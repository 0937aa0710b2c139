/*
 * Graphs in the guest. A graph is a handle with nodes in the order of their creation; a node is a handle too. One lock,
 * hws_graph_lock(), guards everything. Calls on graphs are rare compared with launches, which take it only for a
 * moment. No thread waits for the worker while it holds the lock.
 */
#ifndef HWS_GRAPH_H
#define HWS_GRAPH_H

#include "hws_driver.h"
#include "launch.h"

typedef struct hws_graph_call hws_graph_call_t;
typedef struct hws_graph hws_graph_t;
typedef struct hws_node hws_node_t;
typedef struct hws_exec hws_exec_t;
typedef struct hws_user_object hws_user_object_t;

/*
 * A kernel node's arguments: one allocation, whose arrays cuGraphKernelNodeGetParams gives to the program. Programs
 * keep the arrays, write into them and set them again for each token of an answer. So a block keeps its address until
 * its node ends. The packed bytes are authoritative. A pointer that the program has replaced counts only in a structure
 * that the program sets.
 */
typedef struct hws_arguments {
    struct hws_arguments *outgrown; /* too small for a later function; the program may still hold it */
    uint32_t capacity;              /* of pointers */
    size_t packed_capacity;         /* bytes */
    void *extra[5];                 /* for a program that gave `extra` */
    size_t extra_bytes;
    uint8_t *packed;  /* hws_launch_packed_bytes() */
    uint8_t *sent;    /* the worker's copy of the bytes, to detect programs that write without a set */
    bool shown;       /* to the program, which may write */
    void *pointers[]; /* to each parameter */
} hws_arguments_t;

/* The parameters of a kernel node. */
typedef struct hws_node_kernel {
    CUfunction function;
    hws_shape_t shape; /* without a stream; its attributes are our own copy */
    uint32_t params_bytes;
    bool packed_given;          /* the program gave `extra` and receives one */
    hws_arguments_t *arguments; /* owned */
} hws_node_kernel_t;

/* A copy, and the place of its memory if that is not on a device. */
typedef struct hws_node_copy {
    CUDA_MEMCPY3D copy;
    bool to_device, from_device; /* decided when the node is made */
    bool on_host;                /* both ends are the host's: the worker sees a host node */
    bool shared; /* the host's end lies in the region, at region_offset; otherwise the copy has a call */
    uint64_t region_offset;
} hws_node_copy_t;

/* The parameters of a conditional node. */
typedef struct hws_node_conditional {
    CUDA_CONDITIONAL_NODE_PARAMS shown; /* its phGraph_out is our own array */
    hws_graph_t **bodies;               /* shown.size graphs, owned by the node */
} hws_node_conditional_t;

/*
 * The type of a node that does what a math library's call does. The worker keeps its content. Programs see the type of
 * a kernel node, as the library would have made.
 */
#define HWS_NODE_LIBRARY ((CUgraphNodeType) 0x1000)

/* The parameters of a library node. */
typedef struct hws_node_library {
    CUgraph graph;   /* the worker's, only for this node */
    bool has_memory; /* it allocates memory: CUDA's rules for such graphs apply */
} hws_node_library_t;

/* The parameters of a node. Their holder owns them; the program owns nothing in them. */
typedef struct hws_params {
    CUgraphNodeType type;
    CUcontext context;      /* of a kernel, copy, memset, batch of memory operations or conditional node */
    hws_graph_call_t *call; /* the guest's part: of a host node, or of a copy with memory that only the guest has */
    union {
        hws_node_kernel_t kernel;
        hws_node_copy_t copy;
        CUDA_MEMSET_NODE_PARAMS memset;
        CUDA_HOST_NODE_PARAMS host;
        hws_graph_t *child; /* owned by the node */
        CUevent event;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;         /* its accessDescs are our own copy */
        CUdeviceptr address;                      /* of a free node */
        CUDA_BATCH_MEM_OP_NODE_PARAMS memory_ops; /* its paramArray is our own copy */
        hws_node_conditional_t conditional;
        hws_node_library_t library;
    };
} hws_params_t;

typedef struct hws_edge {
    hws_node_t *node;
    CUgraphEdgeData data;
} hws_edge_t;

typedef struct hws_edges {
    hws_edge_t *items;
    size_t count, capacity;
} hws_edges_t;

struct hws_node {
    uint64_t handle;
    hws_graph_t *graph;
    uint32_t index; /* in the order of creation; a clone's node has its original's */
    bool travelled; /* the worker has it */
    bool changed;   /* the worker has older parameters */
    hws_edges_t in, out;
    hws_params_t params;
    uint32_t mark; /* scratch of traversals */
};

/* An edge that was added between nodes that the worker already had. */
typedef struct hws_link {
    hws_node_t *from, *to;
    CUgraphEdgeData data;
} hws_link_t;

/* Freed with its handle's slot, like a node. */
struct hws_graph {
    uint64_t handle;
    hws_node_t **nodes; /* by index, ascending */
    size_t count, capacity;
    uint32_t next_index;
    hws_node_t *owner;     /* the child node that contains it, NULL for none */
    uint64_t cloned_from;  /* handle, 0 for none */
    uint32_t cloned_nodes; /* next_index of the original at that time */
    bool travelled;
    bool moved;         /* into a child node, by CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE */
    bool capturing;     /* a capture adds to it; the program does not own it yet */
    unsigned instances; /* executable graphs, while it has allocations or conditional nodes */
    bool has_memory;    /* an allocation or free node */
    hws_link_t *links;
    size_t link_count, link_capacity;
    struct hws_retained *retained; /* user objects */
};

/* graph.c */
void hws_graph_lock(void);
/* Releases the lock, then runs the destructors of user objects that meanwhile ended graphs have held. */
void hws_graph_unlock(void);

/* NULL for another handle. */
static inline hws_graph_t *hws_graph_get(CUgraph graph) {
    return hws_handle_data(HWS_KIND_GRAPH, (uint64_t) (uintptr_t) graph);
}

static inline hws_node_t *hws_node_get(CUgraphNode node) {
    return hws_handle_data(HWS_KIND_GRAPH_NODE, (uint64_t) (uintptr_t) node);
}

static inline CUgraphNode hws_node_handle(const hws_node_t *node) {
    return (CUgraphNode) (uintptr_t) (node == NULL ? 0 : node->handle);
}

/* Whether nodes of this type do work of a context. Driver 580 sets none of them after the error of a kernel. */
static inline bool hws_node_has_context(CUgraphNodeType type) {
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

static inline CUgraph hws_graph_handle(const hws_graph_t *graph) {
    return (CUgraph) (uintptr_t) (graph == NULL ? 0 : graph->handle);
}

/* The outermost graph around this one. */
const hws_graph_t *hws_graph_root(const hws_graph_t *graph);

/* Receives each node of a graph and of its inner graphs, an inner graph's nodes after the node that contains it. */
typedef void hws_node_visitor_t(hws_node_t *node, void *argument);
void hws_graph_each(const hws_graph_t *graph, hws_node_visitor_t *visit, void *argument);

/* Whether nodes of this type allocate or free memory. */
static inline bool hws_params_use_memory(const hws_params_t *params) {
    return params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || params->type == CU_GRAPH_NODE_TYPE_MEM_FREE
        || (params->type == HWS_NODE_LIBRARY && params->library.has_memory);
}

/* The graph at this place inside a node; NULL behind the last. */
static inline hws_graph_t *hws_params_inner(const hws_params_t *params, size_t at) {
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        return at < params->conditional.shown.size ? params->conditional.bodies[at] : NULL;
    }
    return params->type == CU_GRAPH_NODE_TYPE_GRAPH && at == 0 ? params->child : NULL;
}

/* Whether the graph or an inner graph has a matching node. */
bool hws_graph_contains(const hws_graph_t *graph, bool (*match)(const hws_node_t *node));

CUresult hws_graph_make(hws_graph_t **graph_p);
void hws_graph_end(hws_graph_t *graph);
CUresult hws_graph_copy(const hws_graph_t *graph, hws_graph_t **copy_p);

/* Checks the dependencies of a new node: nodes of the graph, none twice. Lock held. */
CUresult hws_graph_check_dependencies(const hws_graph_t *graph, const CUgraphNode *dependencies,
                                      const CUgraphEdgeData *data, size_t count);

/*
 * Adds a node; takes the parameters, also on failure. Its dependencies are nodes of the graph, none twice; edge data
 * NULL is plain.
 */
CUresult hws_node_add(hws_graph_t *graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                      hws_params_t *params, hws_node_t **node_p);
void hws_node_end(hws_node_t *node);

/*
 * Replaces the parameters by others of the same type; takes them, also on failure. A kernel's attributes are not set,
 * and its arguments keep their address. A failure leaves the node unchanged.
 */
CUresult hws_node_set(hws_node_t *node, hws_params_t *params);

/* The graph's node with that index; NULL for none. */
hws_node_t *hws_graph_node(const hws_graph_t *graph, uint32_t index);

/* graph_edges.c */
bool hws_edges_add(hws_edges_t *edges, hws_node_t *node, const CUgraphEdgeData *data);
bool hws_edges_remove(hws_edges_t *edges, const hws_node_t *node, const CUgraphEdgeData *data);
const hws_edge_t *hws_edges_find(const hws_edges_t *edges, const hws_node_t *node);
/* The wire form of the edges from a node's dependencies, which the caller frees; NULL when memory is short. */
HwsGraphEdge *hws_edges_describe(const hws_node_t *node);
CUresult hws_edges_check(const hws_node_t *from, const CUgraphEdgeData *data);
CUresult hws_graph_connect(hws_node_t *from, hws_node_t *to, const CUgraphEdgeData *data);
/* *node_p receives a node of the cycle, or one after it. */
bool hws_graph_has_cycle(const hws_graph_t *graph, CUgraphNode *node_p);

/* Whether the nodes of two graphs pair up by their order: the same types, with edges between the same pairs. */
bool hws_graph_is_alike(const hws_graph_t *some, const hws_graph_t *other);

/* graph_arguments.c: makes a block of zeros with pointers into it; NULL when memory is short. */
hws_arguments_t *hws_arguments_make(const hws_function_t *function);
/* Points each pointer at its parameter again. */
void hws_arguments_point(hws_arguments_t *arguments, const hws_function_t *function);
/*
 * Writes these packed bytes into the block, whose address stays, or into a larger one that keeps it. Returns false when
 * memory is short; nothing has changed then.
 */
bool hws_arguments_replace(hws_arguments_t **kept_p, const uint8_t *packed, const hws_function_t *function);
/* Frees the block with its outgrown ones; NULL is legal. */
void hws_arguments_free(hws_arguments_t *arguments);

/*
 * graph_params.c: copies the program's parameters and does the checks that CUDA does at once. A failure owns nothing.
 */
CUresult hws_params_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *from, hws_params_t *params_p);
CUresult hws_params_launch(CUfunction function, const hws_shape_t *shape, void **kernel_params, void **extra,
                           hws_params_t *params_p);
CUresult hws_params_memset(const CUDA_MEMSET_NODE_PARAMS *from, CUcontext context, hws_params_t *params_p);
CUresult hws_params_host(const CUDA_HOST_NODE_PARAMS *from, hws_params_t *params_p);
CUresult hws_params_memory_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *from, hws_params_t *params_p);
CUresult hws_params_event(CUgraphNodeType type, CUevent event, hws_params_t *params_p);
/* A child node: a copy of the graph, or, when moved, the graph itself. */
CUresult hws_params_child(CUgraph graph, CUgraphChildGraphNodeOwnership ownership, hws_params_t *params_p);
/* From cuGraphAddNode's structure; not for child and memory nodes. */
CUresult hws_params_of(const CUgraphNodeParams *from, hws_params_t *params_p);
CUresult hws_params_duplicate(const hws_params_t *from, hws_params_t *params_p);
void hws_params_drop(hws_params_t *params);

/* The context of a node; NULL means the current one. */
CUresult hws_params_context(CUcontext context, CUcontext *context_p);

/* The value of the attribute; NULL when the node does not have it. */
const CUlaunchAttributeValue *hws_kernel_attribute(const hws_node_kernel_t *kernel, CUlaunchAttributeID id);
CUresult hws_kernel_set_attribute(hws_node_kernel_t *kernel, CUlaunchAttributeID id,
                                  const CUlaunchAttributeValue *value);

/* graph_copy.c */
CUresult hws_params_copy(const CUDA_MEMCPY3D *from, CUcontext context, hws_params_t *params_p);
void hws_copy_describe(const hws_params_t *params, HwsGraphCopy *wire_p);
/* The guest's part in the execution of such a node. Callback thread. */
void hws_copy_run(const hws_node_copy_t *copy, uint64_t call_id);

/* graph_wire.c: sends the worker all changes of the graph. Lock held. */
CUresult hws_graph_flush(hws_graph_t *graph);
/* Describes a node's parameters, without dependencies. The caller frees *blob_p. */
CUresult hws_graph_describe(const hws_params_t *params, uint32_t index, uint8_t **blob_p, uint32_t *bytes_p);

/* graph_memory.c */
CUresult hws_graph_memory_check_copy(const hws_graph_t *graph);
void hws_graph_memory_forget(hws_graph_t *graph);

/* graph_library.c */
/*
 * Captures a math library's call, whose record this is, into a node of the stream's capture. Returns the library's
 * result, or the reason why there is none. `reply` receives the outputs of a call that succeeds.
 */
int hws_library_capture(CUstream stream, uint32_t opcode, const void *payload, uint32_t payload_bytes, const void *bulk,
                        uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p);
CUresult hws_library_duplicate(const hws_node_library_t *from, hws_node_library_t *to);
void hws_library_drop(hws_node_library_t *library);

/* graph_conditional.c */
/* CUDA's error for copying such a graph, or using it as a child: 0 when it has no conditional node. */
CUresult hws_conditional_check_copy(const hws_graph_t *graph);
/* Whether the graph is a body of a conditional node, or inside one. */
bool hws_conditional_is_body(const hws_graph_t *graph);
/* Adds a conditional node. params->phGraph_out receives the bodies. The lock must not be held. */
CUresult hws_conditional_add(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                             CUDA_CONDITIONAL_NODE_PARAMS *params, CUgraphNode *node_p);
void hws_conditional_drop(hws_node_conditional_t *conditional);

/* graph_object.c */
/* Releases references. Destructors run in the call, so the lock must not be held. */
void hws_retained_drop(struct hws_retained *retained);
struct hws_retained *hws_retained_join(struct hws_retained *some, struct hws_retained *others);
/* Releases them once the stream's work is done. */
void hws_retained_drop_behind(struct hws_retained *retained, CUstream stream);
CUresult hws_retained_share(const struct hws_retained *from, struct hws_retained **to_p);
/* Shares the references of a graph and of its inner graphs. Adds them to *all_p, also on failure. Lock held. */
CUresult hws_retained_collect(const hws_graph_t *graph, struct hws_retained **all_p);

/* Leaves the calling function, and releases the lock, when an argument is no graph or node. */
#define HWS_TAKE_GRAPH(name, handle)                                                                                   \
    hws_graph_t *name = hws_graph_get(handle);                                                                         \
    HWS_REQUIRE(name != NULL)
#define HWS_TAKE_NODE(name, handle)                                                                                    \
    hws_node_t *name = hws_node_get(handle);                                                                           \
    HWS_REQUIRE(name != NULL)

#endif

#include "graph_memory.h"

#include "context.h"

#include "hws_cuda_calls.h"
#include "hws_device.h"
#include "hws_interval.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* An allocation node's address. Its graph holds it, and what was instantiated from that. */
typedef struct hws_graph_memory {
    struct hws_graph_memory *next;
    CUdeviceptr address;
    uint64_t graph;         /* handle */
    unsigned holders;
    bool allocated;         /* by a launch, and not freed in it or after */
} hws_graph_memory_t;

static hws_graph_memory_t *first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of allocation nodes at most one is on its way to the worker, since the worker must learn of nodes in order. */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

static hws_graph_memory_t *find(CUdeviceptr address) {
    hws_graph_memory_t *memory = first;
    while (memory != NULL && memory->address != address) {
        memory = memory->next;
    }
    return memory;
}

/* Forgets an address that nobody holds and that has no memory. Lock held. */
static void settle(hws_graph_memory_t *memory) {
    if (memory->holders != 0 || memory->allocated) {
        return;
    }
    hws_range_t range;
    hws_interval_remove(HWS_SIDE_DEVICE, memory->address, &range);
    hws_graph_memory_t **link = &first;
    while (*link != memory) {
        link = &(*link)->next;
    }
    *link = memory->next;
    free(memory);
}

static bool is_memory_node(const hws_node_t *node) {
    return node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult hws_graph_memory_check_copy(const hws_graph_t *graph) {
    /* CUDA: such a graph can be neither cloned nor, but by moving, put into another. */
    return hws_graph_contains(graph, is_memory_node) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

void hws_graph_memory_forget(hws_graph_t *graph) {
    if (!graph->has_memory) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (hws_graph_memory_t *memory = first, *next; memory != NULL; memory = next) {
        next = memory->next;
        if (memory->graph == graph->handle) {
            memory->graph = 0;
            memory->holders--;
            settle(memory);
        }
    }
    pthread_mutex_unlock(&lock);
}

static CUresult check(const CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    const CUmemPoolProps *props = &params->poolProps;
    HWS_REQUIRE(params->bytesize != 0 && props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED
                && props->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                && props->handleTypes == CU_MEM_HANDLE_TYPE_NONE);
    HWS_REQUIRE(params->accessDescCount == 0 || params->accessDescs != NULL);
    HWS_REQUIRE(params->accessDescCount <= (size_t) hws_device_count());
    if (hws_device_get(props->location.id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    for (size_t i = 0; i < params->accessDescCount; i++) {
        if (hws_device_get(params->accessDescs[i].location.id) == NULL) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
    }
    return hws_device_attribute(props->location.id, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0
        ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* The program's parameters with our own copy of the descriptors, in the worker's numbers of devices. */
static CUresult take(const CUDA_MEM_ALLOC_NODE_PARAMS *from, hws_params_t *params_p, CUmemAccessDesc **wire_p) {
    size_t count = from->accessDescCount;
    CUmemAccessDesc *own = malloc((count + 1) * sizeof *own), *wire = malloc((count + 1) * sizeof *wire);
    if (own == NULL || wire == NULL) {
        free(own);
        free(wire);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        own[i] = wire[i] = from->accessDescs[i];
        wire[i].location.id = hws_device_get(own[i].location.id)->ordinal;
    }
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = *from};
    params_p->alloc.accessDescs = own;
    *wire_p = wire;
    return CUDA_SUCCESS;
}

/* Enters the address of a node that the worker has made. */
static CUresult enter(const hws_node_t *node, const CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    hws_graph_memory_t *memory = malloc(sizeof *memory);
    const hws_range_t range = {.base = params->dptr, .bytes = params->bytesize, .memory = HWS_MEMORY_GRAPH,
                               .device = params->poolProps.location.id,
                               .context = (uint64_t) (uintptr_t) hws_context_current()};
    if (memory == NULL || !hws_interval_insert(&range)) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_interval_reserve(range.base, range.bytes);
    *memory = (hws_graph_memory_t) {.address = params->dptr, .graph = node->graph->handle, .holders = 1};
    pthread_mutex_lock(&lock);
    memory->next = first;
    first = memory;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Adds the node to the guest's graph, after everything else has travelled. Graphs' lock held. */
static CUresult add_node(CUgraph handle, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                         hws_params_t *params, hws_node_t **node_p) {
    hws_graph_t *graph = hws_graph_get(handle);
    CUresult result = graph == NULL || graph->owner != NULL ? CUDA_ERROR_INVALID_VALUE : hws_graph_flush(graph);
    if (result != CUDA_SUCCESS) {
        hws_params_drop(params);
        return result;
    }
    return hws_node_add(graph, dependencies, data, count, params, node_p);
}

/* Tells the worker of the node. */
static CUresult travel(const hws_node_t *node, const HwsGraphEdge *edges, const CUmemAccessDesc *access,
                       CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    return hws_call_hwsGraphAddAlloc(hws_graph_handle(node->graph), node->index,
                                     hws_device_get(params->poolProps.location.id)->ordinal, params->bytesize,
                                     (uint32_t) node->in.count, edges, (uint32_t) params->accessDescCount, access,
                                     &params->dptr);
}

static HwsGraphEdge *edges_of(const hws_node_t *node) {
    HwsGraphEdge *edges = malloc((node->in.count + 1) * sizeof *edges);
    for (size_t i = 0; edges != NULL && i < node->in.count; i++) {
        const hws_edge_t *edge = &node->in.items[i];
        edges[i] = (HwsGraphEdge) {.from = edge->node->index, .fromPort = edge->data.from_port,
                                   .toPort = edge->data.to_port, .type = edge->data.type};
    }
    return edges;
}

CUresult hws_graph_memory_allocate(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                                   size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params, CUgraphNode *node_p) {
    hws_params_t kept;
    CUmemAccessDesc *access;
    hws_node_t *node = NULL;
    HWS_TRY(check(params));
    HWS_TRY(take(params, &kept, &access));
    pthread_mutex_lock(&order);
    hws_graph_lock();
    CUresult result = add_node(graph, dependencies, data, count, &kept, &node);
    HwsGraphEdge *edges = result == CUDA_SUCCESS ? edges_of(node) : NULL;
    hws_graph_unlock();
    if (result == CUDA_SUCCESS) {
        result = edges == NULL ? CUDA_ERROR_OUT_OF_MEMORY : travel(node, edges, access, params);
        hws_graph_lock();
        node->travelled = result == CUDA_SUCCESS;
        if (result == CUDA_SUCCESS) {
            node->params.alloc.dptr = params->dptr;
            result = enter(node, params);
        }
        if (result == CUDA_SUCCESS) {
            *node_p = hws_node_handle(node);
        } else {
            hws_node_end(node);
        }
        hws_graph_unlock();
    }
    pthread_mutex_unlock(&order);
    free(edges);
    free(access);
    return result;
}

CUresult hws_graph_memory_check_free(const hws_graph_t *graph, CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    bool known = find(address) != NULL;
    pthread_mutex_unlock(&lock);
    HWS_REQUIRE(known && graph->owner == NULL);
    for (size_t i = 0; i < graph->count; i++) {
        HWS_REQUIRE(graph->nodes[i]->params.type != CU_GRAPH_NODE_TYPE_MEM_FREE
                    || graph->nodes[i]->params.address != address);
    }
    return CUDA_SUCCESS;
}

CUresult hws_graph_memory_freed(CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    hws_graph_memory_t *memory = find(address);
    bool allocated = memory != NULL && memory->allocated;
    if (allocated) {
        memory->allocated = false;
        settle(memory);
    }
    pthread_mutex_unlock(&lock);
    return allocated ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Counts the memory nodes of a graph and its inner ones. */
static size_t count_nodes(const hws_graph_t *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->count; i++) {
        const hws_node_t *node = graph->nodes[i];
        count += is_memory_node(node) ? 1 : 0;
        count += node->params.type == CU_GRAPH_NODE_TYPE_GRAPH ? count_nodes(node->params.child) : 0;
    }
    return count;
}

static void collect(const hws_graph_t *graph, hws_graph_effects_t *effects) {
    for (size_t i = 0; i < graph->count; i++) {
        const hws_params_t *params = &graph->nodes[i]->params;
        if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            effects->held[effects->held_count++] = params->alloc.dptr;
        } else if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
            effects->freed[effects->freed_count++] = params->address;
        } else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
            collect(params->child, effects);
        }
    }
}

static bool contains(const CUdeviceptr *list, size_t count, CUdeviceptr address) {
    size_t i = 0;
    while (i < count && list[i] != address) {
        i++;
    }
    return i < count;
}

/* Keeps in `kept` what is not in the other list. */
static size_t subtract(CUdeviceptr *kept, const CUdeviceptr *list, size_t count, const CUdeviceptr *other,
                       size_t other_count) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (!contains(other, other_count, list[i])) {
            kept[left++] = list[i];
        }
    }
    return left;
}

CUresult hws_graph_effects_of(const hws_graph_t *graph, hws_graph_effects_t *effects_p) {
    *effects_p = (hws_graph_effects_t) {0};
    size_t count = count_nodes(graph);
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    effects_p->held = malloc(count * sizeof *effects_p->held);
    effects_p->allocated = malloc(count * sizeof *effects_p->allocated);
    effects_p->freed = malloc(count * sizeof *effects_p->freed);
    if (effects_p->held == NULL || effects_p->allocated == NULL || effects_p->freed == NULL) {
        hws_graph_effects_drop(effects_p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    collect(graph, effects_p);
    effects_p->allocated_count = subtract(effects_p->allocated, effects_p->held, effects_p->held_count,
                                          effects_p->freed, effects_p->freed_count);
    effects_p->freed_count = subtract(effects_p->freed, effects_p->freed, effects_p->freed_count, effects_p->held,
                                      effects_p->held_count);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < effects_p->held_count; i++) {
        find(effects_p->held[i])->holders++;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

void hws_graph_effects_drop(hws_graph_effects_t *effects) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < effects->held_count; i++) {
        hws_graph_memory_t *memory = find(effects->held[i]);
        memory->holders--;
        settle(memory);
    }
    pthread_mutex_unlock(&lock);
    free(effects->held);
    free(effects->allocated);
    free(effects->freed);
    *effects = (hws_graph_effects_t) {0};
}

CUresult hws_graph_effects_launch(const hws_graph_effects_t *effects, bool frees_itself) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < effects->allocated_count && !frees_itself; i++) {
        if (find(effects->allocated[i])->allocated) {
            result = CUDA_ERROR_INVALID_VALUE; /* CUDA: memory of an earlier launch must be freed first */
        }
    }
    for (size_t i = 0; i < effects->allocated_count && result == CUDA_SUCCESS; i++) {
        find(effects->allocated[i])->allocated = true;
    }
    for (size_t i = 0; i < effects->freed_count && result == CUDA_SUCCESS; i++) {
        hws_graph_memory_t *memory = find(effects->freed[i]);
        if (memory != NULL) {
            memory->allocated = false;
            settle(memory);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult ordinal_of(CUdevice device, int *ordinal_p) {
    const hws_device_t *known = hws_device_get(device);
    if (known == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *ordinal_p = known->ordinal;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    int ordinal;
    HWS_ENTER();
    HWS_TRY(ordinal_of(device, &ordinal));
    return hws_call_cuDeviceGraphMemTrim(ordinal);
}

HWS_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    int ordinal;
    uint64_t wide;
    HWS_ENTER();
    HWS_TRY(ordinal_of(device, &ordinal));
    HWS_REQUIRE(value != NULL && (unsigned) attr <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
    HWS_TRY(hws_call_hwsGraphMemGetAttribute(ordinal, attr, &wide));
    memcpy(value, &wide, sizeof wide);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    int ordinal;
    uint64_t wide;
    HWS_ENTER();
    HWS_TRY(ordinal_of(device, &ordinal));
    /* CUDA: a watermark can only be reset, and nothing else be set. */
    HWS_REQUIRE(value != NULL && (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH
                                  || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
    memcpy(&wide, value, sizeof wide);
    HWS_REQUIRE(wide == 0);
    return hws_call_hwsGraphMemSetAttribute(ordinal, attr, wide);
}

#include "graph_memory.h"

#include "context.h"
#include "device.h"

#include "hws_cuda_calls.h"
#include "hws_interval.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * An allocation node's memory. Its graph holds it, and so do the executable graphs made from that. Nodes of one graph
 * whose lifetimes do not overlap may share addresses, in whole or in part.
 */
struct hws_graph_memory {
    struct hws_graph_memory *next;
    CUdeviceptr address;
    uint64_t bytes;
    uint64_t graph; /* handle */
    uint32_t node;  /* index in the graph */
    unsigned holders;
    bool allocated;    /* by a launch, and not freed since */
    hws_range_t range; /* the entry in the table of addresses, except for its extent */
};

static hws_graph_memory_t *first; /* the newest */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* At most one allocation node travels to the worker at a time, because the worker must receive nodes in order. */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

/* The newest memory at the address. A driver reuses an address only after the previous memory is freed. Lock held. */
static hws_graph_memory_t *find(CUdeviceptr address) {
    hws_graph_memory_t *memory = first;
    while (memory != NULL && memory->address != address) {
        memory = memory->next;
    }
    return memory;
}

/* The newest memory at the address that a node of the graph allocates and that is older than `node`. Lock held. */
static hws_graph_memory_t *find_before(const hws_graph_t *graph, uint32_t node, CUdeviceptr address) {
    hws_graph_memory_t *memory = first;
    while (memory != NULL && (memory->graph != graph->handle || memory->address != address || memory->node >= node)) {
        memory = memory->next;
    }
    return memory;
}

/* The memory that a free node frees: of its own graph or of another. Lock held. */
static hws_graph_memory_t *freed_by(const hws_node_t *node) {
    hws_graph_memory_t *own = find_before(node->graph, node->index, node->params.address);
    return own != NULL ? own : find(node->params.address);
}

/* Widens [*begin_p, *end_p) to the union of all memories that overlap it. Lock held. */
static void widen(uint64_t *begin_p, uint64_t *end_p) {
    bool grown = true;
    while (grown) {
        grown = false;
        for (const hws_graph_memory_t *memory = first; memory != NULL; memory = memory->next) {
            uint64_t end = memory->address + memory->bytes;
            if (memory->address < *end_p && *begin_p < end && (memory->address < *begin_p || end > *end_p)) {
                *begin_p = memory->address < *begin_p ? memory->address : *begin_p;
                *end_p = end > *end_p ? end : *end_p;
                grown = true;
            }
        }
    }
}

/*
 * Makes the table of addresses agree with the memories there: one range for those that overlap. Returns false when the
 * range cannot be entered. Known deviation: cuMemGetAddressRange returns the whole range. Lock held.
 */
static bool enter_ranges(uint64_t begin, uint64_t end) {
    bool entered = true;
    hws_range_t found;
    widen(&begin, &end);
    for (const hws_graph_memory_t *memory = first; memory != NULL; memory = memory->next) {
        if (memory->address >= begin && memory->address < end) {
            hws_interval_remove(HWS_SIDE_DEVICE, memory->address, &found);
        }
    }
    for (const hws_graph_memory_t *memory = first; memory != NULL; memory = memory->next) {
        if (memory->address >= begin && memory->address < end
            && !hws_interval_find(HWS_SIDE_DEVICE, memory->address, &found)) {
            hws_range_t range = memory->range;
            uint64_t last = memory->address + memory->bytes;
            range.base = memory->address;
            widen(&range.base, &last);
            range.bytes = last - range.base;
            entered = hws_interval_insert(&range) && entered;
        }
    }
    return entered;
}

static void unlink_memory(const hws_graph_memory_t *memory) {
    hws_graph_memory_t **link = &first;
    while (*link != memory) {
        link = &(*link)->next;
    }
    *link = memory->next;
}

/* Removes memory that has no holders and is not allocated. Lock held. */
static void settle(hws_graph_memory_t *memory) {
    if (memory->holders != 0 || memory->allocated) {
        return;
    }
    uint64_t begin = memory->address, end = begin + memory->bytes;
    widen(&begin, &end);
    hws_range_t range;
    hws_interval_remove(HWS_SIDE_DEVICE, begin, &range);
    unlink_memory(memory);
    free(memory);
    enter_ranges(begin, end); /* the rest lies inside the range that was there before */
}

static bool is_memory_node(const hws_node_t *node) {
    return hws_params_use_memory(&node->params);
}

CUresult hws_graph_memory_check_copy(const hws_graph_t *graph) {
    /* CUDA: such a graph cannot be cloned, and can enter another graph only by moving. */
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
        ? CUDA_SUCCESS
        : CUDA_ERROR_NOT_SUPPORTED;
}

/* Copies the program's parameters with their descriptors, and translates devices to the worker's numbers. */
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

/* Enters the address of a node that the worker has created. */
static CUresult enter(const hws_node_t *node, const CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    hws_graph_memory_t *memory = malloc(sizeof *memory);
    uint64_t end;
    if (memory == NULL || __builtin_add_overflow(params->dptr, params->bytesize, &end)) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *memory = (hws_graph_memory_t) {.address = params->dptr,
                                    .bytes = params->bytesize,
                                    .graph = node->graph->handle,
                                    .node = node->index,
                                    .holders = 1,
                                    .range = {.memory = HWS_MEMORY_GRAPH,
                                              .device = params->poolProps.location.id,
                                              .context = (uint64_t) (uintptr_t) hws_context_owner()}};
    pthread_mutex_lock(&lock);
    memory->next = first;
    first = memory;
    bool entered = enter_ranges(params->dptr, end);
    if (!entered) {
        unlink_memory(memory);
        free(memory);
        enter_ranges(params->dptr, end);
    }
    pthread_mutex_unlock(&lock);
    if (entered) {
        hws_interval_reserve(params->dptr, params->bytesize);
    }
    return entered ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Adds the node to the guest's graph, after everything else has been sent. Graphs' lock held. */
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

/* Sends the node to the worker. */
static CUresult travel(const hws_node_t *node, const HwsGraphEdge *edges, const CUmemAccessDesc *access,
                       CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    return hws_call_hwsGraphAddAlloc(
        hws_graph_handle(node->graph), node->index, hws_device_get(params->poolProps.location.id)->ordinal,
        params->bytesize, (uint32_t) node->in.count, edges, (uint32_t) params->accessDescCount, access, &params->dptr);
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
    HwsGraphEdge *edges = result == CUDA_SUCCESS ? hws_edges_describe(node) : NULL;
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

/* Whether a node of the graph frees memory at the address that a node of this index has allocated. */
static bool frees(const hws_graph_t *graph, CUdeviceptr address, uint32_t since) {
    size_t i = 0;
    while (i < graph->count
           && (graph->nodes[i]->params.type != CU_GRAPH_NODE_TYPE_MEM_FREE || graph->nodes[i]->params.address != address
               || graph->nodes[i]->index < since)) {
        i++;
    }
    return i < graph->count;
}

CUresult hws_graph_memory_check_free(const hws_graph_t *graph, CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    bool known = find(address) != NULL;
    const hws_graph_memory_t *own = find_before(graph, graph->next_index, address);
    uint32_t since = own == NULL ? 0 : own->node;
    const hws_graph_memory_t *newest = find(address);
    const hws_graph_t *allocates = newest == NULL ? NULL : hws_graph_get((CUgraph) (uintptr_t) newest->graph);
    /* CUDA: memory that its own graph frees cannot be freed by another. */
    bool elsewhere = allocates != NULL && allocates != graph && frees(allocates, address, newest->node);
    pthread_mutex_unlock(&lock);
    HWS_REQUIRE(known && !elsewhere && graph->owner == NULL);
    HWS_REQUIRE(!frees(graph, address, since));
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

static void count_node(hws_node_t *node, void *count) {
    *(size_t *) count += is_memory_node(node) ? 1 : 0;
}

/* Lock held. */
static void collect(hws_node_t *node, void *argument) {
    hws_graph_effects_t *effects = argument;
    const hws_params_t *params = &node->params;
    hws_graph_memory_t *memory = NULL;
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        memory = find_before(node->graph, node->index + 1, params->alloc.dptr);
        effects->held[effects->held_count] = memory;
        effects->held_count += memory != NULL ? 1 : 0;
    } else if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        memory = freed_by(node);
        effects->freed[effects->freed_count] = memory;
        effects->freed_count += memory != NULL ? 1 : 0;
    }
}

static bool contains(hws_graph_memory_t *const *list, size_t count, const hws_graph_memory_t *memory) {
    size_t i = 0;
    while (i < count && list[i] != memory) {
        i++;
    }
    return i < count;
}

/* Keeps in `kept` the entries that are not in the other list. */
static size_t subtract(hws_graph_memory_t **kept, hws_graph_memory_t *const *list, size_t count,
                       hws_graph_memory_t *const *other, size_t other_count) {
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
    size_t count = 0;
    hws_graph_each(graph, count_node, &count);
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
    pthread_mutex_lock(&lock);
    hws_graph_each(graph, collect, effects_p);
    effects_p->allocated_count = subtract(effects_p->allocated, effects_p->held, effects_p->held_count,
                                          effects_p->freed, effects_p->freed_count);
    effects_p->freed_count =
        subtract(effects_p->freed, effects_p->freed, effects_p->freed_count, effects_p->held, effects_p->held_count);
    for (size_t i = 0; i < effects_p->held_count; i++) {
        effects_p->held[i]->holders++;
    }
    for (size_t i = 0; i < effects_p->freed_count; i++) {
        effects_p->freed[i]->holders++; /* of another graph: the pointer stays valid */
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static void release_all(hws_graph_memory_t **list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        list[i]->holders--;
        settle(list[i]);
    }
}

void hws_graph_effects_drop(hws_graph_effects_t *effects) {
    pthread_mutex_lock(&lock);
    release_all(effects->held, effects->held_count);
    release_all(effects->freed, effects->freed_count);
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
        if (effects->allocated[i]->allocated) {
            result = CUDA_ERROR_INVALID_VALUE; /* CUDA: memory of an earlier launch must be freed first */
        }
    }
    for (size_t i = 0; i < effects->allocated_count && result == CUDA_SUCCESS; i++) {
        effects->allocated[i]->allocated = true;
    }
    for (size_t i = 0; i < effects->freed_count && result == CUDA_SUCCESS; i++) {
        effects->freed[i]->allocated = false;
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
    HWS_ENTER_LOCAL();
    HWS_TRY(ordinal_of(device, &ordinal));
    return hws_call_cuDeviceGraphMemTrim(ordinal);
}

HWS_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    int ordinal;
    uint64_t wide;
    HWS_ENTER_LOCAL();
    HWS_TRY(ordinal_of(device, &ordinal));
    HWS_REQUIRE(value != NULL && (unsigned) attr <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
    HWS_TRY(hws_call_hwsGraphMemGetAttribute(ordinal, attr, &wide));
    memcpy(value, &wide, sizeof wide);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    int ordinal;
    uint64_t wide;
    HWS_ENTER_LOCAL();
    HWS_TRY(ordinal_of(device, &ordinal));
    /* CUDA: a watermark can only be reset, and no other attribute can be set. */
    HWS_REQUIRE(value != NULL
                && (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
    memcpy(&wide, value, sizeof wide);
    HWS_REQUIRE(wide == 0);
    return hws_call_hwsGraphMemSetAttribute(ordinal, attr, wide);
}

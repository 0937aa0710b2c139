/* Graphs and stream capture in libcuda.so.1: records and results. Each rule runs in a process of its own. */
#include "kernel_program.h"

#include "hws_service.h"

size_t __sanitizer_get_current_allocated_bytes(void); /* sanitizer/allocator_interface.h, which only clang installs */

/* Rounds may differ by this: the broker's thread also sends records. */
#define SLACK_BYTES 65536

static CUdeviceptr memory;

static void start(void) {
    start_kernel_program();
    HWS_CHECK(cuMemAlloc_v2(&memory, 4096) == CUDA_SUCCESS);
}

/* Waits until the broker has received everything. Returns the last record with that opcode, NULL for none. */
static const broker_record_t *last(uint32_t opcode) {
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    for (unsigned i = atomic_load(&broker_graph_count); i > 0; i--) {
        if (broker_graphs[i - 1].opcode == opcode) {
            return &broker_graphs[i - 1];
        }
    }
    return NULL;
}

static unsigned sent(uint32_t opcode) {
    unsigned count = 0;
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    for (unsigned i = 0; i < atomic_load(&broker_graph_count); i++) {
        count += broker_graphs[i].opcode == opcode ? 1 : 0;
    }
    return count;
}

static CUDA_KERNEL_NODE_PARAMS_v2 launch_of(void **params) {
    return (CUDA_KERNEL_NODE_PARAMS_v2) {.func = function,
                                         .gridDimX = 2,
                                         .gridDimY = 1,
                                         .gridDimZ = 1,
                                         .blockDimX = 32,
                                         .blockDimY = 1,
                                         .blockDimZ = 1,
                                         .kernelParams = params};
}

static CUgraphNode add_memset(CUgraph graph, const CUgraphNode *dependencies, size_t count, unsigned value) {
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = memory, .value = value, .elementSize = 4, .width = 16, .height = 1};
    CUgraphNode node;
    HWS_CHECK(cuGraphAddMemsetNode(&node, graph, dependencies, count, &fill, context) == CUDA_SUCCESS);
    return node;
}

/* The description that begins at *at of a blob; advances *at past it. */
static HwsGraphNode take_node(const broker_record_t *record, size_t *at, const uint8_t **body_p) {
    HwsGraphNode node;
    memcpy(&node, record->payload + *at, sizeof node);
    *body_p = record->payload + *at + sizeof node;
    *at += sizeof node + node.dependencyCount * sizeof(HwsGraphEdge) + node.bytes;
    return node;
}

/* hwsGraphAddNodes and hwsGraphSetNodes: graph, nodeCount, blobBytes, its length, blob. */
#define BLOB_AT 24

static void shouldDescribeNodesWhenTheGraphIsInstantiated(void) {
    start();
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode kernel, gone, filled;
    int first = 7;
    double second = 2.5;
    char third = 'x';
    void *params[] = {&first, &second, &third};
    const CUDA_KERNEL_NODE_PARAMS_v2 launch = launch_of(params);
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddKernelNode_v2(&kernel, graph, NULL, 0, &launch) == CUDA_SUCCESS);
    gone = add_memset(graph, &kernel, 1, 1);
    HWS_CHECK(cuGraphDestroyNode(gone) == CUDA_SUCCESS);
    filled = add_memset(graph, &kernel, 1, 0xABCD);
    first = 0; /* copied when the node was made */
    HWS_CHECK(last(HWS_OPCODE_hwsGraphCreate) == NULL);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    const broker_record_t *record = last(HWS_OPCODE_hwsGraphAddNodes);
    size_t at = BLOB_AT;
    const uint8_t *body;
    HWS_CHECK(record != NULL && broker_u64(record->payload, 0) == (uint64_t) (uintptr_t) graph);
    HWS_CHECK((uint32_t) broker_u64(record->payload, 8) == 2);
    HwsGraphNode node = take_node(record, &at, &body);
    HwsGraphKernel wire;
    memcpy(&wire, body, sizeof wire);
    HWS_CHECK(node.index == 0 && node.type == CU_GRAPH_NODE_TYPE_KERNEL && node.dependencyCount == 0);
    HWS_CHECK(node.context == (uint64_t) (uintptr_t) context && node.bytes == sizeof wire + 24);
    HWS_CHECK(wire.function == (uint64_t) (uintptr_t) function && wire.gridDimX == 2 && wire.blockDimX == 32);
    HWS_CHECK(wire.paramsBytes == 17 && wire.attributesBytes == 0);
    HWS_CHECK(*(const int *) (body + sizeof wire) == 7 && *(const double *) (body + sizeof wire + 8) == 2.5);
    HWS_CHECK(body[sizeof wire + 16] == 'x' && body[sizeof wire + 4] == 0 && body[sizeof wire + 23] == 0);
    node = take_node(record, &at, &body);
    HwsGraphMemset fill;
    memcpy(&fill, body + sizeof(HwsGraphEdge), sizeof fill);
    HWS_CHECK(node.index == 2 && node.type == CU_GRAPH_NODE_TYPE_MEMSET && node.dependencyCount == 1);
    HWS_CHECK(((const HwsGraphEdge *) body)->from == 0 && fill.dst == memory && fill.value == 0xABCD);
    HWS_CHECK(at == BLOB_AT + (uint32_t) broker_u64(record->payload, 12));
    /* Again: only the changes since then. */
    const CUDA_MEMSET_NODE_PARAMS other = {.dst = memory, .value = 5, .elementSize = 1, .width = 8, .height = 1};
    HWS_CHECK(cuGraphMemsetNodeSetParams(filled, &other) == CUDA_SUCCESS);
    HWS_CHECK(last(HWS_OPCODE_hwsGraphSetNodes) == NULL);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    record = last(HWS_OPCODE_hwsGraphSetNodes);
    at = BLOB_AT;
    HWS_CHECK(record != NULL && (uint32_t) broker_u64(record->payload, 8) == 1);
    node = take_node(record, &at, &body);
    memcpy(&fill, body, sizeof fill);
    HWS_CHECK(node.index == 2 && node.dependencyCount == 0 && fill.value == 5 && fill.elementSize == 1);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphAddNodes) == 1 && sent(HWS_OPCODE_hwsGraphCreate) == 1);
    HWS_CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS && sent(HWS_OPCODE_hwsGraphDestroy) == 1);
}

static void shouldSendEdgesThatNoDescriptionNames(void) {
    start();
    CUgraph graph;
    CUgraphExec exec;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode a = add_memset(graph, NULL, 0, 1), b = add_memset(graph, NULL, 0, 2);
    HWS_CHECK(cuGraphAddDependencies(graph, &b, &a, 1) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    const broker_record_t *record = last(HWS_OPCODE_hwsGraphAddEdges);
    HWS_CHECK(record != NULL && (uint32_t) broker_u64(record->payload, 8) == 1);
    HwsGraphLink link;
    memcpy(&link, record->payload + 16, sizeof link);
    HWS_CHECK(link.from == 1 && link.to == 0);
    /* Removed at once where the worker has it; added again with the next record that needs it. */
    HWS_CHECK(cuGraphRemoveDependencies(graph, &b, &a, 1) == CUDA_SUCCESS);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphRemoveEdges) == 1);
    HWS_CHECK(cuGraphAddDependencies(graph, &a, &b, 1) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphRemoveDependencies(graph, &a, &b, 1) == CUDA_SUCCESS);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphRemoveEdges) == 1 && sent(HWS_OPCODE_hwsGraphAddEdges) == 1);
    HWS_CHECK(cuGraphDestroyNode(a) == CUDA_SUCCESS);
    record = last(HWS_OPCODE_hwsGraphRemoveNode);
    HWS_CHECK(record != NULL && (uint32_t) broker_u64(record->payload, 8) == 0);
    CUgraphNodeType type;
    HWS_CHECK(cuGraphNodeGetType(a, &type) == CUDA_ERROR_INVALID_VALUE); /* the handle is no node any more */
}

static void shouldSendALongGraphInSeveralBlobs(void) {
    start();
    CUgraph graph;
    CUgraphExec exec;
    int first = 7;
    double second = 2.5;
    char third = 'x';
    void *params[] = {&first, &second, &third};
    const CUDA_KERNEL_NODE_PARAMS_v2 launch = launch_of(params);
    CUgraphNode node = NULL;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    for (int i = 0; i < 20000; i++) {
        HWS_CHECK(cuGraphAddKernelNode_v2(&node, graph, &node, i == 0 ? 0 : 1, &launch) == CUDA_SUCCESS);
    }
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphAddNodes) == 2); /* 104 bytes each */
    uint32_t nodes = 0;
    for (unsigned i = 0; i < atomic_load(&broker_graph_count); i++) {
        if (broker_graphs[i].opcode == HWS_OPCODE_hwsGraphAddNodes) {
            HWS_CHECK(broker_graphs[i].bytes <= HWS_MAX_BULK_BYTES + BLOB_AT);
            nodes += (uint32_t) broker_u64(broker_graphs[i].payload, 8);
        }
    }
    HWS_CHECK(nodes == 20000);
}

static _Atomic int host_calls;

static void count_call(void *amount) {
    HWS_CHECK(cuDeviceGraphMemTrim(0) == CUDA_ERROR_NOT_PERMITTED); /* CUDA: no calls in a host function */
    atomic_fetch_add(&host_calls, *(int *) amount); /* last: the thread that waits for it may end the process */
}

static void wait_for(_Atomic int *value, int wanted) {
    while (atomic_load(value) != wanted) {
        usleep(1000);
    }
}

static void shouldRunHostNodesAsOftenAsTheGraphIsLaunched(void) {
    start();
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;
    int two = 2, five = 5;
    const CUDA_HOST_NODE_PARAMS host = {count_call, &two}, other = {count_call, &five};
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddHostNode(&node, graph, NULL, 0, &host) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    const broker_record_t *record = last(HWS_OPCODE_hwsGraphAddNodes);
    atomic_store(&broker_graph_call, broker_u64(record->payload, BLOB_AT + sizeof(HwsGraphNode)));
    for (int round = 1; round <= 3; round++) {
        HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
        wait_for(&host_calls, 2 * round);
    }
    HWS_CHECK(cuGraphExecHostNodeSetParams(exec, node, &other) == CUDA_SUCCESS);
    record = last(HWS_OPCODE_hwsGraphExecSetNode);
    HWS_CHECK(record != NULL && broker_u64(record->payload, 0) == (uint64_t) (uintptr_t) exec);
    uint64_t id = broker_u64(record->payload, 24 + sizeof(HwsGraphNode));
    HWS_CHECK(id != atomic_load(&broker_graph_call));
    atomic_store(&broker_graph_call, id);
    HWS_CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
    wait_for(&host_calls, 11);
    HWS_CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS && cuGraphLaunch(exec, stream) == CUDA_ERROR_INVALID_VALUE);
}

/* A copy node with the process's memory: a box of 3 x 2 bytes in rows of 8. */
static uint64_t make_copy(bool to_device, uint8_t *box, CUgraphExec *exec_p) {
    CUgraph graph;
    CUgraphNode node;
    CUDA_MEMCPY3D copy = {.WidthInBytes = 3, .Height = 2, .Depth = 1};
    copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.srcHost = to_device ? box : NULL;
    copy.dstHost = to_device ? NULL : box;
    copy.srcDevice = copy.dstDevice = memory;
    copy.srcPitch = copy.dstPitch = 8;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(exec_p, graph, 0) == CUDA_SUCCESS);
    HwsGraphCopy wire;
    memcpy(&wire, last(HWS_OPCODE_hwsGraphAddNodes)->payload + BLOB_AT + sizeof(HwsGraphNode), sizeof wire);
    HWS_CHECK(wire.widthBytes == 3 && wire.rows == 2 && wire.slices == 1);
    const HwsGraphEnd *host = to_device ? &wire.src : &wire.dst, *device = to_device ? &wire.dst : &wire.src;
    HWS_CHECK(host->place == 2 && host->pitch == 0 && device->place == 0 && device->base == memory);
    HWS_CHECK(device->pitch == 8);
    atomic_store(&broker_graph_call, host->base);
    return host->base;
}

static void shouldReadAndWriteTheProcesssMemoryWhenTheGraphRuns(void) {
    start();
    CUgraphExec to_device, to_host;
    static uint8_t box[16], back[16];
    uint64_t id = make_copy(true, box, &to_device);
    memcpy(box, "abc.....def.....", 16); /* after the graph was made */
    HWS_CHECK(cuGraphLaunch(to_device, stream) == CUDA_SUCCESS);
    while (sent(HWS_OPCODE_hwsGraphNodeWrite) == 0) {
        usleep(1000);
    }
    const broker_record_t *record = last(HWS_OPCODE_hwsGraphNodeWrite);
    HWS_CHECK(broker_u64(record->payload, 0) == id && broker_u64(record->payload, 8) == 0);
    HWS_CHECK(broker_u64(record->payload, 16) == 6 && memcmp(record->payload + 32, "abcdef", 6) == 0);
    make_copy(false, back, &to_host);
    HWS_CHECK(cuGraphLaunch(to_host, stream) == CUDA_SUCCESS);
    while (*(volatile uint8_t *) &back[10] != 5) { /* the broker's bytes are 0, 1, 2, ... */
        usleep(1000);
    }
    HWS_CHECK(back[0] == 0 && back[2] == 2 && back[3] == 0 && back[8] == 3 && back[11] == 0);
}

static void shouldTellWhichNodeAnUpdateFailedFor(void) {
    start();
    CUgraph graph, other;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS && cuGraphCreate(&other, 0) == CUDA_SUCCESS);
    add_memset(graph, NULL, 0, 1);
    CUgraphNode node = add_memset(other, NULL, 0, 1);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphExecUpdate_v2(exec, other, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    HWS_CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && info.errorNode == node);
    HWS_CHECK(info.errorFromNode == NULL);
}

static void shouldRefuseGraphsThatCudaRefuses(void) {
    start();
    CUgraph graph, clone;
    CUgraphExec exec;
    CUgraphNode alloc, node;
    CUgraphNodeParams external = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL};
    CUDA_MEM_ALLOC_NODE_PARAMS memory_params = {.bytesize = 100};
    memory_params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory_params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &external) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory_params) == CUDA_SUCCESS);
    HWS_CHECK(memory_params.dptr == 0x7000000000 && sent(HWS_OPCODE_hwsGraphAddAlloc) == 1);
    HWS_CHECK(cuGraphClone(&clone, graph) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(cuGraphDestroyNode(alloc) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(cuGraphAddMemFreeNode(&node, graph, &alloc, 1, memory) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    /* Memory that a launch leaves allocated is freed before the next launch, in each possible way. */
    HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemsetD8Async(memory_params.dptr, 0, 100, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuMemFreeAsync(memory_params.dptr, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuMemFreeAsync(memory_params.dptr, stream) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS && cuGraphDestroy(graph) == CUDA_SUCCESS);
    HWS_CHECK(cuMemsetD8Async(memory_params.dptr, 0, 100, stream) == CUDA_SUCCESS); /* it outlives them */
    HWS_CHECK(cuMemFree_v2(memory_params.dptr) == CUDA_SUCCESS);
    HWS_CHECK(cuMemsetD8Async(memory_params.dptr, 0, 100, stream) == CUDA_ERROR_INVALID_VALUE);
}

static CUgraphNode add_memory(CUgraph graph, const CUgraphNode *after, uint64_t address, uint64_t bytes) {
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = bytes};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    atomic_store(&broker_graph_memory, address);
    HWS_CHECK(cuGraphAddMemAllocNode(&node, graph, after, after != NULL ? 1 : 0, &params) == CUDA_SUCCESS);
    HWS_CHECK(params.dptr == address);
    return node;
}

static CUgraphNode add_free(CUgraph graph, CUgraphNode after, uint64_t address) {
    CUgraphNode node, again;
    HWS_CHECK(cuGraphAddMemFreeNode(&node, graph, &after, 1, address) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddMemFreeNode(&again, graph, &node, 1, address) == CUDA_ERROR_INVALID_VALUE);
    return node;
}

static bool is_memory(uint64_t address) {
    return cuMemsetD8Async(address, 0, 1, stream) == CUDA_SUCCESS;
}

/* A driver gives memory that a node has freed to later nodes of the graph, in whole or in parts. */
static void shouldKnowMemoryThatNodesShare(void) {
    start();
    const uint64_t base = 0x7000000000, half = 1 << 20;
    CUgraph graph;
    CUgraphExec exec;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_free(graph, add_memory(graph, NULL, base, 2 * half), base);
    node = add_free(graph, add_memory(graph, &node, base, 2 * half), base);
    CUgraphNode first = add_memory(graph, &node, base, half), second = add_memory(graph, &node, base + half, half);
    add_memory(graph, &first, base + half * 3 / 2, half); /* extends beyond the earlier memory, as freed memory can */
    add_free(graph, second, base + half);
    CUdeviceptr range;
    size_t bytes;
    HWS_CHECK(cuMemGetAddressRange_v2(&range, &bytes, base + 1) == CUDA_SUCCESS && range == base
              && bytes == half * 5 / 2);
    HWS_CHECK(cuGraphDestroyNode(first) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_ERROR_INVALID_VALUE); /* the first half is still there */
    HWS_CHECK(cuMemFreeAsync(base + half, stream) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemFree_v2(base) == CUDA_SUCCESS && cuMemFree_v2(base) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemFreeAsync(base + half * 3 / 2, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS && cuGraphDestroy(graph) == CUDA_SUCCESS);
    HWS_CHECK(is_memory(base) && !is_memory(base + half) && is_memory(base + half * 2));
    HWS_CHECK(cuMemFree_v2(base) == CUDA_SUCCESS && cuMemFree_v2(base + half * 3 / 2) == CUDA_SUCCESS);
    HWS_CHECK(!is_memory(base) && !is_memory(base + half * 2));
}

/* An executable graph that frees another's memory outlives that graph. */
static void shouldFreeAnotherGraphsMemory(void) {
    start();
    const uint64_t base = 0x7000000000;
    CUgraph graph, other;
    CUgraphExec exec, frees;
    CUgraphNode node;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS && cuGraphCreate(&other, 0) == CUDA_SUCCESS);
    add_memory(graph, NULL, base, 4096);
    HWS_CHECK(cuGraphAddMemFreeNode(&node, other, NULL, 0, base) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(&frees, other, 0) == CUDA_SUCCESS);
    for (int round = 0; round < 3; round++) {
        HWS_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS && cuGraphLaunch(frees, stream) == CUDA_SUCCESS);
    }
    HWS_CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS && cuGraphDestroy(graph) == CUDA_SUCCESS);
    HWS_CHECK(cuMemFree_v2(base) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphLaunch(frees, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphExecDestroy(frees) == CUDA_SUCCESS && !is_memory(base));
}

static _Atomic int destroyed;

static void destroy(void *unused) {
    (void) unused;
    atomic_fetch_add(&destroyed, 1);
}

static void shouldDestroyAUserObjectWithItsLastGraph(void) {
    start();
    CUgraph graph, clone;
    CUuserObject object;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuUserObjectCreate(&object, NULL, destroy, 1, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuUserObjectCreate(&object, NULL, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphClone(&clone, graph) == CUDA_SUCCESS && cuGraphDestroy(graph) == CUDA_SUCCESS);
    HWS_CHECK(atomic_load(&destroyed) == 0 && cuGraphReleaseUserObject(clone, object, 2) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphDestroy(clone) == CUDA_SUCCESS && atomic_load(&destroyed) == 1);
    HWS_CHECK(cuUserObjectRetain(object, 1) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldKeepObjectsOfInnerGraphsAndReplaceThemByAnUpdate(void) {
    start();
    CUgraph graphs[3];
    CUgraphNode node;
    CUgraphExec exec;
    CUuserObject object;
    CUgraphExecUpdateResultInfo info;
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(cuGraphCreate(&graphs[i], 0) == CUDA_SUCCESS);
        HWS_CHECK(cuUserObjectCreate(&object, NULL, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) == CUDA_SUCCESS);
        HWS_CHECK(cuGraphRetainUserObject(graphs[i], object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
    }
    HWS_CHECK(cuGraphAddChildGraphNode(&node, graphs[0], NULL, 0, graphs[1]) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graphs[0], 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphDestroy(graphs[0]) == CUDA_SUCCESS && cuGraphDestroy(graphs[1]) == CUDA_SUCCESS);
    HWS_CHECK(atomic_load(&destroyed) == 0);
    HWS_CHECK(cuGraphExecUpdate_v2(exec, graphs[2], &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    HWS_CHECK(atomic_load(&destroyed) == 0);
    atomic_store(&broker_updates, true);
    HWS_CHECK(cuGraphExecUpdate_v2(exec, graphs[2], &info) == CUDA_SUCCESS && atomic_load(&destroyed) == 2);
    HWS_CHECK(cuGraphDestroy(graphs[2]) == CUDA_SUCCESS && atomic_load(&destroyed) == 2);
    HWS_CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS && atomic_load(&destroyed) == 3);
}

static void shouldSendOperationsOnMemoryAndCaptureThem(void) {
    start();
    CUstreamBatchMemOpParams ops[2] = {{.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                      .address = memory,
                                                      .value64 = 0xFFFFFFFF00000007u,
                                                      .flags = CU_STREAM_WAIT_VALUE_EQ}},
                                       {.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER, .flags = 1}}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 2, .paramArray = ops}, shown;
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamWriteValue64_v2(stream, memory + 8, 1ull << 40, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && sent(HWS_OPCODE_hwsStreamMemOps) == 0);
    HWS_CHECK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params) == CUDA_SUCCESS);
    memset(ops, 0, sizeof ops);
    HWS_CHECK(cuGraphBatchMemOpNodeGetParams(node, &shown) == CUDA_SUCCESS && shown.count == 2);
    HWS_CHECK(shown.ctx == context && shown.paramArray[0].waitValue.address == memory);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    const broker_record_t *record = last(HWS_OPCODE_hwsGraphAddNodes);
    size_t at = BLOB_AT;
    const uint8_t *body;
    HwsMemoryOp wire[2];
    HWS_CHECK(record != NULL && (uint32_t) broker_u64(record->payload, 8) == 2);
    HwsGraphNode described = take_node(record, &at, &body);
    memcpy(wire, body, sizeof *wire);
    HWS_CHECK(described.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && described.bytes == sizeof *wire);
    HWS_CHECK(wire->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 && wire->value == 1ull << 40);
    described = take_node(record, &at, &body);
    memcpy(wire, body, sizeof wire);
    HWS_CHECK(described.bytes == sizeof wire && wire[0].address == memory && wire[0].value == 7);
    HWS_CHECK(wire[0].flags == CU_STREAM_WAIT_VALUE_EQ && wire[1].flags == 1 && wire[1].address == 0);
    params.count = 257;
    HWS_CHECK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldAddConditionalNodesAtOnceAndSendTheirBodies(void) {
    start();
    CUgraph graph, clone, bodies[2];
    CUgraphNode first, node, inside;
    CUgraphExec exec;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUDA_CONDITIONAL_NODE_PARAMS *conditional = &params.conditional;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphConditionalHandleCreate(&conditional->handle, graph, context, 0, 2) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphConditionalHandleCreate(&conditional->handle, graph, context, 7, 1) == CUDA_SUCCESS);
    HWS_CHECK(conditional->handle == 0x7f1234567890); /* the driver's value, which kernels get */
    const broker_record_t *record = last(HWS_OPCODE_hwsGraphAddCondition);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphCreate) == 1 && broker_u64(record->payload, 16) == (7 | 1ull << 32));
    first = add_memset(graph, NULL, 0, 1);
    conditional->type = CU_GRAPH_COND_TYPE_WHILE;
    conditional->size = 2;
    HWS_CHECK(cuGraphAddNode_v2(&node, graph, &first, NULL, 1, &params) == CUDA_ERROR_INVALID_VALUE);
    conditional->type = CU_GRAPH_COND_TYPE_IF;
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphAddNode_v2(&node, graph, &first, NULL, 1, &params) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphDestroy) == 0 && sent(HWS_OPCODE_hwsGraphRemoveNode) == 0);
    HWS_CHECK(cuGraphAddNode_v2(&node, graph, &first, NULL, 1, &params) == CUDA_SUCCESS);
    record = last(HWS_OPCODE_hwsGraphAddConditional);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphAddNodes) == 1 && broker_u64(record->payload, 24) == conditional->handle);
    memcpy(bodies, conditional->phGraph_out, sizeof bodies);
    HWS_CHECK(bodies[0] != bodies[1] && cuGraphDestroy(bodies[0]) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, bodies[0], 0) == CUDA_ERROR_INVALID_VALUE);
    inside = add_memset(bodies[1], NULL, 0, 2);
    HWS_CHECK(cuGraphClone(&clone, graph) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    record = last(HWS_OPCODE_hwsGraphAddNodes);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphAddNodes) == 2 && sent(HWS_OPCODE_hwsGraphCreate) == 1);
    HWS_CHECK(broker_u64(record->payload, 0) == (uint64_t) (uintptr_t) bodies[1]);
    CUgraphExec second;
    HWS_CHECK(cuGraphInstantiateWithFlags(&second, graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = memory, .value = 3, .elementSize = 4, .width = 8, .height = 1};
    HWS_CHECK(cuGraphExecMemsetNodeSetParams(exec, inside, &fill, context) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS && cuGraphDestroy(graph) == CUDA_SUCCESS);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphDestroy) == 3); /* with the bodies' ids */
    HWS_CHECK(cuGraphGetNodes(bodies[1], NULL, &(size_t) {0}) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldGiveTheDriversHandleOfGraphsThatKernelsLaunch(void) {
    start();
    CUgraph graph;
    CUgraphExec execs[2], plain;
    cuuint64_t flags;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_memset(graph, NULL, 0, 1);
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(cuGraphInstantiateWithFlags(&execs[i], graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0);
        HWS_CHECK((uint64_t) (uintptr_t) execs[i] > 0x7f0000001000);
    }
    HWS_CHECK(cuGraphInstantiateWithFlags(&plain, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphExecGetFlags(execs[1], &flags) == CUDA_SUCCESS && flags == 4);
    HWS_CHECK(cuGraphUpload(execs[1], stream) == CUDA_SUCCESS && cuGraphLaunch(execs[1], stream) == CUDA_SUCCESS);
    /* On the wire they have ids of the guest. */
    uint64_t id = broker_u64(last(HWS_OPCODE_cuGraphLaunch)->payload, 0);
    HWS_CHECK(id >> 40 == HWS_KIND_GRAPH_EXEC && id == broker_u64(last(HWS_OPCODE_cuGraphUpload)->payload, 0));
    HWS_CHECK(cuGraphNodeSetEnabled(execs[1], node, 0) == CUDA_SUCCESS);
    HWS_CHECK(broker_u64(last(HWS_OPCODE_hwsGraphEnable)->payload, 0) == id);
    HWS_CHECK(cuGraphExecDestroy(execs[1]) == CUDA_SUCCESS);
    HWS_CHECK(broker_u64(last(HWS_OPCODE_hwsGraphExecDestroy)->payload, 0) == id);
    HWS_CHECK(cuGraphLaunch(execs[1], stream) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphLaunch(execs[0], stream) == CUDA_SUCCESS && cuGraphLaunch(plain, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphLaunch(NULL, stream) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldSendNothingWhileAStreamCaptures(void) {
    start();
    CUgraph graph;
    int first = 1;
    double second = 2;
    char third = 3;
    void *params[] = {&first, &second, &third};
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    uint64_t calls = atomic_load(&broker_calls);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyHtoDAsync_v2(memory, &second, sizeof second, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 16, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS && atomic_load(&broker_calls) == calls + 1);
    size_t nodes = 0, edges = 0;
    HWS_CHECK(cuGraphGetNodes(graph, NULL, &nodes) == CUDA_SUCCESS && nodes == 3);
    HWS_CHECK(cuGraphGetEdges(graph, NULL, NULL, &edges) == CUDA_SUCCESS && edges == 2);
}

/* Captures a call of a library with a reply of 8 bytes, and returns its result. */
static int library_call(CUstream stream) {
    static const CUuuid id = HWS_SERVICE_ID;
    const void *table;
    const uint64_t payload[2] = {0x1111, 0x2222};
    uint32_t reply[2] = {0}, reply_bytes = 0;
    HWS_CHECK(cuGetExportTable(&table, &id) == CUDA_SUCCESS);
    const hws_service_t *service = table;
    HWS_CHECK(service->may_issue(stream) == CUDA_SUCCESS);
    int status = service->work((uintptr_t) stream, 0x50001, HWS_FLAG_REPLY | HWS_FLAG_CREDITED, payload, sizeof payload,
                               NULL, 0, reply, sizeof reply, &reply_bytes);
    HWS_CHECK(status != 0 || (reply_bytes == 8 && reply[0] == 0x5a));
    return status;
}

static void shouldMakeANodeOfALibrarysCall(void) {
    CUstream stream;
    CUgraph graph, clone;
    CUgraphExec exec;
    CUgraphNode nodes[3];
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    size_t count = 3, edges = 0;
    start();
    HWS_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    HWS_CHECK(cuMemsetD32Async(memory, 1, 16, stream) == CUDA_SUCCESS);
    broker_capture.outcome = 15; /* the library refuses: no node */
    HWS_CHECK(library_call(stream) == 15);
    broker_capture.outcome = 0; /* it has nothing to do: no node */
    HWS_CHECK(library_call(stream) == 0);
    broker_capture.nodes = 2;
    HWS_CHECK(library_call(stream) == 0);
    HWS_CHECK(cuMemsetD32Async(memory, 2, 16, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS && count == 3);
    HWS_CHECK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &edges) == CUDA_SUCCESS && edges == 2);
    HWS_CHECK(cuGraphNodeGetType(nodes[1], &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_KERNEL);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(nodes[1], &params) == CUDA_ERROR_INVALID_VALUE);

    const broker_record_t *captured = last(HWS_OPCODE_hwsGraphCapture);
    HWS_CHECK(captured->bytes == 24 + 16 && broker_u64(captured->payload, 16) == ((16ull << 32) | 16)
              && (uint32_t) broker_u64(captured->payload, 8) == 0x50001 && broker_u64(captured->payload, 24) == 0x1111
              && broker_u64(captured->payload, 32) == 0x2222);
    uint64_t content = broker_u64(captured->payload, 0), copy;
    HWS_CHECK(cuGraphClone(&clone, graph) == CUDA_SUCCESS);
    const broker_record_t *copied = last(HWS_OPCODE_hwsGraphCopy);
    copy = broker_u64(copied->payload, 0);
    HWS_CHECK(copy != content && broker_u64(copied->payload, 8) == content);

    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, clone, 0) == CUDA_SUCCESS);
    const broker_record_t *added = last(HWS_OPCODE_hwsGraphAddNodes);
    const uint8_t *body;
    size_t at = BLOB_AT;
    HWS_CHECK(take_node(added, &at, &body).type == CU_GRAPH_NODE_TYPE_MEMSET);
    HwsGraphNode node = take_node(added, &at, &body);
    HWS_CHECK(node.type == CU_GRAPH_NODE_TYPE_GRAPH && node.dependencyCount == 1 && node.bytes == 8);
    HWS_CHECK(broker_u64(body, sizeof(HwsGraphEdge)) == copy);
    HWS_CHECK(cuGraphNodeSetEnabled(exec, nodes[1], 0) == CUDA_ERROR_INVALID_VALUE);

    unsigned destroyed = sent(HWS_OPCODE_hwsGraphDestroy);
    HWS_CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS && sent(HWS_OPCODE_hwsGraphDestroy) == destroyed + 1);
    HWS_CHECK(cuGraphDestroy(clone) == CUDA_SUCCESS && sent(HWS_OPCODE_hwsGraphDestroy) == destroyed + 3);
    HWS_CHECK(broker_u64(last(HWS_OPCODE_hwsGraphDestroy)->payload, 0) == copy); /* after the graph around it */
}

static void shouldFollowTheLibrarysCapture(void) {
    CUstream stream;
    CUgraph graph, clone;
    CUgraphExec exec, second;
    CUstreamCaptureStatus status;
    start();
    HWS_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    broker_capture.outcome = 13;
    broker_capture.flags = 1; /* the library waits for its result, which ends the capture */
    HWS_CHECK(library_call(stream) == 13);
    HWS_CHECK(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    broker_capture.outcome = 0;
    broker_capture.nodes = 3;
    broker_capture.flags = 2; /* it allocates memory: CUDA's rules for such graphs */
    HWS_CHECK(library_call(stream) == 0);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphClone(&clone, graph) == CUDA_ERROR_NOT_SUPPORTED && sent(HWS_OPCODE_hwsGraphCopy) == 0);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(&second, graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
}

static void shouldNameNoNodeWhereACaptureForbidsInstantiation(void) {
    start();
    CUgraph graph, captured;
    CUgraphExec exec;
    CUgraphNode node = (CUgraphNode) (uintptr_t) 1;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiate_v2(&exec, graph, &node, NULL, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(node == NULL);
    HWS_CHECK(cuStreamEndCapture(stream, &captured) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void shouldCaptureEarlyKernelsByProgrammaticEdges(void) {
    start();
    CUgraph graph;
    CUgraphNode from, to;
    CUgraphEdgeData data;
    size_t edges = 1;
    int first = 1;
    double second = 2;
    char third = 3;
    void *params[] = {&first, &second, &third};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = {.gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = stream,
                                   .attrs = &attribute,
                                   .numAttrs = 1};
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuLaunchKernelEx(&config, function, params, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphGetEdges(graph, &from, &to, &edges) == CUDA_ERROR_LOSSY_QUERY);
    HWS_CHECK(cuGraphGetEdges_v2(graph, &from, &to, &data, &edges) == CUDA_SUCCESS && edges == 1);
    HWS_CHECK(data.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
              && data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
}

/* The parameters of the last hwsGraphExecSetKernel: exec, graph, blobBytes, its length, blob. */
static const uint8_t *exec_arguments(void) {
    return last(HWS_OPCODE_hwsGraphExecSetKernel)->payload + 24 + sizeof(HwsGraphNode) + sizeof(HwsGraphKernel);
}

static CUgraphNode add_kernel(CUgraph graph, int *first, double *second, char *third) {
    void *params[] = {first, second, third};
    const CUDA_KERNEL_NODE_PARAMS_v2 launch = launch_of(params);
    CUgraphNode node;
    HWS_CHECK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &launch) == CUDA_SUCCESS);
    return node;
}

/* As inference engines do: each token changes the structure that GetParams filled, and sets it again. */
static void shouldKeepTheArraysOfAKernelNodeWhereTheyAre(void) {
    start();
    CUgraph graph;
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS_v2 own, now;
    int first = 1, mine;
    double second = 2.5;
    char third = 'x';
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_kernel(graph, &first, &second, &third);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(node, &own) == CUDA_SUCCESS && *(int *) own.kernelParams[0] == 1);
    void *place = own.kernelParams[0];
    for (int token = 2; token < 5; token++) {
        *(int *) own.kernelParams[0] = token;
        HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &own) == CUDA_SUCCESS);
        HWS_CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &own) == CUDA_SUCCESS);
        HWS_CHECK(*(const int *) exec_arguments() == token && exec_arguments()[16] == 'x');
    }
    /* The program has replaced one entry of the array by its own pointer, as some engines do. */
    own.kernelParams[0] = &mine;
    size_t allocated = __sanitizer_get_current_allocated_bytes();
    for (mine = 0; mine < 100000; mine++) {
        own.kernelParams[0] = &mine;
        HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &own) == CUDA_SUCCESS);
        HWS_CHECK(own.kernelParams[0] == place && *(int *) place == mine);
    }
    HWS_CHECK(__sanitizer_get_current_allocated_bytes() < allocated + SLACK_BYTES);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(node, &now) == CUDA_SUCCESS && now.kernelParams == own.kernelParams);
    own.blockDimX = 0;
    HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &own) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(*(int *) now.kernelParams[0] == 99999); /* a refused change has no effect */
    /* Written without a set: CUDA uses the value at the next use of the graph. */
    *(int *) now.kernelParams[0] = 60;
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    const broker_record_t *record = last(HWS_OPCODE_hwsGraphSetNodes);
    HWS_CHECK(*(const int *) (record->payload + BLOB_AT + sizeof(HwsGraphNode) + sizeof(HwsGraphKernel)) == 60);
    unsigned before = sent(HWS_OPCODE_hwsGraphSetNodes);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(sent(HWS_OPCODE_hwsGraphSetNodes) == before);
    HWS_CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS && cuGraphExecDestroy(exec) == CUDA_SUCCESS);
}

static void shouldKeepArraysThatAnotherFunctionHasOutgrown(void) {
    start();
    CUgraph graph, clone;
    CUgraphNode copied;
    CUmodule module;
    CUfunction larger;
    CUDA_KERNEL_NODE_PARAMS_v2 own, now;
    int first = 1;
    double second = 2.5;
    char third = 'x';
    void *many[BROKER_WIDE_PARAMS];
    HWS_CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
    HWS_CHECK(cuModuleGetFunction(&larger, module, "wide") == CUDA_SUCCESS);
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_kernel(graph, &first, &second, &third);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(node, &own) == CUDA_SUCCESS);
    size_t allocated = 0;
    for (int i = 0; i < BROKER_WIDE_PARAMS; i++) {
        many[i] = &second;
    }
    for (int round = 0; round < 1000; round++) {
        CUDA_KERNEL_NODE_PARAMS_v2 wide = launch_of(many);
        wide.func = larger;
        HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &wide) == CUDA_SUCCESS);
        *(int *) own.kernelParams[0] = round; /* the program may still read and write it */
        HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &own) == CUDA_SUCCESS);
        HWS_CHECK(cuGraphKernelNodeGetParams_v2(node, &now) == CUDA_SUCCESS && now.func == function);
        HWS_CHECK(*(int *) now.kernelParams[0] == round && *(double *) now.kernelParams[1] == 2.5);
        allocated = round == 1 ? __sanitizer_get_current_allocated_bytes() : allocated;
    }
    HWS_CHECK(__sanitizer_get_current_allocated_bytes() < allocated + SLACK_BYTES);
    /* A clone and a child have their own arrays, and may be set from the original's. */
    HWS_CHECK(cuGraphClone(&clone, graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphNodeFindInClone(&copied, node, clone) == CUDA_SUCCESS);
    *(int *) now.kernelParams[0] = 5;
    HWS_CHECK(cuGraphKernelNodeSetParams_v2(copied, &now) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(copied, &now) == CUDA_SUCCESS && *(int *) now.kernelParams[0] == 5);
    HWS_CHECK(cuGraphDestroy(clone) == CUDA_SUCCESS);
}

static void shouldTakeTheExtraThatItHasShown(void) {
    start();
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS_v2 own, now, launch = launch_of(NULL);
    struct {
        int first;
        double second;
        char third;
    } packed = {1, 2.5, 'x'};
    size_t bytes = 17;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    launch.extra = extra;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &launch) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(node, &own) == CUDA_SUCCESS);
    size_t allocated = __sanitizer_get_current_allocated_bytes();
    HWS_CHECK(own.kernelParams == NULL && own.extra != NULL && *(size_t *) own.extra[1] == 17);
    for (int token = 2; token < 100000; token++) {
        *(int *) own.extra[3] = token;
        HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &own) == CUDA_SUCCESS);
    }
    HWS_CHECK(__sanitizer_get_current_allocated_bytes() < allocated + SLACK_BYTES);
    HWS_CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &own) == CUDA_SUCCESS);
    HWS_CHECK(*(const int *) exec_arguments() == 99999 && exec_arguments()[16] == 'x');
    packed.first = 7;
    HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &launch) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(node, &now) == CUDA_SUCCESS && *(int *) own.extra[3] == 7);
    HWS_CHECK(now.extra == own.extra && now.extra[3] == own.extra[3]);
    bytes = sizeof packed; /* with the padding at its end */
    HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &launch) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &launch) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS && cuGraphExecDestroy(exec) == CUDA_SUCCESS);
}

static void shouldTakeTheDependenciesThatACaptureShows(void) {
    start();
    CUgraph graph;
    CUstreamCaptureStatus status;
    const CUgraphNode *shown;
    const CUgraphEdgeData *data;
    size_t count, edges = 0;
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamGetCaptureInfo_v3(stream, &status, NULL, &graph, NULL, NULL, NULL) == CUDA_SUCCESS);
    CUgraphNode nodes[5];
    for (int i = 0; i < 5; i++) {
        nodes[i] = add_memset(graph, NULL, 0, (unsigned) i);
    }
    HWS_CHECK(cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, 5, CU_STREAM_SET_CAPTURE_DEPENDENCIES) == 0);
    HWS_CHECK(cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &shown, &data, &count) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamUpdateCaptureDependencies_v2(stream, (CUgraphNode *) (uintptr_t) shown, data, count,
                                                   CU_STREAM_ADD_CAPTURE_DEPENDENCIES)
              == CUDA_SUCCESS);
    HWS_CHECK(cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &shown, &data, &count) == CUDA_SUCCESS);
    HWS_CHECK(count == 5 && memcmp(shown, nodes, sizeof nodes) == 0);
    HWS_CHECK(cuStreamUpdateCaptureDependencies_v2(stream, (CUgraphNode *) (uintptr_t) shown + 1, data, count - 1,
                                                   CU_STREAM_SET_CAPTURE_DEPENDENCIES)
              == CUDA_SUCCESS);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 16, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphGetEdges(graph, NULL, NULL, &edges) == CUDA_SUCCESS && edges == 4);
}

static CUresult launch_with(const CUlaunchAttribute *attributes, unsigned count, unsigned grid) {
    int first = 1;
    double second = 2;
    char third = 3;
    void *params[] = {&first, &second, &third};
    const CUlaunchConfig config = {.gridDimX = grid,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = stream,
                                   .numAttrs = count,
                                   .attrs = (CUlaunchAttribute *) (uintptr_t) attributes};
    return cuLaunchKernelEx(&config, function, params, NULL);
}

static CUlaunchAttribute cluster(unsigned x, unsigned y, unsigned z) {
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = x;
    attribute.value.clusterDim.y = y;
    attribute.value.clusterDim.z = z;
    return attribute;
}

static CUresult launch_cluster(unsigned x, unsigned y, unsigned z, unsigned grid) {
    const CUlaunchAttribute attribute = cluster(x, y, z);
    return launch_with(&attribute, 1, grid);
}

/* The results are the driver's (580, H200). */
static void shouldRefuseClustersAtOnceAsTheDriverDoes(void) {
    start();
    HWS_CHECK(launch_cluster(0, 0, 0, 4) == CUDA_SUCCESS && launch_cluster(1, 1, 1, 4) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(2, 1, 1, 4) == CUDA_SUCCESS && launch_cluster(3, 1, 1, 3) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(0, 1, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(2, 0, 0, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(3, 1, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(1, 2, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(8, 1, 1, 8) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(9, 1, 1, 9) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(UINT32_MAX, UINT32_MAX, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(3, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE); /* the grid comes first */
    const CUlaunchAttribute bad_good[2] = {cluster(3, 1, 1), cluster(4, 1, 1)},
                            good_bad[2] = {cluster(4, 1, 1), cluster(3, 1, 1)};
    HWS_CHECK(launch_with(bad_good, 2, 4) == CUDA_SUCCESS);
    HWS_CHECK(launch_with(good_bad, 2, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CUlaunchAttribute policy = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
    for (int value = -1; value < 4; value++) {
        policy.value.clusterSchedulingPolicyPreference = (CUclusterSchedulingPolicy) value;
        HWS_CHECK(launch_with(&policy, 1, 4) == (value < 0 || value > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS));
    }
}

/* A value, and the results of a launch with it and of a node with it. */
typedef struct bad_value {
    CUlaunchAttributeID id;
    CUlaunchAttributeValue value;
    CUresult launch, node;
} bad_value_t;

static const CUaccessPolicyWindow window = {.num_bytes = 4096,
                                            .hitRatio = 1,
                                            .hitProp = CU_ACCESS_PROPERTY_PERSISTING,
                                            .missProp = CU_ACCESS_PROPERTY_STREAMING};

static CUlaunchAttributeValue window_of(size_t bytes, float ratio, CUaccessProperty miss) {
    CUlaunchAttributeValue value = {.accessPolicyWindow = window};
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = ratio;
    value.accessPolicyWindow.missProp = miss;
    return value;
}

static void shouldRefuseValuesOfAttributesAsTheDriverDoes(void) {
    start();
    const bad_value_t values[] = {
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, window_of(4096, 1, CU_ACCESS_PROPERTY_STREAMING), 0, 0},
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, window_of(4096, 2, CU_ACCESS_PROPERTY_STREAMING), 1, 1},
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, window_of(4096, -1, CU_ACCESS_PROPERTY_STREAMING), 1, 1},
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, window_of(4096, 1, CU_ACCESS_PROPERTY_PERSISTING), 1, 1},
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, window_of(134217729, 1, CU_ACCESS_PROPERTY_NORMAL), 1, 1},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, {.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE}, 0, 0},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, {.memSyncDomain = 2}, 1, 1},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, {.memSyncDomainMap = {3, 3}}, 0, 0},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, {.memSyncDomainMap = {4, 0}}, 1, 1},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, {.memSyncDomainMap = {0, 255}}, 1, 1},
        {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, {.sharedMemCarveout = 100}, 0, 0},
        {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, {.sharedMemCarveout = 101}, 1, 1},
        {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, {.sharedMemCarveout = UINT32_MAX}, 1, 1},
        {CU_LAUNCH_ATTRIBUTE_PRIORITY, {.priority = -100}, 0, 0},
        {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {.cooperative = -1}, 0, 0},
        {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, {.clusterSchedulingPolicyPreference = 3}, 1, 0},
        {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {.programmaticStreamSerializationAllowed = 99}, 0, 1},
        {CU_LAUNCH_ATTRIBUTE_IGNORE, {.priority = 1}, 0, 1},
        {CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, {.priority = 1}, 1, 1},
        {(CUlaunchAttributeID) 15, {.priority = 1}, 1, 1},
        {(CUlaunchAttributeID) 99, {.priority = 1}, 1, 1},
        {(CUlaunchAttributeID) -1, {.priority = 1}, 1, 1},
    };
    CUgraph graph;
    int first = 1;
    double second = 2;
    char third = 3;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_kernel(graph, &first, &second, &third);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const CUlaunchAttribute attribute = {.id = values[i].id, .value = values[i].value};
        CUstreamCaptureStatus status;
        CUgraph captured;
        HWS_CHECK(launch_with(&attribute, 1, 4) == values[i].launch);
        HWS_CHECK(cuGraphKernelNodeSetAttribute(node, values[i].id, &values[i].value) == values[i].node);
        HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        HWS_CHECK(launch_with(&attribute, 1, 4) == values[i].launch);
        HWS_CHECK(cuStreamIsCapturing(stream, &status) == 0 && status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
        HWS_CHECK(cuStreamEndCapture(stream, &captured) == CUDA_SUCCESS && cuGraphDestroy(captured) == CUDA_SUCCESS);
    }
}

static CUresult launch_preferred(unsigned own, unsigned preferred, unsigned grid) {
    CUlaunchAttribute attributes[2] = {cluster(own, own != 0, own != 0),
                                       cluster(preferred, preferred != 0, preferred != 0)};
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
    return launch_with(attributes, 2, grid);
}

static void shouldRefusePreferredClustersAsTheDriverDoes(void) {
    start();
    HWS_CHECK(launch_preferred(0, 0, 8) == CUDA_SUCCESS && launch_preferred(2, 0, 6) == CUDA_SUCCESS);
    HWS_CHECK(launch_preferred(2, 2, 6) == CUDA_SUCCESS && launch_preferred(2, 4, 8) == CUDA_SUCCESS);
    HWS_CHECK(launch_preferred(2, 8, 8) == CUDA_SUCCESS);
    HWS_CHECK(launch_preferred(0, 2, 8) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_preferred(0, 1, 8) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_preferred(2, 1, 8) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_preferred(2, 3, 6) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_preferred(2, 4, 6) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_preferred(2, 16, 8) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void shouldRefuseWhatTheKernelsClustersForbid(void) {
    broker_cluster_width = 2;
    start();
    HWS_CHECK(launch_with(NULL, 0, 4) == CUDA_SUCCESS && launch_cluster(2, 1, 1, 4) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(0, 0, 0, 4) == CUDA_SUCCESS);
    HWS_CHECK(launch_with(NULL, 0, 3) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(4, 1, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(launch_cluster(1, 1, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CUgraph graph;
    CUgraphNode node;
    int first = 1;
    double second = 2;
    char third = 3;
    void *params[] = {&first, &second, &third};
    CUDA_KERNEL_NODE_PARAMS_v2 launch = launch_of(params);
    launch.gridDimX = 3;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &launch) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void shouldRefuseClustersInCapturesAndGraphs(void) {
    broker_cluster_any = 1;
    start();
    CUgraph graph;
    CUstreamCaptureStatus status;
    CUlaunchAttributeValue value;
    HWS_CHECK(launch_cluster(16, 1, 1, 16) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(17, 1, 1, 17) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    /* An error of the attribute does not end the capture; one of the whole launch does. */
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(0, 1, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(cuStreamIsCapturing(stream, &status) == 0 && status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    HWS_CHECK(launch_cluster(17, 1, 1, 17) == CUDA_SUCCESS); /* until it is instantiated */
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(3, 1, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(cuStreamIsCapturing(stream, &status) == 0 && status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    int first = 1;
    double second = 2;
    char third = 3;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_kernel(graph, &first, &second, &third); /* of 2 blocks */
    CUlaunchAttribute wanted = cluster(2, 1, 1);
    HWS_CHECK(cuGraphKernelNodeSetAttribute(node, wanted.id, &wanted.value) == CUDA_SUCCESS);
    const CUlaunchAttribute bad[] = {cluster(3, 1, 1), cluster(0, 1, 1), cluster(4, 1, 1)};
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(cuGraphKernelNodeSetAttribute(node, bad[i].id, &bad[i].value) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
        HWS_CHECK(cuGraphKernelNodeGetAttribute(node, bad[i].id, &value) == 0 && value.clusterDim.x == 2);
    }
    /* A new grid of the node or of its executable may not disagree either. */
    CUgraphExec exec;
    void *params[] = {&first, &second, &third};
    CUDA_KERNEL_NODE_PARAMS_v2 uneven = launch_of(params), now;
    uneven.gridDimX = 3;
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &uneven) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(cuGraphKernelNodeSetParams_v2(node, &uneven) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    HWS_CHECK(cuGraphKernelNodeGetParams_v2(node, &now) == CUDA_SUCCESS && now.gridDimX == 2);
    wanted = cluster(0, 0, 0);
    HWS_CHECK(cuGraphKernelNodeSetAttribute(node, wanted.id, &wanted.value) == CUDA_SUCCESS);
    /* A device without clusters. */
    HWS_CHECK(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CUmodule module;
    HWS_CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
    HWS_CHECK(cuModuleGetFunction(&function, module, "kernel") == CUDA_SUCCESS);
    HWS_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    HWS_CHECK(launch_cluster(1, 1, 1, 4) == CUDA_SUCCESS && launch_cluster(2, 1, 1, 4) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(launch_cluster(2, 0, 1, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

int main(void) {
    RUN(shouldDescribeNodesWhenTheGraphIsInstantiated, 0);
    RUN(shouldSendEdgesThatNoDescriptionNames, 0);
    RUN(shouldSendALongGraphInSeveralBlobs, 0);
    RUN(shouldRunHostNodesAsOftenAsTheGraphIsLaunched, 0);
    RUN(shouldReadAndWriteTheProcesssMemoryWhenTheGraphRuns, 0);
    RUN(shouldTellWhichNodeAnUpdateFailedFor, 0);
    RUN(shouldRefuseGraphsThatCudaRefuses, 1);
    RUN(shouldKnowMemoryThatNodesShare, 0);
    RUN(shouldFreeAnotherGraphsMemory, 0);
    RUN(shouldDestroyAUserObjectWithItsLastGraph, 0);
    RUN(shouldKeepObjectsOfInnerGraphsAndReplaceThemByAnUpdate, 0);
    RUN(shouldSendOperationsOnMemoryAndCaptureThem, 0);
    RUN(shouldAddConditionalNodesAtOnceAndSendTheirBodies, 0);
    RUN(shouldGiveTheDriversHandleOfGraphsThatKernelsLaunch, 0);
    RUN(shouldSendNothingWhileAStreamCaptures, 0);
    RUN(shouldMakeANodeOfALibrarysCall, 0);
    RUN(shouldFollowTheLibrarysCapture, 0);
    RUN(shouldNameNoNodeWhereACaptureForbidsInstantiation, 0);
    RUN(shouldCaptureEarlyKernelsByProgrammaticEdges, 0);
    RUN(shouldKeepTheArraysOfAKernelNodeWhereTheyAre, 0);
    RUN(shouldKeepArraysThatAnotherFunctionHasOutgrown, 0);
    RUN(shouldTakeTheExtraThatItHasShown, 0);
    RUN(shouldTakeTheDependenciesThatACaptureShows, 0);
    RUN(shouldRefuseClustersAtOnceAsTheDriverDoes, 0);
    RUN(shouldRefuseValuesOfAttributesAsTheDriverDoes, 0);
    RUN(shouldRefusePreferredClustersAsTheDriverDoes, 0);
    RUN(shouldRefuseWhatTheKernelsClustersForbid, 0);
    RUN(shouldRefuseClustersInCapturesAndGraphs, 1);
    return 0;
}

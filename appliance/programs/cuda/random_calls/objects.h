// The objects that each process of a run starts with: the run's own ones, and one of most kinds that calls may end.
#ifndef HAWSER_RANDOM_CALLS_OBJECTS_H
#define HAWSER_RANDOM_CALLS_OBJECTS_H

#include "run.h"

static bool check(const char *what, int result) {
    if (result != 0) {
        print(" %s=%d", what, result);
    }
    return result == 0;
}

// Puts a handle that `result` says is new into a slot.
template <typename T> static void own(kind_t kind, unsigned slot, const char *what, int result, const T &handle) {
    if (check(what, result)) {
        slots[kind][slot] = {(uint64_t) handle, 0, slots[CONTEXT][0].value, LIVE};
    }
}

template <typename T>
static void own_memory(unsigned at, const char *what, int result, const T &address, size_t bytes) {
    if (check(what, result)) {
        keep_allocation(at, (uint64_t) address, bytes);
    }
}

static void set_up_host_memory() {
    for (unsigned i : {6u, 7u, REGISTERED}) {
        size_t bytes = i == REGISTERED ? OWN_BYTES : HOST_BYTES;
        void *memory = aligned_alloc(4096, bytes);
        memset(memory, (int) i, bytes);
        blocks[i] = {'h', (uint64_t) memory, bytes, LIVE};
    }
}

static void set_up_memory() {
    void *memory = nullptr;
    CUdeviceptr device = 0;
    for (unsigned i : {0u, 1u, 2u, 3u, WORDS}) {
        own_memory(i, "memory", DRIVER(cuMemAlloc_v2)(&device, OWN_BYTES), device, OWN_BYTES);
    }
    for (unsigned i : {8u, 9u}) {
        own_memory(i, "pinned", DRIVER(cuMemHostAlloc)(&memory, OWN_BYTES, 0), memory, OWN_BYTES);
    }
    for (unsigned i : {10u, 11u}) {
        own_memory(i, "managed", DRIVER(cuMemAllocManaged)(&device, OWN_BYTES, CU_MEM_ATTACH_GLOBAL), device,
                   OWN_BYTES);
    }
    check("registered", DRIVER(cuMemHostRegister_v2)((void *) blocks[REGISTERED].address, blocks[REGISTERED].bytes, 0));
    check("handle", DRIVER(cuIpcGetMemHandle)(&kept.memory_handle, blocks[0].address));
}

// Block 12 maps the own physical memory. Calls may map and unmap another reservation.
static void set_up_mappings(bool both) {
    CUmemAllocationProp properties;
    memset(&properties, 0, sizeof(properties));
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle physical = 0;
    for (unsigned i = 0; i < 2; i++) {
        own(PHYSICAL, i, "physical", DRIVER(cuMemCreate)(&physical, GRANULE, &properties, 0), physical);
    }
    CUdeviceptr address = 0;
    if (check("reservation", DRIVER(cuMemAddressReserve)(&address, GRANULE, 0, 0, 0))) {
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        check("map", DRIVER(cuMemMap)(address, GRANULE, 0, slots[PHYSICAL][0].value, 0));
        own_memory(12, "access", DRIVER(cuMemSetAccess)(address, GRANULE, &access, 1), address, GRANULE);
    }
    own_memory(RESERVED, "reservation", DRIVER(cuMemAddressReserve)(&address, GRANULE, 0, 0, 0), address, GRANULE);
    if (both) {
        check("map", DRIVER(cuMemMap)(address, GRANULE, 0, slots[PHYSICAL][1].value, 0));
    }
    check("export",
          DRIVER(cuMemExportToShareableHandle)(&kept.memory_descriptor, slots[PHYSICAL][0].value,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

static void set_up_pools() {
    CUmemoryPool pool = nullptr;
    CUdeviceptr address = 0;
    own(POOL, 0, "pool", DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0), pool);
    CUmemPoolProps properties;
    memset(&properties, 0, sizeof(properties));
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    own(POOL, OWN_POOLS, "pool", DRIVER(cuMemPoolCreate)(&pool, &properties), pool);
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    own(POOL, EXPORTED_POOL, "pool", DRIVER(cuMemPoolCreate)(&pool, &properties), pool);
    own_memory(13, "memory of pool", DRIVER(cuMemAllocFromPoolAsync)(&address, OWN_BYTES, pool, nullptr), address,
               OWN_BYTES);
    check("export",
          DRIVER(cuMemPoolExportToShareableHandle)(&kept.pool_descriptor, pool,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    check("export", DRIVER(cuMemPoolExportPointer)(&kept.pool_pointer, address));
    own(POOL, IMPORTED_POOL, "import",
        DRIVER(cuMemPoolImportFromShareableHandle)(&pool, (void *) (intptr_t) kept.pool_descriptor,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        pool);
}

static void set_up_images() {
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    CUfunction function = nullptr;
    CUkernel kernel = nullptr;
    CUlinkState link = nullptr;
    for (unsigned i = 0; i < 2; i++) {
        own(MODULE, i, "module", DRIVER(cuModuleLoadData)(&module, good_image), module);
        own(LIBRARY, i, "library",
            DRIVER(cuLibraryLoadData)(&library, good_image, nullptr, nullptr, 0, nullptr, nullptr, 0), library);
        own(LINK, i, "link", DRIVER(cuLinkCreate_v2)(0, nullptr, nullptr, &link), link);
    }
    own(FUNCTION, 0, "function", DRIVER(cuModuleGetFunction)(&function, (CUmodule) slots[MODULE][0].value, "add"),
        function);
    own(KERNEL, 0, "kernel", DRIVER(cuLibraryGetKernel)(&kernel, (CUlibrary) slots[LIBRARY][0].value, "add"), kernel);
}

static void set_up_arrays() {
    static auto create =
        driver_function<CUresult (*)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *)>("cuArray3DCreate_v2");
    CUarray array = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shape = {64, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    for (unsigned i : {0u, (unsigned) OWN_ARRAYS}) {
        own(ARRAY, i, "array", create(&array, &shape), array);
    }
    shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    own(ARRAY, SURFACE_ARRAY, "surface array", create(&array, &shape), array);
    shape = {512, 512, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SPARSE};
    own(ARRAY, SPARSE_ARRAY, "sparse array", create(&array, &shape), array);
    shape.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    own(ARRAY, DEFERRED_ARRAY, "deferred array", create(&array, &shape), array);
    shape = {64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    CUmipmappedArray mipmapped = nullptr;
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC description;
    memset(&resource, 0, sizeof(resource));
    memset(&description, 0, sizeof(description));
    for (unsigned i = 0; i < 2; i++) {
        own(MIPMAPPED, i, "mipmapped", DRIVER(cuMipmappedArrayCreate)(&mipmapped, &shape, 3), mipmapped);
        resource.res.array.hArray = (CUarray) slots[ARRAY][0].value;
        own(TEXTURE, i, "texture", DRIVER(cuTexObjectCreate)(&texture, &resource, &description, nullptr), texture);
        resource.res.array.hArray = (CUarray) slots[ARRAY][SURFACE_ARRAY].value;
        own(SURFACE, i, "surface", DRIVER(cuSurfObjectCreate)(&surface, &resource), surface);
    }
}

static void set_up_streams() {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    for (unsigned i = 0; i < 2; i++) {
        own(STREAM, i, "stream", DRIVER(cuStreamCreate)(&stream, 0), stream);
    }
    for (unsigned i = 0; i <= OWN_EVENTS; i++) {
        unsigned flags = i == SHARED_EVENT ? CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING : 0;
        own(EVENT, i, "event", DRIVER(cuEventCreate)(&event, flags), event);
        check("record", DRIVER(cuEventRecord)(event, stream));
    }
    check("handle", DRIVER(cuIpcGetEventHandle)(&kept.event_handle, (CUevent) slots[EVENT][SHARED_EVENT].value));
    check("streams", DRIVER(cuCtxSynchronize)());
}

// A node of each type in the graphs of the run.
static void set_up_nodes(random_t &random) {
    CUgraph graph = (CUgraph) slots[GRAPH][0].value, child = (CUgraph) slots[GRAPH][CHILD_GRAPH].value;
    CUcontext context = (CUcontext) slots[CONTEXT][0].value;
    CUevent event = (CUevent) slots[EVENT][0].value;
    CUgraphNode node = nullptr;
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
    kernel_address = blocks[0].address;
    fill(random, kernel);
    fill(random, copy);
    fill(random, set);
    fill(random, host);
    fill(random, batch);
    own(NODE, EMPTY_NODE, "node", DRIVER(cuGraphAddEmptyNode)(&node, graph, nullptr, 0), node);
    own(NODE, KERNEL_NODE, "kernel node", DRIVER(cuGraphAddKernelNode_v2)(&node, graph, nullptr, 0, &kernel), node);
    own(NODE, MEMCPY_NODE, "copy node", DRIVER(cuGraphAddMemcpyNode)(&node, graph, &node, 1, &copy, context), node);
    own(NODE, MEMSET_NODE, "set node", DRIVER(cuGraphAddMemsetNode)(&node, graph, &node, 1, &set, context), node);
    own(NODE, HOST_NODE, "host node", DRIVER(cuGraphAddHostNode)(&node, graph, &node, 1, &host), node);
    check("child node", DRIVER(cuGraphAddEmptyNode)(&node, child, nullptr, 0));
    own(NODE, CHILD_NODE, "child", DRIVER(cuGraphAddChildGraphNode)(&node, graph, nullptr, 0, child), node);
    own(NODE, RECORD_NODE, "record", DRIVER(cuGraphAddEventRecordNode)(&node, graph, nullptr, 0, event), node);
    own(NODE, WAIT_NODE, "wait", DRIVER(cuGraphAddEventWaitNode)(&node, graph, &node, 1, event), node);
    own(NODE, BATCH_NODE, "operations", DRIVER(cuGraphAddBatchMemOpNode)(&node, graph, nullptr, 0, &batch), node);
}

// Memory of a graph, and a condition: each in a graph of its own, since such graphs cannot be copied.
static void set_up_special_nodes(random_t &random) {
    CUgraphNode node = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS memory;
    CUgraph graph = (CUgraph) slots[GRAPH][MEMORY_GRAPH].value;
    fill(random, memory);
    own(NODE, ALLOC_NODE, "alloc node", DRIVER(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &memory), node);
    kept.graph_memory = memory.dptr;
    own(NODE, FREE_NODE, "free node", DRIVER(cuGraphAddMemFreeNode)(&node, graph, &node, 1, memory.dptr), node);
    CUgraphNodeParams condition;
    memset(&condition, 0, sizeof(condition));
    condition.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    condition.conditional.type = CU_GRAPH_COND_TYPE_IF;
    condition.conditional.size = 1;
    condition.conditional.ctx = (CUcontext) slots[CONTEXT][0].value;
    graph = (CUgraph) slots[GRAPH][CONDITION_GRAPH].value;
    check(
        "condition",
        DRIVER(cuGraphConditionalHandleCreate)(&condition.conditional.handle, graph, condition.conditional.ctx, 0, 0));
    own(NODE, CONDITION_NODE, "condition",
        driver_function<CUresult (*)(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
                                     CUgraphNodeParams *)>("cuGraphAddNode_v2")(&node, graph, nullptr, nullptr, 0,
                                                                                &condition),
        node);
}

static void set_up_graphs(random_t &random) {
    CUgraph graph = nullptr;
    for (unsigned i : {0, (int) MEMORY_GRAPH, (int) CONDITION_GRAPH, (int) CHILD_GRAPH, (int) OWN_GRAPHS}) {
        own(GRAPH, i, "graph", DRIVER(cuGraphCreate)(&graph, 0), graph);
    }
    set_up_nodes(random);
    set_up_special_nodes(random);
    own(GRAPH, CLONE, "clone", DRIVER(cuGraphClone)(&graph, (CUgraph) slots[GRAPH][0].value), graph);
    CUgraphExec exec = nullptr;
    CUuserObject object = nullptr;
    for (unsigned i = 0; i < 2; i++) {
        own(GRAPH_EXEC, i, "exec", DRIVER(cuGraphInstantiateWithFlags)(&exec, (CUgraph) slots[GRAPH][0].value, 0),
            exec);
        own(USER_OBJECT, i, "object",
            DRIVER(cuUserObjectCreate)(&object, nullptr, host_function, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), object);
    }
    check("retain",
          DRIVER(cuGraphRetainUserObject)((CUgraph) slots[GRAPH][0].value, (CUuserObject) slots[USER_OBJECT][0].value,
                                          4, 0));
}

static void set_up_green_contexts() {
    CUdevResource all;
    unsigned groups = 1;
    if (!check("resource", DRIVER(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM))) {
        return;
    }
    kept.resource = all;
    check("split", DRIVER(cuDevSmResourceSplitByCount)(&kept.resource, &groups, &all, nullptr, 0, 16));
    CUdevResourceDesc description = nullptr;
    CUgreenCtx context = nullptr;
    own(RESOURCES, 0, "resources", DRIVER(cuDevResourceGenerateDesc)(&description, &kept.resource, 1), description);
    for (unsigned i = 0; i < 2; i++) {
        own(GREEN, i, "green", DRIVER(cuGreenCtxCreate)(&context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM),
            context);
    }
}

// A context that calls may end; the run's own stays current.
static void set_up_other_context() {
    static auto pop = driver_function<CUresult (*)(CUcontext *)>("cuCtxPopCurrent_v2");
    CUcontext context = nullptr;
    own(CONTEXT, 1, "context",
        driver_function<CUresult (*)(CUcontext *, unsigned, CUdevice)>("cuCtxCreate_v2")(&context, 0, 0), context);
    slots[CONTEXT][1].context = 0;
    check("pop", pop(&context));
}

// Objects of an episode, whose number decides a little: with `initialised`, the driver; with `current`, a context and the
// rest.
static void set_up(bool initialised, bool current, unsigned episode) {
    random_t random(0, 0);
    set_up_host_memory();
    if (initialised) {
        check("cuInit", DRIVER(cuInit)(0));
    }
    if (!current) {
        return;
    }
    CUcontext context = nullptr;
    own(CONTEXT, 0, "context", DRIVER(cuDevicePrimaryCtxRetain)(&context, 0), context);
    check("current", DRIVER(cuCtxSetCurrent)(context));
    slots[CONTEXT][0].context = 0;
    if (slots[CONTEXT][0].life != LIVE) {
        return;
    }
    set_up_memory();
    set_up_mappings(episode % 2 == 1);
    set_up_pools();
    set_up_images();
    set_up_arrays();
    set_up_streams();
    set_up_graphs(random);
    set_up_green_contexts();
    if (episode % 4 == 3) {
        set_up_other_context();
    }
}

#endif

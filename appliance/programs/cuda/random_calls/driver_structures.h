// Structures of the driver that are legal: each function fills one kind of structure with random legal values. References
// are to the run's own objects only, because the structure may outlive a call (a graph's node).
#ifndef HAWSER_RANDOM_CALLS_DRIVER_STRUCTURES_H
#define HAWSER_RANDOM_CALLS_DRIVER_STRUCTURES_H

#include "table.h"

// PITCH times ROWS bytes fit into each block.
static const size_t PITCH = 512, ROWS = 4;

// Arguments of the kernels: an address and a number.
static uint64_t kernel_address;
static unsigned kernel_value = 3;
static void *kernel_arguments[] = {&kernel_address, &kernel_value};

// Other things that calls need.
static struct {
    CUdeviceptr graph_memory; // of ALLOC_NODE
    CUdevResource resource;
    CUipcMemHandle memory_handle;
    CUipcEventHandle event_handle;
    CUmemPoolPtrExportData pool_pointer;
    int memory_descriptor = -1, pool_descriptor = -1;
} kept;

extern "C" __global__ void add(unsigned *total, unsigned value) {
    atomicAdd(total, value);
}

static void host_function(void *) {
}

static void stream_callback(CUstream, CUresult, void *) {
}

// One side of a copy: 0 pageable, 1 device, 2 array.
template <typename T> static unsigned copy_side(random_t &random, bool source, T &copy, bool arrays) {
    unsigned type = random.below(arrays && slots[ARRAY][0].life == LIVE ? 3 : 2);
    uint64_t host = blocks[6 + source].address, device = blocks[source].address;
    CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY};
    CUarray array = (CUarray) slots[ARRAY][0].value;
    if (source) {
        copy.srcMemoryType = types[type];
        copy.srcHost = type == 0 ? (const void *) host : nullptr;
        copy.srcDevice = type == 1 ? device : 0;
        copy.srcArray = type == 2 ? array : nullptr;
        copy.srcPitch = type == 2 ? 0 : PITCH;
    } else {
        copy.dstMemoryType = types[type];
        copy.dstHost = type == 0 ? (void *) host : nullptr;
        copy.dstDevice = type == 1 ? device : 0;
        copy.dstArray = type == 2 ? array : nullptr;
        copy.dstPitch = type == 2 ? 0 : PITCH;
    }
    print("%s=%s ", source ? "src" : "dst", type == 0 ? "h" : type == 1 ? "d" : "array0");
    return type;
}

template <typename T> static void copy_of(random_t &random, T &copy) {
    memset(&copy, 0, sizeof(copy));
    unsigned from = copy_side(random, true, copy, true);
    copy_side(random, false, copy, true);
    if (from == 0 && copy.dstMemoryType == CU_MEMORYTYPE_HOST) {
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = blocks[0].address;
        print("dst=d ");
    }
    copy.WidthInBytes = random.of({(size_t) 0, (size_t) 4, (size_t) 16, (size_t) 64});
    copy.Height = random.of({(size_t) 1, (size_t) 2, (size_t) 4});
    print("%zux%zu", copy.WidthInBytes, copy.Height);
}

static void fill(random_t &random, CUDA_MEMCPY2D &copy) {
    copy_of(random, copy);
}

template <typename T> static void copy_3d(random_t &random, T &copy) {
    copy_of(random, copy);
    copy.Depth = 1;
    copy.srcHeight = copy.srcMemoryType == CU_MEMORYTYPE_ARRAY ? 0 : ROWS;
    copy.dstHeight = copy.dstMemoryType == CU_MEMORYTYPE_ARRAY ? 0 : ROWS;
}

static void fill(random_t &random, CUDA_MEMCPY3D &copy) {
    copy_3d(random, copy);
}

static void fill(random_t &random, CUDA_MEMCPY3D_PEER &copy) {
    copy_3d(random, copy);
    copy.srcContext = copy.dstContext = (CUcontext) slots[CONTEXT][0].value;
}

static CUarray_format format_of(random_t &random) {
    return random.of({CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_HALF});
}

static void fill(random_t &random, CUDA_ARRAY_DESCRIPTOR &array) {
    array = {64, random.of({(size_t) 0, (size_t) 4, (size_t) 32}), format_of(random), random.of({1u, 2u, 4u})};
    print("64x%zu format=%d channels=%u", array.Height, array.Format, array.NumChannels);
}

static void fill(random_t &random, CUDA_ARRAY3D_DESCRIPTOR &array) {
    array = {64, random.of({(size_t) 0, (size_t) 4, (size_t) 32}), 0, format_of(random), random.of({1u, 2u, 4u}), 0};
    array.Depth = array.Height > 0 ? random.of({(size_t) 0, (size_t) 4}) : 0;
    array.Flags = random.of({0u, 0u, (unsigned) CUDA_ARRAY3D_SURFACE_LDST});
    print("64x%zux%zu format=%d channels=%u flags=%u", array.Height, array.Depth, array.Format, array.NumChannels,
          array.Flags);
}

static void fill(random_t &random, CUDA_RESOURCE_DESC &resource) {
    memset(&resource, 0, sizeof(resource));
    resource.resType = random.of({CU_RESOURCE_TYPE_ARRAY, CU_RESOURCE_TYPE_LINEAR, CU_RESOURCE_TYPE_PITCH2D});
    if (resource.resType == CU_RESOURCE_TYPE_ARRAY) {
        resource.res.array.hArray = (CUarray) slots[ARRAY][random.of({0u, (unsigned) SURFACE_ARRAY})].value;
    } else if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
        resource.res.linear.devPtr = blocks[0].address;
        resource.res.linear.format = CU_AD_FORMAT_FLOAT;
        resource.res.linear.numChannels = 1;
        resource.res.linear.sizeInBytes = 4096;
    } else {
        resource.res.pitch2D.devPtr = blocks[0].address;
        resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
        resource.res.pitch2D.numChannels = 1;
        resource.res.pitch2D.width = 64;
        resource.res.pitch2D.height = ROWS;
        resource.res.pitch2D.pitchInBytes = PITCH;
    }
    print("type=%d", resource.resType);
}

static void fill(random_t &random, CUDA_TEXTURE_DESC &texture) {
    memset(&texture, 0, sizeof(texture));
    for (auto &mode : texture.addressMode) {
        mode = random.of({CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_CLAMP});
    }
    texture.flags = random.of({0u, (unsigned) CU_TRSF_READ_AS_INTEGER});
    print("modes=%d%d%d flags=%u", texture.addressMode[0], texture.addressMode[1], texture.addressMode[2],
          texture.flags);
}

static void fill(random_t &random, CUmemLocation &location) {
    location.type = random.of({CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE,
                               CU_MEM_LOCATION_TYPE_HOST});
    location.id = 0;
    print("location=%d", location.type);
}

static void fill(random_t &random, CUmemPoolProps &properties) {
    memset(&properties, 0, sizeof(properties));
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    fill(random, properties.location);
    properties.handleTypes = random.of({CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR});
    properties.maxSize = random.of({(size_t) 0, (size_t) 4 << 20});
    print(" handles=%d max=%zu", properties.handleTypes, properties.maxSize);
}

static void fill(random_t &random, CUmemAllocationProp &properties) {
    memset(&properties, 0, sizeof(properties));
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = random.of({CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR});
    print("handles=%d", properties.requestedHandleTypes);
}

static void fill(random_t &random, CUmemAccessDesc &access) {
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = random.of({CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_NONE});
    print("flags=%d", access.flags);
}

template <typename T> static void kernel_of(random_t &random, T &kernel) {
    memset(&kernel, 0, sizeof(kernel));
    kernel.func = (CUfunction) slots[FUNCTION][0].value;
    kernel.gridDimX = random.of({1u, 2u});
    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.blockDimX = random.of({1u, 32u});
    kernel.kernelParams = kernel_arguments;
    print("function0 %ux%u", kernel.gridDimX, kernel.blockDimX);
}

static void fill(random_t &random, CUDA_KERNEL_NODE_PARAMS_v1 &kernel) {
    kernel_of(random, kernel);
}

static void fill(random_t &random, CUDA_KERNEL_NODE_PARAMS_v2 &kernel) {
    kernel_of(random, kernel);
}

template <typename T> static void memset_of(random_t &random, T &set) {
    memset(&set, 0, sizeof(set));
    set.dst = (decltype(set.dst)) blocks[random.below(2)].address;
    set.pitch = PITCH;
    set.value = random.below(100);
    set.elementSize = random.of({1u, 2u, 4u});
    set.width = random.of({(size_t) 1, (size_t) 16, (size_t) 64});
    set.height = random.of({(size_t) 1, (size_t) 4});
    print("%s value=%u size=%u %zux%zu", address_name((uint64_t) set.dst).c_str(), set.value, set.elementSize,
          set.width, set.height);
}

static void fill(random_t &random, CUDA_MEMSET_NODE_PARAMS &set) {
    memset_of(random, set);
}

static void fill(random_t &, CUDA_HOST_NODE_PARAMS &host) {
    host = {host_function, nullptr};
}

static void fill(random_t &random, CUDA_MEM_ALLOC_NODE_PARAMS &alloc) {
    memset(&alloc, 0, sizeof(alloc));
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    alloc.bytesize = random.of({(size_t) 4096, OWN_BYTES});
    print("bytes=%zu", alloc.bytesize);
}

// An operation that ends: words at WAIT_OFFSET stay zero.
static void fill(random_t &random, CUstreamBatchMemOpParams &operation) {
    memset(&operation, 0, sizeof(operation));
    operation.operation =
        random.of({CU_STREAM_MEM_OP_WAIT_VALUE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32, CU_STREAM_MEM_OP_WAIT_VALUE_64,
                   CU_STREAM_MEM_OP_WRITE_VALUE_64, CU_STREAM_MEM_OP_BARRIER});
    bool waits =
        operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    if (operation.operation != CU_STREAM_MEM_OP_BARRIER) {
        operation.writeValue.address = blocks[WORDS].address + (waits ? WAIT_OFFSET : 0);
        operation.writeValue.value64 = waits ? 0 : random.below(100);
    }
    print("operation=%d ", operation.operation);
}

static void fill(random_t &random, CUDA_BATCH_MEM_OP_NODE_PARAMS &batch) {
    static CUstreamBatchMemOpParams operations[1000]; // as many as an illegal count says
    memset(&batch, 0, sizeof(batch));
    fill(random, operations[0]);
    fill(random, operations[1]);
    batch.ctx = (CUcontext) slots[CONTEXT][0].value;
    batch.count = 1 + random.below(2);
    batch.paramArray = operations;
    print("count=%u", batch.count);
}

static void fill(random_t &random, CUDA_MEM_FREE_NODE_PARAMS &free) {
    (void) random;
    free.dptr = kept.graph_memory;
}

// Conditions have no handle of their own: the run's condition has it.
static void fill(random_t &random, CUDA_CONDITIONAL_NODE_PARAMS &condition) {
    memset(&condition, 0, sizeof(condition));
    condition.type = random.of({CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_WHILE, CU_GRAPH_COND_TYPE_SWITCH});
    condition.size = random.of({1u, 2u});
    condition.ctx = (CUcontext) slots[CONTEXT][0].value;
    print("condition=%d size=%u", condition.type, condition.size);
}

// The own node whose parameters a call sets; OWN_NODES for none.
static unsigned node_to_set = OWN_NODES;

static void fill(random_t &random, CUgraphNodeParams &node) {
    static const CUgraphNodeType types[] = {
        CU_GRAPH_NODE_TYPE_EMPTY,        CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,
        CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        CU_GRAPH_NODE_TYPE_MEM_ALLOC,    CU_GRAPH_NODE_TYPE_MEM_FREE,   CU_GRAPH_NODE_TYPE_CONDITIONAL};
    memset(&node, 0, sizeof(node));
    node.type = node_to_set < OWN_NODES ? types[node_to_set] : random.of(types);
    print("type=%d ", node.type);
    switch (node.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            kernel_of(random, node.kernel);
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            fill(random, node.memcpy.copyParams);
            node.memcpy.copyCtx = (CUcontext) slots[CONTEXT][0].value;
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            memset_of(random, node.memset);
            node.memset.ctx = (CUcontext) slots[CONTEXT][0].value;
            break;
        case CU_GRAPH_NODE_TYPE_HOST:
            node.host.fn = host_function;
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            node.graph.graph = (CUgraph) slots[GRAPH][CHILD_GRAPH].value;
            break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            node.eventRecord.event = (CUevent) slots[EVENT][0].value;
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            fill(random, (CUDA_MEM_ALLOC_NODE_PARAMS &) node.alloc);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            fill(random, node.free);
            break;
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
            CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
            fill(random, batch);
            node.memOp = {batch.ctx, batch.count, batch.paramArray, 0};
            break;
        }
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            fill(random, node.conditional);
            break;
        default:
            break;
    }
}

// One attribute, or none. The others are there for numbers that are illegal.
static CUlaunchAttribute *launch_attributes(random_t &random, unsigned &count) {
    static CUlaunchAttribute attributes[80];
    memset(attributes, 0, sizeof(attributes));
    count = random.below(2);
    attributes[0].id = random.of({CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                  CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION});
    if (attributes[0].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        attributes[0].value.clusterDim = {1, 1, 1};
    }
    if (count > 0) {
        print("attribute=%d ", attributes[0].id);
    }
    return attributes;
}

static void fill(random_t &random, CUlaunchConfig &launch) {
    memset(&launch, 0, sizeof(launch));
    launch.gridDimX = random.of({1u, 2u});
    launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
    launch.blockDimX = random.of({1u, 32u});
    launch.attrs = launch_attributes(random, launch.numAttrs);
    print("%ux%u", launch.gridDimX, launch.blockDimX);
}

static void fill(random_t &random, CUmemcpyAttributes &attributes) {
    memset(&attributes, 0, sizeof(attributes));
    attributes.srcAccessOrder = random.of({CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
                                           CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, CU_MEMCPY_SRC_ACCESS_ORDER_ANY});
    print("order=%d", attributes.srcAccessOrder);
}

static void fill(random_t &random, CUDA_MEMCPY3D_BATCH_OP &copy) {
    memset(&copy, 0, sizeof(copy));
    for (auto *side : {&copy.src, &copy.dst}) {
        bool array = random.chance(4);
        side->type = array ? CU_MEMCPY_OPERAND_TYPE_ARRAY : CU_MEMCPY_OPERAND_TYPE_POINTER;
        if (array) {
            side->op.array.array = (CUarray) slots[ARRAY][0].value;
        } else {
            side->op.ptr.ptr = blocks[side == &copy.src].address;
        }
        print("%s ", array ? "array0" : "d");
    }
    copy.extent = {random.of({(size_t) 4, (size_t) 64}), random.of({(size_t) 1, ROWS}), 1};
    copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    print("%zux%zu", copy.extent.width, copy.extent.height);
}

static void fill(random_t &, CUdevResource &resource) {
    resource = kept.resource;
}

static void fill(random_t &, CUipcMemHandle &handle) {
    handle = kept.memory_handle;
}

static void fill(random_t &, CUipcEventHandle &handle) {
    handle = kept.event_handle;
}

static void fill(random_t &, CUmemPoolPtrExportData &data) {
    data = kept.pool_pointer;
}

static void fill(random_t &random, CUexecAffinityParam &affinity) {
    memset(&affinity, 0, sizeof(affinity));
    affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    affinity.param.smCount.val = random.of({1u, 16u});
    print("multiprocessors=%u", affinity.param.smCount.val);
}

// Maps the first tile of the sparse array, or takes it away.
static void fill(random_t &random, CUarrayMapInfo &map) {
    memset(&map, 0, sizeof(map));
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = (CUarray) slots[ARRAY][SPARSE_ARRAY].value;
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    map.subresource.sparseLevel.extentWidth = map.subresource.sparseLevel.extentHeight = 256;
    map.subresource.sparseLevel.extentDepth = 1;
    map.memOperationType = random.of({CU_MEM_OPERATION_TYPE_MAP, CU_MEM_OPERATION_TYPE_UNMAP});
    map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    map.memHandle.memHandle = map.memOperationType == CU_MEM_OPERATION_TYPE_MAP ? slots[PHYSICAL][0].value : 0;
    map.deviceBitMask = 1;
    print("operation=%d", map.memOperationType);
}

static void fill(random_t &random, CUmemDecompressParams &decompress) {
    memset(&decompress, 0, sizeof(decompress));
    decompress.srcNumBytes = decompress.dstNumBytes = 64;
    decompress.src = (const void *) blocks[1].address;
    decompress.dst = (void *) blocks[0].address;
    decompress.algo = random.of({CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE, CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY});
    print("algorithm=%d", decompress.algo);
}

#endif

// Structures that are legal: each function fills one kind of structure with random legal values. References are to the
// run's own objects only, because the structure may outlive a call (a graph's node).
#ifndef HAWSER_RANDOM_CALLS_STRUCTURES_H
#define HAWSER_RANDOM_CALLS_STRUCTURES_H

#include "table.h"

// PITCH times ROWS bytes fit into each block.
static const size_t PITCH = 512, ROWS = 4;

// Arguments of the kernels: an address and a number.
static uint64_t kernel_address;
static unsigned kernel_value = 3;
static void *kernel_arguments[] = {&kernel_address, &kernel_value};

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
        resource.res.array.hArray = (CUarray) slots[ARRAY][0].value;
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

static void fill(random_t &, CUmemLocation &location) {
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = 0;
}

static void fill(random_t &, CUmemPoolProps &properties) {
    memset(&properties, 0, sizeof(properties));
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
}

static void fill(random_t &, CUmemAllocationProp &properties) {
    memset(&properties, 0, sizeof(properties));
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
}

static void fill(random_t &random, CUmemAccessDesc &access) {
    fill(random, access.location);
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

static void fill(random_t &random, cudaMemsetParams &set) {
    memset_of(random, set);
}

static void fill(random_t &, CUDA_HOST_NODE_PARAMS &host) {
    host = {host_function, nullptr};
}

static void fill(random_t &, cudaHostNodeParams &host) {
    host = {host_function, nullptr};
}

static void fill(random_t &random, CUDA_MEM_ALLOC_NODE_PARAMS &alloc) {
    memset(&alloc, 0, sizeof(alloc));
    fill(random, alloc.poolProps);
    alloc.bytesize = random.of({(size_t) 4096, OWN_BYTES});
    print("bytes=%zu", alloc.bytesize);
}

static void fill(random_t &random, CUgraphNodeParams &node) {
    memset(&node, 0, sizeof(node));
    node.type = random.of({CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST,
                           CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT});
    print("type=%d ", node.type);
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
        kernel_of(random, node.kernel);
    } else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
        memset_of(random, node.memset);
        node.memset.ctx = (CUcontext) slots[CONTEXT][0].value;
    } else if (node.type == CU_GRAPH_NODE_TYPE_HOST) {
        node.host.fn = host_function;
    } else if (node.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || node.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
        node.eventRecord.event = (CUevent) slots[EVENT][0].value;
    }
}

static void fill(random_t &random, cudaGraphNodeParams &node) {
    CUgraphNodeParams same; // the runtime's structure has the driver's layout
    static_assert(sizeof(same) == sizeof(node), "");
    fill(random, same);
    if (same.type == CU_GRAPH_NODE_TYPE_KERNEL) { // but the runtime's function is the host's
        memset(&same, 0, sizeof(same));
        same.type = CU_GRAPH_NODE_TYPE_EMPTY;
        print(" (empty)");
    }
    memcpy((void *) &node, &same, sizeof(node));
}

static void fill(random_t &random, CUlaunchConfig &launch) {
    memset(&launch, 0, sizeof(launch));
    launch.gridDimX = random.of({1u, 2u});
    launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
    launch.blockDimX = random.of({1u, 32u});
    print("%ux%u", launch.gridDimX, launch.blockDimX);
}

static void fill(random_t &random, cudaLaunchConfig_t &launch) {
    launch = {};
    launch.gridDim = dim3(random.of({1u, 2u}));
    launch.blockDim = dim3(random.of({1u, 32u}));
    print("%ux%u", launch.gridDim.x, launch.blockDim.x);
}

static void fill(random_t &random, cudaKernelNodeParams &kernel) {
    kernel = {};
    kernel.func = (void *) add;
    kernel.gridDim = dim3(random.of({1u, 2u}));
    kernel.blockDim = dim3(random.of({1u, 32u}));
    kernel.kernelParams = kernel_arguments;
    print("add %ux%u", kernel.gridDim.x, kernel.blockDim.x);
}

template <typename T> static void runtime_copy_3d(random_t &random, T &copy) {
    memset(&copy, 0, sizeof(copy));
    bool to_host = random.chance(2), from_host = !to_host && random.chance(2);
    copy.srcPtr = {(void *) blocks[from_host ? 7 : 1].address, PITCH, PITCH, ROWS};
    copy.dstPtr = {(void *) blocks[to_host ? 6 : 0].address, PITCH, PITCH, ROWS};
    copy.extent = {random.of({(size_t) 0, (size_t) 4, (size_t) 64}), random.of({(size_t) 1, ROWS}), 1};
    print("src=%s dst=%s %zux%zu", from_host ? "h" : "d", to_host ? "h" : "d", copy.extent.width, copy.extent.height);
}

static void fill(random_t &random, cudaMemcpy3DParms &copy) {
    runtime_copy_3d(random, copy);
    copy.kind = cudaMemcpyDefault;
}

static void fill(random_t &random, cudaMemcpy3DPeerParms &copy) {
    runtime_copy_3d(random, copy);
}

static void fill(random_t &random, cudaChannelFormatDesc &format) {
    int bits = random.of({8, 16, 32});
    format = {bits, random.of({0, bits}), 0, 0,
              random.of({cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned})};
    print("%d,%d kind=%d", format.x, format.y, format.f);
}

static void fill(random_t &random, cudaExtent &extent) {
    extent = {64, random.of({(size_t) 0, (size_t) 4}), 0};
    extent.depth = extent.height > 0 ? random.of({(size_t) 0, (size_t) 4, (size_t) 1}) : 0;
    print("%zux%zux%zu", extent.width, extent.height, extent.depth);
}

static void fill(random_t &random, cudaPitchedPtr &pointer) {
    unsigned block = random.below(2);
    pointer = {(void *) blocks[block].address, PITCH, PITCH, ROWS};
    print("d%u", block);
}

static void fill(random_t &random, dim3 &size) {
    size = dim3(random.of({1u, 2u, 32u}));
    print("%u", size.x);
}

static void fill(random_t &random, cudaResourceDesc &resource) {
    memset(&resource, 0, sizeof(resource));
    if (random.chance(2)) {
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = (cudaArray_t) slots[ARRAY][0].value;
    } else {
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = (void *) blocks[0].address;
        resource.res.linear.desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
        resource.res.linear.sizeInBytes = 4096;
    }
    print("type=%d", resource.resType);
}

static void fill(random_t &random, cudaTextureDesc &texture) {
    memset(&texture, 0, sizeof(texture));
    texture.addressMode[0] = random.of({cudaAddressModeWrap, cudaAddressModeClamp});
    print("mode=%d", texture.addressMode[0]);
}

static void fill(random_t &, cudaMemLocation &location) {
    location.type = cudaMemLocationTypeDevice;
    location.id = 0;
}

static void fill(random_t &random, cudaMemAccessDesc &access) {
    fill(random, access.location);
    access.flags = random.of({cudaMemAccessFlagsProtReadWrite, cudaMemAccessFlagsProtNone});
    print("flags=%d", access.flags);
}

static void fill(random_t &, cudaMemPoolProps &properties) {
    memset(&properties, 0, sizeof(properties));
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
}

static void fill(random_t &random, cudaMemAllocNodeParams &alloc) {
    memset(&alloc, 0, sizeof(alloc));
    fill(random, alloc.poolProps);
    alloc.bytesize = random.of({(size_t) 4096, OWN_BYTES});
    print("bytes=%zu", alloc.bytesize);
}

// Fills the structure of this type at `memory`; false if no function above does.
static bool fill_structure(const std::string &type, random_t &random, void *memory) {
#define HWS_FILL(name)                                                                                                 \
    if (type == #name) {                                                                                               \
        fill(random, *(name *) memory);                                                                                \
        return true;                                                                                                   \
    }
    HWS_FILL(CUDA_MEMCPY2D)
    HWS_FILL(CUDA_MEMCPY3D)
    HWS_FILL(CUDA_MEMCPY3D_PEER)
    HWS_FILL(CUDA_ARRAY_DESCRIPTOR)
    HWS_FILL(CUDA_ARRAY3D_DESCRIPTOR)
    HWS_FILL(CUDA_RESOURCE_DESC)
    HWS_FILL(CUDA_TEXTURE_DESC)
    HWS_FILL(CUmemLocation)
    HWS_FILL(CUmemPoolProps)
    HWS_FILL(CUmemAllocationProp)
    HWS_FILL(CUmemAccessDesc)
    HWS_FILL(CUDA_KERNEL_NODE_PARAMS_v1)
    HWS_FILL(CUDA_KERNEL_NODE_PARAMS_v2)
    HWS_FILL(CUDA_MEMSET_NODE_PARAMS)
    HWS_FILL(CUDA_HOST_NODE_PARAMS)
    HWS_FILL(CUDA_MEM_ALLOC_NODE_PARAMS)
    HWS_FILL(CUgraphNodeParams)
    HWS_FILL(CUlaunchConfig)
    HWS_FILL(cudaMemsetParams)
    HWS_FILL(cudaHostNodeParams)
    HWS_FILL(cudaGraphNodeParams)
    HWS_FILL(cudaLaunchConfig_t)
    HWS_FILL(cudaKernelNodeParams)
    HWS_FILL(cudaMemcpy3DParms)
    HWS_FILL(cudaMemcpy3DPeerParms)
    HWS_FILL(cudaChannelFormatDesc)
    HWS_FILL(cudaExtent)
    HWS_FILL(cudaPitchedPtr)
    HWS_FILL(dim3)
    HWS_FILL(cudaResourceDesc)
    HWS_FILL(cudaTextureDesc)
    HWS_FILL(cudaMemLocation)
    HWS_FILL(cudaMemAccessDesc)
    HWS_FILL(cudaMemPoolProps)
    HWS_FILL(cudaMemAllocNodeParams)
#undef HWS_FILL
    return false;
}

// Makes one number of a described structure illegal, or unusual.
static void spoil_structure(const std::string &type, random_t &random, void *memory) {
    const structure_t *structure = find_type(structures, type);
    if (structure == nullptr) {
        return;
    }
    const field_t &field = structure->fields[random.below((unsigned) structure->fields.size())];
    uint64_t value = field.bytes == 4 ? random.of({0u, 1u, 3u, 77u, 0xFFFFFFFFu}) : random.of({0u, 1u, 3u, 1000u});
    if (std::string(field.type) == "float" || strstr(field.name, "reserved") != nullptr) {
        value = 1;
    }
    memcpy((char *) memory + field.offset, &value, field.bytes);
    print(" %s:=%lld", field.name, (long long) value);
}

#endif

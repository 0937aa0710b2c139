// Structures of the runtime that are legal, as driver_structures.h fills those of the driver.
#ifndef HAWSER_RANDOM_CALLS_RUNTIME_STRUCTURES_H
#define HAWSER_RANDOM_CALLS_RUNTIME_STRUCTURES_H

#include "driver_structures.h"

static void fill(random_t &random, cudaMemsetParams &set) {
    memset_of(random, set);
}

static void fill(random_t &, cudaHostNodeParams &host) {
    host = {host_function, nullptr};
}

static void fill(random_t &random, cudaGraphNodeParams &node) {
    CUgraphNodeParams same; // the runtime's structure has the driver's layout
    static_assert(sizeof(same) == sizeof(node), "");
    fill(random, same);
    if (same.type == CU_GRAPH_NODE_TYPE_KERNEL || same.type == CU_GRAPH_NODE_TYPE_MEMCPY) { // but for these two
        memset(&same, 0, sizeof(same));
        same.type = CU_GRAPH_NODE_TYPE_EMPTY;
        print(" (empty)");
    }
    memcpy((void *) &node, &same, sizeof(node));
}

static void fill(random_t &random, cudaLaunchConfig_t &launch) {
    launch = {};
    launch.gridDim = dim3(random.of({1u, 2u}));
    launch.blockDim = dim3(random.of({1u, 32u}));
    launch.attrs = (cudaLaunchAttribute *) launch_attributes(random, launch.numAttrs); // the same layout
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
        resource.res.array.array = (cudaArray_t) slots[ARRAY][random.of({0u, (unsigned) SURFACE_ARRAY})].value;
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

// The runtime's structure, which has the layout of the driver's.
template <typename D, typename R> static void fill_as(random_t &random, R &structure) {
    D same;
    static_assert(sizeof(same) == sizeof(structure), "");
    fill(random, same);
    memcpy((void *) &structure, &same, sizeof(same));
}

static void fill(random_t &random, cudaMemLocation &location) {
    fill_as<CUmemLocation>(random, location);
}

static void fill(random_t &random, cudaMemAccessDesc &access) {
    access.location = {cudaMemLocationTypeDevice, 0};
    access.flags = random.of({cudaMemAccessFlagsProtReadWrite, cudaMemAccessFlagsProtNone});
    print("flags=%d", access.flags);
}

static void fill(random_t &random, cudaMemPoolProps &properties) {
    fill_as<CUmemPoolProps>(random, properties);
}

static void fill(random_t &random, cudaMemAllocNodeParams &alloc) {
    fill_as<CUDA_MEM_ALLOC_NODE_PARAMS>(random, alloc);
}

static void fill(random_t &random, cudaMemcpyAttributes &attributes) {
    fill_as<CUmemcpyAttributes>(random, attributes);
}

static void fill(random_t &random, cudaMemcpy3DBatchOp &copy) {
    fill_as<CUDA_MEMCPY3D_BATCH_OP>(random, copy);
}

static void fill(random_t &random, cudaIpcMemHandle_t &handle) {
    fill_as<CUipcMemHandle>(random, handle);
}

static void fill(random_t &random, cudaIpcEventHandle_t &handle) {
    fill_as<CUipcEventHandle>(random, handle);
}

static void fill(random_t &random, cudaMemPoolPtrExportData &data) {
    fill_as<CUmemPoolPtrExportData>(random, data);
}

#endif

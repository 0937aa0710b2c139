// Fills a structure by the name of its type, or makes it illegal.
#ifndef HAWSER_RANDOM_CALLS_STRUCTURES_H
#define HAWSER_RANDOM_CALLS_STRUCTURES_H

#include "runtime_structures.h"

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
    HWS_FILL(CUDA_BATCH_MEM_OP_NODE_PARAMS)
    HWS_FILL(CUstreamBatchMemOpParams)
    HWS_FILL(CUmemcpyAttributes)
    HWS_FILL(CUDA_MEMCPY3D_BATCH_OP)
    HWS_FILL(CUdevResource)
    HWS_FILL(CUipcMemHandle)
    HWS_FILL(CUipcEventHandle)
    HWS_FILL(CUmemPoolPtrExportData)
    HWS_FILL(CUexecAffinityParam)
    HWS_FILL(CUarrayMapInfo)
    HWS_FILL(CUmemDecompressParams)
    HWS_FILL(cudaMemcpyAttributes)
    HWS_FILL(cudaMemcpy3DBatchOp)
    HWS_FILL(cudaIpcMemHandle_t)
    HWS_FILL(cudaIpcEventHandle_t)
    HWS_FILL(cudaMemPoolPtrExportData)
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
    if (strstr(field.name, "value64") != nullptr) { // a wait for another value would not end
        return;
    }
    uint64_t value = field.bytes == 4 ? random.of({0u, 1u, 3u, 77u, 0xFFFFFFFFu}) : random.of({0u, 1u, 3u, 1000u});
    if (type == "CUstreamBatchMemOpParams" && strstr(field.name, "operation") != nullptr) {
        value = 77; // not a wait for the value of a write
    } else if (std::string(field.type) == "float" || strstr(field.name, "reserved") != nullptr) {
        value = 1;
    }
    memcpy((char *) memory + field.offset, &value, field.bytes);
    print(" %s:=%lld", field.name, (long long) value);
}

#endif

/* cudaDeviceProp, filled from the driver's attributes by a table; cudaChooseDevice. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

/* One attribute and its destination: an int or unsigned int of 4 bytes, or a size_t of 8. */
typedef struct {
    unsigned short attribute;
    unsigned short offset;
    unsigned char bytes;
} hws_property_t;

#define HWS_PROP(field, attribute)                                                                                     \
    {(attribute), offsetof(struct cudaDeviceProp, field), sizeof(((struct cudaDeviceProp *) 0)->field)}
#define HWS_MAXIMUM(field, name) HWS_PROP(field, CU_DEVICE_ATTRIBUTE_MAXIMUM_##name)

static const hws_property_t properties[] = {
    HWS_PROP(sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
    HWS_PROP(regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
    HWS_PROP(warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
    HWS_PROP(memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH),
    HWS_PROP(maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    HWS_PROP(maxThreadsDim[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
    HWS_PROP(maxThreadsDim[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
    HWS_PROP(maxThreadsDim[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
    HWS_PROP(maxGridSize[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
    HWS_PROP(maxGridSize[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
    HWS_PROP(maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
    HWS_PROP(totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
    HWS_PROP(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
    HWS_PROP(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    HWS_PROP(textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    HWS_PROP(texturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT),
    HWS_PROP(multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    HWS_PROP(integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED),
    HWS_PROP(canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY),
    HWS_MAXIMUM(maxTexture1D, TEXTURE1D_WIDTH),
    HWS_MAXIMUM(maxTexture1DMipmap, TEXTURE1D_MIPMAPPED_WIDTH),
    HWS_MAXIMUM(maxTexture2D[0], TEXTURE2D_WIDTH),
    HWS_MAXIMUM(maxTexture2D[1], TEXTURE2D_HEIGHT),
    HWS_MAXIMUM(maxTexture2DMipmap[0], TEXTURE2D_MIPMAPPED_WIDTH),
    HWS_MAXIMUM(maxTexture2DMipmap[1], TEXTURE2D_MIPMAPPED_HEIGHT),
    HWS_MAXIMUM(maxTexture2DLinear[0], TEXTURE2D_LINEAR_WIDTH),
    HWS_MAXIMUM(maxTexture2DLinear[1], TEXTURE2D_LINEAR_HEIGHT),
    HWS_MAXIMUM(maxTexture2DLinear[2], TEXTURE2D_LINEAR_PITCH),
    HWS_MAXIMUM(maxTexture2DGather[0], TEXTURE2D_GATHER_WIDTH),
    HWS_MAXIMUM(maxTexture2DGather[1], TEXTURE2D_GATHER_HEIGHT),
    HWS_MAXIMUM(maxTexture3D[0], TEXTURE3D_WIDTH),
    HWS_MAXIMUM(maxTexture3D[1], TEXTURE3D_HEIGHT),
    HWS_MAXIMUM(maxTexture3D[2], TEXTURE3D_DEPTH),
    HWS_MAXIMUM(maxTexture3DAlt[0], TEXTURE3D_WIDTH_ALTERNATE),
    HWS_MAXIMUM(maxTexture3DAlt[1], TEXTURE3D_HEIGHT_ALTERNATE),
    HWS_MAXIMUM(maxTexture3DAlt[2], TEXTURE3D_DEPTH_ALTERNATE),
    HWS_MAXIMUM(maxTextureCubemap, TEXTURECUBEMAP_WIDTH),
    HWS_MAXIMUM(maxTexture1DLayered[0], TEXTURE1D_LAYERED_WIDTH),
    HWS_MAXIMUM(maxTexture1DLayered[1], TEXTURE1D_LAYERED_LAYERS),
    HWS_MAXIMUM(maxTexture2DLayered[0], TEXTURE2D_LAYERED_WIDTH),
    HWS_MAXIMUM(maxTexture2DLayered[1], TEXTURE2D_LAYERED_HEIGHT),
    HWS_MAXIMUM(maxTexture2DLayered[2], TEXTURE2D_LAYERED_LAYERS),
    HWS_MAXIMUM(maxTextureCubemapLayered[0], TEXTURECUBEMAP_LAYERED_WIDTH),
    HWS_MAXIMUM(maxTextureCubemapLayered[1], TEXTURECUBEMAP_LAYERED_LAYERS),
    HWS_MAXIMUM(maxSurface1D, SURFACE1D_WIDTH),
    HWS_MAXIMUM(maxSurface2D[0], SURFACE2D_WIDTH),
    HWS_MAXIMUM(maxSurface2D[1], SURFACE2D_HEIGHT),
    HWS_MAXIMUM(maxSurface3D[0], SURFACE3D_WIDTH),
    HWS_MAXIMUM(maxSurface3D[1], SURFACE3D_HEIGHT),
    HWS_MAXIMUM(maxSurface3D[2], SURFACE3D_DEPTH),
    HWS_MAXIMUM(maxSurface1DLayered[0], SURFACE1D_LAYERED_WIDTH),
    HWS_MAXIMUM(maxSurface1DLayered[1], SURFACE1D_LAYERED_LAYERS),
    HWS_MAXIMUM(maxSurface2DLayered[0], SURFACE2D_LAYERED_WIDTH),
    HWS_MAXIMUM(maxSurface2DLayered[1], SURFACE2D_LAYERED_HEIGHT),
    HWS_MAXIMUM(maxSurface2DLayered[2], SURFACE2D_LAYERED_LAYERS),
    HWS_MAXIMUM(maxSurfaceCubemap, SURFACECUBEMAP_WIDTH),
    HWS_MAXIMUM(maxSurfaceCubemapLayered[0], SURFACECUBEMAP_LAYERED_WIDTH),
    HWS_MAXIMUM(maxSurfaceCubemapLayered[1], SURFACECUBEMAP_LAYERED_LAYERS),
    HWS_PROP(surfaceAlignment, CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT),
    HWS_PROP(concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS),
    HWS_PROP(ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED),
    HWS_PROP(pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
    HWS_PROP(pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
    HWS_PROP(pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
    HWS_PROP(tccDriver, CU_DEVICE_ATTRIBUTE_TCC_DRIVER),
    HWS_PROP(asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
    HWS_PROP(unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING),
    HWS_PROP(memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    HWS_PROP(l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
    HWS_PROP(persistingL2CacheMaxSize, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE),
    HWS_PROP(maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
    HWS_PROP(streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED),
    HWS_PROP(globalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED),
    HWS_PROP(localL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED),
    HWS_PROP(sharedMemPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    HWS_PROP(regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
    HWS_PROP(managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY),
    HWS_PROP(isMultiGpuBoard, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD),
    HWS_PROP(multiGpuBoardGroupID, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID),
    HWS_PROP(hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED),
    HWS_PROP(pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS),
    HWS_PROP(concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS),
    HWS_PROP(computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED),
    HWS_PROP(canUseHostPointerForRegisteredMem, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    HWS_PROP(cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH),
    HWS_PROP(sharedMemPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    HWS_PROP(pageableMemoryAccessUsesHostPageTables, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    HWS_PROP(directManagedMemAccessFromHost, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    HWS_PROP(maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
    HWS_PROP(accessPolicyMaxWindowSize, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE),
    HWS_PROP(reservedSharedMemPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK),
    HWS_PROP(hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED),
    HWS_PROP(sparseCudaArraySupported, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED),
    HWS_PROP(hostRegisterReadOnlySupported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED),
    HWS_PROP(timelineSemaphoreInteropSupported, CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    HWS_PROP(memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
    HWS_PROP(gpuDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED),
    HWS_PROP(gpuDirectRDMAFlushWritesOptions, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    HWS_PROP(gpuDirectRDMAWritesOrdering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING),
    HWS_PROP(memoryPoolSupportedHandleTypes, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES),
    HWS_PROP(deferredMappingCudaArraySupported, CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    HWS_PROP(ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED),
    HWS_PROP(clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
    HWS_PROP(unifiedFunctionPointers, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS),
#if HWS_CUDART_MAJOR == 12
    HWS_PROP(clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    HWS_PROP(deviceOverlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP),
    HWS_PROP(kernelExecTimeoutEnabled, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT),
    HWS_PROP(computeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE),
    HWS_MAXIMUM(maxTexture1DLinear, TEXTURE1D_LINEAR_WIDTH),
    HWS_PROP(memoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
    HWS_PROP(singleToDoublePrecisionPerfRatio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    HWS_PROP(cooperativeMultiDeviceLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH),
#else
    HWS_PROP(deviceNumaConfig, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG),
    HWS_PROP(deviceNumaId, CU_DEVICE_ATTRIBUTE_NUMA_ID),
    HWS_PROP(mpsEnabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED),
    HWS_PROP(hostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID),
    HWS_PROP(gpuPciDeviceID, CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID),
    HWS_PROP(gpuPciSubsystemID, CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID),
    HWS_PROP(hostNumaMultinodeIpcSupported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED),
#endif
};

static cudaError_t hws_properties_read(struct cudaDeviceProp *prop, CUdevice device) {
    memset(prop, 0, sizeof *prop);
    cudaError_t error = hws_error_from_driver(cuDeviceGetName(prop->name, sizeof prop->name, device));
    if (error == cudaSuccess) {
        error = hws_error_from_driver(cuDeviceTotalMem_v2(&prop->totalGlobalMem, device));
    }
    if (error == cudaSuccess) {
        error = hws_error_from_driver(cuDeviceGetUuid_v2(&prop->uuid, device));
    }
    if (error == cudaSuccess && cuDeviceGetLuid(prop->luid, &prop->luidDeviceNodeMask, device) != CUDA_SUCCESS) {
        /* Only Windows has LUIDs. */
        memset(prop->luid, 0, sizeof prop->luid);
        prop->luidDeviceNodeMask = 0;
    }
    for (size_t i = 0; error == cudaSuccess && i < sizeof properties / sizeof properties[0]; i++) {
        int value = 0;
        CUresult result = cuDeviceGetAttribute(&value, (CUdevice_attribute) properties[i].attribute, device);
        if (result == CUDA_ERROR_INVALID_VALUE) {
            value = 0; /* A driver older than the attribute does not have the feature. */
        } else {
            error = hws_error_from_driver(result);
        }
        char *field = (char *) prop + properties[i].offset;
        if (properties[i].bytes == sizeof(size_t)) {
            *(size_t *) field = (size_t) value;
        } else {
            *(int *) field = value;
        }
    }
    return error;
}

/* Reads a device's properties. bytes: the size of the caller's layout. */
static cudaError_t hws_properties_get(struct cudaDeviceProp *prop, int device, size_t bytes) {
    struct cudaDeviceProp read;
    CUdevice handle;
    HWS_REQUIRE(prop != NULL);
    HWS_TRY(hws_device_get(device, &handle));
    HWS_TRY(hws_properties_read(&read, handle));
    memcpy(prop, &read, bytes);
    return cudaSuccess;
}

#if HWS_CUDART_MAJOR == 12

/* Only programs compiled with CUDA 11's headers call it. */
HWS_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
HWS_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
    return hws_properties_get(prop, device, HWS_DEVICE_PROP_11_BYTES);
}

HWS_API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device);
HWS_API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device) {
    return hws_properties_get(prop, device, sizeof *prop);
}

#else

HWS_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
    return hws_properties_get(prop, device, sizeof *prop);
}

#endif

/* Rates how well a device fits the request. Properties that are 0 do not count; the compute capability counts most. */
static int hws_device_score(const struct cudaDeviceProp *asked, const struct cudaDeviceProp *has) {
    int score = 0;
    if (asked->major != 0) {
        bool capable = has->major > asked->major || (has->major == asked->major && has->minor >= asked->minor);
        score += capable ? 16 : -16;
    }
    score += asked->name[0] != '\0' && strncmp(asked->name, has->name, sizeof has->name) == 0 ? 8 : 0;
    score += asked->totalGlobalMem != 0 && has->totalGlobalMem >= asked->totalGlobalMem ? 4 : 0;
    score += asked->multiProcessorCount != 0 && has->multiProcessorCount >= asked->multiProcessorCount ? 2 : 0;
    score += asked->sharedMemPerBlock != 0 && has->sharedMemPerBlock >= asked->sharedMemPerBlock ? 1 : 0;
    return score;
}

HWS_API cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop) {
    int count;
    int best = 0;
    int bestScore = 0;
    HWS_REQUIRE(device != NULL && prop != NULL);
    HWS_TRY(hws_runtime_init(&count));
    for (int i = 0; i < count; i++) {
        struct cudaDeviceProp has;
        CUdevice handle;
        HWS_TRY(hws_device_get(i, &handle));
        HWS_TRY(hws_properties_read(&has, handle));
        int score = hws_device_score(prop, &has);
        if (i == 0 || score > bestScore) {
            best = i;
            bestScore = score;
        }
    }
    *device = best;
    return cudaSuccess;
}

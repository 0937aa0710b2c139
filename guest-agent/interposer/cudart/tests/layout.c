/* Compiled with NVIDIA's headers: prints the items of layout.def as assertions, which are compiled with our headers. */
#define HWS_CUDART_MAJOR 13
#include <stdio.h>

#include "cudart_types.h"

#define ASSERT_DRIVER(runtime, driver) _Static_assert((int) (runtime) == (int) (driver), #runtime)
#define ASSERT_SAME_SIZE(runtime, driver) _Static_assert(sizeof(runtime) == sizeof(driver), #runtime)

/* Structures that are passed to the driver unread must have the driver's layout and numbers. */
ASSERT_SAME_SIZE(cudaLaunchAttribute, CUlaunchAttribute);
ASSERT_SAME_SIZE(cudaLaunchAttributeValue, CUlaunchAttributeValue);
_Static_assert(offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value), "CUlaunchAttribute");
ASSERT_DRIVER(cudaLaunchAttributeCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
ASSERT_DRIVER(cudaLaunchAttributeClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
ASSERT_DRIVER(cudaLaunchAttributeProgrammaticEvent, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
ASSERT_DRIVER(cudaLaunchAttributePriority, CU_LAUNCH_ATTRIBUTE_PRIORITY);
ASSERT_DRIVER(cudaLaunchAttributePreferredSharedMemoryCarveout, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
ASSERT_SAME_SIZE(struct cudaMemPoolProps, CUmemPoolProps);
_Static_assert(offsetof(struct cudaMemPoolProps, maxSize) == offsetof(CUmemPoolProps, maxSize), "CUmemPoolProps");
ASSERT_SAME_SIZE(struct cudaMemAccessDesc, CUmemAccessDesc);
ASSERT_SAME_SIZE(struct cudaMemLocation, CUmemLocation);
ASSERT_SAME_SIZE(cudaGraphEdgeData, CUgraphEdgeData);
ASSERT_SAME_SIZE(struct cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS);
ASSERT_SAME_SIZE(struct cudaHostNodeParams, CUDA_HOST_NODE_PARAMS);
ASSERT_SAME_SIZE(struct cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS);
ASSERT_SAME_SIZE(cudaGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS);
ASSERT_SAME_SIZE(cudaGraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo);
ASSERT_DRIVER(cudaGraphNodeTypeMemFree, CU_GRAPH_NODE_TYPE_MEM_FREE);
ASSERT_DRIVER(cudaGraphNodeTypeWaitEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
ASSERT_DRIVER(cudaGraphExecUpdateErrorAttributesChanged, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
ASSERT_DRIVER(cudaGraphInstantiateInvalidStructure, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
ASSERT_DRIVER(cudaGraphMemAttrReservedMemHigh, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
ASSERT_DRIVER(cudaGraphDebugDotFlagsKernelNodeParams, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS);
ASSERT_DRIVER(cudaGraphInstantiateFlagUseNodePriority, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
ASSERT_DRIVER(cudaStreamSetCaptureDependencies, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
ASSERT_SAME_SIZE(struct cudaArraySparseProperties, CUDA_ARRAY_SPARSE_PROPERTIES);
_Static_assert(offsetof(struct cudaArraySparseProperties, flags) == offsetof(CUDA_ARRAY_SPARSE_PROPERTIES, flags),
               "CUDA_ARRAY_SPARSE_PROPERTIES");
ASSERT_SAME_SIZE(struct cudaArrayMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS);
ASSERT_DRIVER(cudaArrayLayered, CUDA_ARRAY3D_LAYERED);
ASSERT_DRIVER(cudaArraySurfaceLoadStore, CUDA_ARRAY3D_SURFACE_LDST);
ASSERT_DRIVER(cudaArrayCubemap, CUDA_ARRAY3D_CUBEMAP);
ASSERT_DRIVER(cudaArrayTextureGather, CUDA_ARRAY3D_TEXTURE_GATHER);
ASSERT_DRIVER(cudaArraySparse, CUDA_ARRAY3D_SPARSE);
ASSERT_DRIVER(cudaArrayDeferredMapping, CUDA_ARRAY3D_DEFERRED_MAPPING);
ASSERT_DRIVER(cudaResourceTypePitch2D, CU_RESOURCE_TYPE_PITCH2D);
ASSERT_DRIVER(cudaAddressModeBorder, CU_TR_ADDRESS_MODE_BORDER);
ASSERT_DRIVER(cudaAddressModeMirror, CU_TR_ADDRESS_MODE_MIRROR);
ASSERT_DRIVER(cudaFilterModeLinear, CU_TR_FILTER_MODE_LINEAR);
ASSERT_DRIVER(cudaResViewFormatFloat4, CU_RES_VIEW_FORMAT_FLOAT_4X32);
ASSERT_DRIVER(cudaResViewFormatUnsignedBlockCompressed7, CU_RES_VIEW_FORMAT_UNSIGNED_BC7);
ASSERT_DRIVER(cudaMemPoolAttrReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
ASSERT_DRIVER(cudaMemPoolAttrUsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
ASSERT_DRIVER(cudaMemLocationTypeHostNumaCurrent, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
ASSERT_DRIVER(cudaMemAdviseUnsetAccessedBy, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
ASSERT_DRIVER(cudaMemRangeAttributeLastPrefetchLocationId, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
ASSERT_DRIVER(cudaFuncAttributeMaxDynamicSharedMemorySize, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
ASSERT_DRIVER(cudaFuncAttributeClusterSchedulingPolicyPreference,
              CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
ASSERT_DRIVER(cudaFuncCachePreferEqual, CU_FUNC_CACHE_PREFER_EQUAL);
ASSERT_DRIVER(cudaLimitPersistingL2CacheSize, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
ASSERT_DRIVER(cudaDevAttrHostNumaMultinodeIpcSupported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED);
ASSERT_DRIVER(cudaDevP2PAttrCudaArrayAccessSupported, CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
ASSERT_DRIVER(cudaJitOverrideDirectiveValues, CU_JIT_OVERRIDE_DIRECTIVE_VALUES);
ASSERT_DRIVER(cudaLibraryBinaryIsPreserved, CU_LIBRARY_BINARY_IS_PRESERVED);
ASSERT_DRIVER(cudaStreamCaptureStatusInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
ASSERT_DRIVER(cudaStreamCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
ASSERT_DRIVER(cudaDriverEntryPointVersionNotSufficent, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
ASSERT_DRIVER(cudaDeviceMapHost, CU_CTX_MAP_HOST);
ASSERT_DRIVER(cudaHostAllocWriteCombined, CU_MEMHOSTALLOC_WRITECOMBINED);
ASSERT_DRIVER(cudaHostRegisterReadOnly, CU_MEMHOSTREGISTER_READ_ONLY);
ASSERT_DRIVER(cudaEventInterprocess, CU_EVENT_INTERPROCESS);
ASSERT_DRIVER(cudaStreamNonBlocking, CU_STREAM_NON_BLOCKING);

int main(void) {
    puts("#define HWS_CUDART_MAJOR 13\n#include \"cudart_types.h\"");
#define VALUE(name) printf("_Static_assert((long)(%s) == %ld, \"%s\");\n", #name, (long) (name), #name);
#define TYPE(type) printf("_Static_assert(sizeof(%s) == %zu, \"%s\");\n", #type, sizeof(type), #type);
#define FIELD(type, name)                                                                                              \
    printf("_Static_assert(offsetof(%s, %s) == %zu && sizeof(((%s *)0)->%s) == %zu, \"%s.%s\");\n", #type, #name,      \
           offsetof(type, name), #type, #name, sizeof(((type *) 0)->name), #type, #name);
#include "layout.def"
#define HWS_ERROR(value, name, text)                                                                                   \
    printf("_Static_assert((long)(%s) == %ld, \"%s\");\n", #name, (long) (name), #name);
#include "errors.def"
    return 0;
}

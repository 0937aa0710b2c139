/*
 * cudaDeviceProp: CUDA has three layouts under this name. 13.0 dropped fields of 12. In libcudart.so.12 the symbol
 * cudaGetDeviceProperties still fills CUDA 11's layout, a prefix of 12's; programs compiled with CUDA 12's headers call
 * cudaGetDeviceProperties_v2.
 */
#ifndef HWS_CUDART_DEVICE_PROP_H
#define HWS_CUDART_DEVICE_PROP_H

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
#if HWS_CUDART_MAJOR == 12
    int clockRate;
#endif
    size_t totalConstMem;
    int major;
    int minor;
    size_t textureAlignment;
    size_t texturePitchAlignment;
#if HWS_CUDART_MAJOR == 12
    int deviceOverlap;
#endif
    int multiProcessorCount;
#if HWS_CUDART_MAJOR == 12
    int kernelExecTimeoutEnabled;
#endif
    int integrated;
    int canMapHostMemory;
#if HWS_CUDART_MAJOR == 12
    int computeMode;
#endif
    int maxTexture1D;
    int maxTexture1DMipmap;
#if HWS_CUDART_MAJOR == 12
    int maxTexture1DLinear;
#endif
    int maxTexture2D[2];
    int maxTexture2DMipmap[2];
    int maxTexture2DLinear[3];
    int maxTexture2DGather[2];
    int maxTexture3D[3];
    int maxTexture3DAlt[3];
    int maxTextureCubemap;
    int maxTexture1DLayered[2];
    int maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2];
    int maxSurface1D;
    int maxSurface2D[2];
    int maxSurface3D[3];
    int maxSurface1DLayered[2];
    int maxSurface2DLayered[3];
    int maxSurfaceCubemap;
    int maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
#if HWS_CUDART_MAJOR == 12
    int memoryClockRate;
#endif
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
#if HWS_CUDART_MAJOR == 12
    int singleToDoublePrecisionPerfRatio;
#endif
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
#if HWS_CUDART_MAJOR == 12
    int cooperativeMultiDeviceLaunch;
#endif
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported; /* from here on not in CUDA 11's layout */
    int sparseCudaArraySupported;
    int hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported;
    int memoryPoolsSupported;
    int gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported;
    int ipcEventSupported;
    int clusterLaunch;
    int unifiedFunctionPointers;
#if HWS_CUDART_MAJOR == 12
    int reserved[63];
#else
    int deviceNumaConfig;
    int deviceNumaId;
    int mpsEnabled;
    int hostNumaId;
    unsigned int gpuPciDeviceID;
    unsigned int gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported;
    int reserved[56];
#endif
};

#if HWS_CUDART_MAJOR == 12
/* CUDA 12.8 driver_types.h: the size, and the offset of the tail. */
_Static_assert(sizeof(struct cudaDeviceProp) == 1032, "cudaDeviceProp of CUDA 12");
_Static_assert(offsetof(struct cudaDeviceProp, sharedMemPerBlockOptin) == 696, "cudaDeviceProp of CUDA 12");
#define HWS_DEVICE_PROP_11_BYTES offsetof(struct cudaDeviceProp, hostRegisterSupported)
#endif

#endif

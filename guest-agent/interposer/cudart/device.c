/* Queries and settings of devices. Attributes and names come from the driver's local copy, without a round trip. */
#include <string.h>

#include "runtime.h"

HWS_API cudaError_t cudaRuntimeGetVersion(int *runtimeVersion) {
    HWS_REQUIRE(runtimeVersion != NULL);
    *runtimeVersion = HWS_CUDART_VERSION;
    return cudaSuccess;
}

HWS_API cudaError_t cudaDriverGetVersion(int *driverVersion) {
    HWS_REQUIRE(driverVersion != NULL);
    return hws_result(cuDriverGetVersion(driverVersion));
}

HWS_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
    CUdevice handle;
    HWS_REQUIRE(value != NULL);
    HWS_TRY(hws_device_get(device, &handle));
    return hws_result(cuDeviceGetAttribute(value, (CUdevice_attribute) attr, handle));
}

HWS_API cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device) {
    CUdevice handle;
    HWS_REQUIRE(pciBusId != NULL && len > 0);
    HWS_TRY(hws_device_get(device, &handle));
    return hws_result(cuDeviceGetPCIBusId(pciBusId, len, handle));
}

HWS_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId) {
    CUdevice handle;
    HWS_REQUIRE(device != NULL && pciBusId != NULL);
    HWS_TRY(hws_runtime_init(NULL));
    HWS_TRY(hws_error_from_driver(cuDeviceGetByPCIBusId(&handle, pciBusId)));
    int ordinal = hws_device_ordinal(handle);
    if (ordinal < 0) {
        return hws_error_record(cudaErrorInvalidDevice);
    }
    *device = ordinal;
    return cudaSuccess;
}

HWS_API cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice) {
    CUdevice from;
    CUdevice to;
    HWS_TRY(hws_device_get(device, &from));
    HWS_TRY(hws_device_get(peerDevice, &to));
    HWS_REQUIRE(canAccessPeer != NULL);
    return hws_result(cuDeviceCanAccessPeer(canAccessPeer, from, to));
}

HWS_API cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice) {
    CUdevice from;
    CUdevice to;
    HWS_REQUIRE(value != NULL);
    HWS_TRY(hws_device_get(srcDevice, &from));
    HWS_TRY(hws_device_get(dstDevice, &to));
    return hws_result(cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute) attr, from, to));
}

/* CUDA 13.0 driver_types.h: enum cudaAtomicOperation has the driver's numbers. */
HWS_API cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                                        const enum cudaAtomicOperation *operations, unsigned int count,
                                                        int device) {
    CUdevice handle;
    HWS_REQUIRE(capabilities != NULL && operations != NULL && count != 0);
    HWS_TRY(hws_device_get(device, &handle));
    return hws_result(
        cuDeviceGetHostAtomicCapabilities(capabilities, (const CUatomicOperation *) operations, count, handle));
}

HWS_API cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                                       const enum cudaAtomicOperation *operations, unsigned int count,
                                                       int srcDevice, int dstDevice) {
    CUdevice from;
    CUdevice to;
    HWS_REQUIRE(capabilities != NULL && operations != NULL && count != 0);
    HWS_TRY(hws_device_get(srcDevice, &from));
    HWS_TRY(hws_device_get(dstDevice, &to));
    return hws_result(
        cuDeviceGetP2PAtomicCapabilities(capabilities, (const CUatomicOperation *) operations, count, from, to));
}

HWS_API cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
    CUcontext peer;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_context_primary(peerDevice, &peer));
    return hws_result(cuCtxEnablePeerAccess(peer, flags));
}

HWS_API cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
    CUcontext peer;
    int own;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_context_primary(peerDevice, &peer));
    HWS_TRY(hws_device_current(&own));
    if (peerDevice == own) { /* NVIDIA's runtime answers by itself: a capture goes on */
        HWS_TRY(hws_context_ask());
        return hws_error_record(cudaErrorPeerAccessNotEnabled);
    }
    return hws_result(cuCtxDisablePeerAccess(peer));
}

HWS_API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuCtxSetLimit((CUlimit) limit, value));
}

HWS_API cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit) {
    HWS_REQUIRE(pValue != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuCtxGetLimit(pValue, (CUlimit) limit));
}

HWS_API cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig) {
    CUfunc_cache config;
    HWS_REQUIRE(pCacheConfig != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuCtxGetCacheConfig(&config)));
    *pCacheConfig = (enum cudaFuncCache) config;
    return cudaSuccess;
}

HWS_API cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuCtxSetCacheConfig((CUfunc_cache) cacheConfig));
}

/*
 * Banks have been four bytes wide since the devices of 2014, whatever the setting: CUDA documents that both functions
 * have no effect.
 */
HWS_API cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig) {
    HWS_ENTER_WORKING();
    HWS_REQUIRE(pConfig != NULL);
    *pConfig = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

HWS_API cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuCtxSetSharedMemConfig((CUsharedconfig) config));
}

HWS_API cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuCtxGetStreamPriorityRange(leastPriority, greatestPriority));
}

HWS_API cudaError_t cudaCtxResetPersistingL2Cache(void) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuCtxResetPersistingL2Cache());
}

HWS_API cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                                       enum cudaFlushGPUDirectRDMAWritesScope scope) {
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget) target, (CUflushGPUDirectRDMAWritesScope) scope));
}

HWS_API cudaError_t cudaProfilerStart(void) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuProfilerStart());
}

HWS_API cudaError_t cudaProfilerStop(void) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuProfilerStop());
}

#if HWS_CUDART_MAJOR == 12

/* Names from before CUDA 4; they act on a device instead of a thread. */
HWS_API cudaError_t cudaThreadSynchronize(void);
HWS_API cudaError_t cudaThreadExit(void);
HWS_API cudaError_t cudaThreadSetLimit(enum cudaLimit limit, size_t value);
HWS_API cudaError_t cudaThreadGetLimit(size_t *pValue, enum cudaLimit limit);
HWS_API cudaError_t cudaThreadGetCacheConfig(enum cudaFuncCache *pCacheConfig);
HWS_API cudaError_t cudaThreadSetCacheConfig(enum cudaFuncCache cacheConfig);
HWS_API cudaError_t cudaSetDoubleForDevice(double *d);
HWS_API cudaError_t cudaSetDoubleForHost(double *d);

HWS_API cudaError_t cudaThreadSynchronize(void) {
    return cudaDeviceSynchronize();
}

HWS_API cudaError_t cudaThreadExit(void) {
    return cudaDeviceReset();
}

HWS_API cudaError_t cudaThreadSetLimit(enum cudaLimit limit, size_t value) {
    return cudaDeviceSetLimit(limit, value);
}

HWS_API cudaError_t cudaThreadGetLimit(size_t *pValue, enum cudaLimit limit) {
    return cudaDeviceGetLimit(pValue, limit);
}

HWS_API cudaError_t cudaThreadGetCacheConfig(enum cudaFuncCache *pCacheConfig) {
    return cudaDeviceGetCacheConfig(pCacheConfig);
}

HWS_API cudaError_t cudaThreadSetCacheConfig(enum cudaFuncCache cacheConfig) {
    return cudaDeviceSetCacheConfig(cacheConfig);
}

/* Every device that CUDA 12 supports computes in double precision, so there is nothing to convert. */
HWS_API cudaError_t cudaSetDoubleForDevice(double *d) {
    (void) d;
    return cudaSuccess;
}

HWS_API cudaError_t cudaSetDoubleForHost(double *d) {
    (void) d;
    return cudaSuccess;
}

#endif

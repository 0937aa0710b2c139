/* Stream-ordered allocation and memory pools. The structs equal the driver's, member for member. */
#include "runtime.h"

HWS_API cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream) {
    HWS_REQUIRE(devPtr != NULL);
    HWS_ENTER_CONTEXT();
    CUdeviceptr address = 0;
    HWS_TRY(hws_error_from_driver(cuMemAllocAsync(&address, size, hStream)));
    *devPtr = (void *) (uintptr_t) address;
    return cudaSuccess;
}
HWS_TWIN(cudaMallocAsync, (void **devPtr, size_t size, cudaStream_t hStream), (devPtr, size, hws_stream_ptsz(hStream)))

HWS_API cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(ptr != NULL && memPool != NULL);
    CUdeviceptr address = 0;
    if (size > 0) {
        HWS_TRY(hws_error_from_driver(cuMemAllocFromPoolAsync(&address, size, memPool, stream)));
    }
    *ptr = (void *) (uintptr_t) address;
    return cudaSuccess;
}
HWS_TWIN(cudaMallocFromPoolAsync, (void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
         (ptr, size, memPool, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream) {
    HWS_ENTER_CONTEXT();
    if (devPtr == NULL) {
        return cudaSuccess;
    }
    return hws_result(cuMemFreeAsync((CUdeviceptr) (uintptr_t) devPtr, hStream));
}
HWS_TWIN(cudaFreeAsync, (void *devPtr, cudaStream_t hStream), (devPtr, hws_stream_ptsz(hStream)))

HWS_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device) {
    CUdevice handle;
    HWS_TRY(hws_device_get(device, &handle));
    return hws_result(cuDeviceGetDefaultMemPool(memPool, handle));
}

HWS_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device) {
    CUdevice handle;
    HWS_REQUIRE(memPool != NULL);
    HWS_TRY(hws_device_get(device, &handle));
    return hws_result(cuDeviceGetMemPool(memPool, handle));
}

HWS_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
    CUdevice handle;
    HWS_TRY(hws_runtime_init(NULL));
    HWS_REQUIRE(hws_device_get(device, &handle) == cudaSuccess);
    return hws_result(cuDeviceSetMemPool(handle, memPool));
}

HWS_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps) {
    HWS_REQUIRE(memPool != NULL && poolProps != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolCreate(memPool, (const CUmemPoolProps *) poolProps));
}

HWS_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
    HWS_TRY(hws_runtime_init(NULL));
    HWS_REQUIRE(memPool != NULL); /* before a context is made */
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolDestroy(memPool));
}

HWS_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolTrimTo(memPool, minBytesToKeep));
}

HWS_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value) {
    HWS_REQUIRE(value != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolSetAttribute(memPool, (CUmemPool_attribute) attr, value));
}

HWS_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value) {
    HWS_REQUIRE(value != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolGetAttribute(memPool, (CUmemPool_attribute) attr, value));
}

HWS_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList,
                                         size_t count) {
    HWS_REQUIRE(descList != NULL || count == 0);
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolSetAccess(memPool, (const CUmemAccessDesc *) descList, count));
}

HWS_API cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
                                         struct cudaMemLocation *location) {
    HWS_REQUIRE(flags != NULL && location != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolGetAccess((CUmemAccess_flags *) flags, memPool, (CUmemLocation *) location));
}

HWS_API cudaError_t cudaMemPoolExportToShareableHandle(void *shareableHandle, cudaMemPool_t memPool,
                                                       enum cudaMemAllocationHandleType handleType,
                                                       unsigned int flags) {
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuMemPoolExportToShareableHandle(shareableHandle, memPool, (CUmemAllocationHandleType) handleType, flags));
}

HWS_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *memPool, void *shareableHandle,
                                                         enum cudaMemAllocationHandleType handleType,
                                                         unsigned int flags) {
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuMemPoolImportFromShareableHandle(memPool, shareableHandle, (CUmemAllocationHandleType) handleType, flags));
}

HWS_API cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *exportData, void *ptr) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPoolExportPointer((CUmemPoolPtrExportData *) exportData, (CUdeviceptr) (uintptr_t) ptr));
}

HWS_API cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t memPool,
                                             struct cudaMemPoolPtrExportData *exportData) {
    HWS_REQUIRE(ptr != NULL);
    HWS_ENTER_CONTEXT();
    CUdeviceptr address;
    HWS_TRY(hws_error_from_driver(cuMemPoolImportPointer(&address, memPool, (CUmemPoolPtrExportData *) exportData)));
    *ptr = (void *) (uintptr_t) address;
    return cudaSuccess;
}

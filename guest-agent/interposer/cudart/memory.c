/* Allocations, pinned memory, and queries of pointers. */
#include <string.h>

#include "runtime.h"

HWS_API cudaError_t cudaMalloc(void **devPtr, size_t size) {
    HWS_REQUIRE(devPtr != NULL);
    HWS_ENTER_CONTEXT();
    CUdeviceptr address = 0;
    if (size > 0) {
        HWS_TRY(hws_error_from_driver(cuMemAlloc_v2(&address, size)));
    }
    *devPtr = (void *) (uintptr_t) address;
    return cudaSuccess;
}

HWS_API cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height) {
    HWS_REQUIRE(devPtr != NULL && pitch != NULL);
    HWS_ENTER_CONTEXT();
    CUdeviceptr address = 0;
    size_t rowBytes = 0;
    if (width > 0 && height > 0) {
        /* 4: the Runtime API does not give the size of an element, and this pitch suits all sizes. */
        HWS_TRY(hws_error_from_driver(cuMemAllocPitch_v2(&address, &rowBytes, width, height, 4)));
    }
    *devPtr = (void *) (uintptr_t) address;
    *pitch = rowBytes;
    return cudaSuccess;
}

HWS_API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent) {
    HWS_REQUIRE(pitchedDevPtr != NULL);
    HWS_REQUIRE(extent.depth == 0 || extent.height <= SIZE_MAX / extent.depth);
    struct cudaPitchedPtr pitched = {NULL, 0, extent.width, extent.height};
    cudaError_t error = cudaMallocPitch(&pitched.ptr, &pitched.pitch, extent.width, extent.height * extent.depth);
    if (error == cudaSuccess) {
        *pitchedDevPtr = pitched;
    }
    return error;
}

HWS_API cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags) {
    HWS_REQUIRE(devPtr != NULL);
    HWS_REQUIRE(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost);
    HWS_ENTER_CONTEXT();
    CUdeviceptr address = 0;
    if (size > 0) {
        HWS_TRY(hws_error_from_driver(cuMemAllocManaged(&address, size, flags)));
    }
    *devPtr = (void *) (uintptr_t) address;
    return cudaSuccess;
}

HWS_API cudaError_t cudaFree(void *devPtr) {
    HWS_ENTER_WORKING(); /* also for NULL: programs use cudaFree(0) to create a context */
    if (devPtr == NULL) {
        return cudaSuccess;
    }
    return hws_result(cuMemFree_v2((CUdeviceptr) (uintptr_t) devPtr));
}

HWS_API cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags) {
    HWS_REQUIRE(pHost != NULL);
    HWS_ENTER_CONTEXT();
    void *memory = NULL;
    if (size > 0) {
        HWS_TRY(hws_error_from_driver(cuMemHostAlloc(&memory, size, flags)));
    }
    *pHost = memory;
    return cudaSuccess;
}

HWS_API cudaError_t cudaMallocHost(void **ptr, size_t size) {
    return cudaHostAlloc(ptr, size, 0);
}

HWS_API cudaError_t cudaFreeHost(void *ptr) {
    HWS_ENTER_WORKING();
    if (ptr == NULL) {
        return cudaSuccess;
    }
    return hws_result(cuMemFreeHost(ptr));
}

HWS_API cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags) {
    HWS_REQUIRE(ptr != NULL && size > 0);
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemHostRegister_v2(ptr, size, flags));
}

HWS_API cudaError_t cudaHostUnregister(void *ptr) {
    HWS_REQUIRE(ptr != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemHostUnregister(ptr));
}

HWS_API cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags) {
    HWS_ENTER_WORKING();
    HWS_REQUIRE(pDevice != NULL && pHost != NULL && flags == 0);
    CUdeviceptr address;
    HWS_TRY(hws_error_from_driver(cuMemHostGetDevicePointer_v2(&address, pHost, 0)));
    *pDevice = (void *) (uintptr_t) address;
    return cudaSuccess;
}

HWS_API cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost) {
    HWS_ENTER_WORKING();
    HWS_REQUIRE(pFlags != NULL && pHost != NULL);
    return hws_result(cuMemHostGetFlags(pFlags, pHost));
}

HWS_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemGetInfo_v2(free, total));
}

HWS_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr) {
    HWS_REQUIRE(attributes != NULL);
    HWS_ENTER_CONTEXT();
    unsigned int memoryType = 0;
    unsigned int managed = 0; /* drivers write a byte or a word, depending on their version: both begin here */
    int ordinal = cudaInvalidDeviceId;
    CUdeviceptr devicePointer = 0;
    void *hostPointer = NULL;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&memoryType, &managed, &ordinal, &devicePointer, &hostPointer};
    HWS_TRY(hws_error_from_driver(cuPointerGetAttributes(5, wanted, values, (CUdeviceptr) (uintptr_t) ptr)));
    memset(attributes, 0, sizeof *attributes);
    if (managed != 0) {
        attributes->type = cudaMemoryTypeManaged;
    } else if (memoryType == CU_MEMORYTYPE_HOST) {
        attributes->type = cudaMemoryTypeHost;
    } else if (memoryType == CU_MEMORYTYPE_DEVICE) {
        attributes->type = cudaMemoryTypeDevice;
    } else {
        /* Memory that CUDA does not know: ordinary memory of the program. */
        attributes->type = cudaMemoryTypeUnregistered;
        ordinal = cudaInvalidDeviceId;
        devicePointer = 0;
        hostPointer = (void *) (uintptr_t) ptr;
    }
    attributes->device = ordinal;
    attributes->devicePointer = (void *) (uintptr_t) devicePointer;
    attributes->hostPointer = hostPointer;
    return cudaSuccess;
}

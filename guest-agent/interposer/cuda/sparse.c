/*
 * Sparse arrays, and arrays with deferred mapping: memory of cuMemCreate is mapped onto their parts. The driver at the
 * GPU checks the parts' lengths and alignments.
 *
 * Known deviation: if the driver refuses an entry of a list, the entries before it have been carried out.
 */
#include "array.h"
#include "capture.h"
#include "context.h"
#include "device.h"
#include "vmm.h"

#include "hws_cuda_calls.h"

#define LATER_FLAGS (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

/* Sets `kept` to a mipmapped array's data, or leaves the calling function for an invalid handle. */
#define TAKE_MIPMAP(kept, mipmap)                                                                                      \
    const hws_array_t *kept = hws_mipmap_get(mipmap);                                                                  \
    if (__builtin_expect(kept == NULL, 0)) {                                                                           \
        return CUDA_ERROR_INVALID_HANDLE;                                                                              \
    }

/* Whether the program may ask for a property of the array that only arrays with the flag have. */
static bool has(const hws_array_t *array, unsigned flag) {
    return !array->level && (array->descriptor.Flags & flag) != 0;
}

HWS_EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
                                                 CUdevice device) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(memoryRequirements != NULL && array != NULL);
    HWS_TAKE_ARRAY(kept, array);
    HWS_REQUIRE(has(kept, CUDA_ARRAY3D_DEFERRED_MAPPING));
    HWS_ENTER_CONTEXT();
    const hws_device_t *there = hws_device_get(device);
    return there == NULL ? CUDA_ERROR_INVALID_DEVICE
                         : hws_call_cuArrayGetMemoryRequirements(memoryRequirements, array, there->ordinal);
}

HWS_EXPORT CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(sparseProperties != NULL && array != NULL);
    HWS_TAKE_ARRAY(kept, array);
    HWS_REQUIRE(has(kept, CUDA_ARRAY3D_SPARSE));
    HWS_ENTER_CONTEXT();
    return hws_call_cuArrayGetSparseProperties(sparseProperties, array);
}

HWS_EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                                          CUmipmappedArray mipmap, CUdevice device) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(memoryRequirements != NULL && mipmap != NULL);
    TAKE_MIPMAP(kept, mipmap);
    HWS_REQUIRE(has(kept, CUDA_ARRAY3D_DEFERRED_MAPPING));
    HWS_ENTER_CONTEXT();
    const hws_device_t *there = hws_device_get(device);
    return there == NULL ? CUDA_ERROR_INVALID_DEVICE
                         : hws_call_cuMipmappedArrayGetMemoryRequirements(memoryRequirements, mipmap, there->ordinal);
}

HWS_EXPORT CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                                        CUmipmappedArray mipmap) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(sparseProperties != NULL && mipmap != NULL);
    TAKE_MIPMAP(kept, mipmap);
    HWS_REQUIRE(has(kept, CUDA_ARRAY3D_SPARSE));
    HWS_ENTER_CONTEXT();
    return hws_call_cuMipmappedArrayGetSparseProperties(sparseProperties, mipmap);
}

static CUresult check_memory(const CUarrayMapInfo *info, CUdevice device) {
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP) {
        HWS_REQUIRE(info->memHandle.memHandle == 0);
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(info->memOperationType == CU_MEM_OPERATION_TYPE_MAP
                && info->memHandleType == CU_MEM_HANDLE_TYPE_GENERIC);
    pthread_mutex_lock(&hws_vmm_lock);
    const hws_allocation_t *allocation = hws_allocation_named(info->memHandle.memHandle);
    bool fits = allocation != NULL && allocation->prop.location.id == device && info->offset < allocation->bytes;
    pthread_mutex_unlock(&hws_vmm_lock);
    HWS_REQUIRE(fits);
    return CUDA_SUCCESS;
}

static CUresult check_info(const CUarrayMapInfo *info, CUdevice device) {
    HWS_REQUIRE(info->flags == 0 && info->reserved[0] == 0 && info->reserved[1] == 0
                && info->deviceBitMask == 1u << device);
    HWS_REQUIRE(info->resourceType == CU_RESOURCE_TYPE_ARRAY || info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
    HWS_REQUIRE(info->resource.array != NULL); /* also a mipmapped array's place */
    const hws_array_t *array = info->resourceType == CU_RESOURCE_TYPE_ARRAY ? hws_array_get(info->resource.array)
                                                                            : hws_mipmap_get(info->resource.mipmap);
    if (array == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_REQUIRE(has(array, LATER_FLAGS));
    HWS_REQUIRE(has(array, CUDA_ARRAY3D_DEFERRED_MAPPING)
                || info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL
                || info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL);
    return check_memory(info, device);
}

static HwsArrayPart part_of(const CUarrayMapInfo *info) {
    HwsArrayPart part = {.tail = info->subresourceType, .memoryOffset = info->offset};
    if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
        part.layer = info->subresource.miptail.layer;
        part.x = info->subresource.miptail.offset;
        part.width = info->subresource.miptail.size;
        return part;
    }
    part.level = info->subresource.sparseLevel.level;
    part.layer = info->subresource.sparseLevel.layer;
    part.x = info->subresource.sparseLevel.offsetX;
    part.y = info->subresource.sparseLevel.offsetY;
    part.z = info->subresource.sparseLevel.offsetZ;
    part.width = info->subresource.sparseLevel.extentWidth;
    part.height = info->subresource.sparseLevel.extentHeight;
    part.depth = info->subresource.sparseLevel.extentDepth;
    return part;
}

static CUresult carry_out(const CUarrayMapInfo *info, CUstream stream) {
    const HwsArrayPart part = part_of(info);
    const HwsMemAllocation memory = (HwsMemAllocation) (uintptr_t) info->memHandle.memHandle;
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
        return memory == NULL ? hws_call_hwsArrayUnmap(info->resource.array, &part, stream)
                              : hws_call_hwsArrayMap(info->resource.array, memory, &part, stream);
    }
    return memory == NULL ? hws_call_hwsMipmapUnmap(info->resource.mipmap, &part, stream)
                          : hws_call_hwsMipmapMap(info->resource.mipmap, memory, &part, stream);
}

HWS_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
    CUdevice device;
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(mapInfoList != NULL && count != 0);
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_CAPTURE(hStream);
    HWS_TRY(hws_context_device(&device));
    for (unsigned i = 0; i < count; i++) {
        HWS_TRY(check_info(&mapInfoList[i], device));
    }
    for (unsigned i = 0; i < count; i++) {
        HWS_TRY(carry_out(&mapInfoList[i], hStream));
    }
    return CUDA_SUCCESS;
}

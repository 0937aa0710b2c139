/* Attributes of pointers, answered from the map of memory. */
#include "capture.h"
#include "context.h"
#include "device.h"

#include "hws_interval.h"

#include <string.h>

/*
 * Finds the range. Host memory comes first, because an address of our host memory always means that memory. A devices'
 * address of host memory becomes the host's.
 */
static bool find(CUdeviceptr *ptr, hws_range_t *range_p) {
    if (hws_interval_find(HWS_SIDE_HOST, *ptr, range_p)) {
        return true;
    }
    if (!hws_interval_find(HWS_SIDE_DEVICE, *ptr, range_p)) {
        return false;
    }
    if (range_p->memory == HWS_MEMORY_MAPPED) {
        *ptr += range_p->twin - range_p->base;
        return hws_interval_find(HWS_SIDE_HOST, *ptr, range_p);
    }
    return true;
}

static void put(void *data, const void *value, size_t bytes) {
    memcpy(data, value, bytes);
}

/* Writes a boolean attribute as the int that driver 580 writes. */
static void put_flag(void *data, bool flag) {
    const int value = flag ? 1 : 0;
    put(data, &value, sizeof value);
}

/* Writes one attribute of a known pointer. CUDA_ERROR_INVALID_VALUE when the pointer does not have it. */
static CUresult get(const hws_range_t *range, CUdeviceptr ptr, CUpointer_attribute attribute, void *data) {
    bool host = hws_memory_side(range->memory) == HWS_SIDE_HOST;
    const bool managed = range->memory == HWS_MEMORY_MANAGED;
    const unsigned type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    const unsigned access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    const CUmemoryPool pool = (CUmemoryPool) (uintptr_t) (range->memory == HWS_MEMORY_VARIABLE ? 0 : range->owner);
    const unsigned long long handle_types =
        range->memory == HWS_MEMORY_POOL && range->arena ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
    const void *address = (const void *) (uintptr_t) ptr;
    const CUdeviceptr device_base = host && range->twin != 0 ? range->twin : range->base;
    const CUdeviceptr device_address = device_base + (ptr - range->base);
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            put(data, &range->context, sizeof(CUcontext));
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            put(data, &type, sizeof type);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            HWS_REQUIRE(!host || range->twin != 0 || range->arena); /* an arena block is exposed when it is used */
            put(data, &device_address, sizeof device_address);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            HWS_REQUIRE(host || managed);
            put(data, &address, sizeof address);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            put_flag(data, range->sync_memops);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            put(data, &range->id, sizeof range->id);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            put_flag(data, managed);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
            put_flag(data, false);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            put_flag(data,
                     range->memory == HWS_MEMORY_DEVICE
                         && hws_device_attribute(range->device, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK)
                             != 0);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            put(data, &range->device, sizeof range->device);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            put(data, &device_base, sizeof device_base);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            put(data, &range->bytes, sizeof range->bytes);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MAPPED:
            put_flag(data, !managed || range->arena); /* driver 580: 0 for a variable */
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            put(data, &handle_types, sizeof handle_types);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            put(data, &access, sizeof access);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            put(data, &pool, sizeof pool);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            put(data, &range->id, sizeof range->id);
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Writes CUDA's value in a list for an attribute that the pointer lacks, or for an unknown pointer. */
static void put_nothing(CUpointer_attribute attribute, bool found, CUdeviceptr ptr, void *data) {
    const unsigned long long zero = 0;
    const int no_device = CU_DEVICE_INVALID;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            put(data, &zero, sizeof(unsigned));
            break;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
            put_flag(data, false);
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            put(data, &no_device, sizeof no_device);
            break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            put(data, found ? &zero : &ptr, sizeof ptr);
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            break; /* unchanged */
        default:
            put(data, &zero, sizeof zero);
            break;
    }
}

static bool known(CUpointer_attribute attribute) {
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

HWS_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(data != NULL && known(attribute));
    hws_range_t range;
    HWS_REQUIRE(find(&ptr, &range));
    return get(&range, ptr, attribute, data);
}

HWS_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                           CUdeviceptr ptr) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(attributes != NULL && data != NULL && numAttributes > 0);
    hws_range_t range;
    bool found = find(&ptr, &range);
    for (unsigned i = 0; i < numAttributes; i++) {
        HWS_REQUIRE(data[i] != NULL && known(attributes[i]) && attributes[i] != CU_POINTER_ATTRIBUTE_P2P_TOKENS);
        if (!found || get(&range, ptr, attributes[i], data[i]) != CUDA_SUCCESS) {
            put_nothing(attributes[i], found, ptr, data[i]);
        }
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
    HWS_ENTER_LOCAL();
    hws_range_t range;
    HWS_REQUIRE(value != NULL);
    if (hws_interval_find(HWS_SIDE_DEVICE, ptr, &range) && range.memory == HWS_MEMORY_VIRTUAL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    HWS_REQUIRE(attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    HWS_UNSAFE();
    int on;
    memcpy(&on, value, sizeof on);
    /* Copies to and from such memory are always issued in order. The flag is stored for queries. */
    bool set = hws_interval_set_sync_memops(HWS_SIDE_DEVICE, ptr, on != 0)
        || hws_interval_set_sync_memops(HWS_SIDE_HOST, ptr, on != 0);
    return set ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Device memory, and queries of an address. */
#include "context.h"

#include "capture.h"
#include "device.h"
#include "device_memory.h"
#include "graph_memory.h"
#include "host_memory.h"

#include "hws_cuda_calls.h"
#include "hws_interval.h"
#include "ipc.h"
#include "managed.h"
#include "pool.h"

#define PITCH_BYTES 512ull /* as driver 580 on an H200 for every width */

/* Enters an allocation. */
static CUresult enter(CUdeviceptr address, uint64_t bytes, hws_memory_t memory, uint64_t owner) {
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    const hws_range_t range = {.base = address,
                               .bytes = bytes,
                               .memory = memory,
                               .device = device,
                               .owner = owner,
                               .arena = memory == HWS_MEMORY_DEVICE && hws_device_memory_has_arena(device),
                               .context = (uint64_t) (uintptr_t) hws_context_owner()};
    if (!hws_interval_insert(&range)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!range.arena) {
        hws_interval_reserve(address, bytes);
    }
    return CUDA_SUCCESS;
}

/* Whether an allocation may begin at the address; a range of graphs' memory may hold several. */
static bool is_allocation(const hws_range_t *range, CUdeviceptr address) {
    return range->memory == HWS_MEMORY_GRAPH
        || (range->base == address
            && (range->memory == HWS_MEMORY_DEVICE || range->memory == HWS_MEMORY_POOL
                || (range->memory == HWS_MEMORY_MANAGED && range->arena)));
}

/* Frees a block of cuMemAlloc that no map has. */
static void drop_block(CUdevice device, CUdeviceptr address, uint64_t bytes) {
    if (hws_device_memory_has_arena(device)) {
        hws_device_memory_free(device, address, bytes);
    } else {
        hws_call_cuMemFree_v2(address);
    }
}

/* Enters a block of cuMemAlloc; frees it when it cannot be entered. */
static CUresult enter_block(CUdevice device, CUdeviceptr address, uint64_t bytes) {
    CUresult result = enter(address, bytes, HWS_MEMORY_DEVICE, 0);
    if (result != CUDA_SUCCESS) {
        drop_block(device, address, bytes);
    }
    return result;
}

HWS_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(dptr != NULL && bytesize != 0);
    CUdevice device;
    CUdeviceptr address;
    HWS_TRY(hws_context_device(&device));
    HWS_TRY(hws_device_memory_allocate(device, bytesize, &address));
    HWS_TRY(enter_block(device, address, bytesize));
    *dptr = address;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                       unsigned int ElementSizeBytes) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(dptr != NULL && pPitch != NULL && WidthInBytes != 0 && Height != 0);
    HWS_REQUIRE(ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
    CUdevice device;
    CUdeviceptr address;
    size_t pitch, bytes;
    HWS_TRY(hws_context_device(&device));
    if (hws_device_memory_has_arena(device)) {
        if (__builtin_add_overflow(WidthInBytes, PITCH_BYTES - 1, &pitch)
            || __builtin_mul_overflow(pitch &= ~(PITCH_BYTES - 1), Height, &bytes)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        HWS_TRY(hws_device_memory_allocate(device, bytes, &address));
    } else {
        HWS_TRY(hws_call_cuMemAllocPitch_v2(&address, &pitch, WidthInBytes, Height, ElementSizeBytes));
        if (pitch < WidthInBytes || __builtin_mul_overflow(pitch, Height, &bytes)) {
            hws_call_cuMemFree_v2(address);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    HWS_TRY(enter_block(device, address, bytes));
    *dptr = address;
    *pPitch = pitch;
    return CUDA_SUCCESS;
}

/* Frees a block of the arena after all work that may use it. */
static CUresult free_block(CUdeviceptr address, uint64_t context) {
    hws_range_t range;
    HWS_TRY(hws_context_wait((CUcontext) (uintptr_t) context));
    HWS_TRY(hws_context_wait_for_all()); /* work of another context may use the block as well */
    HWS_REQUIRE(hws_interval_remove(HWS_SIDE_DEVICE, address, &range));
    hws_pool_charge(range.owner, -(int64_t) range.bytes);
    hws_managed_free_block(&range);
    return CUDA_SUCCESS;
}

/* Whether the address is memory of a pool that is imported or the host's. */
static bool is_elsewhere(const hws_range_t *range, CUdeviceptr address) {
    hws_range_t host;
    if (range->memory == HWS_MEMORY_MAPPED) {
        return hws_interval_find(HWS_SIDE_HOST, range->twin, &host) && host.owner != 0 && host.twin == address;
    }
    return range->memory == HWS_MEMORY_OPENED && range->owner != 0 && range->base == address;
}

static CUresult free_elsewhere(const hws_range_t *range) {
    return range->memory == HWS_MEMORY_MAPPED ? hws_host_memory_free(range->twin) : hws_ipc_close_pooled(range->base);
}

HWS_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    if (dptr == 0) {
        return CUDA_SUCCESS; /* as CUDA: freeing nothing is no error */
    }
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_DEVICE, dptr, &range));
    if (is_elsewhere(&range, dptr)) {
        return free_elsewhere(&range);
    }
    HWS_REQUIRE(is_allocation(&range, dptr));
    if (range.memory == HWS_MEMORY_GRAPH) {
        HWS_TRY(hws_graph_memory_freed(dptr));
        return hws_call_cuMemFree_v2(dptr);
    }
    if (range.arena) {
        return free_block(dptr, range.context);
    }
    /* Removed from the map first: the worker may reuse the address for another thread as soon as it has the call. */
    HWS_REQUIRE(hws_interval_remove(HWS_SIDE_DEVICE, dptr, &range));
    hws_pool_charge(range.owner, -(int64_t) range.bytes);
    HWS_TRY(hws_call_cuMemFree_v2(dptr));
    return hws_call_cuCtxSynchronize(); /* as CUDA does; programs rely on it */
}

HWS_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    HWS_ENTER_CONTEXT();
    CUdevice device;
    size_t free_bytes, total_bytes;
    HWS_TRY(hws_context_device(&device));
    HWS_TRY(hws_call_cuMemGetInfo_v2(&free_bytes, &total_bytes));
    uint64_t kept = hws_device_memory_kept_bytes(device);
    if (free != NULL) {
        *free = kept < total_bytes - free_bytes ? free_bytes + kept : total_bytes;
    }
    if (total != NULL) {
        *total = total_bytes;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    if (!hws_interval_find(HWS_SIDE_DEVICE, dptr, &range)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (pbase != NULL) {
        *pbase = range.base;
    }
    if (psize != NULL) {
        *psize = range.bytes;
    }
    return CUDA_SUCCESS;
}

/* Makes the allocation a node. Known deviation: its memory does not come from the pool that the call names. */
static CUresult allocate_captured(CUdeviceptr *dptr, size_t bytes, CUstream stream) {
    HWS_REQUIRE(dptr != NULL && bytes != 0);
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    HWS_TRY(hws_context_device(&props.location.id));
    return hws_capture_allocate(stream, &props, bytes, dptr);
}

static CUresult allocate_in_arena(CUdeviceptr *dptr, size_t bytes, CUdevice device, uint64_t pool) {
    CUdeviceptr address;
    HWS_TRY(hws_device_memory_allocate(device, bytes, &address));
    const hws_range_t range = {.base = address,
                               .bytes = bytes,
                               .memory = HWS_MEMORY_POOL,
                               .device = device,
                               .owner = pool,
                               .arena = true,
                               .context = (uint64_t) (uintptr_t) hws_context_owner()};
    if (!hws_interval_insert(&range)) {
        hws_device_memory_free(device, address, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *dptr = address;
    return CUDA_SUCCESS;
}

static CUresult allocate_managed(CUdeviceptr *dptr, size_t bytes, uint64_t pool) {
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    return hws_managed_allocate(device, bytes, CU_MEM_ATTACH_GLOBAL, pool, dptr);
}

/* Allocates from a pool that lives in the guest. hws_pool_begin() has counted the bytes. */
static CUresult allocate_local(CUdeviceptr *dptr, size_t bytes, CUdevice device, CUmemoryPool pool) {
    const uint64_t owner = (uint64_t) (uintptr_t) pool;
    CUresult result = device == CU_DEVICE_CPU ? hws_host_memory_allocate(bytes, owner, dptr)
        : device == HWS_POOL_DEVICE_MANAGED   ? allocate_managed(dptr, bytes, owner)
                                              : allocate_in_arena(dptr, bytes, device, owner);
    if (result != CUDA_SUCCESS) {
        hws_pool_charge(owner, -(int64_t) bytes);
    }
    return result;
}

HWS_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_CAPTURE(hStream, allocate_captured(dptr, bytesize, hStream));
    HWS_REQUIRE(dptr != NULL);
    HWS_UNSAFE();
    if (bytesize == 0) {
        *dptr = 0; /* as CUDA, unlike cuMemAlloc */
        return CUDA_SUCCESS;
    }
    CUdevice device;
    CUmemoryPool pool;
    CUdeviceptr address;
    HWS_TRY(hws_context_device(&device));
    if (hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    HWS_TRY(hws_pool_current(device, &pool));
    HWS_TRY(hws_pool_begin(pool, bytesize, &device));
    if (device != HWS_POOL_DEVICE_NONE) {
        return allocate_local(dptr, bytesize, device, pool);
    }
    HWS_TRY(hws_call_cuMemAllocAsync(&address, bytesize, hStream));
    CUresult result = enter(address, bytesize, HWS_MEMORY_POOL, (uint64_t) (uintptr_t) pool);
    if (result != CUDA_SUCCESS) {
        hws_call_cuMemFreeAsync(address, hStream);
        return result;
    }
    hws_pool_charge((uint64_t) (uintptr_t) pool, (int64_t) bytesize);
    *dptr = address;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_CAPTURE(hStream, allocate_captured(dptr, bytesize, hStream));
    HWS_REQUIRE(dptr != NULL && pool != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MEMORY_POOL, pool);
    HWS_UNSAFE();
    if (bytesize == 0) {
        *dptr = 0;
        return CUDA_SUCCESS;
    }
    if (bytesize > INT64_MAX) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUdevice device;
    HWS_TRY(hws_pool_begin(pool, bytesize, &device));
    if (device != HWS_POOL_DEVICE_NONE) {
        return allocate_local(dptr, bytesize, device, pool);
    }
    CUdeviceptr address;
    HWS_TRY(hws_call_cuMemAllocFromPoolAsync(&address, bytesize, pool, hStream));
    CUresult result = enter(address, bytesize, HWS_MEMORY_POOL, (uint64_t) (uintptr_t) pool);
    if (result != CUDA_SUCCESS) {
        hws_call_cuMemFreeAsync(address, hStream);
        return result;
    }
    hws_pool_charge((uint64_t) (uintptr_t) pool, (int64_t) bytesize);
    *dptr = address;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    if (dptr == 0) {
        return CUDA_SUCCESS;
    }
    HWS_CAPTURE(hStream, hws_capture_free(hStream, dptr));
    HWS_UNSAFE();
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_DEVICE, dptr, &range));
    if (is_elsewhere(&range, dptr)) {
        return free_elsewhere(&range);
    }
    HWS_REQUIRE(is_allocation(&range, dptr));
    if (range.memory == HWS_MEMORY_MANAGED && range.owner == 0) {
        return CUDA_ERROR_NOT_SUPPORTED; /* as CUDA: only memory of pools is freed in stream order */
    }
    if (range.memory == HWS_MEMORY_GRAPH) {
        HWS_TRY(hws_graph_memory_freed(dptr));
        return hws_call_cuMemFreeAsync(dptr, hStream);
    }
    /*
     * CUDA accepts memory of cuMemAlloc as well, and may wait. Known deviation: the call waits for memory of a pool for
     * other processes, too. A program must not free such memory in a stream that waits for the same thread.
     */
    if (range.arena) {
        return free_block(dptr, range.context);
    }
    HWS_REQUIRE(hws_interval_remove(HWS_SIDE_DEVICE, dptr, &range));
    hws_pool_charge(range.owner, -(int64_t) range.bytes);
    return hws_call_cuMemFreeAsync(dptr, hStream);
}

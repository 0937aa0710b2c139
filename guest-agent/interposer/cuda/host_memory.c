/*
 * Pinned host memory. Over shared memory it lies in the region's heap, where the worker and its devices reach it. Over
 * TCP, and when the heap is full, it is memory of the process, until a device uses it: shadow.h. An asynchronous copy to
 * it still returns at once. Registered memory stays in place, and devices do not see it.
 */
#include "host_memory.h"
#include "capture.h"
#include "context.h"
#include "deferred.h"
#include "direct.h"
#include "progress.h"

#include "hws_interval.h"
#include "pinned.h"
#include "pool.h"
#include "shadow.h"
#include "unseen.h"

#include "shm/hws_shm.h"

#define KNOWN_ALLOC_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define KNOWN_REGISTER_FLAGS                                                                                           \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY                          \
     | CU_MEMHOSTREGISTER_READ_ONLY)

#define POOL_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)

static uint64_t address_of(const void *memory) {
    return (uint64_t) (uintptr_t) memory;
}

static CUresult enter(hws_range_t *range) {
    HWS_TRY(hws_context_device(&range->device));
    range->context = (uint64_t) (uintptr_t) hws_context_owner();
    return hws_interval_insert(range) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

/* Enters the devices' address of a range of host memory, for copies and fills by that address. */
static bool enter_mapped(const hws_range_t *host) {
    const hws_range_t mapped = {.base = host->twin,
                                .bytes = host->bytes,
                                .memory = HWS_MEMORY_MAPPED,
                                .device = host->device,
                                .twin = host->base};
    if (!hws_interval_insert(&mapped)) {
        return false;
    }
    if (host->twin != host->base) {
        hws_interval_reserve(host->twin, host->bytes);
    }
    return true;
}

static CUresult allocate_shared(size_t bytes, const hws_heap_block_t *block, void *memory, unsigned flags) {
    hws_range_t range = {.base = (uint64_t) (uintptr_t) memory,
                         .bytes = bytes,
                         .memory = HWS_MEMORY_HOST,
                         .flags = flags,
                         .shared = true,
                         .twin = block->address};
    CUresult result = enter(&range);
    if (result == CUDA_SUCCESS && block->address != 0 && !enter_mapped(&range)) {
        hws_interval_remove(HWS_SIDE_HOST, range.base, &range);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        hws_pinned_free(memory, bytes);
    }
    return result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

/* Frees memory of the host that is a pool's or, with `pooled` false, a program's. */
static CUresult free_host(void *p, bool pooled) {
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_HOST, address_of(p), &range) && range.base == (uintptr_t) p
                && range.memory == HWS_MEMORY_HOST && (range.owner != 0) == pooled);
    HWS_ENTER_CONTEXT(); /* CUDA looks for the memory first */
    HWS_REQUIRE(hws_interval_remove(HWS_SIDE_HOST, range.base, &range));
    hws_pool_charge(range.owner, -(int64_t) range.bytes);
    if (range.shared) {
        hws_range_t mapped;
        if (range.twin != 0) {
            hws_interval_remove(HWS_SIDE_DEVICE, range.twin, &mapped);
        }
        return hws_pinned_free(p, range.bytes);
    }
    return hws_shadow_free(&range);
}

/* Memory outside the region. Devices use it from the start if the program requests a mapping. */
static CUresult allocate_private(size_t bytes, unsigned flags, void **pp) {
    void *memory;
    HWS_TRY(hws_shadow_allocate(bytes, flags, &memory));
    CUresult result = (flags & CU_MEMHOSTALLOC_DEVICEMAP) == 0 ? CUDA_SUCCESS : hws_shadow_expose(address_of(memory));
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED) { /* else attribute 19 is 0 */
        free_host(memory, false);
        return result;
    }
    *pp = memory;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(pp != NULL && (Flags & ~KNOWN_ALLOC_FLAGS) == 0);
    if (bytesize == 0) {
        *pp = NULL; /* as CUDA */
        return CUDA_SUCCESS;
    }
    hws_heap_block_t block;
    void *memory;
    int status = hws_pinned_allocate(bytesize, &block, &memory);
    if (status == HWS_HEAP_FULL) {
        if (hws_pinned_log_full() && (Flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0) {
            return CUDA_ERROR_OUT_OF_MEMORY; /* a program that requests a mapping needs one */
        }
        return allocate_private(bytesize, Flags, pp);
    }
    HWS_TRY(status);
    HWS_TRY(allocate_shared(bytesize, &block, memory, Flags));
    *pp = memory;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
    return cuMemHostAlloc(pp, bytesize, CU_MEMHOSTALLOC_PORTABLE);
}

/* Memory of a pool outside the region. */
static CUresult allocate_pooled(uint64_t bytes, void **memory_p) {
    HWS_TRY(hws_shadow_allocate(bytes, POOL_FLAGS, memory_p));
    CUresult result = hws_shadow_expose(address_of(*memory_p));
    if (result != CUDA_SUCCESS) {
        free_host(*memory_p, false);
    }
    return result;
}

CUresult hws_host_memory_allocate(uint64_t bytes, uint64_t pool, CUdeviceptr *address_p) {
    hws_heap_block_t block;
    void *memory;
    int status = hws_pinned_allocate(bytes, &block, &memory);
    if (status == HWS_HEAP_FULL) {
        HWS_TRY(hws_shm_current() != NULL ? CUDA_ERROR_OUT_OF_MEMORY : allocate_pooled(bytes, &memory));
    } else {
        HWS_TRY(status);
        if (block.address != address_of(memory)) { /* the region lies elsewhere in this process */
            hws_pinned_free(memory, bytes);
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        HWS_TRY(allocate_shared(bytes, &block, memory, POOL_FLAGS));
    }
    hws_interval_set_owner(HWS_SIDE_HOST, address_of(memory), pool);
    *address_p = address_of(memory);
    return CUDA_SUCCESS;
}

CUresult hws_host_memory_free(uint64_t address) {
    return free_host((void *) (uintptr_t) address, true);
}

HWS_EXPORT CUresult cuMemFreeHost(void *p) {
    HWS_ENTER();
    HWS_UNSAFE();
    return p == NULL ? CUDA_SUCCESS : free_host(p, false);
}

/* Whether CUDA has allocated the memory; such memory cannot be registered. */
static bool is_allocated(const void *p) {
    hws_range_t range;
    uint64_t address = address_of(p);
    return hws_interval_find(HWS_SIDE_HOST, address, &range) ? range.memory != HWS_MEMORY_REGISTERED
                                                             : hws_interval_find(HWS_SIDE_DEVICE, address, &range);
}

HWS_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(p != NULL && bytesize != 0 && (Flags & ~KNOWN_REGISTER_FLAGS) == 0 && !is_allocated(p));
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    hws_range_t range = {.base = address_of(p), .bytes = bytesize, .memory = HWS_MEMORY_REGISTERED, .flags = Flags};
    HWS_TRY(enter(&range));
    hws_unseen_add(range.base, bytesize);
    hws_progress_watch();
    return CUDA_SUCCESS;
}

/* No copy uses the memory any more, also after an error of its stream. */
static void end_copies(const void *p, uint64_t bytes) {
    hws_channel_wait_for_target(p, bytes);
    hws_deferred_forget(p, bytes);
    hws_direct_forget(p);
}

HWS_EXPORT CUresult cuMemHostUnregister(void *p) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(p != NULL && !is_allocated(p));
    hws_range_t range;
    if (!hws_interval_find(HWS_SIDE_HOST, address_of(p), &range) || range.base != (uintptr_t) p
        || range.memory != HWS_MEMORY_REGISTERED || !hws_interval_remove(HWS_SIDE_HOST, range.base, &range)) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    hws_unseen_remove(range.base);
    CUresult result = hws_pinned_settle(); /* as CUDA does; programs rely on it */
    end_copies(p, range.bytes);
    return result;
}

HWS_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    static _Atomic bool logged;
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    HWS_REQUIRE(pdptr != NULL && Flags == 0 && hws_interval_find(HWS_SIDE_HOST, address_of(p), &range));
    if (range.twin == 0) {
        CUresult result = range.memory == HWS_MEMORY_HOST ? hws_shadow_expose(range.base) : CUDA_ERROR_NOT_SUPPORTED;
        if (result == CUDA_ERROR_NOT_SUPPORTED) {
            return hws_unsupported_use(&logged, "a device pointer of this host memory");
        }
        HWS_TRY(result);
        range.twin = range.base;
    }
    *pdptr = range.twin + (address_of(p) - range.base);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p) {
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    HWS_REQUIRE(pFlags != NULL && hws_interval_find(HWS_SIDE_HOST, address_of(p), &range)
                && range.memory != HWS_MEMORY_VIRTUAL);
    *pFlags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP; /* each device can use host memory at its address */
    return CUDA_SUCCESS;
}

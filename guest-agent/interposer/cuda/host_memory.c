/*
 * Pinned host memory. Over TCP it is ordinary memory, locked where the process's limit allows; what it means here is
 * that an asynchronous copy to it returns at once. Devices do not see it: attribute 19 is 0.
 */
#include "context.h"

#include "hws_interval.h"

#include <sys/mman.h>

#define KNOWN_ALLOC_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define KNOWN_REGISTER_FLAGS \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY \
     | CU_MEMHOSTREGISTER_READ_ONLY)

static CUresult enter(const void *base, uint64_t bytes, hws_memory_t memory, unsigned flags) {
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    const hws_range_t range = {.base = (uint64_t) (uintptr_t) base, .bytes = bytes, .memory = memory, .device = device,
                               .flags = flags, .context = (uint64_t) (uintptr_t) hws_context_current()};
    return hws_interval_insert(&range) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

HWS_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(pp != NULL && bytesize != 0 && (Flags & ~KNOWN_ALLOC_FLAGS) == 0);
    void *base = mmap(NULL, bytesize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* As the pages are touched, and only within the process's limit: nothing here depends on it. */
    mlock2(base, bytesize, MLOCK_ONFAULT);
    CUresult result = enter(base, bytesize, HWS_MEMORY_HOST, Flags);
    if (result != CUDA_SUCCESS) {
        munmap(base, bytesize);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pp = base;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
    return cuMemHostAlloc(pp, bytesize, CU_MEMHOSTALLOC_PORTABLE);
}

HWS_EXPORT CUresult cuMemFreeHost(void *p) {
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    if (p == NULL) {
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_HOST, (uint64_t) (uintptr_t) p, &range) && range.base == (uintptr_t) p
                && range.memory == HWS_MEMORY_HOST && hws_interval_remove(HWS_SIDE_HOST, range.base, &range));
    /* A copy that is still under way would write to memory that is no longer ours. */
    hws_channel_wait_for_target(p, range.bytes);
    munmap(p, range.bytes);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(p != NULL && bytesize != 0 && (Flags & ~KNOWN_REGISTER_FLAGS) == 0);
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return enter(p, bytesize, HWS_MEMORY_REGISTERED, Flags);
}

HWS_EXPORT CUresult cuMemHostUnregister(void *p) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(p != NULL);
    hws_range_t range;
    if (!hws_interval_find(HWS_SIDE_HOST, (uint64_t) (uintptr_t) p, &range) || range.base != (uintptr_t) p
        || range.memory != HWS_MEMORY_REGISTERED || !hws_interval_remove(HWS_SIDE_HOST, range.base, &range)) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    hws_channel_wait_for_target(p, range.bytes);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    static _Atomic bool said;
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    HWS_REQUIRE(pdptr != NULL && Flags == 0 && hws_interval_find(HWS_SIDE_HOST, (uint64_t) (uintptr_t) p, &range));
    return hws_unsupported_use(&said, "host memory mapped into a device, over TCP,");
}

HWS_EXPORT CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p) {
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    HWS_REQUIRE(pFlags != NULL && hws_interval_find(HWS_SIDE_HOST, (uint64_t) (uintptr_t) p, &range)
                && range.memory == HWS_MEMORY_HOST);
    *pFlags = range.flags;
    return CUDA_SUCCESS;
}

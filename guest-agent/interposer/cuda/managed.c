/*
 * Managed memory. It lies on the GPU, in a block of the arena, and the process sees it at the same address by mirrored
 * pages: mirror.h. Host and kernels may use it at the same time. Prefetches move nothing: pages travel when one side
 * needs them, and until then their place cannot be told.
 */
#include "managed.h"

#include "capture.h"
#include "context.h"
#include "device_memory.h"
#include "mirror.h"
#include "shadow.h"
#include "trap.h"

#include <stdint.h>

bool hws_managed_is_possible(CUdevice device) {
    return hws_device_memory_is_shared(device);
}

static uint64_t whole_pages(uint64_t bytes) {
    return (bytes + HWS_TRAP_PAGE_BYTES - 1) / HWS_TRAP_PAGE_BYTES * HWS_TRAP_PAGE_BYTES;
}

void hws_managed_free_block(const hws_range_t *range) {
    if (range->memory == HWS_MEMORY_MAPPED) {
        hws_shadow_end(range);
        return;
    }
    bool managed = range->memory == HWS_MEMORY_MANAGED;
    if (managed) {
        hws_advice_remove(range->base);
        hws_mirror_remove(range->base);
    }
    hws_device_memory_free(range->device, range->base, managed ? whole_pages(range->bytes) : range->bytes);
}

static CUresult refuse(const char *what) {
    static _Atomic bool logged;
    return hws_unsupported_use(&logged, what);
}

#define ENTER_MANAGED()                                                                                                \
    do {                                                                                                               \
        HWS_ENTER_CONTEXT();                                                                                           \
        CUdevice hws_device;                                                                                           \
        HWS_TRY(hws_context_device(&hws_device));                                                                      \
        if (!hws_managed_is_possible(hws_device)) {                                                                    \
            return refuse("managed memory in a process that uses the GPU's addresses for something else");             \
        }                                                                                                              \
    } while (0)

CUresult hws_managed_allocate(CUdevice device, uint64_t bytes, unsigned flags, uint64_t owner, CUdeviceptr *address_p) {
    if (!hws_managed_is_possible(device)) {
        return refuse("managed memory in a process that uses the GPU's addresses for something else");
    }
    if (!hws_mirror_open()) {
        return refuse("managed memory where neither userfaultfd nor memory protection works");
    }
    if (bytes > SIZE_MAX - HWS_TRAP_PAGE_BYTES) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_range_t range = {.bytes = bytes,
                         .memory = HWS_MEMORY_MANAGED,
                         .device = device,
                         .owner = owner,
                         .context = (uint64_t) (uintptr_t) hws_context_owner(),
                         .flags = flags,
                         .sync_memops = true,
                         .arena = true};
    CUdeviceptr address;
    HWS_TRY(hws_device_memory_allocate_pages(device, whole_pages(bytes), &address));
    range.base = address;
    CUresult result = hws_mirror_add(range.base, whole_pages(bytes));
    if (result == CUDA_SUCCESS && (!hws_advice_add(range.base, bytes) || !hws_interval_insert(&range))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        hws_managed_free_block(&range);
        return result;
    }
    *address_p = range.base;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    ENTER_MANAGED();
    HWS_UNSAFE();
    HWS_REQUIRE(dptr != NULL && bytesize != 0 && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    return hws_managed_allocate(device, bytesize, flags, 0, dptr);
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location) {
    HWS_REQUIRE(hws_interval_is_managed(address, bytes));
    HWS_TRY(hws_advice_check_location(location));
    HWS_REQUIRE(hws_advice_note_prefetch(address, bytes, location));
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                                          CUstream hStream) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(flags == 0); /* CUDA checks this before a context and its error */
    ENTER_MANAGED();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    /* CUDA checks the kind of the place before captures, and the place itself after the memory. */
    HWS_REQUIRE(hws_advice_check_location(location) != CUDA_ERROR_INVALID_VALUE);
    HWS_REFUSE_CAPTURES(hStream);
    return prefetch(devPtr, count, location);
}

HWS_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
    return cuMemPrefetchAsync_v2(devPtr, count, hws_advice_location(dstDevice), 0, hStream);
}

/* The arguments of a batch that are not its locations. */
static CUresult check_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count, unsigned long long flags,
                            CUstream stream) {
    HWS_ENTER_LOCAL(); /* CUDA checks these before a context and its error */
    HWS_REQUIRE(addresses != NULL && sizes != NULL && count != 0 && flags == 0);
    HWS_REQUIRE(stream != NULL && stream != CU_STREAM_LEGACY);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_REFUSE_CAPTURES(stream);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                            CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                            size_t numPrefetchLocs, unsigned long long flags, CUstream hStream) {
    HWS_TRY(check_batch(dptrs, sizes, count, flags, hStream));
    ENTER_MANAGED();
    HWS_REQUIRE(prefetchLocs != NULL && prefetchLocIdxs != NULL && numPrefetchLocs != 0 && numPrefetchLocs <= count);
    HWS_REQUIRE(prefetchLocIdxs[0] == 0 && prefetchLocIdxs[numPrefetchLocs - 1] < count);
    for (size_t i = 1; i < numPrefetchLocs; i++) {
        HWS_REQUIRE(prefetchLocIdxs[i] > prefetchLocIdxs[i - 1]);
    }
    for (size_t i = 0, at = 0; i < count; i++) {
        at += at + 1 < numPrefetchLocs && prefetchLocIdxs[at + 1] == i ? 1 : 0;
        HWS_TRY(prefetch(dptrs[i], sizes[i], prefetchLocs[at]));
    }
    return CUDA_SUCCESS;
}

/* Discarded bytes may have any value until they are written: they stay as they are. */
HWS_EXPORT CUresult cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
                                           CUstream hStream) {
    HWS_TRY(check_batch(dptrs, sizes, count, flags, hStream));
    ENTER_MANAGED();
    for (size_t i = 0; i < count; i++) {
        HWS_REQUIRE(hws_interval_is_managed(dptrs[i], sizes[i]));
    }
    return CUDA_SUCCESS;
}

/* CUDA: equals a discard and then a prefetch. */
HWS_EXPORT CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                                      CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                                      size_t numPrefetchLocs, unsigned long long flags,
                                                      CUstream hStream) {
    return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

HWS_EXPORT CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
    ENTER_MANAGED();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_CAPTURES(hStream);
    HWS_UNSAFE();
    HWS_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
    HWS_REQUIRE(flags != CU_MEM_ATTACH_SINGLE || hStream != NULL);
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_DEVICE, dptr, &range) && range.memory == HWS_MEMORY_MANAGED
                && (length == 0 || (range.base == dptr && length == range.bytes)));
    /* Both sides may use the memory at any time, so it needs no attachment. */
    return CUDA_SUCCESS;
}

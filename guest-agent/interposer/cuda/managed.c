/*
 * Managed memory: pinned memory of the region, at one address on both sides. It is coherent and never moves, so advice
 * is only stored. Devices report no concurrent access (attributes 88, 89, 100 and 101 are 0): CUDA then refuses a
 * prefetch to a device and a device as preferred location. Without a region, or with different addresses in process and
 * worker, managed memory is refused and attribute 83 is 0.
 */
#include "managed.h"

#include "context.h"
#include "device.h"
#include "hws_cuda_calls.h"
#include "hws_interval.h"
#include "pinned.h"
#include "shm/hws_shm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096u

/* The stored advice of a page. */
#define READ_MOSTLY 1u
#define PREFERS_HOST 2u
#define ACCESSED_BY_HOST 4u

/* An allocation; its pages count from its base. */
typedef struct hws_managed {
    struct hws_managed *next;
    uint64_t base, bytes;
    size_t pages;
    uint8_t advice[];
} hws_managed_t;

static bool possible; /* set once, at cuInit */
static hws_managed_t *allocations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and its advice */

CUresult hws_managed_find(bool *possible_p) {
    const hws_shm_view_t *view = hws_shm_current();
    uint64_t address = 0;
    if (view != NULL) {
        HWS_TRY(hws_call_hwsRegionAddress(&address));
    }
    possible = address != 0 && address == (uint64_t) (uintptr_t) view->base;
    *possible_p = possible;
    return CUDA_SUCCESS;
}

static CUresult refuse(void) {
    static _Atomic bool logged;
    return hws_unsupported_use(&logged, "managed memory without a region that both sides see at one address");
}

#define ENTER_MANAGED()                                                                                                \
    do {                                                                                                               \
        HWS_ENTER_CONTEXT();                                                                                           \
        if (!possible) {                                                                                               \
            return refuse();                                                                                           \
        }                                                                                                              \
    } while (0)

/* Enters the memory as the host's and the device's. */
static bool enter(uint64_t base, uint64_t bytes, unsigned flags, CUdevice device) {
    const hws_range_t host = {.base = base,
                              .bytes = bytes,
                              .memory = HWS_MEMORY_MANAGED,
                              .device = device,
                              .context = (uint64_t) (uintptr_t) hws_context_current(),
                              .flags = flags,
                              .sync_memops = true,
                              .shared = true,
                              .twin = base};
    const hws_range_t mapped = {
        .base = base, .bytes = bytes, .memory = HWS_MEMORY_MAPPED, .device = device, .twin = base};
    hws_range_t gone;
    if (!hws_interval_insert(&host)) {
        return false;
    }
    if (!hws_interval_insert(&mapped)) {
        hws_interval_remove(HWS_SIDE_HOST, base, &gone);
        return false;
    }
    return true;
}

HWS_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    ENTER_MANAGED();
    HWS_REQUIRE(dptr != NULL && bytesize != 0 && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    hws_heap_block_t block;
    void *memory;
    int status = hws_pinned_allocate(bytesize, &block, &memory);
    if (status == HWS_HEAP_FULL) {
        hws_pinned_log_full();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    HWS_TRY(status);
    uint64_t base = (uint64_t) (uintptr_t) memory;
    size_t pages = (bytesize + PAGE_BYTES - 1) / PAGE_BYTES;
    hws_managed_t *allocation = calloc(1, sizeof *allocation + pages);
    if (block.address != base || allocation == NULL || !enter(base, bytesize, flags, device)) {
        free(allocation);
        hws_pinned_free(memory, bytesize);
        return block.address != base ? refuse() : CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->base = base;
    allocation->bytes = bytesize;
    allocation->pages = pages;
    pthread_mutex_lock(&lock);
    allocation->next = allocations;
    allocations = allocation;
    pthread_mutex_unlock(&lock);
    *dptr = base;
    return CUDA_SUCCESS;
}

CUresult hws_managed_free(CUdeviceptr address) {
    hws_managed_t *allocation = NULL;
    pthread_mutex_lock(&lock);
    for (hws_managed_t **at = &allocations; *at != NULL; at = &(*at)->next) {
        if ((*at)->base == address) {
            allocation = *at;
            *at = allocation->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    HWS_REQUIRE(allocation != NULL);
    hws_range_t gone;
    hws_interval_remove(HWS_SIDE_HOST, address, &gone);
    hws_interval_remove(HWS_SIDE_DEVICE, address, &gone);
    uint64_t bytes = allocation->bytes;
    free(allocation);
    return hws_pinned_free((void *) (uintptr_t) address, bytes);
}

/* The allocation that contains the bytes, and the pages that they touch; NULL for none. Lock held. */
static hws_managed_t *find_pages(CUdeviceptr address, size_t bytes, size_t *first_p, size_t *last_p) {
    for (hws_managed_t *at = allocations; at != NULL && bytes != 0; at = at->next) {
        if (address >= at->base && address - at->base < at->bytes && bytes <= at->bytes - (address - at->base)) {
            *first_p = (address - at->base) / PAGE_BYTES;
            *last_p = (address - at->base + bytes - 1) / PAGE_BYTES;
            return at;
        }
    }
    return NULL;
}

static bool is_managed(CUdeviceptr address, size_t bytes) {
    size_t first, last;
    pthread_mutex_lock(&lock);
    bool found = find_pages(address, bytes, &first, &last) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Refuses a device as one without concurrent access; accepts the host in any valid form. */
static CUresult check_location(CUmemLocation location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return CUDA_ERROR_INVALID_DEVICE;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUmemLocation location_of(CUdevice device) {
    return device == CU_DEVICE_CPU ? (CUmemLocation) {.type = CU_MEM_LOCATION_TYPE_HOST}
                                   : (CUmemLocation) {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

HWS_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
    ENTER_MANAGED();
    uint8_t bit;
    bool set = false;
    switch (advice) {
        case CU_MEM_ADVISE_SET_READ_MOSTLY:
            set = true;
            bit = READ_MOSTLY;
            break;
        case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
            bit = READ_MOSTLY;
            break;
        case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
            HWS_REQUIRE(location.type != CU_MEM_LOCATION_TYPE_DEVICE || hws_device_get(location.id) != NULL);
            HWS_REQUIRE(is_managed(devPtr, count));
            HWS_TRY(check_location(location));
            set = true;
            bit = PREFERS_HOST;
            break;
        case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
            bit = PREFERS_HOST;
            break;
        case CU_MEM_ADVISE_SET_ACCESSED_BY:
            set = true;
            __attribute__((fallthrough));
        case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
            HWS_REQUIRE(is_managed(devPtr, count));
            HWS_TRY(check_location(location));
            bit = ACCESSED_BY_HOST;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    size_t first = 1, last = 0;
    pthread_mutex_lock(&lock);
    hws_managed_t *allocation = find_pages(devPtr, count, &first, &last);
    for (size_t page = first; page <= last; page++) {
        allocation->advice[page] = (uint8_t) (set ? allocation->advice[page] | bit : allocation->advice[page] & ~bit);
    }
    pthread_mutex_unlock(&lock);
    return allocation != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

HWS_EXPORT CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(devPtr, count, advice, location_of(device));
}

/* CUDA: a prefetch or discard, also one to the host, needs a device with concurrent access. */
static CUresult discard(CUdeviceptr address, size_t bytes) {
    HWS_REQUIRE(is_managed(address, bytes));
    return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location) {
    HWS_REQUIRE(is_managed(address, bytes) && check_location(location) != CUDA_ERROR_INVALID_VALUE);
    return CUDA_ERROR_INVALID_DEVICE;
}

HWS_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                                          CUstream hStream) {
    ENTER_MANAGED();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REQUIRE(flags == 0);
    return prefetch(devPtr, count, location);
}

/* The arguments of a batch that are not its locations. */
static CUresult check_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count, unsigned long long flags,
                            CUstream stream) {
    HWS_REQUIRE(addresses != NULL && sizes != NULL && count != 0 && flags == 0);
    HWS_REQUIRE(stream != NULL && stream != CU_STREAM_LEGACY);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                            CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                            size_t numPrefetchLocs, unsigned long long flags, CUstream hStream) {
    ENTER_MANAGED();
    HWS_TRY(check_batch(dptrs, sizes, count, flags, hStream));
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

HWS_EXPORT CUresult cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
                                           CUstream hStream) {
    ENTER_MANAGED();
    HWS_TRY(check_batch(dptrs, sizes, count, flags, hStream));
    for (size_t i = 0; i < count; i++) {
        HWS_TRY(discard(dptrs[i], sizes[i]));
    }
    return CUDA_SUCCESS;
}

/* CUDA: equals a discard and then a prefetch. A discard alone may leave the bytes as they are. */
HWS_EXPORT CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                                      CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                                      size_t numPrefetchLocs, unsigned long long flags,
                                                      CUstream hStream) {
    return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

HWS_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
    return cuMemPrefetchAsync_v2(devPtr, count, location_of(dstDevice), 0, hStream);
}

/* Writes one attribute; `all` is the advice that every page of the range has. */
static CUresult get_attribute(void *data, size_t bytes, CUmem_range_attribute attribute, uint8_t all) {
    HWS_REQUIRE(data != NULL && bytes != 0 && bytes % sizeof(int) == 0);
    int *values = data;
    bool list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    HWS_REQUIRE(list || bytes == sizeof(int));
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
            values[0] = (all & READ_MOSTLY) != 0;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
            values[0] = all & PREFERS_HOST ? CU_DEVICE_CPU : CU_DEVICE_INVALID;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
            for (size_t i = 0; i < bytes / sizeof(int); i++) {
                values[i] = i == 0 && (all & ACCESSED_BY_HOST) ? CU_DEVICE_CPU : CU_DEVICE_INVALID;
            }
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
            values[0] = CU_DEVICE_INVALID;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
            values[0] = all & PREFERS_HOST ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_INVALID;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
            values[0] = CU_MEM_LOCATION_TYPE_INVALID;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            values[0] = 0;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The advice that all pages share; false when the bytes are not managed memory. */
static bool common_advice(CUdeviceptr address, size_t bytes, uint8_t *all_p) {
    size_t first = 1, last = 0;
    uint8_t all = READ_MOSTLY | PREFERS_HOST | ACCESSED_BY_HOST;
    pthread_mutex_lock(&lock);
    const hws_managed_t *allocation = find_pages(address, bytes, &first, &last);
    for (size_t page = first; page <= last; page++) {
        all &= allocation->advice[page];
    }
    pthread_mutex_unlock(&lock);
    *all_p = all;
    return allocation != NULL;
}

HWS_EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                           CUdeviceptr devPtr, size_t count) {
    ENTER_MANAGED();
    uint8_t all;
    HWS_REQUIRE(common_advice(devPtr, count, &all));
    return get_attribute(data, dataSize, attribute, all);
}

HWS_EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                            size_t numAttributes, CUdeviceptr devPtr, size_t count) {
    ENTER_MANAGED();
    uint8_t all;
    HWS_REQUIRE(data != NULL && dataSizes != NULL && attributes != NULL && numAttributes != 0);
    HWS_REQUIRE(common_advice(devPtr, count, &all));
    for (size_t i = 0; i < numAttributes; i++) {
        HWS_TRY(get_attribute(data[i], dataSizes[i], attributes[i], all));
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
    ENTER_MANAGED();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
    HWS_REQUIRE(flags != CU_MEM_ATTACH_SINGLE || hStream != NULL);
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_HOST, dptr, &range) && range.memory == HWS_MEMORY_MANAGED
                && (length == 0 || (range.base == dptr && length == range.bytes)));
    /* Both sides may use the memory at any time, so it needs no attachment. */
    return CUDA_SUCCESS;
}

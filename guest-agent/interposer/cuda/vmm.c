/*
 * Virtual memory management. The guest also keeps reservations and mappings, to refuse invalid calls without a round
 * trip and to know which memory copies may touch. Every call that changes something waits for the worker.
 *
 * Memory exists while it has references, mappings or descriptors (hws_share.h).
 */
#include "vmm.h"

#include "context.h"
#include "device.h"
#include "hws_addresses.h"
#include "hws_cuda_calls.h"
#include "hws_interval.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_HELD_BYTES (1ull << 40) /* the worker chooses addresses: limits what one takes of our address space */
#define ADDRESS_SPACE_BYTES (1ull << 47)

/* A part of the address space, or memory mapped into one. */
typedef struct hws_span {
    uint64_t base, bytes;
    bool held;                       /* reservations: no memory of this process can lie there */
    uint64_t allocation;             /* mappings: the handle of the mapped memory */
    uint8_t access[HWS_MAX_DEVICES]; /* mappings: CUmemAccess_flags by device */
} hws_span_t;

/* Sorted by base, without overlaps. */
typedef struct hws_spans {
    hws_span_t **list;
    size_t count, capacity;
} hws_spans_t;

static hws_spans_t reservations, mappings;
pthread_mutex_t hws_vmm_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t spans_above(const hws_spans_t *spans, uint64_t address) {
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (spans->list[middle]->base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The span that contains the address; NULL for none. */
static hws_span_t *spans_find(const hws_spans_t *spans, uint64_t address) {
    size_t next = spans_above(spans, address);
    return next > 0 && address - spans->list[next - 1]->base < spans->list[next - 1]->bytes ? spans->list[next - 1]
                                                                                            : NULL;
}

/* Whether any span touches [base, base + bytes). */
static bool spans_touch(const hws_spans_t *spans, uint64_t base, uint64_t bytes) {
    size_t next = spans_above(spans, base);
    return (next > 0 && base - spans->list[next - 1]->base < spans->list[next - 1]->bytes)
        || (next < spans->count && spans->list[next]->base - base < bytes);
}

/* Takes the span. Returns false when it overlaps another or memory is short; the span then stays the caller's. */
static bool spans_add(hws_spans_t *spans, hws_span_t *span) {
    if (spans_touch(spans, span->base, span->bytes)) {
        return false;
    }
    if (spans->count == spans->capacity) {
        size_t wanted = spans->capacity == 0 ? 32 : 2 * spans->capacity;
        hws_span_t **larger = realloc(spans->list, wanted * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        spans->list = larger;
        spans->capacity = wanted;
    }
    size_t at = spans_above(spans, span->base);
    memmove(spans->list + at + 1, spans->list + at, (spans->count - at) * sizeof *spans->list);
    spans->list[at] = span;
    spans->count++;
    return true;
}

static void spans_remove(hws_spans_t *spans, const hws_span_t *span) {
    size_t at = spans_above(spans, span->base) - 1;
    spans->count--;
    memmove(spans->list + at, spans->list + at + 1, (spans->count - at) * sizeof *spans->list);
}

/*
 * The number of mappings that make up [base, base + bytes) exactly, with *first_p the index of the first. Returns 0
 * when there is a gap, or when a mapping extends beyond the range.
 */
static size_t whole_mappings(uint64_t base, uint64_t bytes, size_t *first_p) {
    size_t first = spans_above(&mappings, base), at = first - 1;
    uint64_t covered = 0;
    if (first == 0 || bytes == 0) {
        return 0;
    }
    while (covered < bytes && at < mappings.count && mappings.list[at]->base == base + covered) {
        covered += mappings.list[at++]->bytes;
    }
    *first_p = first - 1;
    return covered == bytes ? at - *first_p : 0;
}

hws_allocation_t *hws_allocation_get(uint64_t handle) {
    return hws_handle_data(HWS_KIND_MEM_ALLOCATION, handle);
}

hws_allocation_t *hws_allocation_named(CUmemGenericAllocationHandle handle) {
    hws_allocation_t *allocation = hws_allocation_get(handle);
    return allocation != NULL && allocation->references > 0 ? allocation : NULL;
}

bool hws_allocation_unused(const hws_allocation_t *allocation) {
    return allocation->references == 0 && allocation->mappings == 0 && allocation->descriptors == 0;
}

CUresult hws_allocation_release(uint64_t handle) {
    CUresult result = hws_call_hwsMemRelease((HwsMemAllocation) (uintptr_t) handle);
    hws_handle_drop(HWS_KIND_MEM_ALLOCATION, handle);
    return result;
}

static CUresult check_prop(const CUmemAllocationProp *prop) {
    static _Atomic bool logged;
    HWS_REQUIRE(prop != NULL && prop->win32HandleMetaData == NULL);
    HWS_REQUIRE(prop->type == CU_MEM_ALLOCATION_TYPE_PINNED);
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        HWS_REQUIRE(prop->location.type == CU_MEM_LOCATION_TYPE_HOST
                    || prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA
                    || prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
        return hws_unsupported_use(&logged, "cuMemCreate of host memory");
    }
    if ((prop->requestedHandleTypes & ~(unsigned) CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED; /* PyTorch tries fabric handles first and expects this, so no line is logged */
    }
    return hws_device_get(prop->location.id) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                                  CUmemAllocationGranularity_flags option) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(granularity != NULL
                && (option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    HWS_TRY(check_prop(prop));
    return hws_call_hwsMemGranularity(hws_device_get(prop->location.id)->ordinal, prop->allocFlags.compressionType,
                                      prop->allocFlags.usage, option, granularity);
}

/* Keeps memory of this process away from those addresses that are free. */
static bool hold(uint64_t base, uint64_t bytes) {
    if (bytes > MAX_HELD_BYTES || base > ADDRESS_SPACE_BYTES - bytes) {
        return false;
    }
    return hws_addresses_reserve(base, bytes);
}

HWS_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                        unsigned long long flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(ptr != NULL && size != 0 && flags == 0 && (alignment & (alignment - 1)) == 0);
    hws_span_t *span = calloc(1, sizeof *span);
    if (span == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUdeviceptr base;
    CUresult result = hws_call_hwsMemReserve(size, alignment, addr, &base);
    if (result != CUDA_SUCCESS) {
        free(span);
        return result;
    }
    *span = (hws_span_t) {.base = base, .bytes = size, .held = hold(base, size)};
    pthread_mutex_lock(&hws_vmm_lock);
    bool added = spans_add(&reservations, span);
    pthread_mutex_unlock(&hws_vmm_lock);
    if (!added) {
        hws_call_hwsMemUnreserve(base, size);
        free(span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ptr = base;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    HWS_ENTER_LOCAL();
    pthread_mutex_lock(&hws_vmm_lock);
    hws_span_t *span = spans_find(&reservations, ptr);
    bool whole = span != NULL && span->base == ptr && span->bytes == size && !spans_touch(&mappings, ptr, size);
    if (whole) {
        spans_remove(&reservations, span);
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    HWS_REQUIRE(whole);
    if (span->held) {
        munmap((void *) (uintptr_t) ptr, size); /* before the worker can give the addresses to another thread */
    }
    free(span);
    return hws_call_hwsMemUnreserve(ptr, size);
}

HWS_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                                unsigned long long flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(handle != NULL && size != 0 && flags == 0);
    HWS_TRY(check_prop(prop));
    bool is_tile_pool = (prop->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0;
    HWS_REQUIRE(!is_tile_pool || prop->requestedHandleTypes == 0);
    hws_vmm_free_forgotten();
    hws_allocation_t *allocation = calloc(1, sizeof *allocation);
    uint64_t id = allocation == NULL ? 0 : hws_handle_new(HWS_KIND_MEM_ALLOCATION);
    if (id == 0) {
        free(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *allocation = (hws_allocation_t) {.bytes = size, .prop = *prop, .references = 1};
    hws_handle_attach(HWS_KIND_MEM_ALLOCATION, id, allocation);
    uint32_t granted = 0;
    CUresult result =
        hws_call_hwsMemCreate((HwsMemAllocation) (uintptr_t) id, size, hws_device_get(prop->location.id)->ordinal,
                              prop->allocFlags.compressionType, prop->allocFlags.usage, &granted);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_MEM_ALLOCATION, id);
        return result;
    }
    allocation->prop.allocFlags.compressionType = (unsigned char) granted;
    *handle = id;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    HWS_ENTER_LOCAL();
    pthread_mutex_lock(&hws_vmm_lock);
    hws_allocation_t *allocation = hws_allocation_named(handle);
    bool last = false;
    if (allocation != NULL) {
        allocation->references--;
        last = hws_allocation_unused(allocation);
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    HWS_REQUIRE(allocation != NULL);
    hws_vmm_free_forgotten();
    return last ? hws_allocation_release(handle) : CUDA_SUCCESS;
}

/* Removes a mapping from the tables; copies do not use it any more. Lock held. */
static void forget_mapping(const hws_span_t *span) {
    hws_range_t range;
    spans_remove(&mappings, span);
    hws_interval_remove(HWS_SIDE_DEVICE, span->base, &range);
}

/* Ends a mapping that forget_mapping() has removed and that the worker has closed. Lock not held. */
static void end_mapping(hws_span_t *span) {
    uint64_t handle = span->allocation;
    pthread_mutex_lock(&hws_vmm_lock);
    hws_allocation_t *allocation = hws_allocation_get(handle);
    allocation->mappings--;
    bool last = hws_allocation_unused(allocation);
    pthread_mutex_unlock(&hws_vmm_lock);
    if (last) {
        hws_allocation_release(handle);
    }
    free(span);
}

/* Enters a mapping before the call to the worker, so that two threads cannot both map there. */
static CUresult enter_mapping(hws_span_t *span, uint64_t offset) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&hws_vmm_lock);
    hws_allocation_t *allocation = hws_allocation_named(span->allocation);
    const hws_span_t *reservation = spans_find(&reservations, span->base);
    bool fits = allocation != NULL && reservation != NULL && !spans_touch(&mappings, span->base, span->bytes)
        && span->bytes <= reservation->bytes - (span->base - reservation->base);
    if (fits && (offset != 0 || span->bytes != allocation->bytes)) {
        result = CUDA_ERROR_NOT_SUPPORTED; /* as NVIDIA's driver 580: memory is mapped whole */
    } else if (fits) {
        const hws_range_t range = {.base = span->base,
                                   .bytes = span->bytes,
                                   .memory = HWS_MEMORY_VIRTUAL,
                                   .device = allocation->prop.location.id,
                                   .owner = span->allocation};
        result = spans_add(&mappings, span) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS && !hws_interval_insert(&range)) {
            spans_remove(&mappings, span);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        allocation->mappings += result == CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    return result;
}

HWS_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                             unsigned long long flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(size != 0 && flags == 0);
    hws_span_t *span = calloc(1, sizeof *span);
    if (span == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *span = (hws_span_t) {.base = ptr, .bytes = size, .allocation = handle};
    CUresult result = enter_mapping(span, offset);
    if (result != CUDA_SUCCESS) {
        free(span);
        return result;
    }
    result = hws_call_hwsMemMap(ptr, size, offset, (HwsMemAllocation) (uintptr_t) handle);
    if (result != CUDA_SUCCESS) {
        pthread_mutex_lock(&hws_vmm_lock);
        forget_mapping(span);
        pthread_mutex_unlock(&hws_vmm_lock);
        end_mapping(span);
    }
    return result;
}

HWS_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
    HWS_ENTER_LOCAL();
    size_t first = 0;
    pthread_mutex_lock(&hws_vmm_lock);
    const hws_span_t *reservation = spans_find(&reservations, ptr);
    if (reservation != NULL && size > reservation->bytes - (ptr - reservation->base)) {
        size = reservation->bytes - (ptr - reservation->base); /* as NVIDIA's driver 580: up to the reservation's end */
    }
    size_t count = whole_mappings(ptr, size, &first);
    /* As NVIDIA's driver 580: a reservation without mappings needs nothing. */
    bool empty = reservation != NULL && size != 0 && !spans_touch(&mappings, ptr, size);
    if (count == 0) {
        pthread_mutex_unlock(&hws_vmm_lock);
        HWS_REQUIRE(empty);
        return CUDA_SUCCESS;
    }
    hws_span_t **gone = malloc(count * sizeof *gone);
    for (size_t i = 0; gone != NULL && i < count; i++) {
        gone[i] = mappings.list[first];
        forget_mapping(gone[i]);
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    if (gone == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = hws_call_hwsMemUnmap(ptr, size);
    for (size_t i = 0; i < count; i++) {
        end_mapping(gone[i]);
    }
    free(gone);
    return result;
}

static CUresult check_access(const CUmemAccessDesc *desc) {
    static _Atomic bool logged;
    HWS_REQUIRE(desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ
                || desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return hws_unsupported_use(&logged, "cuMemSetAccess for the host");
    }
    return hws_device_get(desc->location.id) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

static bool is_mapped(uint64_t base, uint64_t bytes) {
    size_t first;
    pthread_mutex_lock(&hws_vmm_lock);
    size_t count = whole_mappings(base, bytes, &first);
    pthread_mutex_unlock(&hws_vmm_lock);
    return count != 0;
}

HWS_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(desc != NULL && count != 0 && is_mapped(ptr, size));
    for (size_t i = 0; i < count; i++) {
        HWS_TRY(check_access(&desc[i]));
    }
    for (size_t i = 0; i < count; i++) {
        const CUmemAccessDesc *d = &desc[i];
        HWS_TRY(hws_call_hwsMemSetAccess(ptr, size, hws_device_get(d->location.id)->ordinal, d->flags));
        pthread_mutex_lock(&hws_vmm_lock);
        size_t first = 0, mapped = whole_mappings(ptr, size, &first);
        for (size_t at = first; at < first + mapped; at++) {
            hws_span_t *span = mappings.list[at];
            unsigned any = 0;
            span->access[d->location.id] = (uint8_t) d->flags;
            for (int device = 0; device < HWS_MAX_DEVICES; device++) {
                any |= span->access[device];
            }
            hws_interval_set_flags(HWS_SIDE_DEVICE, span->base, any);
        }
        pthread_mutex_unlock(&hws_vmm_lock);
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(flags != NULL && location != NULL);
    /* As NVIDIA's driver 580: the host's access is that of the device with the same number. */
    HWS_REQUIRE(location->type == CU_MEM_LOCATION_TYPE_DEVICE || location->type == CU_MEM_LOCATION_TYPE_HOST);
    if (hws_device_get(location->id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&hws_vmm_lock);
    const hws_span_t *span = spans_find(&mappings, ptr);
    hws_range_t range;
    bool found = span != NULL || hws_interval_find(HWS_SIDE_DEVICE, ptr, &range); /* other memory is always usable */
    unsigned long long value = span != NULL ? span->access[location->id] : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pthread_mutex_unlock(&hws_vmm_lock);
    HWS_REQUIRE(found);
    *flags = value;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                           CUmemGenericAllocationHandle handle) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(prop != NULL);
    pthread_mutex_lock(&hws_vmm_lock);
    const hws_allocation_t *allocation = hws_allocation_named(handle);
    bool found = allocation != NULL;
    if (found) {
        *prop = allocation->prop;
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

HWS_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(handle != NULL);
    pthread_mutex_lock(&hws_vmm_lock);
    const hws_span_t *span = spans_find(&mappings, (uint64_t) (uintptr_t) addr);
    uint64_t found = span == NULL ? 0 : span->allocation;
    if (found != 0) {
        hws_allocation_get(found)->references++;
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    HWS_REQUIRE(found != 0);
    *handle = found;
    return CUDA_SUCCESS;
}

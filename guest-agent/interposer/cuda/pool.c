/* Memory pools. */
#include "pool.h"

#include "capture.h"
#include "context.h"
#include "device.h"
#include "device_memory.h"

#include "hws_cuda_calls.h"
#include "hws_interval.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * Memory in use, counted at the program's allocations and frees, for devices that do not count themselves. Known
 * deviations there: CUDA counts in stream order, so a pool shows a free somewhat earlier here. And nothing counts as
 * reserved beyond the memory in use.
 */
typedef struct hws_pool {
    CUdevice device;
    _Atomic int64_t used, high;
    enum {
        HWS_POOL_OF_WORKER,
        HWS_POOL_EXPORTED, /* pool_share.c */
        HWS_POOL_IMPORTED,
        HWS_POOL_OF_HOST,
        HWS_POOL_OF_MANAGED /* managed.h */
    } place;
    uint64_t max_bytes;                                             /* 0: none */
    _Atomic uint64_t values[CU_MEMPOOL_ATTR_RELEASE_THRESHOLD + 1]; /* settings, without effect there */
    _Atomic CUmemAccess_flags access[HWS_MAX_DEVICES];              /* as set for memory that the host sees */
    bool on_node;                                                   /* a pool of the host, on its NUMA node */
} hws_pool_t;

static hws_pool_t *pool_get(uint64_t pool) {
    return hws_handle_data(HWS_KIND_MEMORY_POOL, pool);
}

void hws_pool_charge(uint64_t pool, int64_t bytes) {
    hws_pool_t *kept = pool_get(pool);
    if (kept == NULL) {
        return;
    }
    int64_t used = atomic_fetch_add(&kept->used, bytes) + bytes, high = atomic_load(&kept->high);
    while (used > high && !atomic_compare_exchange_weak(&kept->high, &high, used)) {
    }
}

static CUdevice device_if(uint64_t pool, int place) {
    const hws_pool_t *kept = pool_get(pool);
    return kept != NULL && (int) kept->place == place ? kept->device : -1;
}

CUdevice hws_pool_exported(uint64_t pool) {
    return device_if(pool, HWS_POOL_EXPORTED);
}

CUdevice hws_pool_imported(uint64_t pool) {
    return device_if(pool, HWS_POOL_IMPORTED);
}

CUresult hws_pool_begin(CUmemoryPool pool, uint64_t bytes, CUdevice *device_p) {
    const uint64_t handle = (uint64_t) (uintptr_t) pool;
    HWS_REQUIRE(hws_pool_imported(handle) < 0); /* CUDA: nothing can be allocated from it */
    const hws_pool_t *kept = pool_get(handle);
    *device_p = kept == NULL || kept->place == HWS_POOL_OF_WORKER ? HWS_POOL_DEVICE_NONE
        : kept->place == HWS_POOL_OF_MANAGED                      ? HWS_POOL_DEVICE_MANAGED
                                                                  : kept->device;
    if (*device_p == HWS_POOL_DEVICE_NONE) { /* the caller counts the bytes when the worker has allocated them */
        return kept == NULL || kept->max_bytes == 0
                || (bytes <= kept->max_bytes && (uint64_t) atomic_load(&kept->used) <= kept->max_bytes - bytes)
            ? CUDA_SUCCESS
            : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (bytes > INT64_MAX) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_pool_charge(handle, (int64_t) bytes);
    if (kept->max_bytes != 0 && (uint64_t) atomic_load(&kept->used) > kept->max_bytes) {
        hws_pool_charge(handle, -(int64_t) bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/* A null pool is an invalid value, not an invalid handle. */
#define CHECK_POOL(pool)                                                                                               \
    HWS_REQUIRE((pool) != NULL);                                                                                       \
    HWS_CHECK_HANDLE(HWS_KIND_MEMORY_POOL, pool)

/* Makes a handle with its counters; 0 when memory is short. */
static uint64_t new_pool(CUdevice device) {
    hws_pool_t *kept = calloc(1, sizeof *kept);
    uint64_t handle = kept == NULL ? 0 : hws_handle_new(HWS_KIND_MEMORY_POOL);
    if (handle == 0) {
        free(kept);
        return 0;
    }
    kept->device = device;
    for (int reuse = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
         reuse <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; reuse++) {
        kept->values[reuse] = 1; /* CUDA's defaults */
    }
    hws_handle_attach(HWS_KIND_MEMORY_POOL, handle, kept);
    return handle;
}

/* Makes a pool that lives in the guest. */
static CUresult new_local(CUdevice device, int place, uint64_t max_bytes, CUmemoryPool *pool_p) {
    uint64_t handle = new_pool(device);
    if (handle == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_pool_t *kept = pool_get(handle);
    kept->place = place;
    kept->max_bytes = max_bytes;
    *pool_p = (CUmemoryPool) (uintptr_t) handle;
    return CUDA_SUCCESS;
}

CUresult hws_pool_import(CUdevice device, CUmemoryPool *pool_p) {
    return new_local(device, HWS_POOL_IMPORTED, 0, pool_p);
}

/* Whether the worker does not know the pool. */
static bool is_local(CUmemoryPool pool) {
    return pool_get((uint64_t) (uintptr_t) pool)->place != HWS_POOL_OF_WORKER;
}

static CUmemoryPool default_pools[HWS_MAX_DEVICES], current_pools[HWS_MAX_DEVICES];
/* Of the host and of its NUMA node. Of managed memory: those at each device, then the one at the host. */
typedef struct hws_local_pools {
    CUmemoryPool standard, current;
} hws_local_pools_t;
static hws_local_pools_t host_pools[2], managed_pools[HWS_MAX_DEVICES + 1];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The device's default pool, requested once. Lock held. */
static CUresult default_pool(CUdevice device, CUmemoryPool *pool_p) {
    if (default_pools[device] == NULL) {
        uint64_t handle = new_pool(device);
        if (handle == 0) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        CUmemoryPool pool = (CUmemoryPool) (uintptr_t) handle;
        CUresult result = hws_call_cuDeviceGetDefaultMemPool(pool, hws_device_get(device)->ordinal);
        if (result != CUDA_SUCCESS) {
            hws_handle_drop(HWS_KIND_MEMORY_POOL, handle);
            return result;
        }
        default_pools[device] = pool;
    }
    *pool_p = default_pools[device];
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pool_out != NULL);
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    CUresult result = default_pool(dev, pool_out);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult hws_pool_current(CUdevice device, CUmemoryPool *pool_p) {
    pthread_mutex_lock(&lock);
    CUresult result = CUDA_SUCCESS;
    if (current_pools[device] != NULL && hws_handle_valid(HWS_KIND_MEMORY_POOL, (uintptr_t) current_pools[device])) {
        *pool_p = current_pools[device];
    } else {
        result = default_pool(device, pool_p); /* also after the pool that was set is destroyed, as CUDA documents */
    }
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pool != NULL && hws_device_get(dev) != NULL);
    return hws_pool_current(dev, pool);
}

HWS_EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    CHECK_POOL(pool);
    HWS_REQUIRE(hws_device_get(dev) != NULL);
    const hws_pool_t *kept = pool_get((uint64_t) (uintptr_t) pool);
    HWS_REQUIRE(kept->place == HWS_POOL_OF_WORKER || kept->place == HWS_POOL_EXPORTED);
    if (!is_local(pool)) {
        HWS_TRY(hws_call_cuDeviceSetMemPool(hws_device_get(dev)->ordinal, pool));
    }
    pthread_mutex_lock(&lock);
    current_pools[dev] = pool;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/*
 * Makes a pool of the host. Its memory lies in the region's heap.
 *
 * Known deviation: kernels can use its memory, whether or not cuMemPoolSetAccess has given them access.
 */
static CUresult new_of_host(bool on_node, uint64_t max_bytes, CUmemoryPool *pool_p) {
    static _Atomic bool logged;
    if (hws_device_attribute(0, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED) == 0) {
        return hws_unsupported_use(&logged, "a memory pool of the host outside a shared region");
    }
    HWS_TRY(new_local(CU_DEVICE_CPU, HWS_POOL_OF_HOST, max_bytes, pool_p));
    pool_get((uint64_t) (uintptr_t) *pool_p)->on_node = on_node;
    return CUDA_SUCCESS;
}

static bool is_on_node(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* Whether a location is the host or one of its NUMA nodes. The guest appears as a machine with one node, number 0. */
static bool is_host(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_HOST || is_on_node(location);
}

static CUresult check_node(const CUmemLocation *location) {
    HWS_REQUIRE(location->type != CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT); /* as CUDA documents */
    HWS_REQUIRE(!is_on_node(location) || location->id == 0);
    return CUDA_SUCCESS;
}

/* Makes a pool of managed memory, which all processors can use. Its location has no effect, like a prefetch. */
static CUresult new_of_managed(const CUmemLocation *location, uint64_t max_bytes, CUmemoryPool *pool_p) {
    const CUdevice device = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : CU_DEVICE_CPU;
    return new_local(device, HWS_POOL_OF_MANAGED, max_bytes, pool_p);
}

/* Checks that pools can exist at this location: on a device or the host. */
static CUresult check_place(const CUmemLocation *location, CUmemAllocationType type) {
    static _Atomic bool logged;
    HWS_REQUIRE(location != NULL && (type == CU_MEM_ALLOCATION_TYPE_PINNED || type == CU_MEM_ALLOCATION_TYPE_MANAGED));
    HWS_TRY(check_node(location));
    const bool host = is_host(location);
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE && !host) {
        return hws_unsupported_use(&logged, "a memory pool at such a location");
    }
    HWS_REQUIRE(host || hws_device_get(location->id) != NULL);
    return CUDA_SUCCESS;
}

/* The pools in the guest at a location; NULL if the worker has them. */
static hws_local_pools_t *local_pools(const CUmemLocation *location, CUmemAllocationType type) {
    const bool host = is_host(location);
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        return &managed_pools[host ? HWS_MAX_DEVICES : location->id];
    }
    return host ? &host_pools[is_on_node(location)] : NULL;
}

/* The default pool, or with `current` the pool that was set. */
static CUresult local_pool(const CUmemLocation *location, CUmemAllocationType type, bool current,
                           CUmemoryPool *pool_p) {
    HWS_REQUIRE(pool_p != NULL);
    hws_local_pools_t *pools = local_pools(location, type);
    pthread_mutex_lock(&lock);
    CUresult result = pools->standard != NULL    ? CUDA_SUCCESS
        : type == CU_MEM_ALLOCATION_TYPE_MANAGED ? new_of_managed(location, 0, &pools->standard)
                                                 : new_of_host(is_on_node(location), 0, &pools->standard);
    current = current && hws_handle_valid(HWS_KIND_MEMORY_POOL, (uint64_t) (uintptr_t) pools->current);
    if (result == CUDA_SUCCESS) {
        *pool_p = current ? pools->current : pools->standard;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type) {
    HWS_ENTER_LOCAL();
    HWS_TRY(check_place(location, type));
    return local_pools(location, type) != NULL ? local_pool(location, type, false, pool_out)
                                               : cuDeviceGetDefaultMemPool(pool_out, location->id);
}

HWS_EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    HWS_ENTER_LOCAL();
    HWS_TRY(check_place(location, type));
    return local_pools(location, type) != NULL ? local_pool(location, type, true, pool)
                                               : cuDeviceGetMemPool(pool, location->id);
}

HWS_EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    HWS_TRY(check_place(location, type));
    hws_local_pools_t *pools = local_pools(location, type);
    if (pools == NULL) {
        return cuDeviceSetMemPool(location->id, pool);
    }
    CHECK_POOL(pool);
    const hws_pool_t *kept = pool_get((uint64_t) (uintptr_t) pool);
    HWS_REQUIRE(type == CU_MEM_ALLOCATION_TYPE_MANAGED
                    ? kept->place == HWS_POOL_OF_MANAGED
                    : kept->place == HWS_POOL_OF_HOST && kept->on_node == is_on_node(location));
    pthread_mutex_lock(&lock);
    pools->current = pool;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static bool is_default(CUmemoryPool pool) {
    pthread_mutex_lock(&lock);
    bool found = host_pools[0].standard == pool || host_pools[1].standard == pool
        || managed_pools[HWS_MAX_DEVICES].standard == pool;
    for (int device = 0; device < HWS_MAX_DEVICES; device++) {
        found = found || default_pools[device] == pool || managed_pools[device].standard == pool;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

HWS_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    CHECK_POOL(pool);
    HWS_REQUIRE(!is_default(pool)); /* as CUDA: it belongs to the device */
    CUresult result = is_local(pool) ? CUDA_SUCCESS : hws_call_cuMemPoolDestroy(pool);
    hws_handle_drop(HWS_KIND_MEMORY_POOL, (uint64_t) (uintptr_t) pool);
    return result;
}

HWS_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    CHECK_POOL(pool);
    return is_local(pool) ? CUDA_SUCCESS : hws_call_cuMemPoolTrimTo(pool, minBytesToKeep);
}

/* Translates a location to the worker's numbers of devices. */
static CUresult place_of(const CUmemLocation *location, CUmemLocation *place_p) {
    HWS_REQUIRE(location->type == CU_MEM_LOCATION_TYPE_DEVICE);
    if (hws_device_get(location->id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *place_p = (CUmemLocation) {.type = location->type, .id = hws_device_get(location->id)->ordinal};
    return CUDA_SUCCESS;
}

static bool is_seen_by_host(const hws_pool_t *kept) {
    return kept->place == HWS_POOL_OF_HOST || kept->place == HWS_POOL_OF_MANAGED;
}

/* Known deviation: other devices get access to memory of such a pool by cuCtxEnablePeerAccess only. */
static CUresult set_local_access(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    static _Atomic bool logged;
    hws_pool_t *kept = pool_get((uint64_t) (uintptr_t) pool);
    for (size_t i = 0; i < count; i++) {
        if (is_seen_by_host(kept)) {
            atomic_store(&kept->access[map[i].location.id], map[i].flags);
        } else if (map[i].location.id != kept->device) {
            return hws_unsupported_use(&logged, "access of another device to a memory pool with handles to export");
        }
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    CHECK_POOL(pool);
    HWS_REQUIRE(count <= HWS_MAX_DEVICES && (map != NULL || count == 0));
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < count; i++) { /* driver 580 looks at the kinds of all places first */
        if (map[i].location.type == CU_MEM_LOCATION_TYPE_INVALID) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    CUmemAccessDesc places[HWS_MAX_DEVICES];
    for (size_t i = 0; i < count; i++) {
        places[i].flags = map[i].flags;
        HWS_TRY(place_of(&map[i].location, &places[i].location));
        HWS_REQUIRE(map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ
                    || map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE
            && map[i].location.id == pool_get((uint64_t) (uintptr_t) pool)->device) {
            return CUDA_ERROR_INVALID_DEVICE; /* as CUDA: the pool's own device keeps its access */
        }
    }
    return is_local(pool) ? set_local_access(pool, map, count) : hws_call_cuMemPoolSetAccess(pool, places, count);
}

HWS_EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location) {
    HWS_ENTER_LOCAL();
    CHECK_POOL(memPool);
    HWS_REQUIRE(flags != NULL && location != NULL);
    CUmemLocation place;
    const hws_pool_t *kept = pool_get((uint64_t) (uintptr_t) memPool);
    if (is_seen_by_host(kept) && is_host(location)) {
        HWS_TRY(check_node(location));
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
    }
    if (location->type == CU_MEM_LOCATION_TYPE_HOST) {
        *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    }
    HWS_TRY(place_of(location, &place));
    if (is_seen_by_host(kept)) {
        *flags = kept->place == HWS_POOL_OF_MANAGED ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                    : atomic_load(&kept->access[location->id]);
        return CUDA_SUCCESS;
    }
    if (is_local(memPool)) {
        bool own = location->id == kept->device;
        *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    }
    return hws_call_cuMemPoolGetAccess(flags, memPool, &place);
}

HWS_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    static _Atomic bool logged;
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    HWS_REQUIRE(pool != NULL && poolProps != NULL);
    static const unsigned char zero[sizeof poolProps->reserved];
    HWS_REQUIRE(memcmp(poolProps->reserved, zero, sizeof zero) == 0);
    HWS_TRY(check_node(&poolProps->location));
    HWS_REQUIRE(!is_host(&poolProps->location) || poolProps->handleTypes == CU_MEM_HANDLE_TYPE_NONE);
    if (poolProps->allocType == CU_MEM_ALLOCATION_TYPE_PINNED && is_host(&poolProps->location)) {
        return new_of_host(is_on_node(&poolProps->location), poolProps->maxSize, pool);
    }
    if (poolProps->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED && poolProps->handleTypes == CU_MEM_HANDLE_TYPE_NONE) {
        HWS_TRY(check_place(&poolProps->location, poolProps->allocType));
        return new_of_managed(&poolProps->location, poolProps->maxSize, pool);
    }
    if (poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE
        || (poolProps->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
        return hws_unsupported_use(&logged, "a memory pool with handles other than descriptors");
    }
    if (hws_device_get(poolProps->location.id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (poolProps->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return hws_device_memory_has_arena(poolProps->location.id)
            ? new_local(poolProps->location.id, HWS_POOL_EXPORTED, poolProps->maxSize, pool)
            : hws_unsupported_use(&logged, "a memory pool with handles to export on this GPU");
    }
    uint64_t handle = new_pool(poolProps->location.id);
    if (handle == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUmemoryPool created = (CUmemoryPool) (uintptr_t) handle;
    pool_get(handle)->max_bytes = poolProps->maxSize;
    CUresult result =
        hws_call_hwsMemPoolCreate(created, hws_device_get(poolProps->location.id)->ordinal, poolProps->maxSize);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_MEMORY_POOL, handle);
        return result;
    }
    *pool = created;
    return CUDA_SUCCESS;
}

/* CUDA 13.0 cuda.h, CUmemPool_attribute: from 1 on, without gaps. */
static bool is_attribute(CUmemPool_attribute attr) {
    return attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && attr <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

/* Attributes 1 to 3 are ints, the others 64 bits wide: CUDA 13.0 cuda.h, CUmemPool_attribute. */
static size_t attribute_bytes(CUmemPool_attribute attr) {
    return attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
            && attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
        ? sizeof(int)
        : sizeof(cuuint64_t);
}

/* The guest's counter for an attribute that the device does not count. */
static CUresult count_of(const hws_pool_t *kept, CUmemPool_attribute attr, uint64_t *value_p) {
    switch (attr) {
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            *value_p = (uint64_t) atomic_load(&kept->used);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            *value_p = (uint64_t) atomic_load(&kept->high);
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

HWS_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(value != NULL && is_attribute(attr));
    CHECK_POOL(pool);
    uint64_t wide = 0;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (!is_local(pool)) {
        result = hws_call_hwsMemPoolGetAttribute(pool, attr, &wide);
    } else if (attr <= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        wide = atomic_load(&pool_get((uint64_t) (uintptr_t) pool)->values[attr]);
        result = CUDA_SUCCESS;
    }
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
        result = count_of(pool_get((uint64_t) (uintptr_t) pool), attr, &wide);
    }
    HWS_TRY(result);
    memcpy(value, &wide, attribute_bytes(attr));
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(value != NULL && is_attribute(attr));
    CHECK_POOL(pool);
    HWS_UNSAFE();
    uint64_t wide = 0;
    memcpy(&wide, value, attribute_bytes(attr));
    bool watermark = attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    HWS_REQUIRE(!watermark || wide == 0); /* CUDA: a watermark can only be reset */
    HWS_REQUIRE(attr != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT && attr != CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (!is_local(pool)) {
        result = hws_call_hwsMemPoolSetAttribute(pool, attr, wide);
    } else if (!watermark) {
        atomic_store(&pool_get((uint64_t) (uintptr_t) pool)->values[attr], wide);
        result = CUDA_SUCCESS;
    }
    if (watermark && result == CUDA_ERROR_NOT_SUPPORTED) {
        hws_pool_t *kept = pool_get((uint64_t) (uintptr_t) pool);
        atomic_store(&kept->high, atomic_load(&kept->used));
        return CUDA_SUCCESS;
    }
    return result;
}

/* Memory pools. */
#include "context.h"

#include "hws_cuda_calls.h"
#include "hws_device.h"
#include "hws_interval.h"

#include <pthread.h>
#include <string.h>

static CUmemoryPool default_pools[HWS_MAX_DEVICES], current_pools[HWS_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The device's own pool, asked for once. Lock held. */
static CUresult default_pool(CUdevice device, CUmemoryPool *pool_p) {
    if (default_pools[device] == NULL) {
        uint64_t handle = hws_handle_new(HWS_KIND_MEMORY_POOL);
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
    HWS_ENTER();
    HWS_REQUIRE(pool_out != NULL);
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    CUresult result = default_pool(dev, pool_out);
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    HWS_ENTER();
    HWS_REQUIRE(pool != NULL);
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    CUresult result = CUDA_SUCCESS;
    if (current_pools[dev] != NULL && hws_handle_valid(HWS_KIND_MEMORY_POOL, (uintptr_t) current_pools[dev])) {
        *pool = current_pools[dev];
    } else {
        result = default_pool(dev, pool); /* also after the pool that was set has been destroyed, as CUDA documents */
    }
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    HWS_ENTER();
    HWS_CHECK_HANDLE(HWS_KIND_MEMORY_POOL, pool);
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    HWS_TRY(hws_call_cuDeviceSetMemPool(hws_device_get(dev)->ordinal, pool));
    pthread_mutex_lock(&lock);
    current_pools[dev] = pool;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    static _Atomic bool said;
    HWS_ENTER();
    HWS_REQUIRE(pool != NULL && poolProps != NULL);
    if (poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE
        || poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return hws_unsupported_use(&said, "a memory pool on the host or with handles to export");
    }
    if (hws_device_get(poolProps->location.id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    uint64_t handle = hws_handle_new(HWS_KIND_MEMORY_POOL);
    if (handle == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUmemoryPool created = (CUmemoryPool) (uintptr_t) handle;
    CUresult result = hws_call_hwsMemPoolCreate(created, hws_device_get(poolProps->location.id)->ordinal,
                                                poolProps->maxSize);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_MEMORY_POOL, handle);
        return result;
    }
    *pool = created;
    return CUDA_SUCCESS;
}

/* Attributes 1 to 3 are ints, the others 64 bits wide: CUDA 13.0 cuda.h, CUmemPool_attribute. */
static size_t attribute_bytes(CUmemPool_attribute attr) {
    return attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
        ? sizeof(int) : sizeof(cuuint64_t);
}

HWS_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    HWS_ENTER();
    HWS_REQUIRE(value != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MEMORY_POOL, pool);
    uint64_t wide = 0;
    HWS_TRY(hws_call_hwsMemPoolGetAttribute(pool, attr, &wide));
    memcpy(value, &wide, attribute_bytes(attr));
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    HWS_ENTER();
    HWS_REQUIRE(value != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MEMORY_POOL, pool);
    uint64_t wide = 0;
    memcpy(&wide, value, attribute_bytes(attr));
    return hws_call_hwsMemPoolSetAttribute(pool, attr, wide);
}

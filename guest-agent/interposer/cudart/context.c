/*
 * Devices and their primary contexts. A thread has a device (0 at first) and, from its first call that needs one, a
 * current context. The driver keeps the current context, so a program may also set it through the Driver API.
 */
#include <pthread.h>
#include <stdio.h>

#include "runtime.h"

/* A device in this process. contextLock guards writes of primary and retired. */
typedef struct {
    CUdevice device;
    _Atomic(CUcontext) primary; /* retained; NULL before the first use and after cudaDeviceReset */
    _Atomic(CUcontext) retired; /* the context before cudaDeviceReset: it may still be current in other threads */
} hws_device_t;

static hws_device_t devices[HWS_MAX_DEVICES];
static int deviceTotal;
static cudaError_t initError;
static atomic_bool initDone;
static pthread_mutex_t contextLock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint generation;
static atomic_bool anyRetired;
static _Thread_local int threadDevice;

static cudaError_t hws_runtime_init_locked(void) {
    int count = 0;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS) {
        result = cuDeviceGetCount(&count);
    }
    if (result != CUDA_SUCCESS) {
        return hws_error_from_driver(result);
    }
    if (count < 1) {
        return cudaErrorNoDevice;
    }
    if (count > HWS_MAX_DEVICES) {
        fprintf(stderr, "hawser: at most %d devices are used: devices=%d\n", HWS_MAX_DEVICES, count);
        count = HWS_MAX_DEVICES;
    }
    for (int i = 0; i < count; i++) {
        result = cuDeviceGet(&devices[i].device, i);
        if (result != CUDA_SUCCESS) {
            return hws_error_from_driver(result);
        }
    }
    deviceTotal = count;
    return cudaSuccess;
}

cudaError_t hws_runtime_init(int *deviceCount) {
    /* pairs with the release store below */
    if (!atomic_load_explicit(&initDone, memory_order_acquire)) {
        pthread_mutex_lock(&contextLock);
        if (!atomic_load_explicit(&initDone, memory_order_relaxed)) {
            initError = hws_runtime_init_locked();
            atomic_store_explicit(&initDone, true, memory_order_release);
        }
        pthread_mutex_unlock(&contextLock);
    }
    if (deviceCount != NULL) {
        *deviceCount = deviceTotal;
    }
    return initError;
}

cudaError_t hws_device_get(int ordinal, CUdevice *device) {
    int count;
    cudaError_t error = hws_runtime_init(&count);
    if (error != cudaSuccess) {
        return error;
    }
    if (ordinal < 0 || ordinal >= count) {
        return cudaErrorInvalidDevice;
    }
    *device = devices[ordinal].device;
    return cudaSuccess;
}

int hws_device_ordinal(CUdevice device) {
    for (int i = 0; i < deviceTotal; i++) {
        if (devices[i].device == device) {
            return i;
        }
    }
    return -1;
}

cudaError_t hws_context_primary(int ordinal, CUcontext *context) {
    CUdevice device;
    cudaError_t error = hws_device_get(ordinal, &device);
    if (error != cudaSuccess) {
        return error;
    }
    CUcontext primary = atomic_load_explicit(&devices[ordinal].primary, memory_order_acquire);
    if (primary == NULL) {
        pthread_mutex_lock(&contextLock);
        primary = atomic_load_explicit(&devices[ordinal].primary, memory_order_relaxed);
        if (primary == NULL) {
            error = hws_error_from_driver(cuDevicePrimaryCtxRetain(&primary, device));
            if (error == cudaSuccess) {
                /* A driver may reuse the handle of the reset context, which is then no longer retired. */
                atomic_store(&devices[ordinal].retired, NULL);
                atomic_store_explicit(&devices[ordinal].primary, primary, memory_order_release);
            }
        }
        pthread_mutex_unlock(&contextLock);
    }
    *context = primary;
    return error;
}

static bool hws_context_is_retired(CUcontext context) {
    if (!atomic_load_explicit(&anyRetired, memory_order_relaxed)) {
        return false;
    }
    for (int i = 0; i < deviceTotal; i++) {
        if (atomic_load(&devices[i].retired) == context) {
            return true;
        }
    }
    return false;
}

static cudaError_t hws_context_activate(int ordinal) {
    CUcontext primary;
    cudaError_t error = hws_context_primary(ordinal, &primary);
    return error != cudaSuccess ? error : hws_error_from_driver(cuCtxSetCurrent(primary));
}

cudaError_t hws_context_ask(void) {
    unsigned int flags;
    return hws_error_from_driver(cuStreamGetFlags(CU_STREAM_LEGACY, &flags));
}

cudaError_t hws_context_enter(void) {
    cudaError_t error = hws_runtime_init(NULL);
    if (error != cudaSuccess) {
        return error;
    }
    CUcontext current = NULL;
    CUresult result = cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS) {
        return hws_error_from_driver(result);
    }
    if (current != NULL && !hws_context_is_retired(current)) {
        return cudaSuccess;
    }
    return hws_context_activate(threadDevice);
}

CUcontext hws_context_cacheable(unsigned int *currentGeneration) {
    CUcontext current = NULL;
    *currentGeneration = atomic_load(&generation);
    if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL) {
        return NULL;
    }
    for (int i = 0; i < deviceTotal; i++) {
        if (atomic_load_explicit(&devices[i].primary, memory_order_acquire) == current) {
            return current;
        }
    }
    return NULL;
}

cudaError_t hws_device_current(int *ordinal) {
    cudaError_t error = hws_runtime_init(NULL);
    if (error != cudaSuccess) {
        return error;
    }
    CUcontext current = NULL;
    CUresult result = cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS) {
        return hws_error_from_driver(result);
    }
    if (current == NULL || current == atomic_load_explicit(&devices[threadDevice].primary, memory_order_acquire)
        || hws_context_is_retired(current)) {
        *ordinal = threadDevice;
        return cudaSuccess;
    }
    CUdevice device;
    result = cuCtxGetDevice(&device);
    if (result != CUDA_SUCCESS) {
        return hws_error_from_driver(result);
    }
    int found = hws_device_ordinal(device);
    if (found < 0) {
        return cudaErrorIncompatibleDriverContext;
    }
    *ordinal = found;
    return cudaSuccess;
}

HWS_API cudaError_t cudaGetDeviceCount(int *count) {
    HWS_REQUIRE(count != NULL);
    *count = 0;
    HWS_TRY(hws_runtime_init(count));
    return cudaSuccess;
}

HWS_API cudaError_t cudaGetDevice(int *device) {
    HWS_REQUIRE(device != NULL);
    HWS_TRY(hws_device_current(device));
    return cudaSuccess;
}

HWS_API cudaError_t cudaSetDevice(int device) {
    CUdevice unused;
    HWS_TRY(hws_device_get(device, &unused));
    HWS_TRY(hws_context_activate(device));
    threadDevice = device;
    return cudaSuccess;
}

HWS_API cudaError_t cudaSetValidDevices(int *device_arr, int len) {
    int count;
    HWS_TRY(hws_runtime_init(&count));
    HWS_REQUIRE(len >= 0 && len <= count && (len == 0 || device_arr != NULL));
    for (int i = 0; i < len; i++) {
        if (device_arr[i] < 0 || device_arr[i] >= count) {
            return hws_error_record(cudaErrorInvalidDevice);
        }
    }
    /* The list applies only to a thread that has not chosen a device: one without a context. */
    CUcontext current = NULL;
    HWS_TRY(hws_error_from_driver(cuCtxGetCurrent(&current)));
    if (current == NULL) {
        threadDevice = len > 0 ? device_arr[0] : 0;
    }
    return cudaSuccess;
}

HWS_API cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
    CUdevice handle;
    CUcontext primary;
    HWS_TRY(hws_device_get(device, &handle));
    if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
        HWS_TRY(hws_error_from_driver(cuDevicePrimaryCtxSetFlags_v2(handle, deviceFlags)));
    }
    HWS_TRY(hws_context_primary(device, &primary));
    return cudaSuccess;
}

HWS_API cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    int ordinal = 0;
    HWS_TRY(hws_device_current(&ordinal));
    HWS_REQUIRE((flags & ~(unsigned int) cudaDeviceMask) == 0);
    /* Mapping pinned memory can no longer be turned off; the driver does not accept the flag. */
    return hws_result(
        cuDevicePrimaryCtxSetFlags_v2(devices[ordinal].device, flags & ~(unsigned int) cudaDeviceMapHost));
}

HWS_API cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
    int ordinal = 0;
    HWS_REQUIRE(flags != NULL);
    HWS_TRY(hws_device_current(&ordinal));
    CUcontext current = NULL;
    unsigned int value = 0;
    int active = 0;
    HWS_TRY(hws_error_from_driver(cuCtxGetCurrent(&current)));
    CUresult result =
        current != NULL ? cuCtxGetFlags(&value) : cuDevicePrimaryCtxGetState(devices[ordinal].device, &value, &active);
    HWS_TRY(hws_error_from_driver(result));
    *flags = value | cudaDeviceMapHost;
    return cudaSuccess;
}

HWS_API cudaError_t cudaDeviceReset(void) {
    int ordinal = 0;
    HWS_TRY(hws_device_current(&ordinal));
    hws_device_t *device = &devices[ordinal];
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&contextLock);
    CUcontext primary = atomic_load(&device->primary);
    if (primary != NULL) {
        bool only = true;
        for (int i = 0; i < deviceTotal; i++) {
            only &= i == ordinal || atomic_load(&devices[i].primary) == NULL;
        }
        if (only) {
            /*
             * An image is loaded for all contexts. But a remote driver's copy lies in the context that loaded it first,
             * which now ends.
             */
            hws_image_unload_all();
        }
        result = cuDevicePrimaryCtxReset_v2(device->device);
        if (result == CUDA_SUCCESS) {
            /* The reset ends the retained context. The next use retains it again; cached values are invalid. */
            atomic_store(&device->retired, primary);
            atomic_store(&anyRetired, true);
            atomic_store(&device->primary, NULL);
            atomic_fetch_add(&generation, 1);
        }
    }
    pthread_mutex_unlock(&contextLock);
    return hws_result(result);
}

HWS_API cudaError_t cudaDeviceSynchronize(void) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuCtxSynchronize());
}

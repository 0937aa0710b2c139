/* Primary contexts: one for each device, counted in the guest. */
#include "context.h"
#include "device.h"
#include "green.h"

#include <pthread.h>

typedef struct hws_primary {
    CUcontext context;
    unsigned references;
    unsigned flags;
} hws_primary_t;

static hws_primary_t primaries[HWS_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

HWS_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    HWS_ENTER();
    HWS_REQUIRE(pctx != NULL);
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    hws_primary_t *primary = &primaries[dev];
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (primary->references == 0) {
        result = hws_context_make(dev, primary->flags, true, &primary->context);
    }
    if (result == CUDA_SUCCESS) {
        primary->references++;
        *pctx = primary->context;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Ends the context at the worker. Lock held. */
static CUresult end(hws_primary_t *primary) {
    CUcontext context = primary->context;
    hws_green_end_all(context);
    primary->context = NULL;
    primary->references = 0;
    return hws_context_end(context);
}

HWS_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    HWS_ENTER();
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    hws_primary_t *primary = &primaries[dev];
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (primary->references == 0) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    } else if (--primary->references == 0) {
        result = end(primary);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    HWS_ENTER();
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    CUresult result = primaries[dev].references == 0 ? CUDA_SUCCESS : end(&primaries[dev]);
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(hws_context_flags_valid(flags));
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    primaries[dev].flags = flags;
    hws_context_t *kept = primaries[dev].references == 0 ? NULL : hws_context_get(primaries[dev].context);
    if (kept != NULL) {
        kept->flags = flags;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* The older version, which changes no active context. */
HWS_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
    unsigned before;
    int active;
    HWS_TRY(cuDevicePrimaryCtxGetState(dev, &before, &active));
    HWS_REQUIRE(hws_context_flags_valid(flags) && (flags & CU_CTX_MAP_HOST) == 0); /* each context maps host memory */
    return active ? CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE : cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

HWS_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(flags != NULL && active != NULL);
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    *flags = primaries[dev].flags;
    *active = primaries[dev].references > 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Functions with results beyond success. The generated weak functions serve all other names and only record. */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define FAKE __attribute__((visibility("default")))
#define FAKE_MAX_CALLS 4096

static fake_call_t calls[FAKE_MAX_CALLS];
static int callCount;
static const char *failName;
static int failResult;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong nextHandle = 0x1000;
static int primaryGeneration[2];
static _Thread_local CUcontext current;

FAKE void fake_clear(void) {
    pthread_mutex_lock(&lock);
    callCount = 0;
    failName = NULL;
    pthread_mutex_unlock(&lock);
}

FAKE int fake_count(void) {
    return callCount;
}

FAKE const fake_call_t *fake_call(int index) {
    return &calls[index];
}

FAKE int fake_calls_of(const char *name) {
    int found = 0;
    for (int i = 0; i < callCount; i++) {
        found += strcmp(calls[i].name, name) == 0;
    }
    return found;
}

FAKE void fake_fail(const char *name, int result) {
    failName = name;
    failResult = result;
}

/* Lock held. */
static int result_of(const char *name) {
    return failName != NULL && strcmp(failName, name) == 0 ? failResult : 0;
}

FAKE int fake_record(const char *name, uint64_t a, uint64_t b, uint64_t c) {
    pthread_mutex_lock(&lock);
    if (callCount == FAKE_MAX_CALLS) {
        fprintf(stderr, "fake_cuda: more than %d calls\n", FAKE_MAX_CALLS);
        abort();
    }
    calls[callCount++] = (fake_call_t) {name, a, b, c};
    int result = result_of(name);
    pthread_mutex_unlock(&lock);
    return result;
}

#define RECORD(a, b, c) ((CUresult) fake_record(__func__, (uint64_t) (a), (uint64_t) (b), (uint64_t) (c)))
#define NEW_HANDLE(pointer) (*(pointer) = (void *) atomic_fetch_add(&nextHandle, 1))

FAKE CUresult cuCtxGetCurrent(CUcontext *ctx) {
    *ctx = current;
    return CUDA_SUCCESS;
}

/* Not recorded, as the guest answers it. */
FAKE CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
    (void) hStream;
    *flags = 0;
    pthread_mutex_lock(&lock);
    int result = result_of(__func__);
    pthread_mutex_unlock(&lock);
    return (CUresult) result;
}

FAKE CUresult cuCtxSetCurrent(CUcontext ctx) {
    CUresult result = RECORD(ctx, 0, 0);
    if (result == CUDA_SUCCESS) {
        current = ctx;
    }
    return result;
}

FAKE CUresult cuCtxGetDevice(CUdevice *device) {
    *device = current == NULL ? -1 : (int) ((uintptr_t) current >> 16) - 1;
    return current == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

FAKE CUresult cuDeviceGetCount(int *count) {
    *count = 2;
    return RECORD(0, 0, 0);
}

FAKE CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev) {
    CUresult result = RECORD(dev, 0, 0);
    if (result == CUDA_SUCCESS) {
        *ctx = (CUcontext) (uintptr_t) ((uint64_t) (dev + 1) << 16 | (unsigned int) primaryGeneration[dev]);
    }
    return result;
}

FAKE CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    primaryGeneration[dev]++;
    return RECORD(dev, 0, 0);
}

FAKE CUresult cuDeviceGetName(char *name, int len, CUdevice dev) {
    snprintf(name, (size_t) len, "fake %d", dev);
    return RECORD(dev, 0, 0);
}

FAKE CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
        : (int) attribute <= CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z     ? 1024
                                                                    : 1000 + (int) attribute;
    return RECORD(attribute, dev, 0);
}

FAKE CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                                unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                unsigned int numLibraryOptions) {
    (void) jitOptions, (void) jitOptionsValues, (void) libraryOptions, (void) libraryOptionValues;
    CUresult result = RECORD(code, numJitOptions, numLibraryOptions);
    if (result == CUDA_SUCCESS) {
        NEW_HANDLE((void **) library);
    }
    return result;
}

FAKE CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    CUresult result = RECORD(library, name, 0);
    if (result == CUDA_SUCCESS && strcmp(name, "absent") == 0) {
        result = CUDA_ERROR_NOT_FOUND;
    }
    if (result == CUDA_SUCCESS) {
        NEW_HANDLE((void **) kernel);
    }
    return result;
}

FAKE CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    CUresult result = RECORD(library, name, 0);
    if (result == CUDA_SUCCESS) {
        *dptr = 0xD0000000;
        *bytes = 64;
    }
    return result;
}

FAKE int fake_managed[2], fake_managed_at;

FAKE CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    CUresult result = RECORD(library, name, 0);
    if (result == CUDA_SUCCESS) {
        *dptr = (CUdeviceptr) (uintptr_t) &fake_managed[fake_managed_at];
        *bytes = sizeof(int);
    }
    return result;
}

FAKE CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                             unsigned int sharedMemBytes, CUstream stream, void **kernelParams, void **extra) {
    (void) gridDimY, (void) gridDimZ, (void) blockDimY, (void) blockDimZ, (void) sharedMemBytes, (void) kernelParams;
    (void) extra;
    return RECORD(f, stream, (uint64_t) gridDimX << 32 | blockDimX);
}

FAKE CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
    (void) kernelParams, (void) extra;
    return RECORD(f, config->hStream, (uint64_t) (uintptr_t) config->attrs + config->numAttrs);
}

FAKE CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    CUresult result = RECORD(bytesize, 0, 0);
    if (result == CUDA_SUCCESS) {
        *dptr = 0xA0000000;
    }
    return result;
}

FAKE CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t byteCount, CUstream stream) {
    (void) src;
    return RECORD(dst, byteCount, stream);
}

FAKE CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t byteCount) {
    (void) src;
    return RECORD(dst, byteCount, 0);
}

FAKE CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream) {
    return RECORD((uint64_t) copy->srcMemoryType << 8 | copy->dstMemoryType, copy->srcPitch << 32 | copy->dstPitch,
                  stream);
}

FAKE CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height) {
    (void) value;
    return RECORD(dst, pitch, width << 32 | height);
}

FAKE CUresult cuStreamSynchronize(CUstream stream) {
    return RECORD(stream, 0, 0);
}

FAKE CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *userData, unsigned int flags) {
    CUresult result = RECORD(stream, flags, 0);
    if (result == CUDA_SUCCESS) {
        callback(stream, CUDA_ERROR_ILLEGAL_ADDRESS, userData);
    }
    return result;
}

FAKE CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status) {
    *pfn = (void *) symbol;
    *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return RECORD(cudaVersion, flags, 0);
}

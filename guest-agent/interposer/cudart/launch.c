/* Kernel launches: the <<<>>> configuration, the functions that nvcc's host code calls, and the public ones. */
#include "runtime.h"

/* Nested configurations occur when the arguments of a kernel launch kernels themselves. */
#define HWS_MAX_CONFIG_DEPTH 16

typedef struct {
    dim3 gridDim;
    dim3 blockDim;
    size_t sharedMem;
    cudaStream_t stream;
} hws_call_config_t;

static _Thread_local struct {
    int depth;
    hws_call_config_t stack[HWS_MAX_CONFIG_DEPTH];
} callConfig;

unsigned int __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                               cudaStream_t stream);

/* A result other than 0 makes the caller skip the launch. */
HWS_API unsigned int __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                                 struct CUstream_st *stream) {
    if (callConfig.depth == HWS_MAX_CONFIG_DEPTH) {
        (void) hws_error_record(cudaErrorMissingConfiguration);
        return 1;
    }
    callConfig.stack[callConfig.depth++] = (hws_call_config_t) {gridDim, blockDim, sharedMem, stream};
    return 0;
}

HWS_API cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream) {
    if (callConfig.depth == 0) {
        return hws_error_record(cudaErrorMissingConfiguration);
    }
    const hws_call_config_t *config = &callConfig.stack[--callConfig.depth];
    *gridDim = config->gridDim;
    *blockDim = config->blockDim;
    *sharedMem = config->sharedMem;
    *(cudaStream_t *) stream = config->stream;
    return cudaSuccess;
}

#if HWS_CUDART_MAJOR == 12

/* Whether the device accepts such a grid and block at all, for any kernel. */
static bool hws_launch_shape_fits(dim3 gridDim, dim3 blockDim) {
    const unsigned int asked[] = {blockDim.x, blockDim.y, blockDim.z, gridDim.x, gridDim.y, gridDim.z};
    uint64_t threads = (uint64_t) blockDim.x * blockDim.y;
    CUdevice device;
    int limit = 0;
    if (cuCtxGetDevice(&device) != CUDA_SUCCESS) {
        return true;
    }
    for (int i = 0; i < 6; i++) {
        CUdevice_attribute attribute = (CUdevice_attribute) (CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
        if (cuDeviceGetAttribute(&limit, attribute, device) == CUDA_SUCCESS
            && (asked[i] == 0 || asked[i] > (unsigned int) limit)) {
            return false;
        }
    }
    return cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device) != CUDA_SUCCESS
        || threads * blockDim.z <= (uint64_t) limit;
}

static cudaError_t hws_launch_result(CUresult result, dim3 gridDim, dim3 blockDim) {
    /* CUDA 12 has its own code for a grid or block that the device does not accept. */
    if (result == CUDA_ERROR_INVALID_VALUE && !hws_launch_shape_fits(gridDim, blockDim)) {
        return hws_error_record(cudaErrorInvalidConfiguration);
    }
    return hws_result(result);
}

#else

/* CUDA 13 returns the driver's error, also for a grid or block that the device does not accept. */
static cudaError_t hws_launch_result(CUresult result, dim3 gridDim, dim3 blockDim) {
    (void) gridDim, (void) blockDim;
    return hws_result(result);
}

#endif

static cudaError_t hws_launch(CUkernel kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                              cudaStream_t stream) {
    if (sharedMem > UINT32_MAX) {
        return hws_error_record(cudaErrorInvalidValue);
    }
    CUresult result = cuLaunchKernel((CUfunction) kernel, gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y,
                                     blockDim.z, (unsigned int) sharedMem, stream, args, NULL);
    return hws_launch_result(result, gridDim, blockDim);
}

/*
 * nvcc's host code keeps this handle for the life of the process and passes it only to __cudaLaunchKernel. It must
 * outlive the driver's handles, which cudaDeviceReset replaces. So it is the host function's address.
 */
HWS_API cudaError_t __cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr) {
    CUkernel kernel;
    HWS_REQUIRE(kernelPtr != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_kernel_resolve(entryFuncAddr, &kernel));
    *kernelPtr = (cudaKernel_t) (uintptr_t) entryFuncAddr;
    return cudaSuccess;
}

HWS_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                       cudaStream_t stream) {
    CUkernel found;
    if (kernel == NULL) {
        /* __cudaGetKernel failed and recorded its error when the program first came here. */
        return hws_error_record(cudaErrorInvalidDeviceFunction);
    }
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_kernel_find(kernel, &found));
    return hws_launch(found, gridDim, blockDim, args, sharedMem, stream);
}

HWS_TWIN(__cudaLaunchKernel,
         (cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream),
         (kernel, gridDim, blockDim, args, sharedMem, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                     cudaStream_t stream) {
    CUkernel kernel;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_kernel_find(func, &kernel));
    return hws_launch(kernel, gridDim, blockDim, args, sharedMem, stream);
}

HWS_TWIN(cudaLaunchKernel,
         (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream),
         (func, gridDim, blockDim, args, sharedMem, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                                size_t sharedMem, cudaStream_t stream) {
    CUkernel kernel;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_kernel_find(func, &kernel));
    HWS_REQUIRE(sharedMem <= UINT32_MAX);
    CUresult result = cuLaunchCooperativeKernel((CUfunction) kernel, gridDim.x, gridDim.y, gridDim.z, blockDim.x,
                                                blockDim.y, blockDim.z, (unsigned int) sharedMem, stream, args);
    return hws_launch_result(result, gridDim, blockDim);
}

HWS_TWIN(cudaLaunchCooperativeKernel,
         (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream),
         (func, gridDim, blockDim, args, sharedMem, hws_stream_ptsz(stream)))

static cudaError_t hws_launch_config(const cudaLaunchConfig_t *config, const void *func, void **args,
                                     cudaStream_t stream) {
    CUkernel kernel;
    HWS_REQUIRE(config != NULL && config->dynamicSmemBytes <= UINT32_MAX);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_kernel_find(func, &kernel));
    CUlaunchConfig launch = {
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned int) config->dynamicSmemBytes,
        .hStream = stream,
        /* The attributes are the driver's, bit for bit; tests/layout.c compares them. */
        .attrs = (CUlaunchAttribute *) config->attrs,
        .numAttrs = config->numAttrs,
    };
    CUresult result = cuLaunchKernelEx(&launch, (CUfunction) kernel, args, NULL);
    return hws_launch_result(result, config->gridDim, config->blockDim);
}

HWS_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args) {
    return hws_launch_config(config, func, args, config == NULL ? NULL : config->stream);
}

HWS_API cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func, void **args);
HWS_API cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func, void **args) {
    return hws_launch_config(config, func, args, config == NULL ? NULL : hws_stream_ptsz(config->stream));
}

/* Queries and settings of kernels. */
#include <string.h>

#include "runtime.h"

/* Enters a context and finds the kernel and the current device. */
static cudaError_t hws_function_find(const void *func, CUkernel *kernel, CUdevice *device) {
    cudaError_t error = hws_context_enter();
    if (error == cudaSuccess) {
        error = hws_kernel_find(func, kernel);
    }
    if (error == cudaSuccess && device != NULL) {
        error = hws_error_from_driver(cuCtxGetDevice(device));
    }
    return error;
}

HWS_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func) {
    CUkernel kernel;
    CUdevice device;
    HWS_REQUIRE(attr != NULL);
    HWS_TRY(hws_function_find(func, &kernel, &device));
    HWS_TRY(hws_context_ask());
    int values[CU_FUNC_ATTRIBUTE_MAX];
    for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++) {
        CUresult result = cuKernelGetAttribute(&values[i], (CUfunction_attribute) i, kernel, device);
        if (result == CUDA_ERROR_INVALID_VALUE && i >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) {
            values[i] = 0; /* A driver from before clusters does not know these attributes. */
        } else {
            HWS_TRY(hws_error_from_driver(result));
        }
    }
    memset(attr, 0, sizeof *attr);
    attr->sharedSizeBytes = (size_t) values[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    attr->constSizeBytes = (size_t) values[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES];
    attr->localSizeBytes = (size_t) values[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES];
    attr->maxThreadsPerBlock = values[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
    attr->numRegs = values[CU_FUNC_ATTRIBUTE_NUM_REGS];
    attr->ptxVersion = values[CU_FUNC_ATTRIBUTE_PTX_VERSION];
    attr->binaryVersion = values[CU_FUNC_ATTRIBUTE_BINARY_VERSION];
    attr->cacheModeCA = values[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA];
    attr->maxDynamicSharedSizeBytes = values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    attr->preferredShmemCarveout = values[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT];
    attr->clusterDimMustBeSet = values[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET];
    attr->requiredClusterWidth = values[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
    attr->requiredClusterHeight = values[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT];
    attr->requiredClusterDepth = values[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH];
    attr->clusterSchedulingPolicyPreference = values[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE];
    attr->nonPortableClusterSizeAllowed = values[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED];
    return cudaSuccess;
}

/* NVIDIA's runtime checks this before it makes a context. */
static cudaError_t hws_attribute_check(enum cudaFuncAttribute attr) {
    cudaError_t error = hws_runtime_init(NULL);
    if (error != cudaSuccess) {
        return error;
    }
    return (int) attr >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && (int) attr < CU_FUNC_ATTRIBUTE_MAX
        ? cudaSuccess
        : cudaErrorInvalidValue;
}

HWS_API cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value) {
    CUkernel kernel;
    CUdevice device;
    HWS_TRY(hws_attribute_check(attr));
    HWS_TRY(hws_function_find(func, &kernel, &device));
    HWS_TRY(hws_context_ask());
    return hws_result(cuKernelSetAttribute((CUfunction_attribute) attr, value, kernel, device));
}

HWS_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value,
                                                    int device) {
    CUdevice handle;
    HWS_TRY(hws_attribute_check(attr));
    HWS_TRY(hws_device_get(device, &handle));
    HWS_ENTER_CONTEXT();
    return hws_result(cuKernelSetAttribute((CUfunction_attribute) attr, value, kernel, handle));
}

HWS_API cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig) {
    CUkernel kernel;
    CUdevice device;
    HWS_TRY(hws_function_find(func, &kernel, &device));
    HWS_TRY(hws_context_ask());
    return hws_result(cuKernelSetCacheConfig(kernel, (CUfunc_cache) cacheConfig, device));
}

HWS_API cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config) {
    CUkernel kernel;
    HWS_TRY(hws_function_find(func, &kernel, NULL));
    HWS_TRY(hws_context_ask());
    HWS_REQUIRE((unsigned int) config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    return cudaSuccess; /* no effect since the devices of 2016, as CUDA documents; the function must exist */
}

HWS_API cudaError_t cudaFuncGetName(const char **name, const void *func) {
    CUkernel kernel;
    HWS_REQUIRE(name != NULL);
    HWS_TRY(hws_function_find(func, &kernel, NULL));
    return hws_result(cuKernelGetName(name, kernel));
}

HWS_API cudaError_t cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
    CUkernel kernel;
    HWS_REQUIRE(paramOffset != NULL);
    HWS_TRY(hws_function_find(func, &kernel, NULL));
    return hws_result(cuKernelGetParamInfo(kernel, paramIndex, paramOffset, paramSize));
}

HWS_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr) {
    CUkernel kernel;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_kernel_resolve(symbolPtr, &kernel));
    if (functionPtr == NULL) {
        return cudaSuccess; /* NVIDIA's runtime writes nothing */
    }
    return hws_result(cuKernelGetFunction(functionPtr, kernel));
}

HWS_API cudaError_t cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr) {
    CUkernel kernel;
    HWS_REQUIRE(kernelPtr != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_kernel_resolve(entryFuncAddr, &kernel));
    HWS_TRY(hws_kernel_publish(kernel, NULL));
    *kernelPtr = kernel;
    return cudaSuccess;
}

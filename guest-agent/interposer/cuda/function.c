/* Kernels. Their look-up has brought the attributes, so queries need no round trip. */
#include "module.h"

#include "device.h"
#include "occupancy.h"

#include "hws_cuda_calls.h"

/*
 * Sets `kept`, or leaves the calling function when the handle is no kernel. CUDA checks the handle before the error of a
 * context. A CUkernel belongs to no context.
 */
#define ENTER_FUNCTION(function, kept)                                                                                 \
    HWS_ENTER_LOCAL();                                                                                                 \
    hws_function_t *kept = hws_function_get(function);                                                                 \
    if (kept == NULL) {                                                                                                \
        return CUDA_ERROR_INVALID_HANDLE;                                                                              \
    }

/* The same for queries in which a null handle or output is an invalid value. */
#define ENTER_QUERY(function, output, kept)                                                                            \
    HWS_ENTER_LOCAL();                                                                                                 \
    HWS_REQUIRE((function) != NULL && (output) != NULL);                                                               \
    ENTER_FUNCTION(function, kept)

static CUresult get_attribute(const hws_function_t *function, CUfunction_attribute attribute, int *value_p) {
    HWS_REQUIRE(value_p != NULL && (int) attribute >= 0 && (int) attribute < CU_FUNC_ATTRIBUTE_MAX);
    *value_p = function->attributes[attribute];
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pi != NULL);
    ENTER_FUNCTION(hfunc, kept);
    HWS_ENTER();
    return get_attribute(kept, attrib, pi);
}

static CUresult set_attribute(hws_function_t *kept, CUfunction_attribute attrib, int value) {
    HWS_REQUIRE((int) attrib >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                && (int) attrib < CU_FUNC_ATTRIBUTE_MAX);
    if (attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        int limit = hws_device_attribute(kept->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        HWS_REQUIRE(value >= 0 && value <= limit - kept->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES]);
    }
    HWS_TRY(hws_call_cuFuncSetAttribute((CUfunction) (uintptr_t) kept->handle, attrib, value));
    kept->attributes[attrib] = value;
    hws_occupancy_forget();
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    ENTER_FUNCTION(hfunc, kept);
    HWS_ENTER();
    return set_attribute(kept, attrib, value);
}

static CUresult set_cache_config(CUfunction function, CUfunc_cache config) {
    HWS_REQUIRE((int) config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    HWS_TRY(hws_call_cuFuncSetCacheConfig(function, config));
    hws_occupancy_forget();
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    HWS_ENTER_OBJECT(HWS_KIND_FUNCTION, hfunc);
    HWS_ENTER_CONTEXT();
    return set_cache_config(hfunc, config);
}

HWS_EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
    HWS_ENTER_OBJECT(HWS_KIND_FUNCTION, hfunc);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE((int) config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE
                && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    return hws_call_cuFuncSetSharedMemConfig(hfunc, config);
}

HWS_EXPORT CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) {
    ENTER_QUERY(hfunc, hmod, kept);
    HWS_ENTER();
    *hmod = kept->module;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuFuncGetName(const char **name, CUfunction hfunc) {
    ENTER_QUERY(hfunc, name, kept);
    HWS_ENTER();
    *name = kept->name;
    return CUDA_SUCCESS;
}

static CUresult get_param_info(const hws_function_t *function, size_t index, size_t *offset_p, size_t *size_p) {
    HWS_REQUIRE(index < function->param_count);
    *offset_p = function->params[index].offset;
    if (size_p != NULL) {
        *size_p = function->params[index].size;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
    ENTER_QUERY(func, paramOffset, kept);
    HWS_ENTER();
    return get_param_info(kept, paramIndex, paramOffset, paramSize);
}

HWS_EXPORT CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
    HWS_REQUIRE(state != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_FUNCTION, function); /* CUDA checks this before its initialisation */
    ENTER_FUNCTION(function, kept);
    HWS_ENTER();
    *state = kept->refusal == NULL ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUresult hws_function_check(const hws_function_t *function) {
    if (__builtin_expect(function->refusal == NULL, 1)) {
        return CUDA_SUCCESS;
    }
    hws_function_t *kept = hws_function_get((const void *) (uintptr_t) function->handle);
    if (!atomic_exchange(&kept->refusal_logged, true)) {
        hws_log(HWS_WARN, "a kernel is refused: %s", function->refusal);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

HWS_EXPORT CUresult cuFuncLoad(CUfunction function) {
    ENTER_FUNCTION(function, kept);
    HWS_ENTER();
    return hws_function_check(kept);
}

HWS_EXPORT CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pFunc != NULL);
    HWS_ENTER_OBJECT(HWS_KIND_FUNCTION, kernel);
    *pFunc = (CUfunction) kernel;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel) {
    ENTER_FUNCTION(kernel, kept);
    HWS_REQUIRE(pLib != NULL);
    *pLib = (CUlibrary) kept->module;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuKernelGetName(const char **name, CUkernel hfunc) {
    ENTER_QUERY(hfunc, name, kept);
    *name = kept->name;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
    ENTER_QUERY(kernel, paramOffset, kept);
    HWS_ENTER();
    return get_param_info(kept, paramIndex, paramOffset, paramSize);
}

static CUresult check_kernel(CUkernel kernel, CUdevice device) {
    HWS_CHECK_HANDLE(HWS_KIND_FUNCTION, kernel);
    return hws_device_get(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_TRY(check_kernel(kernel, dev));
    return get_attribute(hws_function_get(kernel), attrib, pi);
}

HWS_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_TRY(check_kernel(kernel, dev));
    return set_attribute(hws_function_get(kernel), attrib, val);
}

HWS_EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_TRY(check_kernel(kernel, dev));
    return set_cache_config((CUfunction) kernel, config);
}

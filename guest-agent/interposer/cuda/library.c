/* Libraries: the newer form of modules, independent of contexts. Each context that uses one has its own variables. */
#include "capture.h"
#include "module_table.h"

#include "hws_interval.h"

#include <stdlib.h>

HWS_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                                          void **jitOptionsValues, unsigned int numJitOptions,
                                          CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                          unsigned int numLibraryOptions) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(library != NULL && fileName != NULL && *fileName != '\0');
    void *image;
    uint64_t bytes;
    HWS_TRY(hws_image_read_file(fileName, &image, &bytes));
    CUresult result = cuLibraryLoadData(library, image, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                                        libraryOptionValues, numLibraryOptions);
    free(image);
    return result;
}

HWS_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    HWS_ENTER_LOCAL();
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, library);
    HWS_UNSAFE();
    return hws_module_unload((CUmodule) library);
}

HWS_EXPORT CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pKernel != NULL && name != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, library);
    return hws_module_function((CUmodule) library, name, (CUfunction *) pKernel);
}

HWS_EXPORT CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(count != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, lib);
    return hws_module_functions((CUmodule) lib, NULL, 0, count);
}

HWS_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(kernels != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, lib);
    if (numKernels == 0) {
        return CUDA_SUCCESS;
    }
    return hws_module_functions((CUmodule) lib, (CUfunction *) kernels, numKernels, NULL);
}

/* The worker knows the library's module of each context, so one handle is its module in all of them. */
HWS_EXPORT CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(pMod != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, library);
    HWS_TRY(hws_module_make_ready((CUmodule) library));
    *pMod = (CUmodule) library;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(name != NULL && (dptr != NULL || bytes != NULL));
    return hws_module_global((CUmodule) library, name, dptr, bytes);
}

HWS_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    HWS_REQUIRE(name != NULL && *name != '\0' && (dptr != NULL || bytes != NULL));
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, library); /* CUDA checks this before its initialisation */
    HWS_ENTER_LOCAL();
    const hws_module_t *kept = hws_module_get((CUmodule) library);
    /* Known deviation: natively a library has such variables as soon as it is loaded, also without a context. */
    if (kept == NULL || hws_tls.context == 0 || (kept->context != 0 && !kept->has_managed)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    HWS_ENTER();
    CUdeviceptr address;
    size_t size;
    HWS_TRY(hws_module_global((CUmodule) library, name, &address, &size));
    if (!hws_interval_is_managed(address, size)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (dptr != NULL) {
        *dptr = address;
    }
    if (bytes != NULL) {
        *bytes = size;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(fptr != NULL && symbol != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, library);
    return CUDA_ERROR_INVALID_VALUE; /* driver 580: the same for a name that the library lacks */
}

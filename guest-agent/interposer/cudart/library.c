/* cudaLibrary*: images that a program itself loads. The options and handles are the driver's. */
#include <stdlib.h>

#include "runtime.h"

/* NVIDIA's runtime initialises itself and checks this before it makes a context. */
#define HWS_REQUIRE_LIBRARY(library)                                                                                   \
    do {                                                                                                               \
        HWS_TRY(hws_runtime_init(NULL));                                                                               \
        if ((library) == NULL) {                                                                                       \
            return hws_error_record(cudaErrorInvalidResourceHandle);                                                   \
        }                                                                                                              \
    } while (0)

HWS_API cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jitOptions,
                                        void **jitOptionsValues, unsigned int numJitOptions,
                                        enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
                                        unsigned int numLibraryOptions) {
    HWS_REQUIRE(library != NULL && code != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuLibraryLoadData(library, code, (CUjit_option *) jitOptions, jitOptionsValues, numJitOptions,
                                        (CUlibraryOption *) libraryOptions, libraryOptionValues, numLibraryOptions));
}

HWS_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
                                            enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                            unsigned int numJitOptions, enum cudaLibraryOption *libraryOptions,
                                            void **libraryOptionValues, unsigned int numLibraryOptions) {
    HWS_REQUIRE(library != NULL && fileName != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuLibraryLoadFromFile(library, fileName, (CUjit_option *) jitOptions, jitOptionsValues,
                                            numJitOptions, (CUlibraryOption *) libraryOptions, libraryOptionValues,
                                            numLibraryOptions));
}

HWS_API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    HWS_REQUIRE_LIBRARY(library);
    HWS_ENTER_CONTEXT();
    hws_kernel_retract(library);
    return hws_result(cuLibraryUnload(library));
}

HWS_API cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library, const char *name) {
    CUkernel kernel;
    HWS_REQUIRE(pKernel != NULL && name != NULL);
    HWS_REQUIRE_LIBRARY(library);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuLibraryGetKernel(&kernel, library, name)));
    HWS_TRY(hws_kernel_publish(kernel, library));
    *pKernel = kernel;
    return cudaSuccess;
}

HWS_API cudaError_t cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library, const char *name) {
    CUdeviceptr address;
    size_t size;
    HWS_REQUIRE(name != NULL && (dptr != NULL || bytes != NULL));
    HWS_REQUIRE_LIBRARY(library);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuLibraryGetGlobal(&address, &size, library, name)));
    if (dptr != NULL) {
        *dptr = (void *) (uintptr_t) address;
    }
    if (bytes != NULL) {
        *bytes = size;
    }
    return cudaSuccess;
}

HWS_API cudaError_t cudaLibraryGetManaged(void **dptr, size_t *bytes, cudaLibrary_t library, const char *name) {
    CUdeviceptr address;
    size_t size;
    HWS_REQUIRE(name != NULL && *name != '\0' && (dptr != NULL || bytes != NULL));
    HWS_REQUIRE_LIBRARY(library);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuLibraryGetManaged(&address, &size, library, name)));
    if (dptr != NULL) {
        *dptr = (void *) (uintptr_t) address;
    }
    if (bytes != NULL) {
        *bytes = size;
    }
    return cudaSuccess;
}

HWS_API cudaError_t cudaLibraryGetUnifiedFunction(void **fptr, cudaLibrary_t library, const char *symbol) {
    HWS_REQUIRE(fptr != NULL);
    HWS_REQUIRE_LIBRARY(library);
    HWS_REQUIRE(symbol != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuLibraryGetUnifiedFunction(fptr, library, symbol));
}

HWS_API cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib) {
    HWS_REQUIRE(count != NULL);
    HWS_REQUIRE_LIBRARY(lib);
    HWS_ENTER_CONTEXT();
    return hws_result(cuLibraryGetKernelCount(count, lib));
}

HWS_API cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels, cudaLibrary_t lib) {
    unsigned int total = 0;
    HWS_REQUIRE(kernels != NULL);
    HWS_REQUIRE_LIBRARY(lib);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuLibraryGetKernelCount(&total, lib)));
    HWS_TRY(hws_error_from_driver(cuLibraryEnumerateKernels(kernels, numKernels, lib)));
    for (unsigned int i = 0; i < numKernels && i < total; i++) {
        HWS_TRY(hws_kernel_publish(kernels[i], lib));
    }
    return cudaSuccess;
}

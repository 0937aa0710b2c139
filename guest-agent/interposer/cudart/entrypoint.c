/* cudaGetDriverEntryPoint*: addresses of the driver's functions, by base name and version. */
#include "runtime.h"

#define HWS_ENTRY_POINT                                                                                                \
    (const char *symbol, void **funcPtr, unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus)
#define HWS_ENTRY_POINT_BY_VERSION                                                                                     \
    (const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,                           \
     enum cudaDriverEntryPointQueryResult *driverStatus)

static cudaError_t hws_entry_point(const char *symbol, void **funcPtr, unsigned int cudaVersion,
                                   unsigned long long flags, unsigned long long defaultFlags,
                                   enum cudaDriverEntryPointQueryResult *driverStatus) {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *found = NULL;
    HWS_REQUIRE(symbol != NULL && funcPtr != NULL && cudaVersion <= INT32_MAX);
    HWS_REQUIRE(flags == cudaEnableDefault || flags == cudaEnableLegacyStream
                || flags == cudaEnablePerThreadDefaultStream);
    HWS_TRY(hws_runtime_init(NULL));
    CUresult result = cuGetProcAddress_v2(symbol, &found, (int) cudaVersion,
                                          flags == cudaEnableDefault ? defaultFlags : flags, &status);
    HWS_TRY(hws_error_from_driver(result));
    *funcPtr = found;
    if (driverStatus != NULL) {
        *driverStatus = (enum cudaDriverEntryPointQueryResult) status;
    }
    return cudaSuccess;
}

HWS_API cudaError_t cudaGetDriverEntryPoint HWS_ENTRY_POINT;
HWS_API cudaError_t cudaGetDriverEntryPoint HWS_ENTRY_POINT {
    return hws_entry_point(symbol, funcPtr, HWS_CUDART_VERSION, flags, cudaEnableLegacyStream, driverStatus);
}

HWS_API cudaError_t cudaGetDriverEntryPoint_ptsz HWS_ENTRY_POINT;
HWS_API cudaError_t cudaGetDriverEntryPoint_ptsz HWS_ENTRY_POINT {
    return hws_entry_point(symbol, funcPtr, HWS_CUDART_VERSION, flags, cudaEnablePerThreadDefaultStream, driverStatus);
}

HWS_API cudaError_t cudaGetDriverEntryPointByVersion HWS_ENTRY_POINT_BY_VERSION;
HWS_API cudaError_t cudaGetDriverEntryPointByVersion HWS_ENTRY_POINT_BY_VERSION {
    return hws_entry_point(symbol, funcPtr, cudaVersion, flags, cudaEnableLegacyStream, driverStatus);
}

HWS_API cudaError_t cudaGetDriverEntryPointByVersion_ptsz HWS_ENTRY_POINT_BY_VERSION;
HWS_API cudaError_t cudaGetDriverEntryPointByVersion_ptsz HWS_ENTRY_POINT_BY_VERSION {
    return hws_entry_point(symbol, funcPtr, cudaVersion, flags, cudaEnablePerThreadDefaultStream, driverStatus);
}

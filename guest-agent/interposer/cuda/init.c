/* Initialisation, the version, and the private tables that Hawser does not have. */
#include "hws_driver.h"

#define DRIVER_VERSION 13000 /* CUDA 13.0: the interface that the description covers */

HWS_EXPORT CUresult cuInit(unsigned int Flags) {
    HWS_REQUIRE(Flags == 0);
    return hws_session_start();
}

HWS_EXPORT CUresult cuDriverGetVersion(int *driverVersion) {
    HWS_REQUIRE(driverVersion != NULL);
    *driverVersion = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    static _Atomic bool said;
    (void) pExportTableId;
    HWS_REQUIRE(ppExportTable != NULL);
    if (!atomic_exchange(&said, true)) {
        hws_log(HWS_ERROR, "this program contains a statically linked CUDA runtime, which cannot run here: "
                "link it with nvcc -cudart shared");
    }
    *ppExportTable = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

HWS_EXPORT CUresult cuProfilerStart(void) {
    HWS_ENTER_LOCAL();
    return CUDA_SUCCESS; /* no profiler is attached, and then CUDA's does nothing either */
}

HWS_EXPORT CUresult cuProfilerStop(void) {
    HWS_ENTER_LOCAL();
    return CUDA_SUCCESS;
}

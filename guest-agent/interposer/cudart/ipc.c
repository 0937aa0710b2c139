/* Memory and events of other processes, which are the driver's. */
#include "runtime.h"

#include <string.h>

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "one handle for both APIs");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "one handle for both APIs");

HWS_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr) {
    HWS_REQUIRE(handle != NULL && devPtr != NULL);
    HWS_ENTER_CONTEXT();
    CUipcMemHandle name;
    HWS_TRY(hws_error_from_driver(cuIpcGetMemHandle(&name, (CUdeviceptr) (uintptr_t) devPtr)));
    memcpy(handle, &name, sizeof name);
    return cudaSuccess;
}

HWS_API cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
    HWS_REQUIRE(devPtr != NULL);
    HWS_ENTER_CONTEXT();
    CUipcMemHandle name;
    CUdeviceptr address;
    memcpy(&name, &handle, sizeof name);
    HWS_TRY(hws_error_from_driver(cuIpcOpenMemHandle_v2(&address, name, flags)));
    *devPtr = (void *) (uintptr_t) address;
    return cudaSuccess;
}

HWS_API cudaError_t cudaIpcCloseMemHandle(void *devPtr) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuIpcCloseMemHandle((CUdeviceptr) (uintptr_t) devPtr));
}

HWS_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
    HWS_REQUIRE(handle != NULL && event != NULL);
    HWS_ENTER_CONTEXT();
    CUipcEventHandle name;
    HWS_TRY(hws_error_from_driver(cuIpcGetEventHandle(&name, event)));
    memcpy(handle, &name, sizeof name);
    return cudaSuccess;
}

HWS_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle) {
    HWS_REQUIRE(event != NULL);
    HWS_ENTER_CONTEXT();
    CUipcEventHandle name;
    memcpy(&name, &handle, sizeof name);
    return hws_result(cuIpcOpenEventHandle(event, name));
}

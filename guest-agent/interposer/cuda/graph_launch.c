/* Launching executable graphs, and the memory that devices keep for graphs. */
#include "hws_driver.h"

#include "hws_cuda_calls.h"
#include "hws_device.h"

HWS_EXPORT CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
    HWS_ENTER();
    HWS_CHECK_HANDLE(HWS_KIND_GRAPH_EXEC, hGraphExec);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    return hws_call_cuGraphLaunch(hGraphExec, hStream);
}

HWS_EXPORT CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
    HWS_ENTER();
    HWS_CHECK_HANDLE(HWS_KIND_GRAPH_EXEC, hGraphExec);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    return hws_call_cuGraphUpload(hGraphExec, hStream);
}

HWS_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    HWS_ENTER();
    const hws_device_t *known = hws_device_get(device);
    if (known == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return hws_call_cuDeviceGraphMemTrim(known->ordinal);
}

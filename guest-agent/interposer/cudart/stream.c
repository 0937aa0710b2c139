/* Streams. A program's stream is the driver's; 0, 1 and 2 have the same meaning in both APIs. */
#include <stdlib.h>

#include "runtime.h"

HWS_API cudaError_t cudaStreamCreate(cudaStream_t *pStream) {
    HWS_REQUIRE(pStream != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamCreate(pStream, 0));
}

HWS_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags) {
    HWS_REQUIRE(pStream != NULL && (flags & ~(unsigned int) CU_STREAM_NON_BLOCKING) == 0);
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamCreate(pStream, flags));
}

HWS_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority) {
    HWS_REQUIRE(pStream != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamCreateWithPriority(pStream, flags, priority));
}

HWS_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (stream == NULL || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
        return hws_error_record(cudaErrorInvalidResourceHandle);
    }
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamDestroy_v2(stream));
}

HWS_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamSynchronize(stream));
}
HWS_TWIN(cudaStreamSynchronize, (cudaStream_t stream), (hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    CUresult result = cuStreamQuery(stream);
    /* According to the programming guide this is no error, and cudaGetLastError does not report it. */
    return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : hws_result(result);
}
HWS_TWIN(cudaStreamQuery, (cudaStream_t stream), (hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamWaitEvent(stream, event, flags));
}
HWS_TWIN(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
         (hws_stream_ptsz(stream), event, flags))

HWS_API cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority) {
    HWS_REQUIRE(priority != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamGetPriority(hStream, priority));
}
HWS_TWIN(cudaStreamGetPriority, (cudaStream_t hStream, int *priority), (hws_stream_ptsz(hStream), priority))

HWS_API cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags) {
    CUstreamCaptureStatus status;
    HWS_REQUIRE(flags != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuStreamIsCapturing(hStream, &status)));
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
        return hws_error_record(cudaErrorStreamCaptureUnsupported); /* as NVIDIA's runtime, unlike the driver */
    }
    return hws_result(cuStreamGetFlags(hStream, flags));
}
HWS_TWIN(cudaStreamGetFlags, (cudaStream_t hStream, unsigned int *flags), (hws_stream_ptsz(hStream), flags))

HWS_API cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId) {
    HWS_REQUIRE(streamId != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamGetId(hStream, streamId));
}
HWS_TWIN(cudaStreamGetId, (cudaStream_t hStream, unsigned long long *streamId), (hws_stream_ptsz(hStream), streamId))

HWS_API cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device);
HWS_API cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device) {
    CUdevice handle;
    HWS_REQUIRE(device != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuStreamGetDevice(hStream, &handle)));
    *device = hws_device_ordinal(handle);
    return cudaSuccess;
}
HWS_TWIN(cudaStreamGetDevice, (cudaStream_t hStream, int *device), (hws_stream_ptsz(hStream), device))

HWS_API cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamCopyAttributes(dst, src));
}
HWS_TWIN(cudaStreamCopyAttributes, (cudaStream_t dst, cudaStream_t src), (hws_stream_ptsz(dst), hws_stream_ptsz(src)))

HWS_API cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                           cudaLaunchAttributeValue *value_out) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamGetAttribute(hStream, (CUstreamAttrID) attr, (CUstreamAttrValue *) value_out));
}
HWS_TWIN(cudaStreamGetAttribute,
         (cudaStream_t hStream, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value_out),
         (hws_stream_ptsz(hStream), attr, value_out))

/* NVIDIA's runtime checks the attribute before the error of a kernel. */
static bool hws_stream_has_attribute(cudaLaunchAttributeID attr) {
    switch ((CUstreamAttrID) attr) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            return true;
        default:
            return false;
    }
}

HWS_API cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                           const cudaLaunchAttributeValue *value) {
    HWS_REQUIRE(value != NULL && hws_stream_has_attribute(attr));
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamSetAttribute(hStream, (CUstreamAttrID) attr, (const CUstreamAttrValue *) value));
}
HWS_TWIN(cudaStreamSetAttribute,
         (cudaStream_t hStream, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *value),
         (hws_stream_ptsz(hStream), attr, value))

HWS_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *devPtr, size_t length, unsigned int flags) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamAttachMemAsync(stream, (CUdeviceptr) (uintptr_t) devPtr, length, flags));
}
HWS_TWIN(cudaStreamAttachMemAsync, (cudaStream_t stream, void *devPtr, size_t length, unsigned int flags),
         (hws_stream_ptsz(stream), devPtr, length, flags))

/* ---- host functions ---- */

HWS_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData) {
    HWS_REQUIRE(fn != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuLaunchHostFunc(stream, fn, userData));
}
HWS_TWIN(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *userData),
         (hws_stream_ptsz(stream), fn, userData))

typedef struct {
    cudaStreamCallback_t callback;
    cudaStream_t stream; /* as the program gave it */
    void *userData;
} hws_stream_callback_t;

/* Runs on the driver's thread: translates the status and calls the program's function. */
static void hws_stream_callback_run(CUstream stream, CUresult status, void *userData) {
    hws_stream_callback_t registered = *(hws_stream_callback_t *) userData;
    (void) stream;
    free(userData);
    registered.callback(registered.stream, hws_error_from_driver(status), registered.userData);
}

HWS_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                          unsigned int flags) {
    HWS_REQUIRE(callback != NULL && flags == 0);
    HWS_ENTER_CONTEXT();
    hws_stream_callback_t *registered = malloc(sizeof *registered);
    if (registered == NULL) {
        return hws_error_record(cudaErrorMemoryAllocation);
    }
    *registered = (hws_stream_callback_t) {callback, stream, userData};
    CUresult result = cuStreamAddCallback(stream, hws_stream_callback_run, registered, 0);
    if (result != CUDA_SUCCESS) {
        free(registered);
    }
    return hws_result(result);
}
HWS_TWIN(cudaStreamAddCallback,
         (cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned int flags),
         (hws_stream_ptsz(stream), callback, userData, flags))

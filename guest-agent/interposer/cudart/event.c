/* Events, which are the driver's. */
#include "runtime.h"

HWS_API cudaError_t cudaEventCreate(cudaEvent_t *event) {
    HWS_REQUIRE(event != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuEventCreate(event, 0));
}

HWS_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    HWS_REQUIRE(event != NULL);
    HWS_ENTER_CONTEXT();
    return hws_result(cuEventCreate(event, flags));
}

HWS_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuEventDestroy_v2(event));
}

HWS_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuEventRecord(event, stream));
}
HWS_TWIN(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuEventRecordWithFlags(event, stream, flags));
}
HWS_TWIN(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
         (event, hws_stream_ptsz(stream), flags))

HWS_API cudaError_t cudaEventQuery(cudaEvent_t event) {
    HWS_ENTER_CONTEXT();
    CUresult result = cuEventQuery(event);
    /* According to the programming guide this is no error, and cudaGetLastError does not report it. */
    return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : hws_result(result);
}

HWS_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuEventSynchronize(event));
}

HWS_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    HWS_REQUIRE(ms != NULL);
    HWS_ENTER_CONTEXT();
    CUresult result = cuEventElapsedTime_v2(ms, start, end);
    return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : hws_result(result);
}

#if HWS_CUDART_MAJOR == 12
HWS_API cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end);
HWS_API cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end) {
    return cudaEventElapsedTime(ms, start, end);
}
#endif

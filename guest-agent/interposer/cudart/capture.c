/* Stream capture. Programs often query whether a stream captures; the driver answers locally. */
#include "runtime.h"

HWS_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus) {
    CUstreamCaptureStatus status;
    HWS_REQUIRE(pCaptureStatus != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuStreamIsCapturing(stream, &status)));
    *pCaptureStatus = (enum cudaStreamCaptureStatus) status;
    return cudaSuccess;
}
HWS_TWIN(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus),
         (hws_stream_ptsz(stream), pCaptureStatus))

static cudaError_t hws_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                    unsigned long long *id_out, cudaGraph_t *graph_out,
                                    const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
                                    size_t *numDependencies_out) {
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;
    HWS_REQUIRE(captureStatus_out != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(
        hws_error_from_driver(cuStreamGetCaptureInfo_v3(stream, &status, &id, graph_out, dependencies_out,
                                                        (const CUgraphEdgeData **) edgeData_out, numDependencies_out)));
    *captureStatus_out = (enum cudaStreamCaptureStatus) status;
    if (id_out != NULL && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        *id_out = id;
    }
    return cudaSuccess;
}

#define HWS_CAPTURE_INFO                                                                                               \
    (cudaStream_t stream, enum cudaStreamCaptureStatus * captureStatus_out, unsigned long long *id_out,                \
     cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,         \
     size_t *numDependencies_out)
#define HWS_CAPTURE_INFO_PTSZ                                                                                          \
    (hws_stream_ptsz(stream), captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out)

#if HWS_CUDART_MAJOR >= 13

HWS_API cudaError_t cudaStreamGetCaptureInfo HWS_CAPTURE_INFO {
    return hws_capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                            numDependencies_out);
}
HWS_TWIN(cudaStreamGetCaptureInfo, HWS_CAPTURE_INFO, HWS_CAPTURE_INFO_PTSZ)

#else

/* CUDA 12 has three generations; its headers give the plain name to the second. */
HWS_API cudaError_t cudaStreamGetCaptureInfo_v3 HWS_CAPTURE_INFO;
HWS_API cudaError_t cudaStreamGetCaptureInfo_v3 HWS_CAPTURE_INFO {
    return hws_capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                            numDependencies_out);
}
HWS_TWIN(cudaStreamGetCaptureInfo_v3, HWS_CAPTURE_INFO, HWS_CAPTURE_INFO_PTSZ)

#define HWS_CAPTURE_INFO_V2                                                                                            \
    (cudaStream_t stream, enum cudaStreamCaptureStatus * captureStatus_out, unsigned long long *id_out,                \
     cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out, size_t *numDependencies_out)

HWS_API cudaError_t cudaStreamGetCaptureInfo_v2 HWS_CAPTURE_INFO_V2;
HWS_API cudaError_t cudaStreamGetCaptureInfo_v2 HWS_CAPTURE_INFO_V2 {
    return hws_capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}
HWS_TWIN(cudaStreamGetCaptureInfo_v2, HWS_CAPTURE_INFO_V2,
         (hws_stream_ptsz(stream), captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out))

HWS_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                             unsigned long long *id_out);
HWS_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                             unsigned long long *id_out) {
    return hws_capture_info(stream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}
HWS_TWIN(cudaStreamGetCaptureInfo,
         (cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out, unsigned long long *id_out),
         (hws_stream_ptsz(stream), captureStatus_out, id_out))

#endif

HWS_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode) mode));
}
HWS_TWIN(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
         (hws_stream_ptsz(stream), mode))

HWS_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamEndCapture(stream, pGraph));
}
HWS_TWIN(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *pGraph), (hws_stream_ptsz(stream), pGraph))

HWS_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    HWS_REQUIRE(mode != NULL);
    HWS_ENTER_CONTEXT();
    CUstreamCaptureMode exchanged = (CUstreamCaptureMode) *mode;
    HWS_TRY(hws_error_from_driver(cuThreadExchangeStreamCaptureMode(&exchanged)));
    *mode = (enum cudaStreamCaptureMode) exchanged;
    return cudaSuccess;
}

HWS_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                  const cudaGraphNode_t *dependencies,
                                                  const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                                                  enum cudaStreamCaptureMode mode) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamBeginCaptureToGraph(stream, graph, dependencies, (const CUgraphEdgeData *) dependencyData,
                                                  numDependencies, (CUstreamCaptureMode) mode));
}
HWS_TWIN(cudaStreamBeginCaptureToGraph,
         (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
          const cudaGraphEdgeData *dependencyData, size_t numDependencies, enum cudaStreamCaptureMode mode),
         (hws_stream_ptsz(stream), graph, dependencies, dependencyData, numDependencies, mode))

#define HWS_UPDATE_CAPTURE                                                                                             \
    (cudaStream_t stream, cudaGraphNode_t * dependencies, const cudaGraphEdgeData *dependencyData,                     \
     size_t numDependencies, unsigned int flags)
#define HWS_UPDATE_CAPTURE_PTSZ (hws_stream_ptsz(stream), dependencies, dependencyData, numDependencies, flags)

static cudaError_t hws_update_capture HWS_UPDATE_CAPTURE {
    HWS_ENTER_CONTEXT();
    return hws_result(cuStreamUpdateCaptureDependencies_v2(
        stream, dependencies, (const CUgraphEdgeData *) dependencyData, numDependencies, flags));
}

#if HWS_CUDART_MAJOR >= 13

HWS_API cudaError_t cudaStreamUpdateCaptureDependencies HWS_UPDATE_CAPTURE {
    return hws_update_capture(stream, dependencies, dependencyData, numDependencies, flags);
}
HWS_TWIN(cudaStreamUpdateCaptureDependencies, HWS_UPDATE_CAPTURE, HWS_UPDATE_CAPTURE_PTSZ)

#else

HWS_API cudaError_t cudaStreamUpdateCaptureDependencies_v2 HWS_UPDATE_CAPTURE;
HWS_API cudaError_t cudaStreamUpdateCaptureDependencies_v2 HWS_UPDATE_CAPTURE {
    return hws_update_capture(stream, dependencies, dependencyData, numDependencies, flags);
}
HWS_TWIN(cudaStreamUpdateCaptureDependencies_v2, HWS_UPDATE_CAPTURE, HWS_UPDATE_CAPTURE_PTSZ)

HWS_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                        size_t numDependencies, unsigned int flags);
HWS_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                        size_t numDependencies, unsigned int flags) {
    return hws_update_capture(stream, dependencies, NULL, numDependencies, flags);
}
HWS_TWIN(cudaStreamUpdateCaptureDependencies,
         (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t numDependencies, unsigned int flags),
         (hws_stream_ptsz(stream), dependencies, numDependencies, flags))

#endif

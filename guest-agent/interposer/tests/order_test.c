/*
 * The order of the checks in a call, and what a call may do while a stream captures or after the error of a kernel: as
 * driver 580 on an H200 answers the calls of random_calls.
 */
#include "kernel_program.h"

static void fail_kernel(void) {
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUstreamCaptureStatus status_of(CUstream capturing) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    HWS_CHECK(cuStreamIsCapturing(capturing, &status) == CUDA_SUCCESS);
    return status;
}

/* A capture of a stream that the legacy stream waits for. */
static CUstream begin_blocking(CUstreamCaptureMode mode) {
    CUstream blocking;
    HWS_CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(blocking, mode) == CUDA_SUCCESS);
    return blocking;
}

static void nothing(void *unused) {
    (void) unused;
}

static void nothing_of_stream(CUstream of, CUresult status, void *unused) {
    (void) of;
    (void) status;
    (void) unused;
}

static void shouldCheckHandlesOfArraysBeforeCuInit(void) {
    CUDA_ARRAY_DESCRIPTOR shape;
    CUDA_ARRAY3D_DESCRIPTOR shape_3d;
    HWS_CHECK(cuArrayGetDescriptor_v2(&shape, NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuArray3DGetDescriptor_v2(&shape_3d, NULL) == CUDA_ERROR_INVALID_HANDLE);
}

static void shouldLetTheFirstKindOfCaptureMakeUnsafeCalls(void) {
    start_kernel_program();
    CUdeviceptr memory;
    CUgraph graph;
    HWS_CHECK(cuStreamBeginCapture(stream) == CUDA_SUCCESS);
    HWS_CHECK(cuMemAlloc_v2(&memory, 64) == CUDA_SUCCESS && cuMemFree_v2(memory) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    HWS_CHECK(cuMemAlloc_v2(&memory, 64) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void shouldRefuseEventsOfAContextThatCaptures(void) {
    start_kernel_program();
    CUcontext other;
    CUevent event;
    HWS_CHECK(cuEventCreate(&event, 0) == CUDA_SUCCESS && cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxWaitEvent(other, event) == CUDA_SUCCESS && status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    HWS_CHECK(cuCtxRecordEvent(context, event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    HWS_CHECK(cuCtxWaitEvent(context, event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void shouldAnswerOfAnInvalidCapture(void) {
    start_kernel_program();
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamCopyAttributes(stream, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(cuStreamCopyAttributes(stream, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    HWS_CHECK(cuStreamAddCallback(stream, nothing_of_stream, NULL, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(cuLaunchHostFunc(stream, nothing, NULL) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void shouldNotLetTheLegacyStreamWaitForAnEventBesideACapture(void) {
    start_kernel_program();
    CUevent event;
    HWS_CHECK(cuEventCreate(&event, 0) == CUDA_SUCCESS && cuEventRecord(event, NULL) == CUDA_SUCCESS);
    CUstream blocking = begin_blocking(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    HWS_CHECK(cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS);
    HWS_CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    HWS_CHECK(cuStreamWaitEvent(NULL, event, 0) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    HWS_CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

static void shouldCheckTheOutputOfATimeBeforeTheErrorOfAKernel(void) {
    start_kernel_program();
    CUevent event;
    float milliseconds;
    HWS_CHECK(cuEventCreate(&event, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuEventElapsedTime_v2(NULL, event, event) == CUDA_ERROR_INVALID_HANDLE);
    fail_kernel();
    HWS_CHECK(cuEventElapsedTime_v2(NULL, event, event) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuEventElapsedTime_v2(&milliseconds, event, event) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A graph with a kernel, a copy and a fill. */
typedef struct work {
    CUgraph graph;
    CUgraphNode kernel, copy, fill, event;
    CUDA_KERNEL_NODE_PARAMS_v2 launch;
    CUDA_MEMCPY3D box;
    CUDA_MEMSET_NODE_PARAMS bytes;
} work_t;

static int first = 1;
static double second;
static char third;
static void *arguments[] = {&first, &second, &third};

static void make_work(work_t *work) {
    CUdeviceptr memory;
    CUevent event;
    HWS_CHECK(cuMemAlloc_v2(&memory, 64) == CUDA_SUCCESS && cuEventCreate(&event, 0) == CUDA_SUCCESS);
    *work = (work_t) {.launch = {.func = function,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = arguments},
                      .box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = memory,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = memory + 32,
                              .WidthInBytes = 8,
                              .Height = 1,
                              .Depth = 1},
                      .bytes = {.dst = memory, .elementSize = 1, .width = 8, .height = 1}};
    HWS_CHECK(cuGraphCreate(&work->graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddKernelNode_v2(&work->kernel, work->graph, NULL, 0, &work->launch) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddMemcpyNode(&work->copy, work->graph, NULL, 0, &work->box, context) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddMemsetNode(&work->fill, work->graph, NULL, 0, &work->bytes, context) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddEventRecordNode(&work->event, work->graph, NULL, 0, event) == CUDA_SUCCESS);
}

static void shouldNotSetNodesOfAContextThatHasFailed(void) {
    start_kernel_program();
    work_t work;
    CUgraphExec exec;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    make_work(&work);
    memcpy(&params.kernel, &work.launch, sizeof work.launch);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, work.graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphKernelNodeCopyAttributes(work.kernel, work.kernel) == CUDA_SUCCESS);
    fail_kernel();
    HWS_CHECK(cuGraphKernelNodeCopyAttributes(work.kernel, work.kernel) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphKernelNodeSetParams_v2(work.copy, &work.launch) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphKernelNodeSetParams_v2(work.kernel, &work.launch) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuGraphMemcpyNodeSetParams(work.fill, &work.box) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphMemcpyNodeSetParams(work.copy, &work.box) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuGraphMemsetNodeSetParams(work.kernel, &work.bytes) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphMemsetNodeSetParams(work.fill, &work.bytes) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuGraphNodeSetParams(work.kernel, &params) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuGraphExecKernelNodeSetParams_v2(exec, work.copy, &work.launch) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphExecKernelNodeSetParams_v2(exec, work.kernel, &work.launch) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuGraphExecNodeSetParams(exec, work.kernel, &params) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuGraphEventRecordNodeSetEvent(work.event, NULL) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldLoadALibraryAfterTheErrorOfAKernel(void) {
    start_kernel_program();
    CUlibrary library;
    CUkernel kernel;
    fail_kernel();
    HWS_CHECK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuLibraryGetKernel(&kernel, library, "kernel") == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuLibraryUnload(library) == CUDA_SUCCESS);
}

static void shouldLaunchAFunctionOnlyInItsContext(void) {
    start_kernel_program();
    CUcontext other;
    CUlibrary library;
    CUkernel kernel;
    HWS_CHECK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuLibraryGetKernel(&kernel, library, "kernel") == CUDA_SUCCESS);
    HWS_CHECK(cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuLaunchKernel((CUfunction) kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS);
}

static void shouldCheckTheKindsOfAllPlacesOfAPoolFirst(void) {
    start_kernel_program();
    CUmemoryPool pool;
    CUmemAccessDesc access[2] = {{.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}}};
    HWS_CHECK(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemPoolSetAccess(pool, access, 1) == CUDA_ERROR_INVALID_DEVICE);
    HWS_CHECK(cuMemPoolSetAccess(pool, access, 2) == CUDA_ERROR_NOT_SUPPORTED);
}

static void shouldFindNoFunctionWithoutAName(void) {
    void *found = &found;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    HWS_CHECK(cuGetProcAddress_v2("", &found, 13000, 0, &status) == CUDA_SUCCESS && found == NULL);
    HWS_CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

/* Adds a graph with one fill of this many bytes to another graph. */
static CUgraphNode add_child_with_fill(CUgraph graph, CUdeviceptr memory, size_t bytes, CUgraph *child_p) {
    CUgraphNode node;
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = memory, .elementSize = 1, .width = bytes, .height = 1};
    HWS_CHECK(cuGraphCreate(child_p, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddMemsetNode(&node, *child_p, NULL, 0, &fill, context) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, *child_p) == CUDA_SUCCESS);
    return node;
}

static void shouldSetTheNodesOfAChildGraph(void) {
    start_kernel_program();
    CUdeviceptr memory;
    CUgraph graph, small, large, inner;
    CUgraphNode inner_node, other;
    CUDA_MEMSET_NODE_PARAMS got;
    size_t count = 1;
    HWS_CHECK(cuMemAlloc_v2(&memory, 64) == CUDA_SUCCESS && cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_child_with_fill(graph, memory, 8, &small);
    add_child_with_fill(graph, memory, 32, &large);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = large}};
    HWS_CHECK(cuGraphNodeSetParams(node, &params) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphChildGraphNodeGetGraph(node, &inner) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphGetNodes(inner, &inner_node, &count) == CUDA_SUCCESS && count == 1);
    HWS_CHECK(cuGraphMemsetNodeGetParams(inner_node, &got) == CUDA_SUCCESS && got.width == 32);
    params.graph.graph = NULL;
    HWS_CHECK(cuGraphNodeSetParams(node, &params) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphAddEmptyNode(&other, large, NULL, 0) == CUDA_SUCCESS);
    params.graph.graph = large;
    HWS_CHECK(cuGraphNodeSetParams(node, &params) == CUDA_ERROR_NOT_SUPPORTED); /* with a line */
    /* The same number of nodes and edges, but an edge elsewhere. */
    HWS_CHECK(cuGraphAddEmptyNode(&other, inner, &inner_node, 1) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphNodeSetParams(node, &params) == CUDA_ERROR_NOT_SUPPORTED);
}

static void shouldRefuseQueriesOfAStreamThatCaptures(void) {
    start_kernel_program();
    unsigned long long id;
    CUdevice device;
    CUgraph graph;
    HWS_CHECK(cuStreamEndCapture(stream, NULL) == CUDA_ERROR_ILLEGAL_STATE);
    HWS_CHECK(cuStreamGetId(stream, &id) == CUDA_SUCCESS && cuStreamGetDevice(stream, &device) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamGetId(stream, &id) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(cuStreamGetDevice(stream, &device) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
}

static void shouldCheckAnInvalidCaptureBeforeFlags(void) {
    start_kernel_program();
    CUevent event;
    HWS_CHECK(cuEventCreate(&event, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamWaitEvent(stream, event, 99) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    HWS_CHECK(cuStreamWaitEvent(stream, event, 99) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void shouldKeepTheNodesOfAGraphThatAStreamFills(void) {
    start_kernel_program();
    CUgraph graph, same;
    CUgraphNode node;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddEmptyNode(&node, graph, NULL, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCaptureToGraph(stream, graph, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED)
              == CUDA_SUCCESS);
    HWS_CHECK(cuGraphDestroyNode(node) == CUDA_ERROR_ILLEGAL_STATE);
    HWS_CHECK(cuStreamEndCapture(stream, &same) == CUDA_SUCCESS && cuGraphDestroyNode(node) == CUDA_SUCCESS);
}

static void shouldRecordEventsOfTheContextOnly(void) {
    start_kernel_program();
    CUcontext other;
    CUevent own, foreign;
    HWS_CHECK(cuEventCreate(&own, 0) == CUDA_SUCCESS && cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuEventCreate(&foreign, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxRecordEvent(context, own) == CUDA_SUCCESS && cuCtxRecordEvent(other, foreign) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxRecordEvent(context, foreign) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuCtxWaitEvent(context, foreign) == CUDA_SUCCESS);
}

static void shouldCheckPlainArgumentsBeforeTheErrorOfAKernel(void) {
    start_kernel_program();
    CUgraph graph;
    CUgraphNode node;
    unsigned flags;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS && cuProfilerStart() == CUDA_SUCCESS);
    fail_kernel();
    HWS_CHECK(cuStreamGetFlags(stream, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuStreamGetFlags(stream, &flags) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode) 7) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, NULL, context) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuProfilerStart() == CUDA_ERROR_ILLEGAL_ADDRESS && cuProfilerStop() == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void shouldChangeCopiesOfOneRowOnly(void) {
    start_kernel_program();
    work_t work;
    CUgraphExec exec;
    make_work(&work);
    HWS_CHECK(cuGraphInstantiateWithFlags(&exec, work.graph, 0) == CUDA_SUCCESS);
    work.box.WidthInBytes = 4;
    HWS_CHECK(cuGraphExecMemcpyNodeSetParams(exec, work.copy, &work.box, context) == CUDA_SUCCESS);
    work.box.Height = 2;
    work.box.srcPitch = work.box.dstPitch = 8;
    HWS_CHECK(cuGraphExecMemcpyNodeSetParams(exec, work.copy, &work.box, context) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldFindNoFunctionOfALaterMajorVersion(void) {
    void *found;
    CUdriverProcAddressQueryResult status;
    HWS_CHECK(cuGetProcAddress("cuLaunchKernel", &found, 13010, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGetProcAddress("cuLaunchKernel", &found, 99000, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGetProcAddress_v2("cuLaunchKernel", &found, 99000, 0, &status) == CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
    RUN(shouldCheckHandlesOfArraysBeforeCuInit, 0);
    RUN(shouldLetTheFirstKindOfCaptureMakeUnsafeCalls, 0);
    RUN(shouldRefuseEventsOfAContextThatCaptures, 0);
    RUN(shouldAnswerOfAnInvalidCapture, 0);
    RUN(shouldNotLetTheLegacyStreamWaitForAnEventBesideACapture, 0);
    RUN(shouldCheckTheOutputOfATimeBeforeTheErrorOfAKernel, 0);
    RUN(shouldNotSetNodesOfAContextThatHasFailed, 0);
    RUN(shouldLoadALibraryAfterTheErrorOfAKernel, 0);
    RUN(shouldLaunchAFunctionOnlyInItsContext, 0);
    RUN(shouldCheckTheKindsOfAllPlacesOfAPoolFirst, 0);
    RUN(shouldFindNoFunctionWithoutAName, 0);
    RUN(shouldRefuseQueriesOfAStreamThatCaptures, 0);
    RUN(shouldCheckAnInvalidCaptureBeforeFlags, 0);
    RUN(shouldKeepTheNodesOfAGraphThatAStreamFills, 0);
    RUN(shouldRecordEventsOfTheContextOnly, 0);
    RUN(shouldCheckPlainArgumentsBeforeTheErrorOfAKernel, 0);
    RUN(shouldChangeCopiesOfOneRowOnly, 0);
    RUN(shouldFindNoFunctionOfALaterMajorVersion, 0);
    RUN_SAYING(shouldSetTheNodesOfAChildGraph, 1, "a child graph with other nodes or edges");
    return 0;
}

/* Stream capture: captured work, forks and joins, and CUDA's errors for calls that a capture does not allow. */
#include "check_graphs.h"

#include <pthread.h>

#define COUNT 2000
#define BYTES (COUNT * sizeof(int))

static CUcontext context;
static CUstream stream, other;
static CUevent event, joined;
static CUfunction add_value, multiply;
static CUdeviceptr values, factors;
static int *in, *out, count = COUNT, host_calls;

static void count_call(void *unused) {
    (void) unused;
    host_calls++;
}

static void add(CUstream where, CUdeviceptr array, int addend) {
    CHECK_LAUNCH(add_value, (COUNT + 127) / 128, 128, 0, where, &array, &count, &addend);
}

static void check_status(const char *what, CUstream where, CUstreamCaptureStatus expected) {
    CUstreamCaptureStatus status;
    CU_OK(cuStreamIsCapturing(where, &status));
    check_equal(what, expected, status);
}

static CUgraph end(CUstream where) {
    CUgraph graph;
    CU_OK(cuStreamEndCapture(where, &graph));
    check_status("after the capture", where, CU_STREAM_CAPTURE_STATUS_NONE);
    return graph;
}

/* Ends a capture that an error has invalidated. */
static void end_spoilt(const char *what) {
    CUgraph graph = (CUgraph) &graph;
    check_status(what, stream, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    check_true("a spoilt capture gives no graph", graph == NULL);
    check_status(what, stream, CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Ends a capture that stays valid after an error. */
static void end_unspoilt(const char *what, size_t nodes) {
    check_status(what, stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CUgraph graph = end(stream);
    size_t found;
    CU_OK(cuGraphGetNodes(graph, NULL, &found));
    check_equal(what, (long long) nodes, (long long) found);
    CU_OK(cuGraphDestroy(graph));
}

static void begin(CUstreamCaptureMode mode) {
    CU_OK(cuStreamBeginCapture(stream, mode));
}

/* One of each kind of work, in sequence: out = in * (2 + addend). */
static CUgraph capture_work(int addend) {
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CU_OK(cuMemcpyHtoDAsync(values, in, BYTES, stream));
    CU_OK(cuMemsetD32Async(factors, 2, COUNT, stream));
    add(stream, factors, addend);
    CHECK_LAUNCH(multiply, (COUNT + 127) / 128, 128, 0, stream, &values, &factors, &count);
    CU_OK(cuLaunchHostFunc(stream, count_call, NULL));
    CU_OK(cuMemcpyDtoHAsync(out, values, BYTES, stream));
    CU_OK(cuMemsetD32Async(factors, 9, 0, stream)); /* a fill of nothing makes no node */
    return end(stream);
}

static void check_result(const char *what, CUgraphExec exec, int factor) {
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            in[i] = i * round;
        }
        memset(out, 0, BYTES);
        host_calls = 0;
        CU_OK(cuGraphLaunch(exec, stream));
        CU_OK(cuStreamSynchronize(stream));
        check_equal("host function", 1, host_calls);
        for (int i = 0; i < COUNT; i++) {
            check_element(what, i, (long long) i * round * factor, out[i]);
        }
    }
}

static void check_work(void) {
    static const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET,
                                            CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL,
                                            CU_GRAPH_NODE_TYPE_HOST,   CU_GRAPH_NODE_TYPE_MEMCPY};
    CU_OK(cuMemsetD32(values, 0x55555555, COUNT));
    CUgraph graph = capture_work(3);
    CUgraphExec exec;
    CUgraphNode nodes[8];
    size_t number = 8;
    check_shape("captured in line", graph, 6, 5);
    CU_OK(cuGraphGetNodes(graph, nodes, &number));
    for (int i = 0; i < 6; i++) {
        check_node_type("captured in order", types[i], nodes[i]);
    }
    CU_OK(cuMemcpyDtoH(out, values, BYTES));
    check_equal("capturing executes nothing", 0x55555555, out[COUNT - 1]);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    check_result("launched", exec, 5);
    /* Capturing the same work with another parameter updates the executable graph. */
    CUgraph again = capture_work(5);
    CUgraphExecUpdateResultInfo info;
    CU_OK(cuGraphExecUpdate(exec, again, &info));
    check_equal("update by a second capture", CU_GRAPH_EXEC_UPDATE_SUCCESS, info.result);
    check_result("updated", exec, 7);
    int addend = 8;
    void *params[] = {&factors, &count, &addend};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, params);
    CU_OK(cuGraphExecKernelNodeSetParams(exec, nodes[2], &launch));
    check_result("a captured kernel changed", exec, 10);
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuGraphDestroy(again));
}

static void check_forks(void) {
    CUgraph graph;
    CUgraphExec exec;
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CU_OK(cuMemsetD32Async(values, 1, COUNT, stream));
    CU_OK(cuMemsetD32Async(factors, 1, COUNT, stream));
    CU_OK(cuEventRecord(event, stream));
    CU_OK(cuStreamWaitEvent(other, event, 0));
    check_status("drawn in", other, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    add(other, factors, 6);
    add(stream, values, 2);
    CU_OK(cuEventRecord(joined, other));
    CU_OK(cuStreamWaitEvent(stream, joined, 0));
    CHECK_LAUNCH(multiply, (COUNT + 127) / 128, 128, 0, stream, &values, &factors, &count);
    CU_OK(cuMemcpyDtoHAsync(out, values, BYTES, stream));
    graph = end(stream);
    check_status("let go", other, CU_STREAM_CAPTURE_STATUS_NONE);
    check_shape("fork and join", graph, 6, 6);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 3; round++) {
        CU_OK(cuGraphLaunch(exec, stream));
    }
    CU_OK(cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        check_element("fork and join", i, 21, out[i]);
    }
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));

    begin(CU_STREAM_CAPTURE_MODE_GLOBAL); /* work without a join */
    CU_OK(cuEventRecord(event, stream));
    CU_OK(cuStreamWaitEvent(other, event, 0));
    add(other, values, 1);
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &graph));
    check_status("let go after an error", other, CU_STREAM_CAPTURE_STATUS_NONE);

    begin(CU_STREAM_CAPTURE_MODE_GLOBAL); /* a fork without work needs no join */
    CU_OK(cuEventRecord(event, stream));
    CU_OK(cuStreamWaitEvent(other, event, 0));
    end_unspoilt("an empty fork", 0);

    begin(CU_STREAM_CAPTURE_MODE_GLOBAL); /* ended where it did not begin */
    CU_OK(cuEventRecord(event, stream));
    CU_OK(cuStreamWaitEvent(other, event, 0));
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(other, &graph));
    end_spoilt("ended elsewhere");

    begin(CU_STREAM_CAPTURE_MODE_GLOBAL); /* two captures do not meet */
    CU_OK(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_OK(cuEventRecord(event, other));
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(stream, event, 0));
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(other, &graph));
    end_spoilt("merged");
}

static void check_information(void) {
    CUstreamCaptureStatus status;
    uint64_t first_id, id;
    CUgraph graph, seen;
    const CUgraphNode *nodes;
    CUgraphNode extra;
    size_t number;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CU_OK(cuStreamGetCaptureInfo(stream, &status, &first_id, &seen, &nodes, NULL, &number));
    check_equal("capturing", CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
    check_equal("nothing yet", 0, (long long) number);
    add(stream, values, 1);
    CU_OK(cuStreamGetCaptureInfo(stream, &status, &id, &seen, &nodes, NULL, &number));
    check_equal("one capture", (long long) first_id, (long long) id);
    check_equal("one node to depend on", 1, (long long) number);
    check_node_type("the kernel", CU_GRAPH_NODE_TYPE_KERNEL, nodes[0]);
    CU_OK(cuGraphAddEmptyNode(&extra, seen, nodes, number));
    CU_OK(cuStreamUpdateCaptureDependencies(stream, &extra, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    add(stream, values, 1);
    CU_IS(CUDA_ERROR_ILLEGAL_STATE, cuGraphDestroy(seen));
    graph = end(stream);
    check_true("the graph that was seen", graph == seen);
    check_shape("with a node from outside", graph, 3, 2);
    /* A second capture into the same graph, behind a node of the first. */
    CU_OK(cuStreamBeginCaptureToGraph(stream, graph, &extra, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    add(stream, factors, 1);
    CU_OK(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
    CU_OK(cuStreamWaitEvent(stream, joined, CU_EVENT_WAIT_EXTERNAL));
    check_true("into the given graph", end(stream) == graph);
    check_shape("both captures", graph, 6, 5);
    CU_OK(cuGraphDestroy(graph));
}

/* Calls of another thread during a capture. */
static CUresult thread_result;

static void *allocate(void *unused) {
    CUdeviceptr memory;
    (void) unused;
    cuCtxSetCurrent(context);
    thread_result = cuMemAlloc(&memory, 64);
    if (thread_result == CUDA_SUCCESS) {
        cuMemFree(memory);
    }
    return NULL;
}

static void *end_here(void *unused) {
    CUgraph graph;
    (void) unused;
    cuCtxSetCurrent(context);
    thread_result = cuStreamEndCapture(stream, &graph);
    return NULL;
}

static void on_thread(CUresult expected, void *(*function)(void *unused)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        check_fail("a thread, expected one, got none");
    }
    check_driver_(thread_result, expected, "on another thread", __FILE__, __LINE__);
}

static void check_modes(void) {
    CUdeviceptr memory;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&memory, 64));
    end_spoilt("unsafe in the thread itself");
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    on_thread(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, allocate);
    end_spoilt("unsafe in another thread");
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    on_thread(CUDA_SUCCESS, allocate);
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&memory, 64));
    end_spoilt("thread-local");
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CU_OK(cuMemAlloc(&memory, 64));
    CU_OK(cuMemFree(memory));
    CU_OK(cuEventQuery(joined));
    end_unspoilt("relaxed", 0);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    check_equal("a thread's mode", CU_STREAM_CAPTURE_MODE_GLOBAL, mode);
    CU_OK(cuMemAlloc(&memory, 64));
    CU_OK(cuMemFree(memory));
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    check_equal("and back", CU_STREAM_CAPTURE_MODE_RELAXED, mode);
    on_thread(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, end_here);
    check_status("over although ended on another thread", stream, CU_STREAM_CAPTURE_STATUS_NONE);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    on_thread(CUDA_SUCCESS, end_here);
    check_status("ended on another", stream, CU_STREAM_CAPTURE_STATUS_NONE);
}

static void never_called(CUstream where, CUresult status, void *unused) {
    (void) where;
    (void) status;
    (void) unused;
}

/* In a capture of `mode`: the call returns the expected error and ends the capture, or leaves it valid. */
#define SPOILS(expected, call)                                                                                         \
    do {                                                                                                               \
        begin(mode);                                                                                                   \
        CU_IS(expected, call);                                                                                         \
        end_spoilt(#call);                                                                                             \
    } while (0)
#define LEAVES(expected, call)                                                                                         \
    do {                                                                                                               \
        begin(mode);                                                                                                   \
        CU_IS(expected, call);                                                                                         \
        end_unspoilt(#call, 0);                                                                                        \
    } while (0)

/* Calls whose error ends a capture, and some calls that leave it valid. */
static void check_refusals(CUstreamCaptureMode mode) {
    CUgraph graph;
    float milliseconds;
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamAddCallback(stream, never_called, NULL, 0));
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, joined, 0));
    LEAVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(stream, mode));
    LEAVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(other, &graph));
    LEAVES(CUDA_ERROR_ILLEGAL_STATE, cuEventRecordWithFlags(event, other, CU_EVENT_RECORD_EXTERNAL));
    LEAVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, mode));
    LEAVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(values + 1, 1, 4, stream));
    LEAVES(CUDA_SUCCESS, cuMemcpyDtoH(out, values, 64)); /* the stream does not wait for the legacy one */
    begin(mode);
    CU_OK(cuEventRecord(event, stream));
    CU_IS(CUDA_ERROR_CAPTURED_EVENT, cuEventElapsedTime(&milliseconds, joined, event));
    end_unspoilt("the time of a captured event", 0);
    begin(mode);
    CU_OK(cuEventRecord(event, stream));
    CU_IS(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event));
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD32Async(values, 1, COUNT, stream));
    end_spoilt("a captured event asked for");
    begin(mode);
    CU_OK(cuEventRecord(event, stream));
    CU_IS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamWaitEvent(NULL, event, 0));
    end_spoilt("the legacy stream draws in nobody");
    CU_OK(cuEventRecord(event, other)); /* an ordinary event again */
    CU_OK(cuEventSynchronize(event));
}

/* A blocking stream in a capture: it waits for the legacy stream, and the legacy stream for it. */
static void check_legacy(CUstreamCaptureMode mode) {
    CUstream own = stream;
    CUstreamCaptureStatus status;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32(values, 1, COUNT));
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemcpyHtoD(values, in, 64));
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuEventRecord(event, NULL));
    SPOILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamSynchronize(NULL));
    LEAVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    CU_OK(cuStreamDestroy(stream));
    stream = own;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    context = check_context();
    CUmodule module = check_module("kernels.ptx");
    add_value = check_function(module, "add_value");
    multiply = check_function(module, "multiply");
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    CU_OK(cuEventCreate(&joined, CU_EVENT_DEFAULT));
    CU_OK(cuMemAllocHost_v2((void **) &in, BYTES));
    out = check_memory(BYTES);
    values = check_device(NULL, BYTES);
    factors = check_device(NULL, BYTES);
    check_work();
    check_forks();
    CU_OK(cuEventRecord(joined, other));
    CU_OK(cuEventSynchronize(joined));
    check_information();
    check_modes();
    check_refusals(CU_STREAM_CAPTURE_MODE_RELAXED);
    check_legacy(CU_STREAM_CAPTURE_MODE_GLOBAL);
    check_legacy(CU_STREAM_CAPTURE_MODE_RELAXED);
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuStreamDestroy(other));
    CU_OK(cuEventDestroy(event));
    CU_OK(cuEventDestroy(joined));
    CU_OK(cuMemFreeHost(in));
    CU_OK(cuMemFree(values));
    CU_OK(cuMemFree(factors));
    return check_pass("work, forks, modes and refusals");
}

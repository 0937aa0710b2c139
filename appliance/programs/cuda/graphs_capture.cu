// Stream capture: a stream's work becomes a graph, launched many times. Cases: several streams; host functions, fills,
// copies with pinned and pageable memory, allocations; work that capture refuses.
#include "check_cuda.h"

#include <atomic>

__global__ void scale(int *values, int count, int factor, int plus) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = values[i] * factor + plus;
    }
}

__global__ void add(int *to, const int *a, const int *b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] = a[i] + b[i];
    }
}

static const int COUNT = 10000;
static const int BLOCKS = (COUNT + 127) / 128;

static void count_up(void *data) {
    ++*(std::atomic<int> *) data;
}

static size_t nodes_of(cudaGraph_t graph) {
    size_t count = 0;
    CUDA_OK(cudaGraphGetNodes(graph, nullptr, &count));
    return count;
}

static cudaGraphExec_t executable(cudaGraph_t graph) {
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

// One stream: copy to the device, kernels, copy back, a host function; launched repeatedly with different data.
static void one_stream(bool pinned) {
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *device = device_array<int>(COUNT);
    std::vector<int> pageable(2 * COUNT);
    int *host = pageable.data();
    if (pinned) {
        CUDA_OK(cudaMallocHost(&host, 2 * COUNT * sizeof(int)));
    }
    int *back = host + COUNT;
    std::atomic<int> calls(0);

    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureStatus status;
    CUDA_OK(cudaStreamIsCapturing(stream, &status));
    check_equal("status of a stream in capture", cudaStreamCaptureStatusActive, status);
    CUDA_OK(cudaMemcpyAsync(device, host, COUNT * sizeof(int), cudaMemcpyHostToDevice, stream));
    for (int i = 1; i <= 3; i++) {
        scale<<<BLOCKS, 128, 0, stream>>>(device, COUNT, 2, i);
        LAUNCH_OK();
    }
    CUDA_OK(cudaMemcpyAsync(back, device, COUNT * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaLaunchHostFunc(stream, count_up, &calls));
    cudaGraph_t graph;
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaStreamIsCapturing(stream, &status));
    check_equal("status afterwards", cudaStreamCaptureStatusNone, status);
    check_equal("nodes of one stream", 6, (long long) nodes_of(graph));
    check_equal("calls before a launch", 0, calls.load());

    cudaGraphExec_t exec = executable(graph);
    const int launches = 20;
    for (int launch = 0; launch < launches; launch++) {
        for (int i = 0; i < COUNT; i++) {
            host[i] = i + launch;
        }
        CUDA_OK(cudaGraphLaunch(exec, stream));
        CUDA_OK(cudaStreamSynchronize(stream));
        for (int i = 0; i < COUNT; i++) {
            check_element(pinned ? "pinned" : "pageable", i, 8 * (i + launch) + 4 + 4 + 3, back[i]);
        }
    }
    check_equal("calls of the host function", launches, calls.load());

    // Without a wait between launches: launches of one graph follow each other, also from two streams.
    cudaStream_t other;
    CUDA_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (int launch = 0; launch < 50; launch++) {
        CUDA_OK(cudaGraphLaunch(exec, launch % 3 == 0 ? other : stream));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaStreamSynchronize(other));
    check_equal("calls of the host function", launches + 50, calls.load());
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamDestroy(other));
    CUDA_OK(cudaStreamDestroy(stream));
    if (pinned) {
        CUDA_OK(cudaFreeHost(host));
    }
    CUDA_OK(cudaFree(device));
}

// Fork and join: events add other streams to the capture.
static void several_streams() {
    cudaStream_t streams[3];
    cudaEvent_t forked, joined[3];
    for (int i = 0; i < 3; i++) {
        CUDA_OK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CUDA_OK(cudaEventCreateWithFlags(&joined[i], cudaEventDisableTiming));
    }
    CUDA_OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    int *parts[3];
    for (int *&part : parts) {
        part = device_array<int>(COUNT);
    }
    CUDA_OK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    CUDA_OK(cudaMemsetAsync(parts[0], 0, COUNT * sizeof(int), streams[0]));
    CUDA_OK(cudaEventRecord(forked, streams[0]));
    for (int i = 1; i < 3; i++) {
        CUDA_OK(cudaStreamWaitEvent(streams[i], forked, 0));
        cudaStreamCaptureStatus status;
        CUDA_OK(cudaStreamIsCapturing(streams[i], &status));
        check_equal("a stream that waits is drawn in", cudaStreamCaptureStatusActive, status);
        CUDA_OK(cudaMemsetAsync(parts[i], i, COUNT * sizeof(int), streams[i]));
        scale<<<BLOCKS, 128, 0, streams[i]>>>(parts[i], COUNT, 3, i);
        LAUNCH_OK();
        CUDA_OK(cudaEventRecord(joined[i], streams[i]));
    }
    scale<<<BLOCKS, 128, 0, streams[0]>>>(parts[0], COUNT, 1, 5);
    LAUNCH_OK();
    CUDA_OK(cudaStreamWaitEvent(streams[0], joined[1], 0));
    CUDA_OK(cudaStreamWaitEvent(streams[0], joined[2], 0));
    add<<<BLOCKS, 128, 0, streams[0]>>>(parts[0], parts[0], parts[1], COUNT);
    LAUNCH_OK();
    add<<<BLOCKS, 128, 0, streams[0]>>>(parts[0], parts[0], parts[2], COUNT);
    LAUNCH_OK();
    cudaGraph_t graph;
    CUDA_OK(cudaStreamEndCapture(streams[0], &graph));
    check_equal("nodes of three streams", 8, (long long) nodes_of(graph));
    size_t roots = 0;
    CUDA_OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
    check_equal("roots", 1, (long long) roots);
    cudaGraphExec_t exec = executable(graph);
    for (int launch = 0; launch < 5; launch++) {
        CUDA_OK(cudaGraphLaunch(exec, streams[1]));
    }
    CUDA_OK(cudaStreamSynchronize(streams[1]));
    int expected = 5 + (0x01010101 * 3 + 1) + (0x02020202 * 3 + 2);
    std::vector<int> result = host_copy(parts[0], COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element("joined", i, expected, result[i]);
    }
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++) {
        CUDA_OK(cudaFree(parts[i]));
        CUDA_OK(cudaEventDestroy(joined[i]));
        CUDA_OK(cudaStreamDestroy(streams[i]));
    }
    CUDA_OK(cudaEventDestroy(forked));
}

// Memory that each launch allocates and frees.
static void allocations() {
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *out = device_array<int>(COUNT), *first, *second;
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_OK(cudaMallocAsync(&first, COUNT * sizeof(int), stream));
    CUDA_OK(cudaMallocAsync(&second, COUNT * sizeof(int), stream));
    CUDA_OK(cudaMemsetAsync(first, 1, COUNT * sizeof(int), stream));
    CUDA_OK(cudaMemcpyAsync(second, first, COUNT * sizeof(int), cudaMemcpyDeviceToDevice, stream));
    add<<<BLOCKS, 128, 0, stream>>>(out, first, second, COUNT);
    LAUNCH_OK();
    CUDA_OK(cudaFreeAsync(first, stream));
    CUDA_OK(cudaFreeAsync(second, stream));
    cudaGraph_t graph;
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    check_equal("nodes with allocations", 7, (long long) nodes_of(graph));
    cudaGraphExec_t exec = executable(graph);
    for (int launch = 0; launch < 10; launch++) {
        CUDA_OK(cudaMemsetAsync(out, 0, COUNT * sizeof(int), stream));
        CUDA_OK(cudaGraphLaunch(exec, stream));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    std::vector<int> result = host_copy(out, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element("sum of allocated memory", i, 0x02020202, result[i]);
    }
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaDeviceGraphMemTrim(0));
    CUDA_OK(cudaFree(out));
    CUDA_OK(cudaStreamDestroy(stream));
}

// Work that cannot be captured ends the capture.
static void refusals() {
    cudaStream_t stream, other;
    cudaEvent_t event;
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_array<int>(COUNT);
    CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
    cudaGetLastError();
    CUDA_IS(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();

    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CUDA_OK(cudaMemsetAsync(device, 0, COUNT * sizeof(int), stream));
    CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
    cudaGetLastError();
    cudaStreamCaptureStatus status;
    CUDA_OK(cudaStreamIsCapturing(stream, &status));
    check_equal("a capture that was broken", cudaStreamCaptureStatusInvalidated, status);
    CUDA_IS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
    check_true("no graph of a broken capture", graph == nullptr);

    // A stream that joined the capture must rejoin the origin stream.
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CUDA_OK(cudaEventRecord(event, stream));
    CUDA_OK(cudaStreamWaitEvent(other, event, 0));
    CUDA_OK(cudaMemsetAsync(device, 0, COUNT * sizeof(int), other));
    CUDA_IS(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
    CUDA_OK(cudaStreamIsCapturing(other, &status));
    check_equal("a stream that was not joined", cudaStreamCaptureStatusNone, status);

    // Afterwards the streams work as before the capture.
    CUDA_OK(cudaMemsetAsync(device, 7, COUNT * sizeof(int), stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("a fill afterwards", 0x07070707, host_copy(device, 1)[0]);
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaEventDestroy(event));
    CUDA_OK(cudaStreamDestroy(other));
    CUDA_OK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    one_stream(true);
    one_stream(false);
    several_streams();
    allocations();
    refusals();
    return check_pass("one stream, three streams, allocations, refusals");
}

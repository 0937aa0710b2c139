// Changes of executable graphs: single nodes, the whole graph, disabled nodes, inner graphs; and changes that CUDA
// refuses.
#include "check_cuda.h"

#include <atomic>

__global__ void fill(int *values, int count, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = value;
    }
}

__global__ void add(int *values, int count, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += value;
    }
}

static const int COUNT = 3000;

struct Kernel {
    int *values;
    int count;
    int value;
    void *arguments[3];
    cudaKernelNodeParams params;

    Kernel(void (*function)(int *, int, int), int *to, int number) : values(to), count(COUNT), value(number), params() {
        arguments[0] = &values;
        arguments[1] = &count;
        arguments[2] = &value;
        params.func = (void *) function;
        params.gridDim = dim3((COUNT + 127) / 128);
        params.blockDim = dim3(128);
        params.kernelParams = arguments;
    }
};

static cudaGraphNode_t node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, Kernel &&kernel) {
    cudaGraphNode_t added;
    CUDA_OK(cudaGraphAddKernelNode(&added, graph, after.data(), after.size(), &kernel.params));
    return added;
}

static int launched(cudaGraphExec_t exec, const int *device) {
    CUDA_OK(cudaGraphLaunch(exec, 0));
    CUDA_OK(cudaDeviceSynchronize());
    std::vector<int> values = host_copy(device, COUNT);
    for (int i = 1; i < COUNT; i++) {
        check_element("the same everywhere", i, values[0], values[i]);
    }
    return values[0];
}

static void single_nodes() {
    int *device = device_array<int>(COUNT), *other = device_array<int>(COUNT);
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t first = node(graph, {}, Kernel(fill, device, 10));
    cudaGraphNode_t second = node(graph, {first}, Kernel(add, device, 5));
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    check_equal("as made", 15, launched(exec, device));
    for (int i = 0; i < 100; i++) {
        Kernel changed(add, device, i);
        CUDA_OK(cudaGraphExecKernelNodeSetParams(exec, second, &changed.params));
        CUDA_OK(cudaGraphLaunch(exec, 0));
    }
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("the last of a hundred", 109, host_copy(device, COUNT)[COUNT - 1]);
    // The graph itself is unchanged. A later change of the graph does not affect its executable graphs.
    cudaKernelNodeParams params;
    CUDA_OK(cudaGraphKernelNodeGetParams(second, &params));
    check_equal("the graph's own value", 5, *(int *) params.kernelParams[2]);
    Kernel changed(fill, device, 77);
    CUDA_OK(cudaGraphKernelNodeSetParams(second, &changed.params));
    check_equal("an executable graph stays", 109, launched(exec, device));
    cudaGraphExec_t again;
    CUDA_OK(cudaGraphInstantiate(&again, graph, 0));
    check_equal("a new one is changed", 77, launched(again, device));
    CUDA_OK(cudaGraphExecDestroy(again));

    // A node of another graph is not a node of this graph.
    cudaGraph_t stranger;
    CUDA_OK(cudaGraphCreate(&stranger, 0));
    cudaGraphNode_t strange = node(stranger, {}, Kernel(fill, other, 1));
    CUDA_IS(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, strange, &changed.params));
    cudaGetLastError();
    CUDA_OK(cudaGraphDestroy(stranger));

    // Disabled and enabled again.
    unsigned int enabled = 0;
    CUDA_OK(cudaGraphNodeSetEnabled(exec, second, 0));
    CUDA_OK(cudaGraphNodeGetEnabled(exec, second, &enabled));
    check_equal("switched off", 0, enabled);
    check_equal("without the second", 10, launched(exec, device));
    CUDA_OK(cudaGraphNodeSetEnabled(exec, second, 1));
    check_equal("with it again", 109, launched(exec, device));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFree(other));
}

static void count_up(void *data) {
    ++*(std::atomic<int> *) data;
}

static void copies_fills_and_functions() {
    int *device = device_array<int>(COUNT);
    std::vector<int> first(COUNT, 1), second(COUNT, 2), back(COUNT), other(COUNT);
    std::atomic<int> calls(0), others(0);
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t to, zero, from, function;
    CUDA_OK(cudaGraphAddMemcpyNode1D(&to, graph, nullptr, 0, device, first.data(), COUNT * sizeof(int),
                                     cudaMemcpyHostToDevice));
    cudaMemsetParams params = {};
    params.dst = device;
    params.value = 9;
    params.elementSize = 4;
    params.width = 10;
    params.height = 1;
    CUDA_OK(cudaGraphAddMemsetNode(&zero, graph, &to, 1, &params));
    CUDA_OK(cudaGraphAddMemcpyNode1D(&from, graph, &zero, 1, back.data(), device, COUNT * sizeof(int),
                                     cudaMemcpyDeviceToHost));
    cudaHostNodeParams host = {count_up, &calls};
    CUDA_OK(cudaGraphAddHostNode(&function, graph, &from, 1, &host));
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphLaunch(exec, 0));
    CUDA_OK(cudaDeviceSynchronize());
    check_true("as made", back[9] == 9 && back[10] == 1 && calls == 1);
    CUDA_OK(cudaGraphExecMemcpyNodeSetParams1D(exec, to, device, second.data(), COUNT * sizeof(int),
                                               cudaMemcpyHostToDevice));
    CUDA_OK(cudaGraphExecMemcpyNodeSetParams1D(exec, from, other.data(), device, COUNT * sizeof(int),
                                               cudaMemcpyDeviceToHost));
    params.value = 7;
    CUDA_OK(cudaGraphExecMemsetNodeSetParams(exec, zero, &params));
    cudaHostNodeParams changed = {count_up, &others};
    CUDA_OK(cudaGraphExecHostNodeSetParams(exec, function, &changed));
    CUDA_OK(cudaGraphLaunch(exec, 0));
    CUDA_OK(cudaGraphLaunch(exec, 0));
    CUDA_OK(cudaDeviceSynchronize());
    check_true("the old end is left alone", back[9] == 9 && back[10] == 1);
    check_true("the new ends are used", other[9] == 7 && other[10] == 2 && other[COUNT - 1] == 2);
    check_equal("the old function", 1, calls.load());
    check_equal("the new function", 2, others.load());
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
}

static cudaGraph_t captured(cudaStream_t stream, int *device, int number, int more) {
    cudaGraph_t graph;
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    fill<<<(COUNT + 127) / 128, 128, 0, stream>>>(device, COUNT, number);
    LAUNCH_OK();
    for (int i = 0; i < more; i++) {
        add<<<(COUNT + 127) / 128, 128, 0, stream>>>(device, COUNT, 1);
        LAUNCH_OK();
    }
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

// Captures again and updates the executable graph, as programs do when parameters change with each step.
static void whole_graphs() {
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *device = device_array<int>(COUNT);
    cudaGraph_t graph = captured(stream, device, 100, 3);
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    check_equal("as captured", 103, launched(exec, device));
    cudaGraphExecUpdateResultInfo info;
    for (int i = 0; i < 10; i++) {
        cudaGraph_t next = captured(stream, device, i, 3);
        CUDA_OK(cudaGraphExecUpdate(exec, next, &info));
        check_equal("result of the update", cudaGraphExecUpdateSuccess, info.result);
        CUDA_OK(cudaGraphDestroy(next));
        check_equal("as updated", i + 3, launched(exec, device));
    }
    cudaGraph_t longer = captured(stream, device, 1, 4);
    CUDA_IS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, longer, &info));
    cudaGetLastError();
    check_equal("why it cannot be taken over", cudaGraphExecUpdateErrorTopologyChanged, info.result);
    check_equal("unchanged", 12, launched(exec, device));
    CUDA_OK(cudaGraphDestroy(longer));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaStreamDestroy(stream));
}

static void inner_graphs() {
    int *device = device_array<int>(COUNT);
    cudaGraph_t graph, inner;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphCreate(&inner, 0));
    node(inner, {}, Kernel(add, device, 1));
    cudaGraphNode_t first = node(graph, {}, Kernel(fill, device, 10)), child;
    CUDA_OK(cudaGraphAddChildGraphNode(&child, graph, &first, 1, inner));
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    check_equal("with an inner graph", 11, launched(exec, device));
    cudaGraph_t changed;
    CUDA_OK(cudaGraphCreate(&changed, 0));
    node(changed, {}, Kernel(add, device, 30));
    CUDA_OK(cudaGraphExecChildGraphNodeSetParams(exec, child, changed));
    check_equal("with another inner graph", 40, launched(exec, device));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(changed));
    CUDA_OK(cudaGraphDestroy(inner));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
}

// Destroyed while it runs: the running launches continue.
static void destroyed_at_once() {
    std::atomic<int> calls(0);
    int *device = device_array<int>(COUNT);
    std::vector<int> back(COUNT);
    for (int i = 0; i < 20; i++) {
        cudaGraph_t graph;
        CUDA_OK(cudaGraphCreate(&graph, 0));
        cudaGraphNode_t copy, function, first = node(graph, {}, Kernel(fill, device, i));
        CUDA_OK(cudaGraphAddMemcpyNode1D(&copy, graph, &first, 1, back.data(), device, COUNT * sizeof(int),
                                         cudaMemcpyDeviceToHost));
        cudaHostNodeParams host = {count_up, &calls};
        CUDA_OK(cudaGraphAddHostNode(&function, graph, &copy, 1, &host));
        cudaGraphExec_t exec;
        CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
        CUDA_OK(cudaGraphLaunch(exec, 0));
        CUDA_OK(cudaGraphLaunch(exec, 0));
        CUDA_OK(cudaGraphExecDestroy(exec));
        CUDA_OK(cudaGraphDestroy(graph));
    }
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("calls", 40, calls.load());
    check_equal("the last copy", 19, back[COUNT - 1]);
    CUDA_OK(cudaFree(device));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    single_nodes();
    copies_fills_and_functions();
    whole_graphs();
    inner_graphs();
    destroyed_at_once();
    return check_pass("nodes, whole graphs, inner graphs, destruction");
}

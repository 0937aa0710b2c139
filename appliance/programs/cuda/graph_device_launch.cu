// Graphs that kernels launch: at once, at the end of the launching graph, and themselves again.
#include "check_cuda.h"

static __global__ void add(int *sum, int amount) {
    *sum += amount;
}

/* Launches a graph that runs beside the launching one. */
static __global__ void fire(cudaGraphExec_t other) {
    cudaGraphLaunch(other, cudaStreamGraphFireAndForget);
}

/* Launches a graph whose handle lies in memory, behind the launching one. */
static __global__ void tail(const cudaGraphExec_t *other) {
    cudaGraphLaunch(*other, cudaStreamGraphTailLaunch);
}

/* Launches its own graph again until the count is 0. */
static __global__ void relaunch(int *sum, int *left) {
    *sum += 1;
    if (--*left > 0) {
        cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
    }
}

static int *sum, *left;
static cudaStream_t stream;

/* An executable graph of one kernel of one thread. */
static cudaGraphExec_t make(const void *kernel, void **arguments, unsigned long long flags) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t exec = nullptr;
    cudaKernelNodeParams params = {};
    params.func = const_cast<void *>(kernel);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    cudaError_t error = cudaGraphInstantiate(&exec, graph, flags);
    if (error == cudaErrorNotSupported && flags != 0) {
        check_unsupported("the device cannot launch graphs from kernels");
    }
    CUDA_OK(error);
    CUDA_OK(cudaGraphDestroy(graph));
    return exec;
}

static int run(cudaGraphExec_t exec, int count = 0) {
    int got = 0;
    CUDA_OK(cudaMemcpy(sum, &got, sizeof got, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(left, &count, sizeof count, cudaMemcpyHostToDevice));
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost));
    return got;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    sum = device_array<int>(1);
    left = device_array<int>(1);
    int amount = 5;
    void *add_arguments[] = {&sum, &amount};
    cudaGraphExec_t inner = make((const void *) add, add_arguments, cudaGraphInstantiateFlagDeviceLaunch);
    unsigned long long flags = 0;
    CUDA_OK(cudaGraphExecGetFlags(inner, &flags));
    check_equal("flags", cudaGraphInstantiateFlagDeviceLaunch, (long long) flags);
    check_equal("launched by the host", 5, run(inner));
    CUDA_OK(cudaGraphUpload(inner, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    void *fire_arguments[] = {&inner};
    cudaGraphExec_t outer = make((const void *) fire, fire_arguments, cudaGraphInstantiateFlagDeviceLaunch);
    CUDA_OK(cudaGraphUpload(outer, stream));
    check_equal("fired by a kernel", 5, run(outer));
    CUDA_OK(cudaGraphExecDestroy(outer));
    cudaGraphExec_t *kept = device_array<cudaGraphExec_t>(1);
    CUDA_OK(cudaMemcpy(kept, &inner, sizeof inner, cudaMemcpyHostToDevice));
    void *tail_arguments[] = {&kept};
    outer = make((const void *) tail, tail_arguments, cudaGraphInstantiateFlagDeviceLaunch);
    CUDA_OK(cudaGraphUpload(outer, stream));
    for (int i = 0; i < 3; i++) {
        check_element("by a handle in memory", i, 5, run(outer));
    }
    CUDA_OK(cudaGraphExecDestroy(outer));
    void *self_arguments[] = {&sum, &left};
    outer = make((const void *) relaunch, self_arguments, cudaGraphInstantiateFlagDeviceLaunch);
    CUDA_OK(cudaGraphUpload(outer, stream));
    check_equal("a graph that launches itself", 20, run(outer, 20));
    CUDA_OK(cudaGraphExecDestroy(outer));
    CUDA_OK(cudaGraphExecDestroy(inner));
    CUDA_OK(cudaFree(kept));
    CUDA_OK(cudaStreamDestroy(stream));
    return check_pass("by the host, at once, behind, itself");
}

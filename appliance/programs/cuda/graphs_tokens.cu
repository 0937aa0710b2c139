// Graphs as inference engines use them: for each token the program changes the result of cudaGraphKernelNodeGetParams
// and sets it.
#include "check_cuda.h"

__global__ void store(int *to, int value) {
    *to = value;
}

__global__ void store_sum(int *to, int value, int more) {
    *to = value + more;
}

static int launched(cudaGraphExec_t exec, const int *device) {
    CUDA_OK(cudaGraphLaunch(exec, 0));
    CUDA_OK(cudaDeviceSynchronize());
    return host_copy(device, 1)[0];
}

static cudaGraphNode_t only_node(cudaGraph_t graph) {
    cudaGraphNode_t node = nullptr;
    size_t one = 1;
    CUDA_OK(cudaGraphGetNodes(graph, &node, &one));
    return node;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int *device = device_array<int>(1);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    store<<<1, 1, 0, stream>>>(device, 0);
    LAUNCH_OK();
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    cudaGraphNode_t node = only_node(graph);
    cudaKernelNodeParams own, now;
    CUDA_OK(cudaGraphKernelNodeGetParams(node, &own));
    check_true("the kernel's host function", own.func == (void *) store);
    for (int token = 1; token <= 4; token++) {
        *(int *) own.kernelParams[1] = token;
        CUDA_OK(cudaGraphKernelNodeSetParams(node, &own));
        CUDA_OK(cudaGraphExecKernelNodeSetParams(exec, node, &own));
        check_equal("a token", token, launched(exec, device));
    }
    for (int token = 5; token < 1000; token++) {
        own.kernelParams[1] = &token; // as llama.cpp does
        CUDA_OK(cudaGraphKernelNodeSetParams(node, &own));
        cudaGraphExecUpdateResultInfo info;
        if (token % 100 == 0) {
            CUDA_OK(cudaGraphExecUpdate(exec, graph, &info));
            check_equal("an update", token, launched(exec, device));
        }
    }
    CUDA_OK(cudaGraphKernelNodeGetParams(node, &now));
    check_true("the arrays stay", now.kernelParams == own.kernelParams);
    check_equal("with the last value", 999, *(int *) now.kernelParams[1]);
    // Through the structures for any kind of node.
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeKernel;
    *(int *) now.kernelParams[1] = 2000;
    any.kernel.func = now.func;
    any.kernel.gridDim = now.gridDim;
    any.kernel.blockDim = now.blockDim;
    any.kernel.kernelParams = now.kernelParams;
    CUDA_OK(cudaGraphNodeSetParams(node, &any));
    CUDA_OK(cudaGraphExecNodeSetParams(exec, node, &any));
    check_equal("a node of any kind", 2000, launched(exec, device));
    // Another function and back.
    int value = 30, more = 4;
    void *three[] = {&device, &value, &more}, *two[] = {&device, &value};
    for (int i = 0; i < 20; i++) {
        now.func = (void *) store_sum;
        now.kernelParams = three;
        CUDA_OK(cudaGraphKernelNodeSetParams(node, &now));
        CUDA_OK(cudaGraphExecKernelNodeSetParams(exec, node, &now));
        check_equal("another function", 34, launched(exec, device));
        now.func = (void *) store;
        now.kernelParams = two;
        CUDA_OK(cudaGraphKernelNodeSetParams(node, &now));
        CUDA_OK(cudaGraphExecKernelNodeSetParams(exec, node, &now));
        check_equal("the first function", 30, launched(exec, device));
    }
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
    return check_pass("1000 tokens, any node's structure, two functions");
}

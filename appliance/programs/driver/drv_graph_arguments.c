/* Kernel nodes as inference engines use them: for each token the program changes the structure from GetParams and sets
 * it. */
#include "check_graphs.h"

#ifndef HAWSER_NVIDIA_HEADER
#define CU_LAUNCH_PARAM_END ((void *) 0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *) 0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *) 0x02)
#endif

#define COUNT 300

static CUstream stream;
static CUfunction add_value, multiply;
static CUdeviceptr values;
static int count = COUNT;

/* Launches, and checks the sum that one launch has added. */
static void check_added(const char *what, CUgraphExec exec, int expected) {
    int result[COUNT];
    CU_OK(cuMemsetD32Async(values, 0, COUNT, stream));
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(result, values, sizeof result));
    check_element(what, 0, expected, result[0]);
    check_element(what, COUNT - 1, expected, result[COUNT - 1]);
}

static CUgraphNode only_node(CUgraph graph) {
    CUgraphNode node = NULL;
    size_t one = 1;
    CU_OK(cuGraphGetNodes(graph, &node, &one));
    return node;
}

/* The node's own structure, changed for each token. */
static void tokens(CUgraph graph) {
    CUgraphNode node = only_node(graph);
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS own, now;
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphKernelNodeGetParams(node, &own));
    for (int token = 1; token <= 200; token++) {
        *(int *) own.kernelParams[2] = token;
        CU_OK(cuGraphKernelNodeSetParams(node, &own));
        CU_OK(cuGraphExecKernelNodeSetParams(exec, node, &own));
        if (token <= 4 || token == 200) {
            check_added("a token", exec, token);
        }
    }
    for (int token = 300; token < 400; token++) {
        own.kernelParams[2] = &token; /* an entry of the driver's array, replaced */
        CU_OK(cuGraphKernelNodeSetParams(node, &own));
        CU_OK(cuGraphExecKernelNodeSetParams(exec, node, &own));
    }
    check_added("a replaced entry", exec, 399);
    CU_OK(cuGraphKernelNodeGetParams(node, &now));
    check_true("the arrays stay", now.kernelParams == own.kernelParams);
    check_equal("and hold the last value", 399, *(int *) now.kernelParams[2]);
    now.gridDimX = 0;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetParams(node, &now));
    check_equal("what is refused changes nothing", 399, *(int *) now.kernelParams[2]);
    *(int *) now.kernelParams[2] = 17; /* without a call of set: takes effect at the next use of the graph */
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    check_added("written alone", exec, 17);
    CU_OK(cuGraphExecDestroy(exec));
}

/* Another function and back; a clone; a child. */
static void copies(CUgraph graph) {
    CUgraphNode node = only_node(graph), copied, inner_node, child;
    CUgraph clone, outer, inner;
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS own, other;
    CUdeviceptr factors = check_device(NULL, COUNT * sizeof(int));
    int five = 5;
    void *product[] = {&values, &factors, &count}, *sum[] = {&values, &count, &five};
    for (int i = 0; i < 50; i++) {
        other = check_kernel_params(multiply, COUNT, product);
        CU_OK(cuGraphKernelNodeSetParams(node, &other));
        other = check_kernel_params(add_value, COUNT, sum);
        CU_OK(cuGraphKernelNodeSetParams(node, &other));
    }
    CU_OK(cuGraphClone(&clone, graph));
    CU_OK(cuGraphNodeFindInClone(&copied, node, clone));
    CU_OK(cuGraphKernelNodeGetParams(node, &own));
    CU_OK(cuGraphKernelNodeGetParams(copied, &other));
    check_true("a clone has its own arrays", own.kernelParams != other.kernelParams);
    *(int *) own.kernelParams[2] = 6;
    CU_OK(cuGraphKernelNodeSetParams(copied, &own)); /* the original's arrays */
    CU_OK(cuGraphInstantiate(&exec, clone, 0));
    check_added("a clone", exec, 6);
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(clone));
    CU_OK(cuGraphCreate(&outer, 0));
    CU_OK(cuGraphAddChildGraphNode(&child, outer, NULL, 0, graph));
    CU_OK(cuGraphChildGraphNodeGetGraph(child, &inner));
    inner_node = only_node(inner);
    CU_OK(cuGraphKernelNodeGetParams(inner_node, &own));
    CU_OK(cuGraphInstantiate(&exec, outer, 0));
    for (int token = 50; token < 60; token++) {
        *(int *) own.kernelParams[2] = token;
        CU_OK(cuGraphKernelNodeSetParams(inner_node, &own));
        CU_OK(cuGraphExecKernelNodeSetParams(exec, inner_node, &own));
    }
    check_added("a child", exec, 59);
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(outer));
    CU_OK(cuMemFree(factors));
}

/* The buffer that the driver returns; its keys are in no particular order. */
static void *shown_buffer(void **extra) {
    for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            return extra[i + 1];
        }
    }
    check_fail("no buffer in extra");
    return NULL;
}

/* Parameters in one buffer: CUDA returns them as the program set them last. */
static void buffers(void) {
    struct {
        CUdeviceptr values;
        int count, addend;
    } packed = {values, COUNT, 1};
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS given = check_kernel_params(add_value, COUNT, NULL), own;
    given.extra = extra;
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &given));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    check_added("a buffer", exec, 1);
    CU_OK(cuGraphKernelNodeGetParams(node, &own));
    check_true("shown as a buffer", own.kernelParams == NULL && own.extra != NULL);
    for (int token = 2; token < 200; token++) {
        ((int *) shown_buffer(own.extra))[3] = token;
        CU_OK(cuGraphKernelNodeSetParams(node, &own));
        CU_OK(cuGraphExecKernelNodeSetParams(exec, node, &own));
    }
    check_added("its own structure", exec, 199);
    bytes++;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetParams(node, &given)); /* longer than the parameters */
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, node, &given));
    bytes--;
    packed.addend = 500;
    CU_OK(cuGraphKernelNodeSetParams(node, &given));
    CU_OK(cuGraphExecKernelNodeSetParams(exec, node, &given));
    check_added("the program's buffer again", exec, 500);
    int addend = 600;
    void *params[] = {&values, &count, &addend};
    CUDA_KERNEL_NODE_PARAMS array = check_kernel_params(add_value, COUNT, params), now;
    CU_OK(cuGraphKernelNodeSetParams(node, &array));
    CU_OK(cuGraphKernelNodeGetParams(node, &now));
    check_true("an array after an array", now.kernelParams != NULL && now.extra == NULL);
    check_equal("with its value", 600, *(int *) now.kernelParams[2]);
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("kernels.ptx");
    CUgraph graph, captured;
    CUgraphNode node;
    int one = 1;
    add_value = check_function(module, "add_value");
    multiply = check_function(module, "multiply");
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    values = check_device(NULL, COUNT * sizeof(int));
    void *params[] = {&values, &count, &one};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, params);
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &launch));
    tokens(graph);
    copies(graph);
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU_OK(cuLaunchKernel(add_value, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
    CU_OK(cuStreamEndCapture(stream, &captured));
    tokens(captured);
    CU_OK(cuGraphDestroy(captured));
    buffers();
    CU_OK(cuMemFree(values));
    return check_pass("200 tokens in place, replaced entries, clones, children, captures, buffers");
}

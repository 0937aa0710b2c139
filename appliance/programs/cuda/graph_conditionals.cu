// Conditional nodes: if, if with else, while, switch; nested, captured, updated; and what CUDA refuses.
#include "check_cuda.h"

#include <cstring>

static __global__ void set_condition(cudaGraphConditionalHandle handle, const unsigned int *value) {
    cudaGraphSetConditional(handle, *value);
}

/* Counts down, and goes on while the count is not 0. */
static __global__ void count_down(cudaGraphConditionalHandle handle, unsigned int *left) {
    *left -= 1;
    cudaGraphSetConditional(handle, *left);
}

static __global__ void add(int *sum, int amount) {
    *sum += amount;
}

static int *sum;
static unsigned int *value;

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const void *kernel, void **arguments, cudaGraphNode_t before) {
    cudaKernelNodeParams params = {};
    cudaGraphNode_t node;
    params.func = const_cast<void *>(kernel);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    CUDA_OK(cudaGraphAddKernelNode(&node, graph, before == nullptr ? nullptr : &before, before == nullptr ? 0 : 1,
                                   &params));
    return node;
}

static cudaGraphNode_t add_amount(cudaGraph_t graph, int amount, cudaGraphNode_t before = nullptr) {
    void *arguments[] = {&sum, &amount};
    return add_kernel(graph, (const void *) add, arguments, before);
}

static cudaGraphNode_t add_setter(cudaGraph_t graph, cudaGraphConditionalHandle handle) {
    void *arguments[] = {&handle, &value};
    return add_kernel(graph, (const void *) set_condition, arguments, nullptr);
}

/* Adds a conditional node; bodies receives its graphs. */
static cudaGraphNode_t add_conditional(cudaGraph_t graph, cudaGraphConditionalHandle handle,
                                       cudaGraphConditionalNodeType type, unsigned int size, cudaGraphNode_t before,
                                       cudaGraph_t *bodies) {
    cudaGraphNodeParams params = {};
    cudaGraphNode_t node;
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    CUDA_OK(cudaGraphAddNode(&node, graph, before == nullptr ? nullptr : &before, nullptr, before == nullptr ? 0 : 1,
                             &params));
    memcpy(bodies, params.conditional.phGraph_out, size * sizeof *bodies);
    cudaGraphNodeType found;
    CUDA_OK(cudaGraphNodeGetType(node, &found));
    check_equal("type of the node", cudaGraphNodeTypeConditional, found);
    return node;
}

static int run(cudaGraphExec_t exec, unsigned int chosen) {
    int got, zero = 0;
    CUDA_OK(cudaMemcpy(sum, &zero, sizeof zero, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(value, &chosen, sizeof chosen, cudaMemcpyHostToDevice));
    CUDA_OK(cudaGraphLaunch(exec, nullptr));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost));
    return got;
}

/* A setter, a conditional node, and a kernel behind it that adds 1000. */
static cudaGraphExec_t make(cudaGraphConditionalNodeType type, unsigned int size) {
    cudaGraph_t graph, bodies[8];
    cudaGraphConditionalHandle handle;
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    cudaGraphNode_t node = add_conditional(graph, handle, type, size, add_setter(graph, handle), bodies);
    add_amount(graph, 1000, node);
    for (unsigned int i = 0; i < size; i++) {
        add_amount(bodies[i], 2, add_amount(bodies[i], 1 + 10 * (int) i));
    }
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphDestroy(graph)); /* the executable graph has its own condition */
    return exec;
}

static void check_choices() {
    cudaGraphExec_t exec = make(cudaGraphCondTypeIf, 1);
    check_equal("if 0", 1000, run(exec, 0));
    check_equal("if 1", 1003, run(exec, 1));
    check_equal("if 77", 1003, run(exec, 77));
    CUDA_OK(cudaGraphExecDestroy(exec));
    exec = make(cudaGraphCondTypeIf, 2);
    check_equal("else", 1013, run(exec, 0));
    check_equal("not else", 1003, run(exec, 5));
    CUDA_OK(cudaGraphExecDestroy(exec));
    exec = make(cudaGraphCondTypeSwitch, 5);
    for (unsigned int i = 0; i < 5; i++) {
        check_element("switch", i, 1003 + 10 * (int) i, run(exec, i));
    }
    check_equal("no case", 1000, run(exec, 5));
    check_equal("no case", 1000, run(exec, 0xFFFFFFFF));
    CUDA_OK(cudaGraphExecDestroy(exec));
}

/* while (left != 0) { left--; sum += 1; if (left != 0) sum += 100; } */
static void check_loop() {
    cudaGraph_t graph, body, inside;
    cudaGraphConditionalHandle loop, nested;
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
    CUDA_OK(cudaGraphConditionalHandleCreate(&nested, graph, 0, 0));
    add_conditional(graph, loop, cudaGraphCondTypeWhile, 1, nullptr, &body);
    void *arguments[] = {&loop, &value};
    cudaGraphNode_t last = add_kernel(body, (const void *) count_down, arguments, nullptr);
    last = add_amount(body, 1, last);
    arguments[0] = &nested;
    last = add_kernel(body, (const void *) set_condition, arguments, last);
    add_conditional(body, nested, cudaGraphCondTypeIf, 1, last, &inside);
    add_amount(inside, 100);
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    check_equal("ten times", 10 + 9 * 100, run(exec, 10));
    check_equal("the default begins the loop again", 3 + 2 * 100, run(exec, 3));
    check_equal("once", 1, run(exec, 1));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
}

/* A body captured from a stream, with a memset and a copy. */
static void check_capture() {
    cudaGraph_t graph, body, same;
    cudaGraphConditionalHandle handle;
    cudaGraphExec_t exec;
    cudaStream_t stream;
    int *other = device_array<int>(4);
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    add_conditional(graph, handle, cudaGraphCondTypeIf, 1, add_setter(graph, handle), &body);
    CUDA_OK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    CUDA_OK(cudaMemsetAsync(other, 0, 4 * sizeof *other, stream));
    add<<<1, 1, 0, stream>>>(other, 41);
    CUDA_OK(cudaMemcpyAsync(sum, other, sizeof *other, cudaMemcpyDeviceToDevice, stream));
    add<<<1, 1, 0, stream>>>(sum, 1);
    CUDA_OK(cudaStreamEndCapture(stream, &same));
    check_true("the captured graph is the body", same == body);
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    check_equal("captured and not chosen", 0, run(exec, 0));
    check_equal("captured and chosen", 42, run(exec, 1));
    check_equal("and again", 42, run(exec, 1));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(other));
}

/* A node of a body changes in the executable graph. */
static void check_changes() {
    cudaGraph_t graph, body;
    cudaGraphConditionalHandle handle;
    cudaGraphExec_t exec;
    int amount = 7;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    add_conditional(graph, handle, cudaGraphCondTypeIf, 1, nullptr, &body);
    cudaGraphNode_t node = add_amount(body, 5);
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    check_equal("by default", 5, run(exec, 0));
    void *arguments[] = {&sum, &amount};
    cudaKernelNodeParams params = {};
    params.func = (void *) add;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    CUDA_OK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
    check_equal("changed", 7, run(exec, 0));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
}

static void check_refusals() {
    cudaGraph_t graph, other, bodies[2];
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    cudaGraphNodeParams params = {};
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaGraphConditionalHandleCreate(&handle, graph, 0, 2));
    CUDA_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 2;
    CUDA_IS(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
    params.conditional.type = cudaGraphCondTypeSwitch;
    params.conditional.size = 0;
    CUDA_IS(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
    add_conditional(graph, handle, cudaGraphCondTypeIf, 2, nullptr, bodies);
    check_true("such a graph cannot be cloned", cudaGraphClone(&other, graph) != cudaSuccess);
    CUDA_OK(cudaGraphCreate(&other, 0));
    check_true("nor used as a child", cudaGraphAddChildGraphNode(&node, other, nullptr, 0, graph) != cudaSuccess);
    check_true("a body cannot be executed alone", cudaGraphInstantiate(&exec, bodies[0], 0) != cudaSuccess);
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaGraphDestroy(other));
    cudaGetLastError();
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int version;
    CUDA_OK(cudaDriverGetVersion(&version));
    if (version < 12080) {
        check_unsupported("the driver has no if with else and no switch");
    }
    sum = device_array<int>(1);
    value = device_array<unsigned int>(1);
    check_choices();
    check_loop();
    check_capture();
    check_changes();
    check_refusals();
    return check_pass("if, else, while, switch, nested, captured");
}

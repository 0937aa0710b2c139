/* Graphs made node by node: every kind of node, launches, queries, updates, clones, refused calls. */
#include "check_graphs.h"

#define COUNT 3000
#define BYTES (COUNT * sizeof(int))

static CUcontext context;
static CUstream stream;
static CUfunction add_value, multiply;
static CUdeviceptr values, factors;
static int *pinned, *pageable, *result, count = COUNT;
static int host_calls;

/* The nodes of the graph under test. */
static struct {
    CUgraphNode in, fill, add, multiply, inner, host, out, recorded, last;
} node;

static void count_call(void *amount) {
    host_calls += *(int *) amount;
}

static CUgraph make_inner(int *addend) {
    CUgraph inner;
    CUgraphNode kernel;
    void *params[] = {&values, &count, addend};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, params);
    CU_OK(cuGraphCreate(&inner, 0));
    CU_OK(cuGraphAddKernelNode(&kernel, inner, NULL, 0, &launch));
    return inner;
}

/* result = (in * (2 + 3)) + 7, copied in from and out to pageable memory. */
static CUgraph make(CUevent event, int *one) {
    CUgraph graph, inner;
    int three = 3, seven = 7;
    CU_OK(cuGraphCreate(&graph, 0));
    CUDA_MEMCPY3D copy = check_copy_params(NULL, values, pageable, 0, BYTES);
    CU_OK(cuGraphAddMemcpyNode(&node.in, graph, NULL, 0, &copy, context));
    CUDA_MEMSET_NODE_PARAMS fill = {factors, 0, 2, 4, COUNT, 1};
    CU_OK(cuGraphAddMemsetNode(&node.fill, graph, NULL, 0, &fill, context));
    void *add_params[] = {&factors, &count, &three};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, add_params);
    CU_OK(cuGraphAddKernelNode(&node.add, graph, &node.fill, 1, &launch));
    three = 99; /* the node has its own copy of the parameters */
    CUgraphNode both[2] = {node.in, node.add};
    void *multiply_params[] = {&values, &factors, &count};
    launch = check_kernel_params(multiply, COUNT, multiply_params);
    CU_OK(cuGraphAddKernelNode(&node.multiply, graph, both, 2, &launch));
    inner = make_inner(&seven);
    CU_OK(cuGraphAddChildGraphNode(&node.inner, graph, &node.multiply, 1, inner));
    CU_OK(cuGraphDestroy(inner)); /* the node has a copy */
    CUDA_HOST_NODE_PARAMS host = {count_call, one};
    CU_OK(cuGraphAddHostNode(&node.host, graph, &node.inner, 1, &host));
    copy = check_copy_params(result, 0, NULL, values, BYTES);
    CU_OK(cuGraphAddMemcpyNode(&node.out, graph, &node.inner, 1, &copy, context));
    CU_OK(cuGraphAddEventRecordNode(&node.recorded, graph, &node.out, 1, event));
    CUgraphNode ends[2] = {node.host, node.recorded};
    CU_OK(cuGraphAddEmptyNode(&node.last, graph, ends, 2));
    return graph;
}

static void launch_and_check(const char *what, CUgraphExec exec, int factor, int addend) {
    memset(result, 0xff, BYTES);
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, pageable[i] * factor + addend, result[i]);
    }
}

static void check_queries(CUgraph graph, CUevent event) {
    check_shape("nodes and edges", graph, 9, 9);
    size_t number = 16;
    CUgraphNode found[16], to[16];
    CU_OK(cuGraphGetNodes(graph, found, &number));
    check_equal("nodes", 9, (long long) number);
    check_true("the first node made is the first listed", found[0] == node.in && found[8] == node.last);
    check_true("behind the last is NULL", found[9] == NULL);
    number = 2;
    CU_OK(cuGraphGetNodes(graph, found, &number));
    check_equal("as many as fit", 2, (long long) number);
    number = 16;
    CU_OK(cuGraphGetRootNodes(graph, found, &number));
    check_equal("roots", 2, (long long) number);
    number = 16;
    CU_OK(cuGraphNodeGetDependencies(node.multiply, found, NULL, &number));
    check_equal("dependencies", 2, (long long) number);
    check_true("dependencies are those given", found[0] == node.in && found[1] == node.add);
    number = 16;
    CU_OK(cuGraphNodeGetDependentNodes(node.inner, found, NULL, &number));
    check_equal("dependent nodes", 2, (long long) number);
    number = 16;
    CU_OK(cuGraphGetEdges(graph, found, to, NULL, &number));
    check_equal("edges", 9, (long long) number);
    check_node_type("kernel", CU_GRAPH_NODE_TYPE_KERNEL, node.add);
    check_node_type("memcpy", CU_GRAPH_NODE_TYPE_MEMCPY, node.in);
    check_node_type("memset", CU_GRAPH_NODE_TYPE_MEMSET, node.fill);
    check_node_type("host", CU_GRAPH_NODE_TYPE_HOST, node.host);
    check_node_type("child", CU_GRAPH_NODE_TYPE_GRAPH, node.inner);
    check_node_type("empty", CU_GRAPH_NODE_TYPE_EMPTY, node.last);
    check_node_type("record", CU_GRAPH_NODE_TYPE_EVENT_RECORD, node.recorded);
    CUevent kept;
    CU_OK(cuGraphEventRecordNodeGetEvent(node.recorded, &kept));
    check_true("the record's event", kept == event);
    CUDA_KERNEL_NODE_PARAMS launch;
    CU_OK(cuGraphKernelNodeGetParams(node.add, &launch));
    check_true("the kernel's function", launch.func == add_value);
    check_equal("the kernel's own copy of a parameter", 3, *(int *) launch.kernelParams[2]);
    CUDA_MEMSET_NODE_PARAMS fill;
    CU_OK(cuGraphMemsetNodeGetParams(node.fill, &fill));
    check_equal("the memset's value", 2, fill.value);
    CUgraph inner;
    CU_OK(cuGraphChildGraphNodeGetGraph(node.inner, &inner));
    check_shape("inner graph", inner, 1, 0);
}

static void check_refusals(CUgraph graph) {
    CUgraphNode other;
    CUgraphExec exec;
    CUgraphNode twice[2] = {node.in, node.in};
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(NULL, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&other, graph, twice, 2));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&other, graph, NULL, 1));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &node.fill, &node.add, NULL, 1));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &node.add, &node.add, NULL, 1));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, &node.in, &node.add, NULL, 1));
    CU_OK(cuGraphAddDependencies(graph, &node.last, &node.in, NULL, 1));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0)); /* a cycle */
    CU_OK(cuGraphRemoveDependencies(graph, &node.last, &node.in, NULL, 1));
    void *params[] = {&factors, &count, &count};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, params);
    launch.blockDimX = 4096;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&other, graph, NULL, 0, &launch));
    CUgraph another;
    CU_OK(cuGraphCreate(&another, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&other, another, &node.in, 1));
    CU_OK(cuGraphDestroy(another));
    check_shape("what was refused left nothing", graph, 9, 9);
}

/* Parameters of nodes in the graph and in the executable graph. */
static void check_changes(CUgraph graph, CUgraphExec exec, int *two) {
    CUgraphExecUpdateResultInfo info;
    int addend = 8;
    void *params[] = {&factors, &count, &addend};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, params);
    CU_OK(cuGraphExecKernelNodeSetParams(exec, node.add, &launch));
    launch_and_check("executable's kernel changed", exec, 10, 7);
    CUDA_MEMSET_NODE_PARAMS fill = {factors, 0, 5, 4, COUNT, 1};
    CU_OK(cuGraphExecMemsetNodeSetParams(exec, node.fill, &fill, context));
    launch_and_check("executable's memset changed", exec, 13, 7);
    CUDA_HOST_NODE_PARAMS host = {count_call, two};
    host_calls = 0;
    CU_OK(cuGraphExecHostNodeSetParams(exec, node.host, &host));
    launch_and_check("executable's host node changed", exec, 13, 7);
    check_equal("the new host node", 2, host_calls);
    unsigned int enabled;
    CU_OK(cuGraphNodeSetEnabled(exec, node.add, 0));
    CU_OK(cuGraphNodeGetEnabled(exec, node.add, &enabled));
    check_equal("a disabled node", 0, enabled);
    launch_and_check("a kernel disabled", exec, 5, 7);
    CU_OK(cuGraphNodeSetEnabled(exec, node.add, 1));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, node.host, 0));
    /* The graph still has its original parameters; an update by it restores them in the executable graph. */
    CU_OK(cuGraphExecUpdate(exec, graph, &info));
    check_equal("update", CU_GRAPH_EXEC_UPDATE_SUCCESS, info.result);
    launch_and_check("updated back", exec, 5, 7);
    addend = 4;
    CU_OK(cuGraphKernelNodeSetParams(node.add, &launch));
    launch_and_check("the graph's kernel alone changed", exec, 5, 7);
    CU_OK(cuGraphExecUpdate(exec, graph, &info));
    launch_and_check("and then the executable", exec, 6, 7);
}

static void check_update_refused(CUgraphExec exec) {
    CUgraph other;
    CUgraphNode first;
    CUgraphExecUpdateResultInfo info;
    CU_OK(cuGraphCreate(&other, 0));
    CU_OK(cuGraphAddEmptyNode(&first, other, NULL, 0));
    CU_IS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, other, &info));
    check_equal("another shape", CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, info.result);
    CU_OK(cuGraphDestroy(other));
}

static void check_clone(CUgraph graph, int *one) {
    CUgraph clone;
    CUgraphNode same;
    CUgraphExec exec;
    CU_OK(cuGraphClone(&clone, graph));
    check_shape("clone", clone, 9, 9);
    CU_OK(cuGraphNodeFindInClone(&same, node.add, clone));
    check_true("another node", same != node.add);
    check_node_type("of the same kind", CU_GRAPH_NODE_TYPE_KERNEL, same);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&same, same, clone));
    CU_OK(cuGraphNodeFindInClone(&same, node.host, clone));
    CU_OK(cuGraphDestroyNode(same));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&same, node.host, clone));
    check_shape("clone without a node", clone, 8, 7);
    host_calls = 0;
    CU_OK(cuGraphInstantiate(&exec, clone, 0));
    CU_OK(cuGraphDestroy(clone));
    launch_and_check("the clone", exec, 6, 7);
    check_equal("the clone has no host node", 0, host_calls);
    CU_OK(cuGraphExecDestroy(exec));
    (void) one;
}

/* Copies with pinned memory, within the host, of boxes; and a wait for an event from outside the graph. */
static void check_copies(CUevent event) {
    enum { ROWS = 20, WIDTH = 40, PITCH = 64 };
    CUgraph graph;
    CUgraphNode to_pinned, within, box_in, box_out, wait;
    CUgraphExec exec;
    unsigned char *box = check_memory(ROWS * PITCH), *back = check_memory(ROWS * PITCH);
    for (int i = 0; i < ROWS * PITCH; i++) {
        box[i] = (unsigned char) (i * 7);
    }
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, event));
    CUDA_MEMCPY3D copy = check_copy_params(pinned, 0, NULL, values, BYTES);
    CU_OK(cuGraphAddMemcpyNode(&to_pinned, graph, &wait, 1, &copy, context));
    copy = check_copy_params(result, 0, pinned, 0, BYTES);
    CU_OK(cuGraphAddMemcpyNode(&within, graph, &to_pinned, 1, &copy, context));
    copy = check_copy_params(NULL, factors, box, 0, WIDTH);
    copy.srcPitch = PITCH;
    copy.dstPitch = WIDTH;
    copy.srcY = 1;
    copy.srcXInBytes = 3;
    copy.Height = ROWS - 1;
    CU_OK(cuGraphAddMemcpyNode(&box_in, graph, &to_pinned, 1, &copy, context));
    copy = check_copy_params(back, 0, NULL, factors, WIDTH);
    copy.srcPitch = WIDTH;
    copy.dstPitch = PITCH;
    copy.Height = ROWS - 1;
    CU_OK(cuGraphAddMemcpyNode(&box_out, graph, &box_in, 1, &copy, context));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int round = 1; round <= 3; round++) {
        CU_OK(cuMemsetD32Async(values, (unsigned int) round, COUNT, stream));
        CU_OK(cuEventRecord(event, stream));
        box[PITCH + 3] = (unsigned char) round; /* read when the graph runs */
        CU_OK(cuGraphLaunch(exec, stream));
        CU_OK(cuStreamSynchronize(stream));
        for (int i = 0; i < COUNT; i++) {
            check_element("pinned", i, round, pinned[i]);
            check_element("from host to host", i, round, result[i]);
        }
        for (int y = 0; y < ROWS - 1; y++) {
            for (int x = 0; x < WIDTH; x++) {
                check_element("box", y * WIDTH + x, box[(y + 1) * PITCH + 3 + x], back[y * PITCH + x]);
            }
        }
    }
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
    free(box);
    free(back);
}

/* Many nodes, changed in any order before and after the instantiation. */
static void check_long_chain(void) {
    enum { LENGTH = 500 };
    static CUgraphNode chain[LENGTH];
    CUgraph graph;
    CUgraphExec exec;
    int one = 1;
    void *params[] = {&factors, &count, &one};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, params);
    CU_OK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < LENGTH; i++) {
        CU_OK(cuGraphAddKernelNode(&chain[i], graph, NULL, 0, &launch));
    }
    for (int i = 0; i + 1 < LENGTH; i++) { /* against the order of creation */
        CU_OK(cuGraphAddDependencies(graph, &chain[i + 1], &chain[i], NULL, 1));
    }
    check_shape("a chain", graph, LENGTH, LENGTH - 1);
    CU_OK(cuMemsetD32(factors, 0, COUNT));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuGraphExecDestroy(exec)); /* running launches continue */
    CU_OK(cuGraphDestroyNode(chain[100]));
    CU_OK(cuGraphAddDependencies(graph, &chain[101], &chain[99], NULL, 1));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(result, factors, BYTES));
    for (int i = 0; i < COUNT; i++) {
        check_element("chain", i, 3 * LENGTH - 1, result[i]);
    }
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    context = check_context();
    CUmodule module = check_module("kernels.ptx");
    CUevent event;
    CUgraphExec exec;
    int one = 1, two = 2;
    add_value = check_function(module, "add_value");
    multiply = check_function(module, "multiply");
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuMemAllocHost_v2((void **) &pinned, BYTES));
    pageable = check_memory(BYTES);
    result = check_memory(BYTES);
    values = check_device(NULL, BYTES);
    factors = check_device(NULL, BYTES);
    CUgraph graph = make(event, &one);
    check_queries(graph, event);
    check_refusals(graph);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int round = 1; round <= 4; round++) {
        for (int i = 0; i < COUNT; i++) {
            pageable[i] = i + round; /* read when the graph runs */
        }
        launch_and_check("launch", exec, 5, 7);
        check_equal("host node", round, host_calls);
        CU_OK(cuEventQuery(event));
    }
    check_changes(graph, exec, &two);
    check_update_refused(exec);
    launch_and_check("after a refused update", exec, 6, 7);
    check_clone(graph, &one);
    CU_OK(cuGraphDestroy(graph));
    launch_and_check("after the graph's end", exec, 6, 7);
    CU_OK(cuGraphExecDestroy(exec));
    check_copies(event);
    check_long_chain();
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuEventDestroy(event));
    CU_OK(cuMemFreeHost(pinned));
    CU_OK(cuMemFree(values));
    CU_OK(cuMemFree(factors));
    return check_pass("every kind of node");
}

/* Graphs that wait for values in memory and write them: nodes, capture, clones, changes. */
#include "check_graphs.h"

#ifndef HAWSER_NVIDIA_HEADER
typedef union {
    struct {
        unsigned int operation;
        CUdeviceptr address;
        union {
            unsigned int value;
            unsigned long long value64;
        };
        unsigned int flags;
        CUdeviceptr alias;
    } waitValue, writeValue;
    struct {
        unsigned int operation, flags;
    } memoryBarrier;
    unsigned long long pad[6];
} CUstreamBatchMemOpParams;
typedef struct {
    CUcontext ctx;
    unsigned int count;
    CUstreamBatchMemOpParams *paramArray;
    unsigned int flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;
#define CU_STREAM_WAIT_VALUE_EQ 1
#define CU_STREAM_MEM_OP_WAIT_VALUE_32 1
#define CU_STREAM_MEM_OP_WRITE_VALUE_32 2
#define CU_STREAM_MEM_OP_WRITE_VALUE_64 5
#define CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ((CUgraphNodeType) 12)
#define cuStreamWaitValue32 cuStreamWaitValue32_v2
#define cuStreamWriteValue32 cuStreamWriteValue32_v2
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams);
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out);
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams);
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams);
#endif

static CUcontext context;
static CUdeviceptr words;

static unsigned int word(int index) {
    unsigned int value;
    CU_OK(cuMemcpyDtoH(&value, words + (CUdeviceptr) index * 4, sizeof value));
    return value;
}

static void clear(void) {
    CU_OK(cuMemsetD32(words, 0, 64));
    CU_OK(cuCtxSynchronize());
}

/* Waits until word 0 is 7, then writes word 1 and words 2 and 3. */
static CUDA_BATCH_MEM_OP_NODE_PARAMS make_params(CUstreamBatchMemOpParams *ops, unsigned int value) {
    const CUDA_BATCH_MEM_OP_NODE_PARAMS params = {context, 3, ops, 0};
    memset(ops, 0, 3 * sizeof *ops);
    ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[0].waitValue.address = words;
    ops[0].waitValue.value = 7;
    ops[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    ops[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[1].writeValue.address = words + 4;
    ops[1].writeValue.value = value;
    ops[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    ops[2].writeValue.address = words + 8;
    ops[2].writeValue.value64 = 0x300000002ull;
    return params;
}

static void launch_and_check(const char *what, CUgraphExec exec, CUstream stream, CUstream other, unsigned expected) {
    clear();
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamWriteValue32(other, words, 7, 0));
    CU_OK(cuStreamSynchronize(other));
    CU_OK(cuStreamSynchronize(stream));
    check_element(what, 1, expected, word(1));
    check_element(what, 2, 2, word(2));
    check_element(what, 3, 3, word(3));
}

static void check_nodes(CUstream stream, CUstream other) {
    CUstreamBatchMemOpParams ops[3];
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = make_params(ops, 11), shown;
    CUgraph graph, clone;
    CUgraphNode node, copied;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
    memset(ops, 0xFF, sizeof ops); /* the node has its own copy */
    check_node_type("batch of operations", CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, node);
    CU_OK(cuGraphBatchMemOpNodeGetParams(node, &shown));
    check_equal("operations", 3, shown.count);
    check_equal("value of the second", 11, shown.paramArray[1].writeValue.value);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    launch_and_check("launch", exec, stream, other, 11);
    params = make_params(ops, 12);
    CU_OK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    launch_and_check("changed in the executable graph", exec, stream, other, 12);
    params = make_params(ops, 13);
    CU_OK(cuGraphBatchMemOpNodeSetParams(node, &params));
    CU_OK(cuGraphExecUpdate(exec, graph, &info));
    launch_and_check("update", exec, stream, other, 13);
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphClone(&clone, graph));
    CU_OK(cuGraphNodeFindInClone(&copied, node, clone));
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuGraphBatchMemOpNodeGetParams(copied, &shown));
    check_equal("the clone's value", 13, shown.paramArray[1].writeValue.value);
    CU_OK(cuGraphInstantiate(&exec, clone, 0));
    launch_and_check("clone", exec, stream, other, 13);
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(clone));
}

static void check_capture(CUfunction add, CUstream stream, CUstream other) {
    CUdeviceptr values = check_device(NULL, 1024 * sizeof(int));
    int count = 1024, one = 1, back[1024];
    CUgraph graph;
    CUgraphExec exec;
    CU_OK(cuMemsetD32(values, 0, 1024));
    CU_OK(cuCtxSynchronize());
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU_OK(cuStreamWaitValue32(stream, words, 7, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_LAUNCH(add, 4, 256, 0, stream, &values, &count, &one);
    CU_OK(cuStreamWriteValue32(stream, words + 4, 9, 0));
    CU_OK(cuStreamEndCapture(stream, &graph));
    check_shape("captured", graph, 3, 2);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int launch = 1; launch <= 3; launch++) {
        clear();
        CU_OK(cuGraphLaunch(exec, stream));
        CU_OK(cuStreamWriteValue32(other, words, 7, 0));
        CU_OK(cuStreamSynchronize(stream));
        check_element("written behind the kernel", launch, 9, word(1));
        CU_OK(cuMemcpyDtoH(back, values, sizeof back));
        check_element("the kernel ran", launch, launch, back[1023]);
    }
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuMemFree(values));
}

static void check_refusals(void) {
    CUstreamBatchMemOpParams ops[3];
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = make_params(ops, 1);
    CUgraph graph;
    CUgraphNode node;
    CU_OK(cuGraphCreate(&graph, 0));
    params.paramArray = NULL;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
    params = make_params(ops, 1);
    ops[1].writeValue.address++;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
    CU_OK(cuGraphDestroy(graph));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUstream stream, other;
    int supported = 0;
    context = check_context();
    words = check_device(NULL, 64 * sizeof(int));
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU_OK(cuDeviceGetAttribute(&supported, (CUdevice_attribute) 122, 0));
    if (!supported) {
        CUstreamBatchMemOpParams ops[3];
        CUDA_BATCH_MEM_OP_NODE_PARAMS params = make_params(ops, 1);
        CUgraph graph;
        CUgraphNode node;
        CU_OK(cuGraphCreate(&graph, 0));
        CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
        check_unsupported("the device has no stream memory operations (attribute 122)");
    }
    CUmodule module = check_module("kernels.ptx");
    check_nodes(stream, other);
    check_capture(check_function(module, "add_value"), stream, other);
    check_refusals();
    return check_pass("nodes, capture, changes");
}

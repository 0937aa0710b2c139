/* Memory that graphs allocate and free, by nodes and by capture, and memory that outlives a launch. */
#include "check_graphs.h"

#define COUNT 5000
#define BYTES (COUNT * sizeof(int))

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUmemLocation_st {
    int type, id;
} CUmemLocation;

typedef struct CUmemPoolProps_st {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_st {
    CUmemPoolProps poolProps;
    const void *accessDescs;
    size_t accessDescCount, bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_HANDLE_TYPE_NONE = 0 };
enum { CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1 };
#define CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED ((CUdevice_attribute) 115)
CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out);
CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                               size_t numDependencies, CUdeviceptr dptr);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out);
CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream);
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream);
#endif

static CUcontext context;
static CUstream stream;
static CUfunction add_value;
static int *out, count = COUNT;

static CUDA_MEM_ALLOC_NODE_PARAMS allocation(void) {
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    memset(&params, 0, sizeof params);
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = BYTES;
    return params;
}

static void check_out(const char *what, int expected) {
    CU_OK(cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, expected, out[i]);
    }
    memset(out, 0, BYTES);
}

/* Allocated, filled, copied out and freed within one launch. */
static void check_inside(void) {
    CUgraph graph, clone;
    CUgraphExec exec, second;
    CUgraphNode alloc, fill, kernel, copy, freed, other;
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation(), got;
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    check_true("an address at once", params.dptr != 0);
    CU_OK(cuGraphMemAllocNodeGetParams(alloc, &got));
    check_true("the same address", got.dptr == params.dptr && got.bytesize == BYTES);
    CUDA_MEMSET_NODE_PARAMS set = {params.dptr, 0, 40, 4, COUNT, 1};
    CU_OK(cuGraphAddMemsetNode(&fill, graph, &alloc, 1, &set, context));
    int two = 2;
    void *arguments[] = {&params.dptr, &count, &two};
    CUDA_KERNEL_NODE_PARAMS launch = check_kernel_params(add_value, COUNT, arguments);
    CU_OK(cuGraphAddKernelNode(&kernel, graph, &fill, 1, &launch));
    CUDA_MEMCPY3D to_host = check_copy_params(out, 0, NULL, params.dptr, BYTES);
    CU_OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &to_host, context));
    CU_OK(cuGraphAddMemFreeNode(&freed, graph, &copy, 1, params.dptr));
    CUdeviceptr address;
    CU_OK(cuGraphMemFreeNodeGetParams(freed, &address));
    check_true("the address that is freed", address == params.dptr);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&other, graph, &freed, 1, params.dptr));
    CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, graph, 0));
    for (int round = 0; round < 4; round++) {
        CU_OK(cuGraphLaunch(exec, stream));
        check_out("allocated in the graph", 42);
    }
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
}

static void check_captured(void) {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[8];
    CUdeviceptr memory;
    size_t number = 8;
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_OK(cuMemAllocAsync(&memory, BYTES, stream));
    CU_OK(cuMemsetD32Async(memory, 7, COUNT, stream));
    CU_OK(cuMemcpyDtoHAsync(out, memory, BYTES, stream));
    CU_OK(cuMemFreeAsync(memory, stream));
    CU_OK(cuStreamEndCapture(stream, &graph));
    CU_OK(cuGraphGetNodes(graph, nodes, &number));
    check_equal("captured nodes", 4, (long long) number);
    check_node_type("captured allocation", CU_GRAPH_NODE_TYPE_MEM_ALLOC, nodes[0]);
    check_node_type("captured free", CU_GRAPH_NODE_TYPE_MEM_FREE, nodes[3]);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuGraphLaunch(exec, stream));
    check_out("captured", 7);
    CU_OK(cuGraphExecDestroy(exec));
}

/* The program keeps a launch's memory until it frees it, or until it relaunches a graph with automatic free. */
static void check_left(void) {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode alloc, fill;
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation();
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    CUDA_MEMSET_NODE_PARAMS set = {params.dptr, 0, 11, 4, COUNT, 1};
    CU_OK(cuGraphAddMemsetNode(&fill, graph, &alloc, 1, &set, context));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphLaunch(exec, stream));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
    CU_OK(cuMemcpyDtoHAsync(out, params.dptr, BYTES, stream));
    CU_OK(cuMemFreeAsync(params.dptr, stream));
    check_out("left by a launch", 11);
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemFree(params.dptr));
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    for (int round = 0; round < 3; round++) {
        CU_OK(cuGraphLaunch(exec, stream));
    }
    CU_OK(cuMemcpyDtoHAsync(out, params.dptr, BYTES, stream));
    check_out("freed by the next launch", 11);
    CU_OK(cuMemFree(params.dptr));
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
}

int main(int argc, char **argv) {
    int pools = 0;
    check_begin(argc, argv);
    context = check_context();
    CU_OK(cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    if (!pools) {
        CUgraph graph;
        CUgraphNode node;
        CUDA_MEM_ALLOC_NODE_PARAMS params = allocation();
        CU_OK(cuGraphCreate(&graph, 0));
        CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
        check_unsupported("the device has no memory pools, and refuses allocation nodes");
    }
    CUmodule module = check_module("kernels.ptx");
    add_value = check_function(module, "add_value");
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    out = check_memory(BYTES);
    check_inside();
    check_captured();
    check_left();
    CU_OK(cuStreamDestroy(stream));
    return check_pass("memory of graphs");
}

// Graphs node by node: kernels, copies of one to three dimensions, fills, host functions, events, inner graphs,
// allocations, variables; edges, queries, clones and dot files.
#include "check_cuda.h"

#include <atomic>
#include <string>
#include <unistd.h>

__device__ int symbol[16];

__global__ void scale(int *values, int count, int factor, int plus) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = values[i] * factor + plus;
    }
}

static const int COUNT = 4096;

static cudaGraphNode_t kernel_node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, int *values, int factor,
                                   int plus) {
    int count = COUNT;
    void *arguments[] = {&values, &count, &factor, &plus};
    cudaKernelNodeParams params = {};
    params.func = (void *) scale;
    params.gridDim = dim3(COUNT / 256);
    params.blockDim = dim3(256);
    params.kernelParams = arguments;
    cudaGraphNode_t node;
    CUDA_OK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
}

static cudaGraphNode_t fill_node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, int *values, int value) {
    cudaMemsetParams params = {};
    params.dst = values;
    params.value = value;
    params.elementSize = 4;
    params.width = COUNT;
    params.height = 1;
    cudaGraphNode_t node;
    CUDA_OK(cudaGraphAddMemsetNode(&node, graph, after.data(), after.size(), &params));
    return node;
}

static void run(cudaGraph_t graph, int launches) {
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphUpload(exec, 0));
    for (int i = 0; i < launches; i++) {
        CUDA_OK(cudaGraphLaunch(exec, 0));
    }
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaGraphExecDestroy(exec));
}

static void count_up(void *data) {
    ++*(std::atomic<int> *) data;
}

static void all_kinds() {
    cudaGraph_t graph, inner;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphCreate(&inner, 0));
    int *device = device_array<int>(COUNT);
    std::vector<int> host(COUNT);
    std::atomic<int> calls(0);
    cudaGraphNode_t inner_kernel = kernel_node(inner, {}, device, 2, 0);
    kernel_node(inner, {inner_kernel}, device, 1, 1);

    cudaGraphNode_t fill = fill_node(graph, {}, device, 5);
    cudaGraphNode_t kernel = kernel_node(graph, {fill}, device, 3, 1); // 16
    cudaGraphNode_t child, empty, back, function;
    CUDA_OK(cudaGraphAddChildGraphNode(&child, graph, &kernel, 1, inner)); // 33
    CUDA_OK(cudaGraphAddEmptyNode(&empty, graph, &child, 1));
    CUDA_OK(cudaGraphAddMemcpyNode1D(&back, graph, &empty, 1, host.data(), device, COUNT * sizeof(int),
                                     cudaMemcpyDeviceToHost));
    cudaHostNodeParams function_params = {count_up, &calls};
    CUDA_OK(cudaGraphAddHostNode(&function, graph, &back, 1, &function_params));

    // The inner graph was copied: changes of the original have no effect.
    CUDA_OK(cudaGraphDestroy(inner));
    run(graph, 4);
    for (int i = 0; i < COUNT; i++) {
        check_element("through all kinds of nodes", i, 33, host[i]);
    }
    check_equal("calls of the host node", 4, calls.load());

    // Queries.
    size_t count = 0;
    CUDA_OK(cudaGraphGetNodes(graph, nullptr, &count));
    check_equal("nodes", 6, (long long) count);
    cudaGraphNodeType type;
    CUDA_OK(cudaGraphNodeGetType(child, &type));
    check_equal("type of the inner graph's node", cudaGraphNodeTypeGraph, type);
    CUDA_OK(cudaGraphChildGraphNodeGetGraph(child, &inner));
    CUDA_OK(cudaGraphGetNodes(inner, nullptr, &count));
    check_equal("nodes inside", 2, (long long) count);
    cudaKernelNodeParams params;
    CUDA_OK(cudaGraphKernelNodeGetParams(kernel, &params));
    check_true("the kernel's function", params.func == (void *) scale);
    check_equal("the kernel's grid", COUNT / 256, params.gridDim.x);
    check_equal("the kernel's factor", 3, *(int *) params.kernelParams[2]);
    cudaMemcpy3DParms copy;
    CUDA_OK(cudaGraphMemcpyNodeGetParams(back, &copy));
    check_true("the copy's ends", copy.srcPtr.ptr == device && copy.dstPtr.ptr == host.data());
    check_equal("the copy's kind", cudaMemcpyDeviceToHost, copy.kind);
    check_equal("the copy's length", COUNT * sizeof(int), copy.extent.width);
    cudaHostNodeParams asked;
    CUDA_OK(cudaGraphHostNodeGetParams(function, &asked));
    check_true("the host node's function", asked.fn == count_up && asked.userData == &calls);

    // After the removal of one node, its neighbours are no longer ordered.
    CUDA_OK(cudaGraphDestroyNode(child));
    CUDA_OK(cudaGraphGetNodes(graph, nullptr, &count));
    check_equal("nodes after one is gone", 5, (long long) count);
#if CUDART_VERSION >= 13000
    CUDA_OK(cudaGraphAddDependencies(graph, &kernel, &empty, nullptr, 1));
#else
    CUDA_OK(cudaGraphAddDependencies(graph, &kernel, &empty, 1));
#endif
    run(graph, 1);
    check_equal("without the inner graph", 16, host[COUNT - 1]);
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
}

// Copies of boxes, between pitched memory, pinned and pageable memory.
static void boxes(bool pinned) {
    const size_t width = 100, height = 20, depth = 3, host_pitch = 128;
    std::vector<unsigned char> pageable(2 * host_pitch * height * depth);
    unsigned char *host = pageable.data();
    if (pinned) {
        CUDA_OK(cudaMallocHost(&host, pageable.size()));
    }
    unsigned char *back = host + host_pitch * height * depth;
    for (size_t i = 0; i < host_pitch * height * depth; i++) {
        host[i] = (unsigned char) (i * 7);
        back[i] = 0xEE;
    }
    cudaPitchedPtr first, second;
    CUDA_OK(cudaMalloc3D(&first, make_cudaExtent(width, height, depth)));
    CUDA_OK(cudaMalloc3D(&second, make_cudaExtent(width, height, depth)));
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaMemcpy3DParms params = {};
    params.extent = make_cudaExtent(width, height, depth);
    params.srcPtr = make_cudaPitchedPtr(host, host_pitch, width, height);
    params.dstPtr = first;
    params.kind = cudaMemcpyHostToDevice;
    cudaGraphNode_t to, within, from;
    CUDA_OK(cudaGraphAddMemcpyNode(&to, graph, nullptr, 0, &params));
    // A box within the box.
    cudaMemcpy3DParms part = {};
    part.extent = make_cudaExtent(40, 10, 2);
    part.srcPtr = first;
    part.srcPos = make_cudaPos(8, 3, 1);
    part.dstPtr = second;
    part.dstPos = make_cudaPos(16, 5, 0);
    part.kind = cudaMemcpyDeviceToDevice;
    CUDA_OK(cudaGraphAddMemcpyNode(&within, graph, &to, 1, &part));
    cudaMemcpy3DParms out = {};
    out.extent = make_cudaExtent(40, 10, 2);
    out.srcPtr = second;
    out.srcPos = make_cudaPos(16, 5, 0);
    out.dstPtr = make_cudaPitchedPtr(back, host_pitch, width, height);
    out.dstPos = make_cudaPos(1, 2, 1);
    out.kind = cudaMemcpyDeviceToHost;
    CUDA_OK(cudaGraphAddMemcpyNode(&from, graph, &within, 1, &out));
    run(graph, 2);
    for (size_t z = 0; z < depth; z++) {
        for (size_t y = 0; y < height; y++) {
            for (size_t x = 0; x < host_pitch; x++) {
                bool inside = x >= 1 && x < 41 && y >= 2 && y < 12 && z >= 1 && z < 3;
                size_t source = ((z - 1 + 1) * height + y - 2 + 3) * host_pitch + x - 1 + 8;
                check_element(pinned ? "box of pinned memory" : "box of pageable memory",
                              (z * height + y) * host_pitch + x, inside ? (unsigned char) (source * 7) : 0xEE,
                              back[(z * height + y) * host_pitch + x]);
            }
        }
    }
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(first.ptr));
    CUDA_OK(cudaFree(second.ptr));
    if (pinned) {
        CUDA_OK(cudaFreeHost(host));
    }
}

static void variables() {
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    int values[16], back[16] = {};
    for (int i = 0; i < 16; i++) {
        values[i] = 100 + i;
    }
    cudaGraphNode_t to, from;
    CUDA_OK(cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, symbol, values, sizeof values, 0,
                                           cudaMemcpyHostToDevice));
    CUDA_OK(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, back, symbol, 8 * sizeof(int), 4 * sizeof(int),
                                             cudaMemcpyDeviceToHost));
    run(graph, 1);
    for (int i = 0; i < 16; i++) {
        check_element("through a variable", i, i < 8 ? 104 + i : 0, back[i]);
    }
    CUDA_OK(cudaGraphDestroy(graph));
}

// A graph records an event that another stream waits for; another graph waits for an event.
static void events() {
    int *device = device_array<int>(COUNT);
    cudaEvent_t before, after;
    CUDA_OK(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
    CUDA_OK(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
    cudaStream_t first, second;
    CUDA_OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t wait, record;
    CUDA_OK(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, before));
    cudaGraphNode_t kernel = kernel_node(graph, {wait}, device, 2, 1);
    CUDA_OK(cudaGraphAddEventRecordNode(&record, graph, &kernel, 1, after));
    cudaEvent_t asked;
    CUDA_OK(cudaGraphEventRecordNodeGetEvent(record, &asked));
    check_true("the event that is recorded", asked == after);
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaMemsetAsync(device, 0, COUNT * sizeof(int), first));
    for (int i = 0; i < 8; i++) {
        CUDA_OK(cudaEventRecord(before, first));
        CUDA_OK(cudaGraphLaunch(exec, second));
        CUDA_OK(cudaStreamWaitEvent(first, after, 0));
        scale<<<COUNT / 256, 256, 0, first>>>(device, COUNT, 1, 1);
        LAUNCH_OK();
    }
    CUDA_OK(cudaStreamSynchronize(first));
    CUDA_OK(cudaEventSynchronize(after));
    int expected = 0;
    for (int i = 0; i < 8; i++) {
        expected = expected * 2 + 2;
    }
    check_equal("two streams that take turns", expected, host_copy(device, COUNT)[COUNT / 2]);
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamDestroy(first));
    CUDA_OK(cudaStreamDestroy(second));
    CUDA_OK(cudaEventDestroy(before));
    CUDA_OK(cudaEventDestroy(after));
    CUDA_OK(cudaFree(device));
}

static void allocation() {
    int *out = device_array<int>(COUNT);
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaMemAllocNodeParams params = {};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.poolProps.location.id = 0;
    params.bytesize = COUNT * sizeof(int);
    cudaGraphNode_t allocate, copy, release;
    CUDA_OK(cudaGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &params));
    int *memory = (int *) params.dptr;
    check_true("an address at once", memory != nullptr);
    cudaGraphNode_t fill = fill_node(graph, {allocate}, memory, 21);
    cudaGraphNode_t kernel = kernel_node(graph, {fill}, memory, 2, 0);
    CUDA_OK(
        cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, out, memory, COUNT * sizeof(int), cudaMemcpyDeviceToDevice));
    CUDA_OK(cudaGraphAddMemFreeNode(&release, graph, &copy, 1, memory));
    run(graph, 5);
    check_equal("allocated in the graph", 42, host_copy(out, COUNT)[COUNT - 1]);
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(out));
}

// Through a part of an array and back.
static void arrays() {
    const size_t width = 32, height = 16;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    cudaArray_t array;
    CUDA_OK(cudaMallocArray(&array, &format, width, height));
    std::vector<int> host(width * height), back(10 * 5, -1);
    for (size_t i = 0; i < host.size(); i++) {
        host[i] = (int) i;
    }
    int *device = device_array<int>(10 * 5);
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(host.data(), width * sizeof(int), width, height);
    in.dstArray = array;
    in.extent = make_cudaExtent(width, height, 1);
    in.kind = cudaMemcpyHostToDevice;
    cudaMemcpy3DParms out = {};
    out.srcArray = array;
    out.srcPos = make_cudaPos(7, 3, 0);
    out.dstPtr = make_cudaPitchedPtr(device, 10 * sizeof(int), 10, 5);
    out.extent = make_cudaExtent(10, 5, 1);
    out.kind = cudaMemcpyDeviceToDevice;
    cudaGraphNode_t to, from, last;
    CUDA_OK(cudaGraphAddMemcpyNode(&to, graph, nullptr, 0, &in));
    CUDA_OK(cudaGraphAddMemcpyNode(&from, graph, &to, 1, &out));
    CUDA_OK(cudaGraphAddMemcpyNode1D(&last, graph, &from, 1, back.data(), device, back.size() * sizeof(int),
                                     cudaMemcpyDeviceToHost));
    cudaMemcpy3DParms asked;
    CUDA_OK(cudaGraphMemcpyNodeGetParams(from, &asked));
    check_true("the array that is copied from", asked.srcArray == array && asked.dstArray == nullptr);
    check_equal("where in it", 7, (long long) asked.srcPos.x);
    run(graph, 2);
    for (size_t i = 0; i < back.size(); i++) {
        check_element("part of an array", i, (3 + i / 10) * width + 7 + i % 10, back[i]);
    }
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFreeArray(array));
    CUDA_OK(cudaFree(device));
}

static void clones_and_dots() {
    cudaGraph_t graph, clone;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    int *device = device_array<int>(COUNT);
    cudaGraphNode_t fill = fill_node(graph, {}, device, 1);
    cudaGraphNode_t kernel = kernel_node(graph, {fill}, device, 10, 2);
    CUDA_OK(cudaGraphClone(&clone, graph));
    cudaGraphNode_t found;
    CUDA_OK(cudaGraphNodeFindInClone(&found, kernel, clone));
    check_true("a node of its own in the clone", found != kernel);
    kernel_node(graph, {kernel}, device, 0, 0);
    size_t count = 0;
    CUDA_OK(cudaGraphGetNodes(clone, nullptr, &count));
    check_equal("nodes of the clone", 2, (long long) count);
    run(clone, 1);
    check_equal("what the clone does", 12, host_copy(device, COUNT)[0]);
    run(graph, 1);
    check_equal("what the original does", 0, host_copy(device, COUNT)[0]);

    std::string path = "/tmp/graphs_explicit." + std::to_string(getpid()) + ".dot";
    CUDA_OK(cudaGraphDebugDotPrint(clone, path.c_str(), 0));
    FILE *file = fopen(path.c_str(), "r");
    check_true("a dot file is there", file != nullptr);
    std::string text;
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
        text.push_back((char) c);
    }
    fclose(file);
    unlink(path.c_str());
    check_true("the dot file is one", text.find("digraph") != std::string::npos);
    check_true("the dot file has an edge", text.find("->") != std::string::npos);
    CUDA_OK(cudaGraphDestroy(clone));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
}

static void circles() {
    cudaGraph_t graph;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    int *device = device_array<int>(COUNT);
    cudaGraphNode_t first = fill_node(graph, {}, device, 1);
    cudaGraphNode_t second = kernel_node(graph, {first}, device, 1, 1);
#if CUDART_VERSION >= 13000
    CUDA_OK(cudaGraphAddDependencies(graph, &second, &first, nullptr, 1));
#else
    CUDA_OK(cudaGraphAddDependencies(graph, &second, &first, 1));
#endif
    cudaGraphExec_t exec;
    CUDA_IS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
    cudaGetLastError();
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaFree(device));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    all_kinds();
    boxes(true);
    boxes(false);
    variables();
    events();
    allocation();
    arrays();
    clones_and_dots();
    circles();
    return check_pass("kinds of nodes, boxes, variables, events, allocations, arrays, clones, circles");
}

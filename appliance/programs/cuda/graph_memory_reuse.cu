// Memory of graphs: nodes free it for later nodes, graphs are instantiated repeatedly, the program or another graph
// frees memory, and the device keeps memory for graphs.
#include "check_cuda.h"

static const int COUNT = 1 << 20;
static const size_t BYTES = COUNT * sizeof(int);

__global__ void fill(int *out, int count, int value) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        out[i] = value + i;
    }
}

__global__ void add(const int *from, int *to, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&to[i], from[i]);
    }
}

static cudaStream_t stream;
static int *sum; // ordinary memory, to which graphs add

static cudaGraphNode_t allocate(cudaGraph_t graph, const std::vector<cudaGraphNode_t> &after, size_t bytes,
                                int **memory) {
    cudaMemAllocNodeParams params = {};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = bytes;
    cudaGraphNode_t node;
    CUDA_OK(cudaGraphAddMemAllocNode(&node, graph, after.data(), after.size(), &params));
    check_true("an address", params.dptr != nullptr);
    *memory = (int *) params.dptr;
    return node;
}

static cudaGraphNode_t release(cudaGraph_t graph, cudaGraphNode_t after, int *memory) {
    cudaGraphNode_t node;
    CUDA_OK(cudaGraphAddMemFreeNode(&node, graph, &after, 1, memory));
    return node;
}

static cudaGraphNode_t kernel(cudaGraph_t graph, cudaGraphNode_t after, void *function, void **arguments) {
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = 64;
    params.blockDim = 128;
    params.kernelParams = arguments;
    cudaGraphNode_t node;
    CUDA_OK(cudaGraphAddKernelNode(&node, graph, &after, 1, &params));
    return node;
}

// Fills the memory and adds it to the sum.
static cudaGraphNode_t use(cudaGraph_t graph, cudaGraphNode_t after, int *memory, int count, int value) {
    void *filling[] = {&memory, &count, &value}, *adding[] = {&memory, &sum, &count};
    return kernel(graph, kernel(graph, after, (void *) fill, filling), (void *) add, adding);
}

static void expect(const char *what, int count, long long values, long long times) {
    CUDA_OK(cudaStreamSynchronize(stream));
    std::vector<int> got = host_copy(sum, COUNT);
    for (int i = 0; i < COUNT; i += 997) {
        check_element(what, i, i < count ? values + times * i : 0, got[i]);
    }
    CUDA_OK(cudaMemset(sum, 0, BYTES));
}

static cudaGraphExec_t executable(cudaGraph_t graph, unsigned long long flags) {
    cudaGraphExec_t exec;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, flags));
    return exec;
}

// One allocation after another in one graph: whole, in halves, larger, small, and two at the same time, one of which
// stays.
static cudaGraph_t chain(int **last) {
    cudaGraph_t graph;
    int *first, *second, *halves[2], *larger, *small[5], *beside[2];
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = allocate(graph, {}, BYTES, &first);
    node = release(graph, use(graph, node, first, COUNT, 1), first);
    node = allocate(graph, {node}, BYTES, &second);
    node = release(graph, use(graph, node, second, COUNT, 2), second);
    cudaGraphNode_t one = allocate(graph, {node}, BYTES / 2, &halves[0]);
    cudaGraphNode_t two = allocate(graph, {node}, BYTES / 2, &halves[1]);
    check_true("halves of their own", halves[0] != halves[1]);
    one = release(graph, use(graph, one, halves[0], COUNT / 2, 3), halves[0]);
    two = release(graph, use(graph, two, halves[1], COUNT / 2, 4), halves[1]);
    cudaGraphNode_t both[] = {one, two};
    CUDA_OK(cudaGraphAddEmptyNode(&node, graph, both, 2));
    node = allocate(graph, {node}, 3 * BYTES, &larger);
    node = release(graph, use(graph, node, larger, COUNT, 5), larger);
    for (int i = 0; i < 5; i++) {
        node = allocate(graph, {node}, 1000 + 7000 * i, &small[i]);
        node = use(graph, node, small[i], 250, 0);
    }
    for (int i = 0; i < 5; i++) {
        node = release(graph, node, small[i]);
    }
    one = allocate(graph, {node}, BYTES, &beside[0]);
    two = allocate(graph, {node}, BYTES, &beside[1]);
    check_true("memory beside", beside[0] != beside[1]);
    release(graph, use(graph, one, beside[0], COUNT, 6), beside[0]);
    use(graph, two, beside[1], COUNT, 7);
    *last = beside[1];
    return graph;
}

// The chain adds 1 + 2 + 5 + 6 + 7 everywhere, 3 + 4 to the first half, and the numbers of the small ones to the
// beginning.
static void expect_chain(const char *what, int launches) {
    CUDA_OK(cudaStreamSynchronize(stream));
    std::vector<int> got = host_copy(sum, COUNT);
    for (int i = 0; i < COUNT; i += 61) {
        long long times = 5 + (i < COUNT / 2 ? 2 : 0) + (i < 250 ? 5 : 0);
        long long expected = 1 + 2 + 5 + 6 + 7 + (i < COUNT / 2 ? 3 + 4 : 0) + times * i;
        check_element(what, i, (int) (launches * expected), got[i]);
    }
    CUDA_OK(cudaMemset(sum, 0, BYTES));
}

static void check_chain() {
    int *left;
    cudaGraph_t graph = chain(&left);
    cudaGraphExec_t exec = executable(graph, 0);
    cudaGraphExec_t second;
    CUDA_IS(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph, 0));
    cudaGetLastError();
    for (int round = 0; round < 3; round++) {
        CUDA_OK(cudaGraphLaunch(exec, stream));
        CUDA_IS(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
        cudaGetLastError();
        CUDA_OK(cudaFreeAsync(left, stream));
    }
    expect_chain("launched three times", 3);
    for (int round = 0; round < 4; round++) {
        CUDA_OK(cudaGraphExecDestroy(exec));
        exec = executable(graph, round % 2 ? cudaGraphInstantiateFlagAutoFreeOnLaunch : 0);
        CUDA_OK(cudaGraphLaunch(exec, stream));
        if (round % 2) {
            CUDA_OK(cudaGraphLaunch(exec, stream));
        }
        CUDA_OK(cudaStreamSynchronize(stream));
        CUDA_OK(cudaFree(left));
    }
    expect_chain("instantiated again", 6);
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaGraphLaunch(exec, stream));
    expect_chain("without its graph", 1);
    CUDA_OK(cudaGraphExecDestroy(exec));
    check_element("memory that outlives all", 5, 7 + 5, host_copy(left, 6)[5]);
    CUDA_OK(cudaFree(left));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(left));
    cudaGetLastError();
}

// A graph allocates, another frees, and a third uses the memory between the two.
static void check_across() {
    cudaGraph_t allocates, uses, frees;
    int *memory;
    cudaGraphNode_t node;
    CUDA_OK(cudaGraphCreate(&allocates, 0));
    CUDA_OK(cudaGraphCreate(&uses, 0));
    CUDA_OK(cudaGraphCreate(&frees, 0));
    allocate(allocates, {}, BYTES, &memory);
    CUDA_OK(cudaGraphAddEmptyNode(&node, uses, nullptr, 0));
    use(uses, node, memory, COUNT, 20);
    CUDA_OK(cudaGraphAddMemFreeNode(&node, frees, nullptr, 0, memory));
    cudaGraphExec_t execs[] = {executable(allocates, 0), executable(uses, 0), executable(frees, 0)};
    for (int round = 0; round < 5; round++) {
        for (cudaGraphExec_t exec : execs) {
            CUDA_OK(cudaGraphLaunch(exec, stream));
        }
    }
    expect("across graphs", COUNT, 5 * 20, 5);
    for (cudaGraphExec_t exec : execs) {
        CUDA_OK(cudaGraphExecDestroy(exec));
    }
    for (cudaGraph_t graph : {allocates, uses, frees}) {
        CUDA_OK(cudaGraphDestroy(graph));
    }
}

// Captured allocations, on two streams that wait for each other.
static void check_captured() {
    cudaStream_t other;
    cudaEvent_t event;
    cudaGraph_t graph;
    int *memory;
    CUDA_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 8; i++) {
        cudaStream_t turn = i % 2 ? other : stream, next = i % 2 ? stream : other;
        CUDA_OK(cudaMallocAsync(&memory, BYTES >> i % 3, turn));
        fill<<<64, 128, 0, turn>>>(memory, COUNT >> i % 3, i);
        add<<<64, 128, 0, turn>>>(memory, sum, COUNT >> 2);
        CUDA_OK(cudaFreeAsync(memory, turn));
        CUDA_OK(cudaEventRecord(event, turn));
        CUDA_OK(cudaStreamWaitEvent(next, event, 0));
    }
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = executable(graph, 0);
    CUDA_OK(cudaGraphDestroy(graph));
    for (int round = 0; round < 10; round++) {
        CUDA_OK(cudaGraphLaunch(exec, stream));
    }
    expect("captured", COUNT / 4, 10 * (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7), 80);
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaEventDestroy(event));
    CUDA_OK(cudaStreamDestroy(other));
}

static unsigned long long kept(cudaGraphMemAttributeType attribute) {
    unsigned long long value = 0;
    CUDA_OK(cudaDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

// Graphs that run one after the other need the memory of only one; the program can trim the memory that the device
// keeps.
static void check_footprint() {
    cudaGraph_t graphs[4];
    cudaGraphExec_t execs[4];
    for (int i = 0; i < 4; i++) {
        int *memory;
        CUDA_OK(cudaGraphCreate(&graphs[i], 0));
        cudaGraphNode_t node = allocate(graphs[i], {}, BYTES, &memory);
        for (int again = 0; again < 20; again++) {
            node = release(graphs[i], use(graphs[i], node, memory, COUNT, again), memory);
            node = allocate(graphs[i], {node}, BYTES, &memory);
        }
        release(graphs[i], node, memory);
        execs[i] = executable(graphs[i], 0);
    }
    for (cudaGraphExec_t exec : execs) {
        CUDA_OK(cudaGraphLaunch(exec, stream));
    }
    expect("footprint", COUNT, 4 * 190, 80);
    check_true("memory is kept for graphs", kept(cudaGraphMemAttrReservedMemCurrent) >= BYTES);
    check_true("but not for each node", kept(cudaGraphMemAttrReservedMemHigh) < (64ull << 20) + 40 * BYTES);
    for (int i = 0; i < 4; i++) {
        CUDA_OK(cudaGraphExecDestroy(execs[i]));
        CUDA_OK(cudaGraphDestroy(graphs[i]));
    }
    CUDA_OK(cudaDeviceGraphMemTrim(0));
    check_equal("memory that is kept at the end", 0, (long long) kept(cudaGraphMemAttrReservedMemCurrent));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int pools = check_attribute(cudaDevAttrMemoryPoolsSupported);
    if (!pools) {
        check_unsupported("the device has no memory pools");
    }
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    sum = device_array<int>(COUNT);
    CUDA_OK(cudaMemset(sum, 0, BYTES));
    check_chain();
    check_across();
    check_captured();
    check_footprint();
    CUDA_OK(cudaFree(sum));
    CUDA_OK(cudaStreamDestroy(stream));
    return check_pass("memory of graphs that nodes share");
}

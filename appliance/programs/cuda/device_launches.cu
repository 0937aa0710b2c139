// Kernels that launch kernels: in order, in streams, from many threads, nested, and after the end of the grid. Copies
// and fills by kernels, and errors of launches.
#include "check_cuda.h"

constexpr int COUNT = 256;

__global__ void add(int *values, int amount) {
    values[blockIdx.x * blockDim.x + threadIdx.x] += amount;
}

__global__ void triple(int *values) {
    values[blockIdx.x * blockDim.x + threadIdx.x] *= 3;
}

// Work of one stream runs in order: (value + 1) * 3 + 4.
__global__ void in_order(int *values) {
    if (threadIdx.x == 0) {
        add<<<COUNT / 64, 64>>>(values, 1);
        triple<<<COUNT / 32, 32>>>(values);
        add<<<1, COUNT>>>(values, 4);
    }
}

// Each thread launches a grid for its own part, with its own stream.
__global__ void from_each_thread(int *values) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    add<<<1, 8, 0, stream>>>(values + 8 * (blockIdx.x * blockDim.x + threadIdx.x), 10);
    triple<<<1, 8, 0, stream>>>(values + 8 * (blockIdx.x * blockDim.x + threadIdx.x));
    cudaStreamDestroy(stream);
}

// Adds 1 to the leaves of a binary tree.
__global__ void tree(int *values, int count) {
    if (count == 1) {
        values[0] += 1;
        return;
    }
    tree<<<1, 1>>>(values, count / 2);
    tree<<<1, 1, 0, cudaStreamFireAndForget>>>(values + count / 2, count - count / 2);
}

// The tail runs when all other work of the grid is done, however it was launched; the tails run in order.
__global__ void tail(int *values) {
    if (threadIdx.x == 0) {
        triple<<<1, COUNT, 0, cudaStreamTailLaunch>>>(values);
        add<<<1, COUNT, 0, cudaStreamTailLaunch>>>(values, 5);
        add<<<1, COUNT>>>(values, 1);
    }
    __syncthreads();
    values[threadIdx.x] += 1;
}

// A kernel that goes on by itself, more often than launches may nest.
__global__ void repeat(int *values, int times) {
    values[threadIdx.x] += 1;
    if (times > 1 && threadIdx.x == 0) {
        repeat<<<1, COUNT, 0, cudaStreamTailLaunch>>>(values, times - 1);
    }
}

struct Wide {
    char letter;
    double number;
    int many[20];
    short last;
};

__global__ void take(Wide wide, int *out, char byte, long long number) {
    extern __shared__ int room[];
    room[threadIdx.x] = wide.many[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = room[19 - threadIdx.x] + wide.letter + (int) wide.number + wide.last + byte + (int) number;
}

__global__ void pass(int *out) {
    Wide wide = {'a', 2.5, {}, 7};
    for (int i = 0; i < 20; i++) {
        wide.many[i] = i * i;
    }
    take<<<1, 20, 20 * sizeof(int)>>>(wide, out, 3, 1000);
}

__global__ void errors(int *out) {
    int before = cudaGetLastError();
    add<<<1, 2000>>>(out, 1);
    int peeked = cudaPeekAtLastError(), got = cudaGetLastError(), after = cudaGetLastError();
    out[0] = before;
    out[1] = peeked != 0 && peeked == got;
    out[2] = after;
}

static int *values;

static std::vector<int> result() {
    CUDA_OK(cudaDeviceSynchronize());
    return host_copy(values, COUNT);
}

template <typename Expected> static void expect(const char *what, Expected expected) {
    LAUNCH_OK();
    std::vector<int> got = result();
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, expected(i), got[i]);
    }
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
}

static void in_graph() {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    in_order<<<1, 32, 0, stream>>>(values);
    triple<<<1, COUNT, 0, stream>>>(values);
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaGraphLaunch(exec, stream));
    expect("in a graph", [](int) { return ((7 * 3 + 1) * 3 + 4) * 3; });
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    values = device_array<int>(COUNT);
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    in_order<<<1, 32>>>(values);
    add<<<1, COUNT>>>(values, 100); // after the grid with all its work
    expect("in order", [](int) { return 107; });
    from_each_thread<<<2, COUNT / 16>>>(values);
    expect("from each thread", [](int) { return 30; });
    tree<<<1, 1>>>(values, 200);
    expect("nested", [](int i) { return i < 200 ? 1 : 0; });
    tail<<<1, COUNT>>>(values);
    expect("tail", [](int) { return 2 * 3 + 5; });
    repeat<<<1, COUNT>>>(values, 100);
    expect("repeated", [](int) { return 100; });
    pass<<<1, 1>>>(values);
    expect("parameters", [](int i) { return i < 20 ? (19 - i) * (19 - i) + 'a' + 2 + 7 + 3 + 1000 : 0; });
    errors<<<1, 1>>>(values);
    expect("errors", [](int i) { return i == 1; });
    in_graph();
    CUDA_OK(cudaFree(values));
    return check_pass("orders, threads, nesting, tails, parameters, errors and graphs");
}

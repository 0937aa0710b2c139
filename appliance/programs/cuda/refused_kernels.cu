// Kernels with instructions that a device may lack and refuse, beside kernels that every device runs. Only launches of
// a refused kernel fail, each time and in each form, and the program continues.
#include "check_cuda.h"

#include <mma.h>

using namespace nvcuda;

constexpr int SIDE = 16;
constexpr int COUNT = 64;

__global__ void add_one(int *values) {
    values[threadIdx.x] += 1;
}

__global__ void tensor_product(const half *a, const half *b, float *c) {
    wmma::fragment<wmma::matrix_a, SIDE, SIDE, SIDE, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, SIDE, SIDE, SIDE, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, SIDE, SIDE, SIDE, float> sum;
    wmma::load_matrix_sync(left, a, SIDE);
    wmma::load_matrix_sync(right, b, SIDE);
    wmma::fill_fragment(sum, 0.0f);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, SIDE, wmma::mem_row_major);
}

// Never launched.
__global__ void fetch_unused(cudaTextureObject_t texture, float *out) {
    out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}

static half *a, *b;
static float *c;
static int *values;
static int steps;

static void step() {
    add_one<<<1, COUNT>>>(values);
    LAUNCH_OK();
    steps++;
}

static cudaError_t plain() {
    tensor_product<<<1, 32>>>(a, b, c);
    return cudaGetLastError();
}

static cudaError_t cooperative() {
    void *arguments[] = {&a, &b, &c};
    cudaError_t error = cudaLaunchCooperativeKernel((const void *) tensor_product, dim3(1), dim3(32), arguments, 0, 0);
    cudaGetLastError();
    return error;
}

static cudaError_t captured() {
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    tensor_product<<<1, 32, 0, stream>>>(a, b, c);
    cudaError_t error = cudaGetLastError();
    cudaError_t end = cudaStreamEndCapture(stream, &graph);
    if (error == cudaSuccess) {
        CUDA_OK(end);
        CUDA_OK(cudaGraphDestroy(graph));
    }
    cudaGetLastError();
    CUDA_OK(cudaStreamDestroy(stream));
    return error;
}

static cudaError_t node() {
    void *arguments[] = {&a, &b, &c};
    cudaGraph_t graph;
    cudaGraphNode_t added;
    cudaKernelNodeParams params = {};
    params.func = (void *) tensor_product;
    params.gridDim = dim3(1);
    params.blockDim = dim3(32);
    params.kernelParams = arguments;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    cudaError_t error = cudaGraphAddKernelNode(&added, graph, nullptr, 0, &params);
    cudaGetLastError();
    CUDA_OK(cudaGraphDestroy(graph));
    return error;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    values = device_copy(std::vector<int>(COUNT));
    std::vector<half> ones(SIDE * SIDE, __float2half(1.0f));
    a = device_copy(ones);
    b = device_copy(ones);
    c = device_array<float>(SIDE * SIDE);
    cudaFuncAttributes attributes;
    CUDA_OK(cudaFuncGetAttributes(&attributes, (const void *) tensor_product));
    check_true("threads of a block", attributes.maxThreadsPerBlock >= 32);
    CUDA_OK(cudaFuncGetAttributes(&attributes, (const void *) fetch_unused));
    step();
    cudaError_t expected = plain();
    if (expected != cudaSuccess) {
        check_equal("a launch of a refused kernel", cudaErrorNotSupported, expected);
    }
    cudaError_t (*forms[])() = {plain, cooperative, captured, node};
    for (auto form : forms) {
        check_equal("another launch of it", expected, form());
        step();
        CUDA_OK(cudaDeviceSynchronize());
    }
    for (int value : host_copy(values, COUNT)) {
        check_equal("steps", steps, value);
    }
    if (expected == cudaSuccess) {
        for (float product : host_copy(c, SIDE * SIDE)) {
            check_true("product", product == SIDE);
        }
    }
    check_here("tensor cores: %s", expected == cudaSuccess ? "run" : "refused");
    return check_pass("%d steps around launches that a device may refuse", steps);
}

// A program of two files, compiled with -rdc=true and device-linked: each file uses functions, variables and kernels of
// the other. Its fat binary wrapper has version 2.
#include "check_cuda.h"
#include "rdc.h"

__device__ int device_table[4] = {1, 20, 300, 4000};

__global__ void across(long long *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        Pair pair = {i, 1LL << 33};
        out[i] = combine(pair, device_table[i % 4]);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const int count = 200;
    long long *device = device_array<long long>(count);
    float scale = 3;
    check_equal("a managed variable of the other file", 10, managed_total);
    managed_total = 1000;
    CUDA_OK(cudaMemcpyToSymbol(device_scale, &scale, sizeof(scale)));
    across<<<2, 128>>>(device, count);
    LAUNCH_OK();
    std::vector<long long> out = host_copy(device, count);
    const int table[] = {1, 20, 300, 4000};
    for (int i = 0; i < count; i++) {
        check_element("combined across files", i, i * (long long) table[i % 4] * 3 + (1LL << 33), out[i]);
    }
    int *ints = device_array<int>(count);
    launch_from_the_other_file(ints, count);
    std::vector<int> got = host_copy(ints, count);
    for (int i = 0; i < count; i++) {
        check_element("kernel of the other file", i, i + table[i % 4], got[i]);
    }
    check_equal("a managed variable of both files", 1000 + 2 * count, managed_total);
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFree(ints));
    return check_pass("a function, three variables and a kernel across two files");
}

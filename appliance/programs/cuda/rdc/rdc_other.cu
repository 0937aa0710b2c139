// The second file of the relocatable program.
#include "check_cuda.h"
#include "rdc.h"

__constant__ float device_scale = 1;
__managed__ int managed_total = 10;
static __managed__ int managed_calls = 1;

__device__ long long combine(const Pair &pair, int factor) {
    return (long long) (pair.first * device_scale) * factor + pair.second;
}

__global__ void of_the_other_file(int *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = i + device_table[i % 4];
        atomicAdd(&managed_total, 2);
        atomicAdd(&managed_calls, 1);
    }
}

void launch_from_the_other_file(int *device, int count) {
    of_the_other_file<<<(count + 63) / 64, 64>>>(device, count);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("a managed variable of this file", count + 1, managed_calls);
}

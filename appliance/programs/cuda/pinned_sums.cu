// A reduction that stores its sums in pinned memory through the host's address, without a device pointer: unified
// addressing. Where the device cannot access registered memory the kernel faults, and the error's text names the cause.
#include "check_cuda.h"

static const int BLOCKS = 16, THREADS = 128;

__global__ void sum(const int *values, int *sums) {
    __shared__ int part[THREADS];
    part[threadIdx.x] = values[blockIdx.x * THREADS + threadIdx.x];
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = part[0];
    }
}

static void check_sums(const char *what, const std::vector<int> &values, const int *sums) {
    for (int block = 0; block < BLOCKS; block++) {
        int expected = 0;
        for (int i = 0; i < THREADS; i++) {
            expected += values[block * THREADS + i];
        }
        check_element(what, block, expected, sums[block]);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    std::vector<int> values(BLOCKS * THREADS);
    for (int i = 0; i < BLOCKS * THREADS; i++) {
        values[i] = i % 1000;
    }
    int *device = device_copy(values), *sums;
    CUDA_OK(cudaMallocHost(&sums, BLOCKS * sizeof(int)));
    sum<<<BLOCKS, THREADS>>>(device, sums);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
    check_sums("sum", values, sums);
    CUDA_OK(cudaFreeHost(sums));

    std::vector<int> registered(BLOCKS);
    CUDA_OK(cudaHostRegister(registered.data(), BLOCKS * sizeof(int), cudaHostRegisterMapped));
    int seen = check_attribute(cudaDevAttrCanUseHostPointerForRegisteredMem);
    check_here("the device sees registered memory: %d", seen);
    sum<<<BLOCKS, THREADS>>>(device, registered.data());
    LAUNCH_OK();
    if (!seen) {
        CUDA_IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
        check_true("the error names pinned memory",
                   strstr(cudaGetErrorString(cudaErrorIllegalAddress), "pinned") != nullptr);
        return check_pass("sums in pinned memory");
    }
    CUDA_OK(cudaDeviceSynchronize());
    check_sums("sum in registered memory", values, registered.data());
    CUDA_OK(cudaHostUnregister(registered.data()));
    CUDA_OK(cudaFree(device));
    return check_pass("sums in pinned memory");
}

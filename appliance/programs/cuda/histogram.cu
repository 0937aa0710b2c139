// A histogram of bytes: shared-memory atomics in each block, then global ones; dynamic shared memory.
#include "check_cuda.h"

constexpr int BINS = 256;

__global__ void histogram(const unsigned char *bytes, int count, unsigned int *bins) {
    extern __shared__ unsigned int block_bins[];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        block_bins[bin] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&block_bins[bytes[i]], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        atomicAdd(&bins[bin], block_bins[bin]);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int count = (int) check_option("--size", 300007);
    uint32_t seed = 11;
    std::vector<unsigned char> bytes(count);
    std::vector<unsigned int> expected(BINS);
    for (unsigned char &byte : bytes) {
        byte = (unsigned char) (check_random(&seed) & check_random(&seed));
        expected[byte]++;
    }
    unsigned char *device_bytes = device_copy(bytes);
    unsigned int *device_bins = device_array<unsigned int>(BINS);
    CUDA_OK(cudaMemset(device_bins, 0, BINS * sizeof(unsigned int)));
    histogram<<<16, 128, BINS * sizeof(unsigned int)>>>(device_bytes, count, device_bins);
    LAUNCH_OK();
    std::vector<unsigned int> bins = host_copy(device_bins, BINS);
    for (int bin = 0; bin < BINS; bin++) {
        check_element("bins", bin, expected[bin], bins[bin]);
    }
    CUDA_OK(cudaFree(device_bytes));
    CUDA_OK(cudaFree(device_bins));
    return check_pass("%d bytes, bin 0 has %u", count, bins[0]);
}

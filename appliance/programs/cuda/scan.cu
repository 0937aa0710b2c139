// Exclusive prefix sum in three launches: scan the blocks, scan the blocks' sums, add the sums to the blocks.
#include "check_cuda.h"

constexpr int BLOCK = 256;

__global__ void scan_blocks(const unsigned int *in, unsigned int *out, unsigned int *sums, int count) {
    __shared__ unsigned int buffer[2][BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    unsigned int own = i < count ? in[i] : 0;
    int from = 0;
    buffer[0][threadIdx.x] = own;
    __syncthreads();
    for (int offset = 1; offset < BLOCK; offset *= 2) {
        unsigned int value = buffer[from][threadIdx.x];
        if (threadIdx.x >= offset) {
            value += buffer[from][threadIdx.x - offset];
        }
        from = 1 - from;
        buffer[from][threadIdx.x] = value;
        __syncthreads();
    }
    if (i < count) {
        out[i] = buffer[from][threadIdx.x] - own;
    }
    if (threadIdx.x == BLOCK - 1 && sums != nullptr) {
        sums[blockIdx.x] = buffer[from][threadIdx.x];
    }
}

__global__ void add_sums(unsigned int *out, const unsigned int *sums, int count) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < count) {
        out[i] += sums[blockIdx.x];
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int count = (int) check_option("--size", 50001);
    int blocks = (count + BLOCK - 1) / BLOCK;
    if (blocks > BLOCK) {
        check_fail("--size, expected at most %d, got %d", BLOCK * BLOCK, count);
    }
    uint32_t seed = 5;
    std::vector<unsigned int> values(count);
    for (unsigned int &value : values) {
        value = check_random(&seed) % 1000;
    }
    unsigned int *in = device_copy(values), *out = device_array<unsigned int>(count);
    unsigned int *sums = device_array<unsigned int>(blocks);
    scan_blocks<<<blocks, BLOCK>>>(in, out, sums, count);
    LAUNCH_OK();
    scan_blocks<<<1, BLOCK>>>(sums, sums, nullptr, blocks);
    LAUNCH_OK();
    add_sums<<<blocks, BLOCK>>>(out, sums, count);
    LAUNCH_OK();
    std::vector<unsigned int> got = host_copy(out, count);
    unsigned int expected = 0;
    for (int i = 0; i < count; i++) {
        check_element("scan", i, expected, got[i]);
        expected += values[i];
    }
    CUDA_OK(cudaFree(in));
    CUDA_OK(cudaFree(out));
    CUDA_OK(cudaFree(sums));
    return check_pass("%d elements, total %u", count, expected);
}

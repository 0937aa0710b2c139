// Occupancy according to the driver, and cooperative launches with the maximum number of blocks, which wait for each
// other by arrive and wait. Prints the tables, so that runs can be compared.
#include "check_cuda.h"

#include <cooperative_groups.h>
#include <cuda/barrier>

namespace cg = cooperative_groups;

// Keeps N values alive, which takes about N + 6 registers.
template <int N> __global__ void __launch_bounds__(1024) busy(float *p) {
    float values[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        values[i] = p[i * 33 + threadIdx.x];
    }
#pragma unroll 1
    for (int k = 0; k < (int) p[0]; k++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            values[i] = values[i] * values[(i + 1) % N] + values[(i + 7) % N];
        }
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        sum += values[i];
    }
    p[threadIdx.x] = sum;
}

__global__ void dynamic(int *p) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

// Each block adds its part; then all blocks wait; then each block reads the sum of all.
__global__ void sum_of_all(const int *numbers, int count, unsigned long long *sum, int *wrong) {
    extern __shared__ int parts[];
    cg::thread_block block = cg::this_thread_block();
    cg::grid_group grid = cg::this_grid();
    int own = 0;
    for (int i = (int) grid.thread_rank(); i < count; i += (int) grid.size()) {
        own += numbers[i];
    }
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    for (int offset = 16; offset > 0; offset /= 2) {
        own += warp.shfl_down(own, offset);
    }
#if __CUDA_ARCH__ >= 800
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) {
        init(&barrier, (ptrdiff_t) block.size());
    }
    block.sync();
    if (warp.thread_rank() == 0) {
        parts[threadIdx.x / 32] = own;
    }
    barrier.wait(barrier.arrive());
#else
    if (warp.thread_rank() == 0) {
        parts[threadIdx.x / 32] = own;
    }
    block.sync();
#endif
    if (threadIdx.x == 0) {
        unsigned long long all = 0;
        for (unsigned int i = 0; i < block.size() / 32; i++) {
            all += parts[i];
        }
        atomicAdd(sum, all);
    }
    grid.sync();
    if (threadIdx.x == 0 && *(volatile unsigned long long *) sum != (unsigned long long) count * (count - 1) / 2) {
        atomicAdd(wrong, 1);
    }
}

static void table(const char *name, const void *kernel, size_t shared) {
    printf("%s, %zu bytes of shared memory:", name, shared);
    for (int size = 32; size <= 1024; size += 32) {
        int blocks = -1;
        CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, size, shared));
        check_true("a number of blocks", blocks >= 0);
        printf(" %d", blocks);
    }
    printf("; left for blocks of 256:");
    for (int blocks = 1; blocks <= 8; blocks++) {
        size_t bytes = 0;
        cudaError_t error = cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kernel, blocks, 256);
        if (error != cudaSuccess) {
            CUDA_IS(cudaErrorInvalidValue, error);
            cudaGetLastError();
        }
        printf(" %zu", bytes);
    }
    printf("\n");
}

template <typename T> static void kernel(const char *name, T function) {
    int grid = 0, size = 0;
    for (size_t shared : {0, 1000, 20000, 60000}) {
        table(name, (const void *) function, shared);
    }
    CUDA_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &size, function, 0, 0));
    check_true("a grid", grid >= 1 && size >= 32);
    printf("%s: best %d blocks of %d\n", name, grid, size);
}

static void tables() {
    kernel("busy<16>", busy<16>);
    kernel("busy<28>", busy<28>);
    kernel("busy<34>", busy<34>);
    kernel("busy<44>", busy<44>);
    kernel("dynamic", dynamic);
    int limit = check_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) / 1024 * 1024;
    CUDA_OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    kernel("dynamic with more", dynamic);
    int before = 0, after = 0;
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&before, dynamic, 64, limit));
    check_true("a block with all shared memory that was allowed", before >= 1);
    CUDA_OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&after, dynamic, 64, limit));
    check_equal("blocks with more than what is allowed", 0, after);
    for (int carveout : {0, 25, 100, -1}) {
        CUDA_OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
        kernel("dynamic with a carveout", dynamic);
    }
    CUDA_OK(cudaFuncSetCacheConfig(dynamic, cudaFuncCachePreferL1));
    kernel("dynamic with more cache", dynamic);
}

static size_t shared_of(int size) {
    return (size_t) size / 32 * sizeof(int);
}

// As many blocks as fit, and then one more block on each multiprocessor.
static void launch(int size, const int *numbers, int count, unsigned long long *sum) {
    int *wrong = (int *) (sum + 1), blocks = 0, processors = check_attribute(cudaDevAttrMultiProcessorCount);
    void *arguments[] = {&numbers, &count, &sum, &wrong};
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum_of_all, size, shared_of(size)));
    check_true("a block", blocks >= 1);
    printf("%d blocks of %d threads on each multiprocessor\n", blocks, size);
    CUDA_OK(cudaMemset(sum, 0, 2 * sizeof(*sum)));
    CUDA_OK(cudaLaunchCooperativeKernel((void *) sum_of_all, blocks * processors, size, arguments, shared_of(size), 0));
    CUDA_OK(cudaDeviceSynchronize());
    unsigned long long expected = (unsigned long long) count * (count - 1) / 2;
    check_equal("sum", (long long) expected, (long long) host_copy(sum, 1)[0]);
    check_equal("blocks that went on early", 0, host_copy(wrong, 1)[0]);

    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = (blocks + 1) * processors;
    config.blockDim = size;
    config.dynamicSmemBytes = shared_of(size);
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA_OK(cudaMemset(sum, 0, 2 * sizeof(*sum)));
    CUDA_IS(cudaErrorCooperativeLaunchTooLarge, cudaLaunchKernelExC(&config, (void *) sum_of_all, arguments));
    CUDA_IS(cudaErrorCooperativeLaunchTooLarge, cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("sum of a launch that was refused", 0, (long long) host_copy(sum, 1)[0]);
    config.gridDim = blocks * processors;
    CUDA_OK(cudaLaunchKernelExC(&config, (void *) sum_of_all, arguments));
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("sum by a configuration", (long long) expected, (long long) host_copy(sum, 1)[0]);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    tables();
    if (!check_attribute(cudaDevAttrCooperativeLaunch)) {
        check_here("no cooperative launch");
        return check_pass("occupancy");
    }
    std::vector<int> numbers(100000);
    for (size_t i = 0; i < numbers.size(); i++) {
        numbers[i] = (int) i;
    }
    int *device = device_copy(numbers), grid = 0, size = 0;
    unsigned long long *sum = device_array<unsigned long long>(2);
    CUDA_OK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &size, sum_of_all, shared_of));
    launch(size, device, (int) numbers.size(), sum);
    for (int other : {544, 256, 32}) {
        launch(other, device, (int) numbers.size(), sum);
    }
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFree(sum));
    return check_pass("occupancy, and cooperative grids that fill the device");
}

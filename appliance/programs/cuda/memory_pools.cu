// Stream-ordered allocation: cudaMallocAsync and cudaFreeAsync, pools of one's own, their attributes. A device without it must
// say so by its attribute and refuse.
#include "check_cuda.h"

__global__ void fill(int *values, int count, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = value;
    }
}

__global__ void sum(const int *values, int count, int *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        atomicAdd(total, values[i]);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!check_attribute(cudaDevAttrMemoryPoolsSupported)) {
        void *pointer = nullptr;
        CUDA_IS(cudaErrorNotSupported, cudaMallocAsync(&pointer, 1024, stream));
        check_unsupported("cudaDevAttrMemoryPoolsSupported is 0");
    }
    const int count = 3000;
    int *total = device_array<int>(1);
    CUDA_OK(cudaMemset(total, 0, sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    for (int round = 1; round <= 10; round++) {
        int *values = nullptr;
        CUDA_OK(cudaMallocAsync(&values, count * sizeof(int), stream));
        fill<<<(count + 127) / 128, 128, 0, stream>>>(values, count, round);
        LAUNCH_OK();
        sum<<<(count + 127) / 128, 128, 0, stream>>>(values, count, total);
        LAUNCH_OK();
        CUDA_OK(cudaFreeAsync(values, stream));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("sum of ten rounds", 55LL * count, host_copy(total, 1)[0]);

    cudaMemPool_t pool, current;
    CUDA_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CUDA_OK(cudaDeviceGetMemPool(&current, 0));
    check_true("the default pool is current", pool == current);
    unsigned long long threshold = 1 << 20, back = 0, used = 99;
    CUDA_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back));
    check_equal("release threshold", (long long) threshold, (long long) back);
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    check_equal("nothing is in use", 0, (long long) used);
    CUDA_OK(cudaMemPoolTrimTo(pool, 0));
    int *freed_plainly = nullptr;
    CUDA_OK(cudaMallocAsync(&freed_plainly, 4096, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaFree(freed_plainly));
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(total));
    return check_pass("10 rounds of %d values, the default pool", count);
}

// Stream-ordered allocation: cudaMallocAsync and cudaFreeAsync, pools of the program, their attributes. A device
// without it must state so by its attribute and refuse.
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

// A pool with a limit: what is freed counts no more.
static void limited_pool(cudaStream_t stream) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.maxSize = 64 << 20; // a multiple of what drivers reserve at once
    cudaMemPool_t pool;
    void *first, *second;
    CUDA_OK(cudaMemPoolCreate(&pool, &properties));
    CUDA_IS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&first, 65 << 20, pool, stream));
    CUDA_OK(cudaMallocFromPoolAsync(&first, 40 << 20, pool, stream));
    CUDA_IS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&second, 40 << 20, pool, stream));
    CUDA_OK(cudaFreeAsync(first, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaMallocFromPoolAsync(&second, 40 << 20, pool, stream));
    CUDA_OK(cudaFreeAsync(second, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaMemPoolDestroy(pool));
}

// The program's own pool: allocation, attributes, counters, access, use as the current pool, destruction.
static void own_pool(cudaStream_t stream) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool, other, current, standard;
    CUDA_OK(cudaMemPoolCreate(&pool, &properties));
    CUDA_OK(cudaMemPoolCreate(&other, &properties));
    CUDA_OK(cudaDeviceGetDefaultMemPool(&standard, 0));
    check_true("pools differ", pool != other && pool != standard);
    const int count = 20000;
    int *values = nullptr, *more = nullptr, *total = device_array<int>(1);
    CUDA_OK(cudaMemset(total, 0, sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaMallocFromPoolAsync(&values, count * sizeof(int), pool, stream));
    CUDA_OK(cudaMallocFromPoolAsync(&more, count * sizeof(int), other, stream));
    fill<<<(count + 127) / 128, 128, 0, stream>>>(values, count, 2);
    LAUNCH_OK();
    fill<<<(count + 127) / 128, 128, 0, stream>>>(more, count, 3);
    LAUNCH_OK();
    sum<<<(count + 127) / 128, 128, 0, stream>>>(values, count, total);
    LAUNCH_OK();
    sum<<<(count + 127) / 128, 128, 0, stream>>>(more, count, total);
    LAUNCH_OK();
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("sum of both pools", 5LL * count, host_copy(total, 1)[0]);
    unsigned long long used = 0, high = 0, reserved = 0;
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    check_true("what is in use", used >= count * sizeof(int) && high >= used && reserved >= used);
    int reuse = 9;
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &reuse));
    check_equal("reuse at first", 1, reuse);
    reuse = 0;
    CUDA_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &reuse));
    reuse = 9;
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &reuse));
    check_equal("reuse after it was forbidden", 0, reuse);
    CUDA_OK(cudaMemPoolGetAttribute(other, cudaMemPoolReuseFollowEventDependencies, &reuse));
    check_equal("reuse in the other pool", 1, reuse);
    cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
    cudaMemLocation here = properties.location;
    CUDA_OK(cudaMemPoolGetAccess(&access, pool, &here));
    check_equal("access of the device itself", cudaMemAccessFlagsProtReadWrite, access);
    cudaMemAccessDesc description = {here, cudaMemAccessFlagsProtReadWrite};
    CUDA_OK(cudaMemPoolSetAccess(pool, &description, 1));
    // The current pool, also after the destruction of the program's own pool.
    CUDA_OK(cudaDeviceSetMemPool(0, other));
    CUDA_OK(cudaDeviceGetMemPool(&current, 0));
    check_true("the pool that was set is current", current == other);
    int *from_current = nullptr;
    CUDA_OK(cudaMallocAsync(&from_current, 1024, stream));
    CUDA_OK(cudaMemPoolDestroy(other));
    CUDA_OK(cudaDeviceGetMemPool(&current, 0));
    check_true("after its end the device's own is current", current == standard);
    fill<<<(count + 127) / 128, 128, 0, stream>>>(more, count, 4);
    LAUNCH_OK();
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("memory outlives its pool", 4, host_copy(more, count)[count - 1]);
    CUDA_OK(cudaFreeAsync(from_current, stream));
    CUDA_OK(cudaFreeAsync(more, stream));
    CUDA_OK(cudaFreeAsync(values, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    check_equal("nothing of the pool is in use", 0, (long long) used);
    high = 0;
    CUDA_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    check_equal("the high mark after it was reset", 0, (long long) high);
    CUDA_OK(cudaMemPoolTrimTo(pool, 0));
    CUDA_OK(cudaMemPoolDestroy(pool));
    CUDA_IS(cudaErrorInvalidValue, cudaMemPoolDestroy(standard));
    cudaGetLastError();
    CUDA_OK(cudaFree(total));
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
    own_pool(stream);
    limited_pool(stream);
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(total));
    return check_pass("10 rounds of %d values, the default pool, pools of the program's own", count);
}

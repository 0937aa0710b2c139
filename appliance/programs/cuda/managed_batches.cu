// Batches of prefetches and discards of managed memory, as far as the attribute for concurrent access permits.
#include "check_cuda.h"

static const int PARTS = 4, COUNT = 1 << 16;

static __global__ void add(int *values, int addend) {
    values[blockIdx.x * blockDim.x + threadIdx.x] += addend;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    void *parts[PARTS];
    size_t sizes[PARTS], indices[2] = {0, 2}, wrong[2] = {0, PARTS};
    cudaMemLocation locations[2] = {};
    locations[0].type = cudaMemLocationTypeDevice;
    locations[1].type = cudaMemLocationTypeHost;
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!check_attribute(cudaDevAttrManagedMemory)) {
        CUDA_IS(cudaErrorNotSupported, cudaMallocManaged(&parts[0], COUNT));
        check_unsupported("the device has no managed memory (attribute 83)");
    }
    const cudaError_t concurrent =
        check_attribute(cudaDevAttrConcurrentManagedAccess) ? cudaSuccess : cudaErrorInvalidDevice;
    for (int i = 0; i < PARTS; i++) {
        int *values = nullptr;
        CUDA_OK(cudaMallocManaged(&values, COUNT * sizeof(int)));
        for (int j = 0; j < COUNT; j++) {
            values[j] = j;
        }
        parts[i] = values;
        sizes[i] = COUNT * sizeof(int);
    }
    CUDA_IS(concurrent, cudaMemPrefetchBatchAsync(parts, sizes, PARTS, locations, indices, 2, 0, stream));
    cudaGetLastError();
    for (int i = 0; i < PARTS; i++) {
        add<<<COUNT / 256, 256, 0, stream>>>((int *) parts[i], 10 * i);
        LAUNCH_OK();
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < PARTS; i++) {
        check_element("after the prefetch", i, COUNT - 1 + 10 * i, ((int *) parts[i])[COUNT - 1]);
    }
    CUDA_IS(concurrent, cudaMemDiscardBatchAsync(parts, sizes, 2, 0, stream));
    CUDA_IS(concurrent, cudaMemDiscardAndPrefetchBatchAsync(parts + 2, sizes + 2, 2, locations, indices, 1, 0, stream));
    cudaGetLastError();
    for (int i = 0; i < PARTS; i++) {
        CUDA_OK(cudaMemsetAsync(parts[i], 0, sizes[i], stream)); /* a write ends the discard */
        add<<<COUNT / 256, 256, 0, stream>>>((int *) parts[i], 7);
        LAUNCH_OK();
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < PARTS; i++) {
        check_element("after the discard", i, 7, ((int *) parts[i])[COUNT - 1]);
    }
    CUDA_IS(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(parts, sizes, PARTS, locations, wrong, 2, 0, stream));
    CUDA_IS(cudaErrorInvalidValue, cudaMemPrefetchBatchAsync(parts, sizes, PARTS, locations, indices, 2, 1, stream));
    CUDA_IS(cudaErrorInvalidValue, cudaMemDiscardBatchAsync(parts, sizes, 0, 0, stream));
    cudaGetLastError();
    for (void *part : parts) {
        CUDA_OK(cudaFree(part));
    }
    CUDA_OK(cudaStreamDestroy(stream));
    return check_pass("%d parts", PARTS);
}

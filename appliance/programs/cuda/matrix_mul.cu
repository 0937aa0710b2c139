// Tiled single-precision matrix product through shared memory. `--size N` (a multiple of 16) sets N x N x N; the
// software GPU's speed is measured with 1024.
#include "check_cuda.h"

constexpr int TILE = 16;

__global__ void matrix_mul(const float *a, const float *b, float *c, int size) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < size / TILE; tile++) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * size + tile * TILE + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(tile * TILE + threadIdx.y) * size + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) {
            sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        }
        __syncthreads();
    }
    c[row * size + column] = sum;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int size = (int) check_option("--size", 128);
    if (size < TILE || size % TILE != 0) {
        check_fail("--size, expected a multiple of %d, got %d", TILE, size);
    }
    uint32_t seed = 7;
    std::vector<float> a((size_t) size * size), b((size_t) size * size);
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = check_random_float(&seed);
        b[i] = check_random_float(&seed);
    }
    float *device_a = device_copy(a), *device_b = device_copy(b), *device_c = device_array<float>(a.size());
    dim3 grid(size / TILE, size / TILE), block(TILE, TILE);
    cudaEvent_t start, stop;
    CUDA_OK(cudaEventCreate(&start));
    CUDA_OK(cudaEventCreate(&stop));
    CUDA_OK(cudaEventRecord(start));
    matrix_mul<<<grid, block>>>(device_a, device_b, device_c, size);
    LAUNCH_OK();
    CUDA_OK(cudaEventRecord(stop));
    CUDA_OK(cudaEventSynchronize(stop));
    float milliseconds = 0;
    CUDA_OK(cudaEventElapsedTime(&milliseconds, start, stop));
    std::vector<float> c = host_copy(device_c, a.size());

    // Checks all elements of a small product, and a sample of a large one, because the host computes more slowly than
    // the device.
    int step = size <= 256 ? 1 : size * size / 4096 + 1;
    for (int i = 0; i < size * size; i += step) {
        int row = i / size, column = i % size;
        double sum = 0;
        for (int k = 0; k < size; k++) {
            sum += (double) a[row * size + k] * b[k * size + column];
        }
        check_near("c", i, sum, c[i], 1e-6 * size);
    }
    CUDA_OK(cudaEventDestroy(start));
    CUDA_OK(cudaEventDestroy(stop));
    CUDA_OK(cudaFree(device_a));
    CUDA_OK(cudaFree(device_b));
    CUDA_OK(cudaFree(device_c));
    check_measured("kernel %.3f ms, %.2f GFLOP/s", milliseconds, 2.0 * size * size * size / (milliseconds * 1e6));
    return check_pass("%dx%dx%d", size, size, size);
}

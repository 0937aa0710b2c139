// Separable 2D convolution: the filter in constant memory, rows and columns through shared memory with halos.
#include "check_cuda.h"

constexpr int RADIUS = 4;
constexpr int TAPS = 2 * RADIUS + 1;
constexpr int BLOCK = 64;

__constant__ float filter[TAPS];

__global__ void convolve_rows(const float *in, float *out, int width) {
    __shared__ float row[BLOCK + 2 * RADIUS];
    int y = blockIdx.y;
    for (int i = threadIdx.x; i < BLOCK + 2 * RADIUS; i += BLOCK) {
        int x = (int) (blockIdx.x * BLOCK) + i - RADIUS;
        row[i] = x >= 0 && x < width ? in[y * width + x] : 0;
    }
    __syncthreads();
    int x = blockIdx.x * BLOCK + threadIdx.x;
    if (x < width) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            sum += filter[k] * row[threadIdx.x + k];
        }
        out[y * width + x] = sum;
    }
}

__global__ void convolve_columns(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float sum = 0;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            if (y + k >= 0 && y + k < height) {
                sum += filter[k + RADIUS] * in[(y + k) * width + x];
            }
        }
        out[y * width + x] = sum;
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const int width = 200, height = 90;
    float taps[TAPS];
    for (int k = 0; k < TAPS; k++) {
        taps[k] = (float) (k + 1) / 45.0f;
    }
    CUDA_OK(cudaMemcpyToSymbol(filter, taps, sizeof(taps)));
    uint32_t seed = 9;
    std::vector<float> in(width * height);
    for (float &value : in) {
        value = check_random_float(&seed);
    }
    float *device_in = device_copy(in), *rows = device_array<float>(in.size()), *out = device_array<float>(in.size());
    convolve_rows<<<dim3((width + BLOCK - 1) / BLOCK, height), BLOCK>>>(device_in, rows, width);
    LAUNCH_OK();
    convolve_columns<<<dim3((width + 15) / 16, (height + 7) / 8), dim3(16, 8)>>>(rows, out, width, height);
    LAUNCH_OK();
    std::vector<float> got = host_copy(out, in.size());
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            double sum = 0;
            for (int ky = -RADIUS; ky <= RADIUS; ky++) {
                for (int kx = -RADIUS; kx <= RADIUS; kx++) {
                    if (x + kx >= 0 && x + kx < width && y + ky >= 0 && y + ky < height) {
                        sum += (double) taps[ky + RADIUS] * taps[kx + RADIUS] * in[(y + ky) * width + x + kx];
                    }
                }
            }
            check_near("pixel", y * width + x, sum, got[y * width + x], 1e-5);
        }
    }
    CUDA_OK(cudaFree(device_in));
    CUDA_OK(cudaFree(rows));
    CUDA_OK(cudaFree(out));
    return check_pass("%dx%d, radius %d", width, height, RADIUS);
}

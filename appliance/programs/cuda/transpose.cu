// Transposes a matrix whose size is no multiple of the tile, through padded shared memory, with 64-bit and 16-byte
// elements.
#include "check_cuda.h"

constexpr int TILE = 32;
constexpr int ROWS = 8;

template <typename T> __global__ void transpose(const T *in, T *out, int width, int height) {
    __shared__ T tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS) {
        if (x < width && y + i < height) {
            tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS) {
        if (x < height && y + i < width) {
            out[(y + i) * height + x] = tile[threadIdx.x][threadIdx.y + i];
        }
    }
}

static float4 element(float4 *, int i) {
    return make_float4((float) i, (float) -i, i * 0.5f, 1.0f);
}

static long long element(long long *, int i) {
    return ((long long) i << 33) - i;
}

template <typename T> static void run(const char *what, int width, int height) {
    std::vector<T> in((size_t) width * height);
    for (int i = 0; i < width * height; i++) {
        in[i] = element((T *) nullptr, i);
    }
    T *device_in = device_copy(in), *device_out = device_array<T>(in.size());
    dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), block(TILE, ROWS);
    transpose<<<grid, block>>>(device_in, device_out, width, height);
    LAUNCH_OK();
    std::vector<T> out = host_copy(device_out, in.size());
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            if (memcmp(&in[y * width + x], &out[x * height + y], sizeof(T)) != 0) {
                check_fail("%s at column %d, row %d, expected the element of the input, got another", what, x, y);
            }
        }
    }
    CUDA_OK(cudaFree(device_in));
    CUDA_OK(cudaFree(device_out));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    run<long long>("64-bit", 301, 150);
    run<float4>("float4", 97, 130);
    return check_pass("301x150 of 8 bytes, 97x130 of 16 bytes");
}

// Vector addition c = a + b, with a tail that does not fill the last block.
#include "check_cuda.h"

__global__ void vector_add(const float *a, const float *b, float *c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        c[i] = a[i] + b[i];
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int count = (int) check_option("--size", 100003);
    uint32_t seed = 1;
    std::vector<float> a(count), b(count);
    for (int i = 0; i < count; i++) {
        a[i] = check_random_float(&seed);
        b[i] = check_random_float(&seed);
    }
    float *device_a = device_copy(a), *device_b = device_copy(b), *device_c = device_array<float>(count);
    vector_add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_c, count);
    LAUNCH_OK();
    std::vector<float> c = host_copy(device_c, count);
    for (int i = 0; i < count; i++) {
        check_near("c", i, a[i] + b[i], c[i], 0);
    }
    CUDA_OK(cudaFree(device_a));
    CUDA_OK(cudaFree(device_b));
    CUDA_OK(cudaFree(device_c));
    return check_pass("%d elements", count);
}

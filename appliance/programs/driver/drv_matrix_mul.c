/* Tiled matrix product from PTX; `--size N` as in matrix_mul.cu. */
#include "check_driver.h"

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    int size = (int) check_option("--size", 96);
    if (size < 16 || size % 16 != 0) {
        check_fail("--size, expected a multiple of 16, got %d", size);
    }
    size_t bytes = (size_t) size * size * sizeof(float);
    float *a = check_memory(bytes), *b = check_memory(bytes), *c = check_memory(bytes);
    uint32_t seed = 7;
    for (int i = 0; i < size * size; i++) {
        a[i] = check_random_float(&seed);
        b[i] = check_random_float(&seed);
    }
    CUmodule module = check_module("kernels.ptx");
    CUfunction function = check_function(module, "matrix_mul");
    CUdeviceptr device_a = check_device(a, bytes), device_b = check_device(b, bytes),
                device_c = check_device(NULL, bytes);
    void *parameters[] = {&device_a, &device_b, &device_c, &size};
    double start = check_seconds();
    CU_OK(cuLaunchKernel(function, (unsigned int) size / 16, (unsigned int) size / 16, 1, 16, 16, 1, 0, NULL,
                         parameters, NULL));
    CU_OK(cuCtxSynchronize());
    double seconds = check_seconds() - start;
    CU_OK(cuMemcpyDtoH(c, device_c, bytes));
    int step = size <= 256 ? 1 : size * size / 4096 + 1;
    for (int i = 0; i < size * size; i += step) {
        double sum = 0;
        for (int k = 0; k < size; k++) {
            sum += (double) a[i / size * size + k] * b[k * size + i % size];
        }
        check_near("c", i, sum, c[i], 1e-6 * size);
    }
    int shared = 0;
    CU_OK(cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    check_equal("static shared memory", 2048, shared);
    CU_OK(cuMemFree(device_a));
    CU_OK(cuMemFree(device_b));
    CU_OK(cuMemFree(device_c));
    free(a);
    free(b);
    free(c);
    check_measured("%.2f GFLOP/s", 2.0 * size * size * size / seconds * 1e-9);
    return check_pass("%dx%dx%d", size, size, size);
}

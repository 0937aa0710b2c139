/* Vector addition from a PTX file, with both ways to pass parameters. */
#include "check_driver.h"

#include <stddef.h>

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    int count = (int) check_option("--size", 50021);
    size_t bytes = (size_t) count * sizeof(float);
    float *a = check_memory(bytes), *b = check_memory(bytes), *c = check_memory(bytes);
    uint32_t seed = 1;
    for (int i = 0; i < count; i++) {
        a[i] = check_random_float(&seed);
        b[i] = check_random_float(&seed);
    }
    CUmodule module;
    CU_OK(cuModuleLoad(&module, check_ptx_path("kernels.ptx")));
    CUfunction function = check_function(module, "vector_add");
    CUdeviceptr device_a = check_device(a, bytes), device_b = check_device(b, bytes),
                device_c = check_device(NULL, bytes);
    CHECK_LAUNCH(function, (count + 255) / 256, 256, 0, NULL, &device_a, &device_b, &device_c, &count);
    CU_OK(cuMemcpyDtoH(c, device_c, bytes));
    for (int i = 0; i < count; i++) {
        check_near("c", i, a[i] + b[i], c[i], 0);
    }

    /* c = a + c by a packed buffer. */
    struct packed {
        CUdeviceptr a, b, c;
        int count;
    } packed = {device_a, device_c, device_c, count};
    size_t packed_bytes = offsetof(struct packed, count) + sizeof(int); /* without the padding at the end */
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_bytes,
                     CU_LAUNCH_PARAM_END};
    CU_OK(cuLaunchKernel(function, (unsigned int) (count + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    packed_bytes = sizeof packed;
    CU_IS((CUresult) 701, cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, extra)); /* out of resources */
    packed_bytes = 32765;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    packed_bytes = 0;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    CU_OK(cuMemcpyDtoH(b, device_c, bytes));
    for (int i = 0; i < count; i++) {
        check_near("c by a packed buffer", i, a[i] + c[i], b[i], 0);
    }
    CU_OK(cuMemFree(device_a));
    CU_OK(cuMemFree(device_b));
    CU_OK(cuMemFree(device_c));
    CU_OK(cuModuleUnload(module));
    CU_OK(cuDevicePrimaryCtxRelease(0));
    free(a);
    free(b);
    free(c);
    return check_pass("%d elements, parameters by pointers and packed", count);
}

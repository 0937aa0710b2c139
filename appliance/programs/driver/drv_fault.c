/* A kernel that writes to invalid memory: error 700, which every later call returns as well. */
#include "check_driver.h"

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("kernels.ptx");
    CUfunction store = check_function(module, "store_at");
    int value = 1;
    long long offset = 1LL << 38;
    CUdeviceptr device = check_device(&value, 4), more;
    CHECK_LAUNCH(store, 1, 1, 0, NULL, &device, &offset, &value);
    CU_IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CU_IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&more, 4));
    CU_IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&value, device, 4));
    CU_IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    return check_pass("error 700 with every call after it");
}

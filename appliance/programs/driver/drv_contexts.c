/* Several contexts: each thread's stack, the primary context's count, memory and modules of each context. */
#include "check_driver.h"

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CU_OK(cuInit(0));
    CUcontext first, second, current, primary, again;
    CU_OK(cuCtxGetCurrent(&current));
    check_true("no context at first", current == NULL);
    CU_OK(cuCtxCreate_v2(&first, 0, 0));
    CU_OK(cuCtxCreate_v2(&second, 0, 0));
    CU_OK(cuCtxGetCurrent(&current));
    check_true("the one just made is current", current == second);
    CUdeviceptr in_second = check_device(NULL, 4);
    CU_OK(cuCtxPopCurrent(&current));
    check_true("popped", current == second);
    CU_OK(cuCtxGetCurrent(&current));
    check_true("the first is below", current == first);
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value");
    int value = 40, one = 1, two = 2;
    CUdeviceptr in_first = check_device(&value, 4);
    CHECK_LAUNCH(add, 1, 1, 0, NULL, &in_first, &one, &two);
    CU_OK(cuCtxPushCurrent(second));
    CUmodule other = check_module("kernels.ptx");
    CUfunction store = check_function(other, "store_at");
    long long offset = 0;
    CHECK_LAUNCH(store, 1, 1, 0, NULL, &in_second, &offset, &two);
    CU_OK(cuMemcpyDtoH(&value, in_second, 4));
    check_equal("in the second context", 2, value);
    CU_OK(cuCtxPopCurrent(NULL));
    CU_OK(cuMemcpyDtoH(&value, in_first, 4));
    check_equal("in the first context", 42, value);
    CU_OK(cuCtxDestroy(second));
    CU_OK(cuCtxDestroy(first));
    CU_OK(cuCtxGetCurrent(&current));
    check_true("a destroyed current context is popped", current == NULL);
    CU_IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&current));

    unsigned int flags = 9;
    int active = -1;
    CU_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    check_equal("the primary context is inactive", 0, active);
    CU_OK(cuDevicePrimaryCtxRetain(&primary, 0));
    CU_OK(cuDevicePrimaryCtxRetain(&again, 0));
    check_true("one primary context", primary == again);
    CU_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    check_equal("the primary context is active", 1, active);
    CU_OK(cuCtxSetCurrent(primary));
    CUdevice device = 7;
    CU_OK(cuCtxGetDevice(&device));
    check_equal("its device", 0, device);
    CUdeviceptr pointer = check_device(&value, 4);
    CU_OK(cuDevicePrimaryCtxRelease(0));
    CU_OK(cuMemcpyDtoH(&value, pointer, 4)); /* retained twice: still there */
    CU_OK(cuDevicePrimaryCtxRelease(0));
    CU_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    check_equal("released as often as retained", 0, active);
    CU_IS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    return check_pass("two contexts, the stack, the primary context's count");
}

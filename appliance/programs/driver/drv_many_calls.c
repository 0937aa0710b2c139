/* Tens of thousands of launches and small copies without waiting, more than the credit window holds. The sum shows that
 * none was lost, repeated or run out of order. */
#include "check_driver.h"

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value"), multiply = check_function(module, "multiply");
    int rounds = (int) check_option("--rounds", 4000), count = 4;
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr values = check_device(NULL, 16), factors = check_device(NULL, 16);
    CU_OK(cuMemsetD32(values, 1, 4));
    CU_OK(cuCtxSynchronize());
    unsigned int expected[4] = {1, 1, 1, 1}, got[4];
    for (int round = 0; round < rounds; round++) {
        int pair[4] = {round, 3, -round, 1}; /* pageable, overwritten at once: the call must read the bytes */
        CU_OK(cuMemcpyHtoDAsync(factors, pair, 16, stream));
        CHECK_LAUNCH(multiply, 1, 4, 0, stream, &values, &factors, &count);
        CHECK_LAUNCH(add, 1, 4, 0, stream, &values, &count, &round);
        for (int i = 0; i < 4; i++) {
            expected[i] = expected[i] * (unsigned int) pair[i] + (unsigned int) round;
        }
    }
    CU_OK(cuMemcpyDtoHAsync(got, values, 16, stream));
    CU_OK(cuStreamSynchronize(stream));
    for (int i = 0; i < 4; i++) {
        check_element("value", i, expected[i], got[i]);
    }
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(values));
    CU_OK(cuMemFree(factors));
    return check_pass("%d calls in order", 3 * rounds);
}

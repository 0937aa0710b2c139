/* Variables of a module by name, initial values with addresses, parameters of odd sizes and alignments. */
#include "check_driver.h"

struct odd {
    char tag;
    double value;
    short pair[3];
};

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("globals.ptx");
    double got[6];
    CUdeviceptr out = check_device(NULL, sizeof(got)), address;
    size_t bytes = 0;
    CUfunction read = check_function(module, "read_globals");
    CHECK_LAUNCH(read, 1, 1, 0, NULL, &out);
    CU_OK(cuMemcpyDtoH(got, out, 4 * sizeof(double)));
    const double first[] = {5, 0.5 + 15 + 250, 22, 1 - 20 + 300 - 4000};
    for (int i = 0; i < 4; i++) {
        check_near("initial value", i, first[i], got[i], 0);
    }
    CU_OK(cuModuleGetGlobal(&address, &bytes, module, "counter"));
    check_equal("size of counter", 4, (long long) bytes);
    int counter = 0;
    CU_OK(cuMemcpyDtoH(&counter, address, 4));
    check_equal("counter", 6, counter);
    CU_OK(cuMemsetD32(address, 77, 1));
    CU_OK(cuModuleGetGlobal(&address, &bytes, module, "weights"));
    check_equal("size of weights", 8, (long long) bytes);
    short weights[] = {5, 0, 0, 1};
    CU_OK(cuMemcpyHtoD(address, weights, sizeof(weights)));
    CHECK_LAUNCH(read, 1, 1, 0, NULL, &out);
    CU_OK(cuMemcpyDtoH(got, out, 4 * sizeof(double)));
    check_near("counter set", 0, 77, got[0], 0);
    check_near("weights set", 3, 1005, got[3], 0);
    CU_IS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&address, &bytes, module, "no_such_variable"));

    char a = -3;
    struct odd odd = {2, 0.25, {7, 8, 9}};
    short b = -30000;
    float c = 1.5f;
    unsigned long long d = 0x1234567890ULL;
    unsigned char e = 1;
    CUfunction parameters = check_function(module, "odd_parameters");
    CHECK_LAUNCH(parameters, 1, 1, 0, NULL, &out, &a, &odd, &b, &c, &d, &e);
    CU_OK(cuMemcpyDtoH(got, out, sizeof(got)));
    const double second[] = {-3, 2.25 + 700 + 90000, -30000, 1.5, 0x12, 1};
    for (int i = 0; i < 6; i++) {
        check_near("parameter", i, second[i], got[i], 0);
    }
    /* A second load of the same image has its own variables. */
    CUmodule again = check_module("globals.ptx");
    CUdeviceptr other;
    CU_OK(cuModuleGetGlobal(&other, &bytes, again, "counter"));
    CU_OK(cuMemcpyDtoH(&counter, other, 4));
    check_equal("counter of the second module", 5, counter);
    CU_OK(cuModuleUnload(again));
    CU_OK(cuModuleUnload(module));
    CU_OK(cuMemFree(out));
    return check_pass("5 variables, 6 odd parameters, two modules of one image");
}

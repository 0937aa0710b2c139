/* Reduction with shuffles, histogram with dynamic shared memory, three-launch scan, from PTX. */
#include "check_driver.h"

static void reduction(CUmodule module) {
    CUfunction function = check_function(module, "reduce");
    int count = 70001;
    int *values = check_memory((size_t) count * 4);
    uint32_t seed = 3;
    long long expected = 0, got = 0;
    for (int i = 0; i < count; i++) {
        values[i] = (int) (check_random(&seed) % 2000001) - 1000000;
        expected += values[i];
    }
    CUdeviceptr device = check_device(values, (size_t) count * 4), total = check_device(&got, 8);
    CHECK_LAUNCH(function, 9, 160, 0, NULL, &device, &count, &total);
    CU_OK(cuMemcpyDtoH(&got, total, 8));
    check_equal("sum", expected, got);
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFree(total));
    free(values);
}

static void histogram(CUmodule module) {
    CUfunction function = check_function(module, "histogram");
    int count = 99991;
    unsigned char *bytes = check_memory((size_t) count);
    unsigned int expected[256] = {0}, got[256];
    uint32_t seed = 11;
    for (int i = 0; i < count; i++) {
        bytes[i] = (unsigned char) (check_random(&seed) | check_random(&seed));
        expected[bytes[i]]++;
    }
    CUdeviceptr device = check_device(bytes, (size_t) count), bins = check_device(NULL, sizeof(got));
    CU_OK(cuMemsetD32(bins, 0, 256));
    CHECK_LAUNCH(function, 8, 96, 1024, NULL, &device, &count, &bins);
    CU_OK(cuMemcpyDtoH(got, bins, sizeof(got)));
    for (int bin = 0; bin < 256; bin++) {
        check_element("bins", bin, expected[bin], got[bin]);
    }
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFree(bins));
    free(bytes);
}

static void scan(CUmodule module) {
    CUfunction blocks = check_function(module, "scan_block"), add = check_function(module, "scan_add");
    int count = 20011, groups = (count + 255) / 256;
    unsigned int *values = check_memory((size_t) count * 4), *got = check_memory((size_t) count * 4);
    uint32_t seed = 5;
    for (int i = 0; i < count; i++) {
        values[i] = check_random(&seed) % 1000;
    }
    CUdeviceptr in = check_device(values, (size_t) count * 4), out = check_device(NULL, (size_t) count * 4);
    CUdeviceptr sums = check_device(NULL, (size_t) groups * 4), none = 0;
    CHECK_LAUNCH(blocks, groups, 256, 0, NULL, &in, &out, &sums, &count);
    CHECK_LAUNCH(blocks, 1, 256, 0, NULL, &sums, &sums, &none, &groups);
    CHECK_LAUNCH(add, groups, 256, 0, NULL, &out, &sums, &count);
    CU_OK(cuMemcpyDtoH(got, out, (size_t) count * 4));
    unsigned int expected = 0;
    for (int i = 0; i < count; i++) {
        check_element("scan", i, expected, got[i]);
        expected += values[i];
    }
    CU_OK(cuMemFree(in));
    CU_OK(cuMemFree(out));
    CU_OK(cuMemFree(sums));
    free(values);
    free(got);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("kernels.ptx");
    reduction(module);
    histogram(module);
    scan(module);
    CU_OK(cuModuleUnload(module));
    return check_pass("sum, 256 bins, prefix sums");
}

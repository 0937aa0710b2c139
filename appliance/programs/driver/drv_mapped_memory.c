/* Pinned host memory that kernels read and write in place; fills, copies and attributes by its device pointer. */
#include "check_driver.h"

enum { COUNT = 100000 };

static CUdeviceptr device_pointer(void *host) {
    CUdeviceptr pointer = 0;
    CU_OK(cuMemHostGetDevicePointer(&pointer, host, 0));
    return pointer;
}

static void check_values(const char *what, const int *values, int factor, int addend) {
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, (long long) i * factor + addend, values[i]);
    }
}

/* Kernels change the host's memory, and see the host's changes. */
static void kernels(CUmodule module) {
    CUfunction add = check_function(module, "add_value"), multiply = check_function(module, "multiply");
    int *values, *factors, count = COUNT, addend = 5;
    CU_OK(cuMemHostAlloc((void **) &values, COUNT * sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP));
    CU_OK(cuMemHostAlloc((void **) &factors, COUNT * sizeof(int),
                         CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED));
    unsigned int flags = 0;
    CU_OK(cuMemHostGetFlags(&flags, values));
    check_true("the flag of a mapping", (flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0);
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
        factors[i] = 2;
    }
    CUdeviceptr on_device = device_pointer(values), factors_on_device = device_pointer(factors);
    check_equal("the middle of the memory", (long long) (on_device + 400), (long long) device_pointer(values + 100));
    CHECK_LAUNCH(add, (COUNT + 255) / 256, 256, 0, NULL, &on_device, &count, &addend);
    CHECK_LAUNCH(multiply, (COUNT + 255) / 256, 256, 0, NULL, &on_device, &factors_on_device, &count);
    CU_OK(cuCtxSynchronize());
    check_values("added and multiplied in place", values, 2, 10);
    for (int i = 0; i < COUNT; i++) {
        values[i] = 3 * i;
    }
    CHECK_LAUNCH(add, (COUNT + 255) / 256, 256, 0, NULL, &on_device, &count, &addend);
    CU_OK(cuStreamSynchronize(NULL));
    check_values("written by the host in between", values, 3, 5);
    CU_OK(cuMemFreeHost(values));
    CU_OK(cuMemFreeHost(factors));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&on_device, values, 0));
}

/* Atomic operations of all blocks on host memory, in an allocation that shares its page with others. */
static void atomics(CUmodule module) {
    CUfunction reduce = check_function(module, "reduce"), histogram = check_function(module, "histogram");
    unsigned long long *small[20];
    unsigned int *bins;
    unsigned char *bytes;
    int *values, count = COUNT;
    for (int i = 0; i < 20; i++) {
        CU_OK(cuMemHostAlloc((void **) &small[i], sizeof(*small[i]), CU_MEMHOSTALLOC_DEVICEMAP));
        *small[i] = (unsigned long long) i;
    }
    CU_OK(cuMemHostAlloc((void **) &values, COUNT * sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP));
    CU_OK(cuMemHostAlloc((void **) &bytes, COUNT, CU_MEMHOSTALLOC_DEVICEMAP));
    CU_OK(cuMemHostAlloc((void **) &bins, 256 * sizeof(unsigned int), CU_MEMHOSTALLOC_DEVICEMAP));
    unsigned long long expected = 7;
    unsigned int expected_bins[256] = {0};
    for (int i = 0; i < COUNT; i++) {
        values[i] = i % 1000;
        bytes[i] = (unsigned char) (i * 31 >> 3);
        expected += (unsigned long long) values[i];
        expected_bins[bytes[i]]++;
    }
    memset(bins, 0, 256 * sizeof(unsigned int));
    CUdeviceptr in = device_pointer(values), total = device_pointer(small[7]), in_bytes = device_pointer(bytes),
                out_bins = device_pointer(bins);
    CHECK_LAUNCH(reduce, 16, 256, 0, NULL, &in, &count, &total);
    CHECK_LAUNCH(histogram, 8, 128, 1024, NULL, &in_bytes, &count, &out_bins);
    CU_OK(cuCtxSynchronize());
    for (int i = 0; i < 20; i++) {
        check_element("sums", i, i == 7 ? (long long) expected : i, (long long) *small[i]);
        CU_OK(cuMemFreeHost(small[i]));
    }
    for (int bin = 0; bin < 256; bin++) {
        check_element("bins", bin, expected_bins[bin], bins[bin]);
    }
    CU_OK(cuMemFreeHost(values));
    CU_OK(cuMemFreeHost(bytes));
    CU_OK(cuMemFreeHost(bins));
}

/* Fills and copies accept the device pointer like any other. */
static void fills_and_copies(void) {
    unsigned int *host, *other = check_memory(COUNT * sizeof(int));
    CU_OK(cuMemHostAlloc((void **) &host, COUNT * sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP));
    CUdeviceptr mapped = device_pointer(host), device = check_device(NULL, COUNT * sizeof(int));
    CU_OK(cuMemsetD32(mapped, 0xCAFE0000u, COUNT));
    CU_OK(cuMemsetD8(mapped + 40, 0x11, 4));
    CU_OK(cuCtxSynchronize());
    check_equal("filled", 0xCAFE0000LL, host[COUNT - 1]);
    check_equal("filled again", 0x11111111LL, host[10]);
    CU_OK(cuMemcpyDtoD(device, mapped, COUNT * sizeof(int)));
    CU_OK(cuMemcpyDtoH(other, device, COUNT * sizeof(int)));
    check_equal("from mapped memory to the device's", 0, memcmp(other, host, COUNT * sizeof(int)));
    CU_OK(cuMemsetD32(device, 0x12345678u, COUNT));
    CU_OK(cuMemcpyDtoD(mapped + 4, device, COUNT * sizeof(int) - 4));
    CU_OK(cuCtxSynchronize());
    check_equal("the word before is untouched", 0xCAFE0000LL, host[0]);
    check_equal("from the device's memory to mapped memory", 0x12345678LL, host[COUNT - 1]);
    for (int i = 0; i < COUNT; i++) {
        other[i] = (unsigned int) i * 7;
    }
    CU_OK(cuMemcpyHtoD(mapped, other, COUNT * sizeof(int)));
    CU_OK(cuCtxSynchronize());
    check_equal("from the program's memory", 0, memcmp(other, host, COUNT * sizeof(int)));
    CU_OK(cuMemcpy(device, (CUdeviceptr) (uintptr_t) host, COUNT * sizeof(int)));
    CU_OK(cuMemcpy((CUdeviceptr) (uintptr_t) other, mapped + 8, 400));
    check_equal("of unified addresses", 0, memcmp(other, host + 2, 400));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(mapped, 0, COUNT * sizeof(int) + (8 << 20)));
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFreeHost(host));
    free(other);
}

static void attributes(void) {
    char *host;
    unsigned int type = 0;
    CUdeviceptr device = 0;
    void *back = NULL;
    CU_OK(cuMemHostAlloc((void **) &host, 5000, CU_MEMHOSTALLOC_DEVICEMAP));
    CUdeviceptr mapped = device_pointer(host);
    CU_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr) (uintptr_t) host + 9));
    check_equal("type by the host's pointer", CU_MEMORYTYPE_HOST, type);
    CU_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped + 9));
    check_equal("type by the device's pointer", CU_MEMORYTYPE_HOST, type);
    CU_OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr) (uintptr_t) host + 9));
    check_equal("the device's pointer", (long long) (mapped + 9), (long long) device);
    CU_OK(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, mapped + 9));
    check_true("the host's pointer", back == host + 9);
    CU_OK(cuMemFreeHost(host));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    if (!check_can_map()) {
        check_unsupported("the device cannot map host memory (attribute 19)");
    }
    CUmodule module = check_module("kernels.ptx");
    kernels(module);
    atomics(module);
    fills_and_copies();
    attributes();
    CU_OK(cuModuleUnload(module));
    return check_pass("kernels, atomics, fills, copies and attributes of mapped host memory");
}

/* The results of wrong calls: before initialisation, with wrong values and handles, with images that cannot be
 * loaded. */
#include "check_driver.h"

static void images(void) {
    static const char bad[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n    no.such.op %r1;\n"
        "    ret;\n}\n";
    char error[4096] = "", info[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *) (uintptr_t) sizeof(error), info, (void *) (uintptr_t) sizeof(info)};
    CUmodule module = NULL;
    CU_IS(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, bad, 4, options, values));
    check_true("the log ends in its buffer", memchr(error, 0, sizeof(error)) != NULL);
    if (strstr(error, "line 6") == NULL && strstr(error, "no.such") == NULL) {
        check_fail("error log, expected the line or the instruction, got \"%s\"", error);
    }
    check_true("no module", module == NULL);
    CU_IS(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, bad));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    CUmodule good = check_module("kernels.ptx");
    CUfunction function = NULL;
    CU_IS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, good, "no_such_kernel"));
    check_true("no function", function == NULL);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&function, good, NULL));
    CU_OK(cuModuleGetFunction(&function, good, "empty"));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, NULL, NULL));
    CU_OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CU_OK(cuCtxSynchronize());
    CU_OK(cuModuleUnload(good));
}

static void memory(void) {
    CUdeviceptr device = 0;
    size_t available = 0, total = 0;
    char bytes[16];
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&device, 0));
    CU_OK(cuMemGetInfo(&available, &total));
    CU_IS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&device, total + (1 << 20)));
    CU_IS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&device, (size_t) 1 << 60));
    CU_OK(cuMemAlloc(&device, 1000));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemFree(device + 8));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0x1000, bytes, 16));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(bytes, 0x1000, 16));
    int type = 0;
    CU_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 500));
    check_equal("memory type", CU_MEMORYTYPE_DEVICE, type);
    CU_IS(CUDA_ERROR_INVALID_VALUE,
          cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr) (uintptr_t) bytes));
    CU_OK(cuMemFree(device));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemFree(device));
    CU_OK(cuMemFree(0));
}

static void entry_points(void) {
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    CU_OK(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &status));
    check_equal("cuMemAlloc is found", CU_GET_PROC_ADDRESS_SUCCESS, status);
    check_true("cuMemAlloc has an address", function != NULL);
    CUdeviceptr device = 0;
    CUresult (*allocate)(CUdeviceptr *, size_t);
    memcpy(&allocate, &function, sizeof(allocate));
    CU_OK(allocate(&device, 64));
    CU_OK(cuMemFree(device));
    CU_OK(cuGetProcAddress("cuNoSuchFunction", &function, 12000, 0, &status));
    check_equal("an unknown name", CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, status);
    check_true("no address of an unknown name", function == NULL);
    CU_OK(cuGetProcAddress("cuLaunchKernelEx", &function, 11000, 0, &status));
    check_equal("too new a name", CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, status);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &function, 12000, 77, &status));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int count = 0, version = 0;
    CUdevice device;
    CU_IS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    CU_OK(cuDriverGetVersion(&version));
    check_true("a version", version >= 12000);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    CU_OK(cuInit(0));
    CU_OK(cuInit(0));
    CU_OK(cuDeviceGetCount(&count));
    check_true("a device", count >= 1);
    CU_IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, count));
    CU_IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    CUdeviceptr pointer;
    CU_IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&pointer, 16));
    CU_IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    const char *text = NULL;
    CU_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    check_text("name of error 700", "CUDA_ERROR_ILLEGAL_ADDRESS", text);
    CU_OK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
    check_text("text of error 1", "invalid argument", text);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult) 123456, &text));
    check_context();
    images();
    memory();
    entry_points();
    return check_pass("before initialisation, values, images with a log, memory, entry points");
}

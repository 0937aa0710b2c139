// The results of wrong calls, and the rules of the last error. No case harms the context: at the end a kernel still
// runs.
#include "check_cuda.h"

__device__ int variable;

__global__ void set(int *out, int value) {
    *out = value;
}

// An error that a call returned is also the last error, and reading it clears it.
#define FAILS(expected, call)                                                                                          \
    do {                                                                                                               \
        CUDA_IS(expected, call);                                                                                       \
        CUDA_IS(expected, cudaPeekAtLastError());                                                                      \
        CUDA_IS(expected, cudaGetLastError());                                                                         \
        CUDA_IS(cudaSuccess, cudaGetLastError());                                                                      \
    } while (0)

// A pointer to a non-kernel: releases of the runtime return different codes; since 12 some treat the pointer as a
// handle.
static void is_no_kernel(cudaError_t got) {
    if (got != cudaErrorInvalidDeviceFunction && got != cudaErrorInvalidResourceHandle) {
        check_fail("a pointer that is no kernel, expected 98 or 400, got %d %s", (int) got, cudaGetErrorName(got));
    }
    CUDA_IS(got, cudaGetLastError());
}

static void invalid_values(int *device) {
    int host = 0;
    void *pointer = nullptr;
    FAILS(cudaErrorInvalidValue, cudaMalloc((void **) nullptr, 16));
    FAILS(cudaErrorInvalidValue, cudaMemcpy(device, nullptr, 4, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, &host, 4, (cudaMemcpyKind) 77));
    FAILS(cudaErrorInvalidValue, cudaMemset((void *) 16, 0, 4));
    FAILS(cudaErrorInvalidValue, cudaFree((char *) device + 4));
    FAILS(cudaErrorInvalidDevice, cudaSetDevice(999));
    FAILS(cudaErrorInvalidValue, cudaGetDevice(nullptr));
    FAILS(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&host, cudaDevAttrWarpSize, 999));
    FAILS(cudaErrorInvalidValue, cudaDeviceGetAttribute(&host, (cudaDeviceAttr) -5, 0));
    FAILS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&pointer, (const void *) &host));
    FAILS(cudaErrorInvalidSymbol, cudaMemcpyToSymbol((const void *) &host, &host, 4));
    FAILS(cudaErrorInvalidValue, cudaMemcpyToSymbol(variable, &host, 400));
    cudaFuncAttributes attributes;
    is_no_kernel(cudaFuncGetAttributes(&attributes, (const void *) &host));
    // Calls that are no errors: nothing to free, nothing to copy, nothing to set.
    CUDA_OK(cudaFree(nullptr));
    CUDA_OK(cudaFreeHost(nullptr));
    CUDA_OK(cudaMemcpy(device, &host, 0, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemset(device, 0, 0));
}

// The error of a launch that no device can run: the runtime of CUDA 12 returns 9, that of CUDA 13 returns 1. It is the
// last error as well.
static void refused(const char *what) {
    cudaError_t seen = cudaPeekAtLastError();
    if (seen != cudaErrorInvalidConfiguration && seen != cudaErrorInvalidValue) {
        check_fail("a launch with %s, expected 1 or 9, got %d %s", what, (int) seen, cudaGetErrorName(seen));
    }
    CUDA_IS(seen, cudaGetLastError());
    CUDA_OK(cudaGetLastError());
}

static void bad_launches(int *device) {
    set<<<0, 1>>>(device, 1);
    refused("no block");
    set<<<1, 0>>>(device, 1);
    refused("no thread");
    set<<<1, check_attribute(cudaDevAttrMaxThreadsPerBlock) + 1>>>(device, 1);
    refused("too many threads");
    set<<<dim3(1, 65536), 1>>>(device, 1);
    refused("too large a grid");
    set<<<1, dim3(1, 1, 65)>>>(device, 1);
    refused("too deep a block");
    set<<<1, 1, check_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) + 1>>>(device, 1);
    refused("too much shared memory");
    int host = 0;
    void *arguments[] = {&device, &host};
    is_no_kernel(cudaLaunchKernel((const void *) &host, dim3(1), dim3(1), arguments, 0, 0));
    CUDA_OK(cudaDeviceSynchronize());
}

static void memory_limits() {
    void *pointer = (void *) 1;
    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&pointer, (size_t) 1 << 50));
    size_t available = 0, total = 0;
    CUDA_OK(cudaMemGetInfo(&available, &total));
    check_true("some memory, not more than all", available > 0 && available <= total);
    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&pointer, total + (1 << 20)));
    CUDA_OK(cudaMalloc(&pointer, 1 << 20)); // the refused allocation has left no error
    CUDA_OK(cudaFree(pointer));
}

static void events(void) {
    cudaEvent_t first, second;
    float milliseconds = 0;
    CUDA_OK(cudaEventCreate(&first));
    CUDA_OK(cudaEventCreate(&second));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, first, second)); // never recorded
    CUDA_OK(cudaEventRecord(first));
    CUDA_OK(cudaEventDestroy(first));
    CUDA_OK(cudaEventDestroy(second));
    FAILS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&first, 0x4000));
}

static void last_error(int *device) {
    // A success does not clear an earlier error; the later of two errors stays.
    CUDA_IS(cudaErrorInvalidValue, cudaMalloc((void **) nullptr, 16));
    CUDA_OK(cudaMemset(device, 0, 4));
    CUDA_IS(cudaErrorInvalidValue, cudaPeekAtLastError());
    CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(999));
    CUDA_IS(cudaErrorInvalidDevice, cudaGetLastError());
    CUDA_IS(cudaSuccess, cudaGetLastError());
    check_text("cudaGetErrorName", "cudaErrorInvalidValue", cudaGetErrorName(cudaErrorInvalidValue));
    check_text("cudaGetErrorString", "invalid argument", cudaGetErrorString(cudaErrorInvalidValue));
    check_text("cudaGetErrorString", "no error", cudaGetErrorString(cudaSuccess));
    check_text("cudaGetErrorName", "unrecognized error code", cudaGetErrorName((cudaError_t) 123456));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int *device = device_array<int>(1);
    invalid_values(device);
    bad_launches(device);
    memory_limits();
    events();
    last_error(device);
    set<<<1, 1>>>(device, 41);
    LAUNCH_OK();
    check_equal("a kernel after all the errors", 41, host_copy(device, 1)[0]);
    CUDA_OK(cudaFree(device));
    return check_pass("invalid values, launches, sizes and events; last-error rules");
}

/* Checks and helper functions for the programs that use the Runtime API (.cu). */
#ifndef HAWSER_PROGRAMS_CHECK_CUDA_H
#define HAWSER_PROGRAMS_CHECK_CUDA_H

#include "check.h"

#include <cuda_runtime.h>
#include <vector>

static inline void check_cuda_(cudaError_t got, cudaError_t expected, const char *call, const char *file, int line) {
    if (got != expected) {
        check_fail("%s (%s:%d), expected %d %s, got %d %s", call, file, line, (int) expected,
                   cudaGetErrorName(expected), (int) got, cudaGetErrorName(got));
    }
}

/* The call must succeed. */
#define CUDA_OK(call) check_cuda_((call), cudaSuccess, #call, __FILE__, __LINE__)
/* The call must return exactly this error. */
#define CUDA_IS(expected, call) check_cuda_((call), (expected), #call, __FILE__, __LINE__)
/* The preceding launch must have been accepted. */
#define LAUNCH_OK() check_cuda_(cudaGetLastError(), cudaSuccess, "launch", __FILE__, __LINE__)

static inline int check_attribute(cudaDeviceAttr attribute) {
    int value = 0;
    CUDA_OK(cudaDeviceGetAttribute(&value, attribute, 0));
    return value;
}

/* Device memory for `count` elements; the caller frees it with cudaFree(). */
template <typename T> T *device_array(size_t count) {
    T *array = nullptr;
    CUDA_OK(cudaMalloc(&array, count * sizeof(T)));
    return array;
}

template <typename T> T *device_copy(const std::vector<T> &host) {
    T *array = device_array<T>(host.size());
    CUDA_OK(cudaMemcpy(array, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return array;
}

template <typename T> std::vector<T> host_copy(const T *device, size_t count) {
    std::vector<T> host(count);
    CUDA_OK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

#endif

// Managed and mapped memory: used where the device attribute says that it is there, refused with the documented error where not.
// Never a pointer that a kernel or the host cannot use.
#include "check_cuda.h"

__global__ void add_one(int *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i]++;
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const int count = 1000;
    int *managed = nullptr;
    bool has_managed = check_attribute(cudaDevAttrManagedMemory), has_mapped = check_attribute(cudaDevAttrCanMapHostMemory);
    if (has_managed) {
        CUDA_OK(cudaMallocManaged(&managed, count * sizeof(int)));
        for (int i = 0; i < count; i++) {
            managed[i] = i;
        }
        add_one<<<(count + 127) / 128, 128>>>(managed, count);
        LAUNCH_OK();
        CUDA_OK(cudaDeviceSynchronize());
        for (int i = 0; i < count; i++) {
            check_element("managed", i, i + 1, managed[i]);
        }
        CUDA_OK(cudaFree(managed));
    } else {
        CUDA_IS(cudaErrorNotSupported, cudaMallocManaged(&managed, count * sizeof(int)));
        CUDA_IS(cudaErrorNotSupported, cudaGetLastError());
    }
    int *host = nullptr, *device = nullptr;
    if (has_mapped) {
        CUDA_OK(cudaHostAlloc(&host, count * sizeof(int), cudaHostAllocMapped));
        CUDA_OK(cudaHostGetDevicePointer(&device, host, 0));
        for (int i = 0; i < count; i++) {
            host[i] = 2 * i;
        }
        add_one<<<(count + 127) / 128, 128>>>(device, count);
        LAUNCH_OK();
        CUDA_OK(cudaDeviceSynchronize());
        for (int i = 0; i < count; i++) {
            check_element("mapped", i, 2 * i + 1, host[i]);
        }
        CUDA_OK(cudaFreeHost(host));
    } else {
        check_true("mapped memory is refused", cudaHostAlloc(&host, count * sizeof(int), cudaHostAllocMapped) != cudaSuccess
                || cudaHostGetDevicePointer(&device, host, 0) != cudaSuccess);
        cudaGetLastError();
    }
    return check_pass("managed %s, mapped %s, as the attributes say", has_managed ? "works" : "refused",
            has_mapped ? "works" : "refused");
}

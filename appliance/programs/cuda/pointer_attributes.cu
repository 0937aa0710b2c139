// The attributes of pointers: device, pinned, registered, unknown, inside an allocation, and after a free. Mapped
// memory exists if and only if the device attribute states it.
#include "check_cuda.h"

static void is(const char *what, const void *pointer, cudaMemoryType type) {
    cudaPointerAttributes attributes;
    memset(&attributes, 0xAA, sizeof(attributes));
    CUDA_OK(cudaPointerGetAttributes(&attributes, pointer));
    if (attributes.type != type) {
        check_fail("type of %s, expected %d, got %d", what, (int) type, (int) attributes.type);
    }
    if (type == cudaMemoryTypeDevice) {
        check_equal("device", 0, attributes.device);
        check_true("the device pointer is the pointer", attributes.devicePointer == pointer);
        check_true("no host pointer", attributes.hostPointer == nullptr);
    } else if (type == cudaMemoryTypeHost) {
        check_true("the host pointer is the pointer", attributes.hostPointer == pointer);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    char *device = device_array<char>(10000), *host = nullptr;
    CUDA_OK(cudaMallocHost(&host, 10000));
    std::vector<char> plain(100000);
    is("device memory", device, cudaMemoryTypeDevice);
    is("the middle of device memory", device + 5000, cudaMemoryTypeDevice);
    is("the last byte", device + 9999, cudaMemoryTypeDevice);
    is("pinned memory", host, cudaMemoryTypeHost);
    is("the middle of pinned memory", host + 77, cudaMemoryTypeHost);
    is("plain memory", plain.data(), cudaMemoryTypeUnregistered);
    CUDA_OK(cudaHostRegister(plain.data(), plain.size(), cudaHostRegisterDefault));
    is("registered memory", plain.data() + 50000, cudaMemoryTypeHost);
    CUDA_OK(cudaHostUnregister(plain.data()));
    is("memory no more registered", plain.data() + 50000, cudaMemoryTypeUnregistered);
    unsigned int flags = 99;
    CUDA_OK(cudaHostGetFlags(&flags, host));

    int mapped = check_attribute(cudaDevAttrCanMapHostMemory);
    void *as_device = nullptr;
    if (mapped) {
        CUDA_OK(cudaHostGetDevicePointer(&as_device, host, 0));
        check_true("a device pointer of pinned memory", as_device != nullptr);
    } else {
        // Without mapped memory there is no device pointer; an address that only looks right would be worse.
        cudaError_t error = cudaHostGetDevicePointer(&as_device, host, 0);
        check_true("no device pointer of pinned memory", error != cudaSuccess);
        cudaGetLastError();
    }
    CUDA_OK(cudaFree(device));
    is("freed device memory", device, cudaMemoryTypeUnregistered);
    CUDA_OK(cudaFreeHost(host));
    check_here("mapped memory %s", mapped ? "works" : "refused");
    return check_pass("device, pinned, registered and plain memory");
}

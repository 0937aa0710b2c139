// Managed memory as the buffer of system calls, before and after kernels have used it. They fault in the kernel, where
// no signal handler helps.
#include "check_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int BYTES = 3 << 20;

__global__ void invert(unsigned char *bytes, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        bytes[i] = ~bytes[i];
    }
}

static void launch_invert(unsigned char *bytes) {
    invert<<<64, 256>>>(bytes, BYTES);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (!check_attribute(cudaDevAttrConcurrentManagedAccess)) {
        check_unsupported("the device has no concurrent access to managed memory (attribute 89)");
    }
    FILE *file = tmpfile();
    check_true("a temporary file", file != nullptr);
    const int descriptor = fileno(file);
    unsigned char *bytes = nullptr, *copy = nullptr;
    CUDA_OK(cudaMallocManaged(&bytes, BYTES));
    CUDA_OK(cudaMallocManaged(&copy, BYTES));
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char) (i % 253);
    }
    launch_invert(bytes);
    launch_invert(copy);
    const ssize_t written = write(descriptor, bytes, BYTES);
    if (written < 0 && errno == EFAULT) {
        check_unsupported("system calls cannot use managed memory for this user: see /dev/userfaultfd");
    }
    check_equal("written", BYTES, written);
    check_equal("read", BYTES, pread(descriptor, copy, BYTES, 0));
    for (int i = 0; i < BYTES; i++) {
        check_element("what the call read", i, 255 - i % 253, copy[i]);
    }
    launch_invert(copy);
    check_equal("read into a part", 1000, pread(descriptor, copy + 5000, 1000, 7));
    launch_invert(copy);
    for (int i = 0; i < BYTES; i++) {
        const bool part = i >= 5000 && i < 6000;
        check_element("after a kernel", i, part ? (i - 5000 + 7) % 253 : 255 - i % 253, copy[i]);
    }
    CUDA_OK(cudaFree(bytes));
    CUDA_OK(cudaFree(copy));
    fclose(file);
    return check_pass("%d bytes", BYTES);
}

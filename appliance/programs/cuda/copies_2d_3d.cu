// Pitched and volume copies in every direction, with offsets, and 2D/3D memset: memory outside the box must not change.
#include "check_cuda.h"

static unsigned char pattern(size_t x, size_t y, size_t z) {
    return (unsigned char) (x * 7 + y * 31 + z * 101 + 13);
}

static void copies_2d() {
    const size_t width = 157, height = 23, host_pitch = 200;
    std::vector<unsigned char> host(host_pitch * height), back(host_pitch * height, 0xEE);
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < host_pitch; x++) {
            host[y * host_pitch + x] = pattern(x, y, 0);
        }
    }
    unsigned char *first, *second;
    size_t first_pitch = 0, second_pitch = 0;
    CUDA_OK(cudaMallocPitch(&first, &first_pitch, width, height));
    CUDA_OK(cudaMallocPitch(&second, &second_pitch, width + 64, height + 4));
    check_true("the pitch holds the row", first_pitch >= width && second_pitch >= width + 64);
    CUDA_OK(cudaMemset2D(second, second_pitch, 0x55, width + 64, height + 4));
    CUDA_OK(cudaMemcpy2D(first, first_pitch, host.data(), host_pitch, width, height, cudaMemcpyHostToDevice));
    // Into the middle of the larger block, then the whole block back out.
    CUDA_OK(cudaMemcpy2D(second + 2 * second_pitch + 32, second_pitch, first, first_pitch, width, height,
                         cudaMemcpyDeviceToDevice));
    std::vector<unsigned char> whole((width + 64) * (height + 4));
    CUDA_OK(
        cudaMemcpy2D(whole.data(), width + 64, second, second_pitch, width + 64, height + 4, cudaMemcpyDeviceToHost));
    for (size_t y = 0; y < height + 4; y++) {
        for (size_t x = 0; x < width + 64; x++) {
            bool inside = y >= 2 && y < height + 2 && x >= 32 && x < width + 32;
            check_element("2D", (long long) (y * 1000 + x), inside ? pattern(x - 32, y - 2, 0) : 0x55,
                          whole[y * (width + 64) + x]);
        }
    }
    // Asynchronous, with the default kind; the host's gap between rows must not change.
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaMemcpy2DAsync(back.data(), host_pitch, first, first_pitch, width, height, cudaMemcpyDefault, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < host_pitch; x++) {
            check_element("2D back", (long long) (y * 1000 + x), x < width ? pattern(x, y, 0) : 0xEE,
                          back[y * host_pitch + x]);
        }
    }
    CUDA_IS(cudaErrorInvalidPitchValue,
            cudaMemcpy2D(first, first_pitch, host.data(), width - 1, width, height, cudaMemcpyHostToDevice));
    cudaGetLastError();
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(first));
    CUDA_OK(cudaFree(second));
}

static void copies_3d() {
    const size_t width = 40, height = 11, depth = 7;
    std::vector<unsigned char> host(width * height * depth), back(width * height * depth, 0xEE);
    for (size_t z = 0; z < depth; z++) {
        for (size_t y = 0; y < height; y++) {
            for (size_t x = 0; x < width; x++) {
                host[(z * height + y) * width + x] = pattern(x, y, z);
            }
        }
    }
    cudaPitchedPtr device;
    cudaExtent extent = make_cudaExtent(width, height, depth);
    CUDA_OK(cudaMalloc3D(&device, extent));
    CUDA_OK(cudaMemset3D(device, 0x33, extent));
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(host.data(), width, width, height);
    in.dstPtr = device;
    in.srcPos = make_cudaPos(4, 2, 1);
    in.dstPos = make_cudaPos(8, 3, 2);
    in.extent = make_cudaExtent(20, 6, 4);
    in.kind = cudaMemcpyHostToDevice;
    CUDA_OK(cudaMemcpy3D(&in));
    cudaMemcpy3DParms out = {};
    out.srcPtr = device;
    out.dstPtr = make_cudaPitchedPtr(back.data(), width, width, height);
    out.extent = extent;
    out.kind = cudaMemcpyDeviceToHost;
    CUDA_OK(cudaMemcpy3D(&out));
    for (size_t z = 0; z < depth; z++) {
        for (size_t y = 0; y < height; y++) {
            for (size_t x = 0; x < width; x++) {
                bool inside = x >= 8 && x < 28 && y >= 3 && y < 9 && z >= 2 && z < 6;
                check_element("3D", (long long) ((z * 100 + y) * 100 + x), inside ? pattern(x - 4, y - 1, z - 1) : 0x33,
                              back[(z * height + y) * width + x]);
            }
        }
    }
    CUDA_OK(cudaFree(device.ptr));
}

static void plain_copies() {
    // Every size around the limits of inline data, at odd addresses.
    const size_t sizes[] = {0, 1, 3, 4, 7, 63, 64, 65, 1023, 4096, 65535, 65537, 1048576, 1048577, 3000001};
    const size_t capacity = 3000100;
    unsigned char *first = device_array<unsigned char>(capacity), *second = device_array<unsigned char>(capacity);
    std::vector<unsigned char> host(capacity), back(capacity);
    uint32_t seed = 77;
    for (unsigned char &byte : host) {
        byte = (unsigned char) check_random(&seed);
    }
    for (size_t size : sizes) {
        CUDA_OK(cudaMemset(second, 0x11, capacity));
        CUDA_OK(cudaMemcpy(first + 5, host.data() + 1, size, cudaMemcpyHostToDevice));
        CUDA_OK(cudaMemcpyAsync(second + 9, first + 5, size, cudaMemcpyDeviceToDevice, 0));
        memset(back.data(), 0, capacity);
        CUDA_OK(cudaMemcpy(back.data() + 3, second + 8, size + 2, cudaMemcpyDefault));
        check_equal("the byte before", 0x11, back[3]);
        check_equal("the byte after", 0x11, back[4 + size]);
        check_equal("bytes outside", 0, back[2] + back[5 + size]);
        if (memcmp(back.data() + 4, host.data() + 1, size) != 0) {
            check_fail("copy of %zu bytes there and back, expected the same bytes, got others", size);
        }
    }
    // Overlapping pieces of one allocation in order, and host to host through CUDA.
    CUDA_OK(cudaMemcpy(back.data(), host.data(), 1000, cudaMemcpyHostToHost));
    check_equal("host to host", 0, memcmp(back.data(), host.data(), 1000));
    CUDA_OK(cudaFree(first));
    CUDA_OK(cudaFree(second));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    plain_copies();
    copies_2d();
    copies_3d();
    return check_pass("plain, pitched and volume copies");
}

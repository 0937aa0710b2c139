/* Copies of boxes, memset of all widths, copies within the device. */
#include "check_driver.h"

static unsigned char pattern(size_t x, size_t y, size_t z) {
    return (unsigned char) (x * 5 + y * 37 + z * 91 + 3);
}

static void memsets(void) {
    unsigned char bytes[64];
    CUdeviceptr device = check_device(NULL, 64);
    CU_OK(cuMemsetD8(device, 0xA1, 64));
    CU_OK(cuMemsetD16(device + 2, 0xB2C3, 5));
    CU_OK(cuMemsetD32(device + 16, 0xD4E5F607u, 3));
    CU_OK(cuMemcpyDtoD(device + 40, device + 2, 10));
    CU_OK(cuMemcpyDtoH(bytes, device, 64));
    for (int i = 0; i < 64; i++) {
        int expected = 0xA1;
        if (i >= 2 && i < 12) {
            expected = i % 2 ? 0xB2 : 0xC3;
        } else if (i >= 16 && i < 28) {
            expected = (int) (0xD4E5F607u >> (i % 4 * 8) & 0xFF);
        } else if (i >= 40 && i < 50) {
            expected = i % 2 ? 0xB2 : 0xC3;
        }
        check_element("memset", i, expected, bytes[i]);
    }
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(device + 1, 0, 1)); /* not aligned */
    CU_OK(cuMemFree(device));
}

static void copy_2d(void) {
    const size_t width = 60, height = 20, host_pitch = 80;
    unsigned char *host = check_memory(host_pitch * height), *back = check_memory(host_pitch * height);
    for (size_t i = 0; i < host_pitch * height; i++) {
        host[i] = pattern(i % host_pitch, i / host_pitch, 0);
        back[i] = 0xEE;
    }
    CUdeviceptr device;
    size_t pitch = 0;
    CU_OK(cuMemAllocPitch(&device, &pitch, width, height, 4));
    check_true("the pitch holds a row", pitch >= width);
    CU_OK(cuMemsetD2D32(device, pitch, 0x77777777, width / 4, height));
    CUDA_MEMCPY2D in = {.srcXInBytes = 10,
                        .srcY = 3,
                        .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = host_pitch,
                        .dstXInBytes = 4,
                        .dstY = 5,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = device,
                        .dstPitch = pitch,
                        .WidthInBytes = 33,
                        .Height = 9};
    CU_OK(cuMemcpy2D(&in));
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = device,
                         .srcPitch = pitch,
                         .dstXInBytes = 7,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = host_pitch,
                         .WidthInBytes = width,
                         .Height = height};
    CU_OK(cuMemcpy2D(&out));
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < host_pitch; x++) {
            int expected = 0xEE;
            if (x >= 7 && x < 7 + width) {
                size_t dx = x - 7;
                expected = dx >= 4 && dx < 37 && y >= 5 && y < 14 ? pattern(dx - 4 + 10, y - 5 + 3, 0) : 0x77;
            }
            check_element("2D", (long long) (y * 1000 + x), expected, back[y * host_pitch + x]);
        }
    }
    CU_OK(cuMemFree(device));
    free(host);
    free(back);
}

static void copy_3d(void) {
    const size_t width = 24, height = 6, total = 24 * 6 * 5;
    unsigned char *host = check_memory(total), *back = check_memory(total);
    for (size_t i = 0; i < total; i++) {
        host[i] = pattern(i % width, i / width % height, i / width / height);
    }
    CUdeviceptr first = check_device(NULL, total), second = check_device(NULL, total);
    CU_OK(cuMemsetD8(first, 0x10, total));
    CU_OK(cuMemsetD8(second, 0x20, total));
    CUDA_MEMCPY3D in = {.srcXInBytes = 2,
                        .srcY = 1,
                        .srcZ = 1,
                        .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = width,
                        .srcHeight = height,
                        .dstXInBytes = 4,
                        .dstY = 2,
                        .dstZ = 0,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = first,
                        .dstPitch = width,
                        .dstHeight = height,
                        .WidthInBytes = 15,
                        .Height = 3,
                        .Depth = 4};
    CU_OK(cuMemcpy3D(&in));
    CUDA_MEMCPY3D within = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = first,
                            .srcPitch = width,
                            .srcHeight = height,
                            .srcZ = 0,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = second,
                            .dstPitch = width,
                            .dstHeight = height,
                            .dstZ = 1,
                            .WidthInBytes = width,
                            .Height = height,
                            .Depth = 4};
    CU_OK(cuMemcpy3D(&within));
    CU_OK(cuMemcpyDtoH(back, second, total));
    for (size_t i = 0; i < total; i++) {
        size_t x = i % width, y = i / width % height, z = i / width / height;
        int expected = 0x20;
        if (z >= 1) {
            expected = x >= 4 && x < 19 && y >= 2 && y < 5 ? pattern(x - 2, y - 1, z - 1 + 1) : 0x10;
        }
        check_element("3D", (long long) i, expected, back[i]);
    }
    CU_OK(cuMemFree(first));
    CU_OK(cuMemFree(second));
    free(host);
    free(back);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    memsets();
    copy_2d();
    copy_3d();
    return check_pass("memset of 8, 16 and 32 bits, boxes in two and three dimensions");
}

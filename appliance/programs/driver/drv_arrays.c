/* CUDA arrays and mipmapped arrays: descriptors, copies in every direction, refused calls. */
#include "check_arrays.h"

static unsigned char pattern(size_t x, size_t y, size_t z) {
    return (unsigned char) (x * 7 + y * 31 + z * 101 + 5);
}

/* Rows without gaps, slice after slice. */
static unsigned char *filled(size_t width, size_t height, size_t depth) {
    unsigned char *bytes = check_memory(width * height * depth);
    for (size_t i = 0; i < width * height * depth; i++) {
        bytes[i] = pattern(i % width, i / width % height, i / width / height);
    }
    return bytes;
}

static CUarray array_of(size_t width, size_t height, size_t depth, CUarray_format format, unsigned int channels,
                        unsigned int flags) {
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = width, .Height = height, .Depth = depth, .Format = format, .NumChannels = channels, .Flags = flags};
    CUarray array;
    CU_OK(cuArray3DCreate(&array, &descriptor));
    return array;
}

static void expect_descriptor(const char *what, CUarray array, size_t width, size_t height, size_t depth,
                              CUarray_format format, unsigned int channels, unsigned int flags) {
    CUDA_ARRAY3D_DESCRIPTOR got;
    CU_OK(cuArray3DGetDescriptor(&got, array));
    check_equal(what, (long long) width, (long long) got.Width);
    check_equal(what, (long long) height, (long long) got.Height);
    check_equal(what, (long long) depth, (long long) got.Depth);
    check_equal(what, format, got.Format);
    check_equal(what, channels, got.NumChannels);
    check_equal(what, flags, got.Flags);
}

static void descriptors(void) {
    static const struct {
        const char *what;
        size_t width, height, depth;
        CUarray_format format;
        unsigned int channels, flags;
    } shapes[] = {
        {"one dimension", 1000, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0},
        {"two dimensions", 100, 60, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0},
        {"three dimensions", 20, 12, 7, CU_AD_FORMAT_SIGNED_INT16, 2, 0},
        {"layers of one dimension", 50, 0, 9, CU_AD_FORMAT_HALF, 1, CUDA_ARRAY3D_LAYERED},
        {"layers of two dimensions", 50, 40, 5, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED},
        {"a cube", 16, 16, 6, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_CUBEMAP},
        {"surfaces", 64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_SURFACE_LDST},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        CUarray array = array_of(shapes[i].width, shapes[i].height, shapes[i].depth, shapes[i].format,
                                 shapes[i].channels, shapes[i].flags);
        expect_descriptor(shapes[i].what, array, shapes[i].width, shapes[i].height, shapes[i].depth, shapes[i].format,
                          shapes[i].channels, shapes[i].flags);
        CU_OK(cuArrayDestroy(array));
    }
    const CUDA_ARRAY_DESCRIPTOR plain = {.Width = 30, .Height = 20, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
    CUDA_ARRAY_DESCRIPTOR got;
    CUarray array;
    CU_OK(cuArrayCreate(&array, &plain));
    CU_OK(cuArrayGetDescriptor(&got, array));
    check_true("cuArrayGetDescriptor",
               got.Width == 30 && got.Height == 20 && got.Format == CU_AD_FORMAT_FLOAT && got.NumChannels == 2);
    expect_descriptor("of cuArrayCreate", array, 30, 20, 0, CU_AD_FORMAT_FLOAT, 2, 0);
    CU_OK(cuArrayDestroy(array));
}

/* A box from the host to the array, and the whole array back. */
static void boxes_2d(void) {
    const size_t width = 52 * 4, height = 33, pitch = 300;
    CUarray array = array_of(52, height, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
    unsigned char *host = filled(pitch, height, 1), *back = check_memory(pitch * height);
    unsigned char *zeros = check_memory(width * height);
    CUDA_MEMCPY2D clear = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = zeros,
                           .srcPitch = width,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = array,
                           .WidthInBytes = width,
                           .Height = height};
    CU_OK(cuMemcpy2D(&clear));
    CUDA_MEMCPY2D in = {.srcXInBytes = 13,
                        .srcY = 4,
                        .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = pitch,
                        .dstXInBytes = 8,
                        .dstY = 6,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = array,
                        .WidthInBytes = 120,
                        .Height = 20};
    CU_OK(cuMemcpy2D(&in));
    memset(back, 0xEE, pitch * height);
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = array,
                         .dstXInBytes = 40,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = pitch,
                         .WidthInBytes = width,
                         .Height = height};
    CU_OK(cuMemcpy2D(&out));
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < pitch; x++) {
            int expected = 0xEE;
            if (x >= 40 && x < 40 + width) {
                size_t ax = x - 40;
                expected = ax >= 8 && ax < 128 && y >= 6 && y < 26 ? pattern(ax - 8 + 13, y - 6 + 4, 0) : 0;
            }
            check_element("box of two dimensions", (long long) (y * 1000 + x), expected, back[y * pitch + x]);
        }
    }
    CU_OK(cuArrayDestroy(array));
    free(host);
    free(back);
    free(zeros);
}

/* Host to array, array to array, array to device, device to array, array to host. */
static void boxes_3d(void) {
    const size_t width = 40 * 2, height = 12, depth = 9, total = width * height * depth;
    CUarray first = array_of(40, height, depth, CU_AD_FORMAT_UNSIGNED_INT16, 1, 0);
    CUarray second = array_of(40, height, depth, CU_AD_FORMAT_UNSIGNED_INT16, 1, 0);
    unsigned char *host = filled(width, height, depth), *back = check_memory(total);
    CUdeviceptr device = check_device(back, total);
    CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = width,
                        .srcHeight = height,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = first,
                        .WidthInBytes = width,
                        .Height = height,
                        .Depth = depth};
    CU_OK(cuMemcpy3D(&in));
    CUDA_MEMCPY3D clear = in;
    clear.srcHost = back;
    clear.dstArray = second;
    CU_OK(cuMemcpy3D(&clear));
    CUDA_MEMCPY3D within = {.srcXInBytes = 10,
                            .srcY = 2,
                            .srcZ = 1,
                            .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                            .srcArray = first,
                            .dstXInBytes = 4,
                            .dstY = 5,
                            .dstZ = 3,
                            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                            .dstArray = second,
                            .WidthInBytes = 60,
                            .Height = 7,
                            .Depth = 6};
    CU_OK(cuMemcpy3D(&within));
    CUDA_MEMCPY3D down = {.srcY = 1,
                          .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = second,
                          .dstY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = device,
                          .dstPitch = width,
                          .dstHeight = height,
                          .WidthInBytes = width,
                          .Height = height - 1,
                          .Depth = depth};
    CU_OK(cuMemcpy3D(&down));
    CUDA_MEMCPY3D up = {.srcZ = 3,
                        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = device,
                        .srcPitch = width,
                        .srcHeight = height,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = first,
                        .WidthInBytes = width,
                        .Height = height,
                        .Depth = 6};
    CU_OK(cuMemcpy3D(&up)); /* slices 0 to 5 of the first are now slices 3 to 8 of the second */
    CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = first,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = width,
                         .dstHeight = height,
                         .WidthInBytes = width,
                         .Height = height,
                         .Depth = depth};
    CU_OK(cuMemcpy3D(&out));
    for (size_t i = 0; i < total; i++) {
        size_t x = i % width, y = i / width % height, z = i / width / height;
        int expected = pattern(x, y, z);
        if (z < 6) {
            expected = x >= 4 && x < 64 && y >= 5 ? pattern(x - 4 + 10, y - 5 + 2, z + 1) : 0;
        }
        check_element("boxes of three dimensions", (long long) i, expected, back[i]);
    }
    CU_OK(cuArrayDestroy(first));
    CU_OK(cuArrayDestroy(second));
    CU_OK(cuMemFree(device));
    free(host);
    free(back);
}

/* Parts of one-dimensional arrays, by offsets in bytes. */
static void linear(void) {
    enum { BYTES = 4096 };
    CUarray first = array_of(BYTES / 4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    CUarray second = array_of(BYTES / 4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    unsigned char *host = filled(BYTES, 1, 1), *back = check_memory(BYTES);
    CUdeviceptr device = check_device(back, BYTES);
    CU_OK(cuMemcpyHtoA(first, 0, back, BYTES));
    CU_OK(cuMemcpyHtoA(second, 0, back, BYTES));
    CU_OK(cuMemcpyHtoA(first, 400, host, 2000));        /* first[400..2400) = host[0..2000) */
    CU_OK(cuMemcpyAtoA(second, 80, first, 440, 1600));  /* second[80..1680) = host[40..1640) */
    CU_OK(cuMemcpyAtoD(device + 16, second, 80, 1600)); /* device[16..1616) = host[40..1640) */
    CU_OK(cuMemcpyDtoA(first, 3000, device + 16, 800)); /* first[3000..3800) = host[40..840) */
    CU_OK(cuMemcpyAtoH(back, first, 0, BYTES));
    for (int i = 0; i < BYTES; i++) {
        int expected = i >= 400 && i < 2400 ? host[i - 400] : i >= 3000 && i < 3800 ? host[i - 3000 + 40] : 0;
        check_element("parts of one dimension", i, expected, back[i]);
    }
    memset(back, 0, BYTES);
    CU_OK(cuMemcpyAtoH(back + 100, second, 84, 400));
    check_equal("from an offset", 0, memcmp(back + 100, host + 44, 400));
    check_equal("and nothing behind it", 0, back[500]);
    CU_OK(cuArrayDestroy(first));
    CU_OK(cuArrayDestroy(second));
    CU_OK(cuMemFree(device));
    free(host);
    free(back);
}

/* Large copies: several records or chunks, rows longer than a record, memory of both kinds, streams. */
static void large(size_t width, size_t height, unsigned int channels) {
    const size_t row = width * channels * 4, total = row * height;
    CUarray array = array_of(width, height, 0, CU_AD_FORMAT_FLOAT, channels, 0);
    unsigned char *host = filled(row, height, 1), *back = check_memory(total), *pinned;
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuMemAllocHost_v2((void **) &pinned, total));
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = row,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = array,
                        .WidthInBytes = row,
                        .Height = height};
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = array,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = row,
                         .WidthInBytes = row,
                         .Height = height};
    CU_OK(cuMemcpy2D(&in));
    CU_OK(cuMemcpy2D(&out));
    check_equal("large, pageable", 0, memcmp(host, back, total));
    for (size_t i = 0; i < total; i++) {
        pinned[i] = (unsigned char) ~host[i];
    }
    in.srcHost = pinned;
    CU_OK(cuMemcpy2DAsync(&in, stream));
    CU_OK(cuStreamSynchronize(stream)); /* the program then overwrites the memory */
    memset(pinned, 0, total);
    out.dstHost = pinned;
    CU_OK(cuMemcpy2DAsync(&out, stream));
    CU_OK(cuStreamSynchronize(stream));
    for (size_t i = 0; i < total; i++) {
        if (pinned[i] != (unsigned char) ~host[i]) {
            check_element("large, pinned", (long long) i, (unsigned char) ~host[i], pinned[i]);
        }
    }
    CU_OK(cuMemFreeHost(pinned));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuArrayDestroy(array));
    free(host);
    free(back);
}

static void mipmaps(void) {
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = 40, .Height = 24, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUmipmappedArray mipmap;
    CUarray levels[4], again;
    CU_OK(cuMipmappedArrayCreate(&mipmap, &descriptor, 4));
    for (unsigned int i = 0; i < 4; i++) {
        size_t width = 40 >> i, height = 24 >> i;
        CU_OK(cuMipmappedArrayGetLevel(&levels[i], mipmap, i));
        CUDA_ARRAY3D_DESCRIPTOR got;
        CU_OK(cuArray3DGetDescriptor(&got, levels[i]));
        check_equal("width of a level", (long long) width, (long long) got.Width);
        check_equal("height of a level", (long long) height, (long long) got.Height);
        unsigned char *host = filled(width, height, i + 1);
        CUDA_MEMCPY2D in = {.srcY = height * i,
                            .srcMemoryType = CU_MEMORYTYPE_HOST,
                            .srcHost = host,
                            .srcPitch = width,
                            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                            .dstArray = levels[i],
                            .WidthInBytes = width,
                            .Height = height};
        CU_OK(cuMemcpy2D(&in));
        free(host);
    }
    for (unsigned int i = 0; i < 4; i++) {
        size_t width = 40 >> i, height = 24 >> i;
        unsigned char *host = filled(width, height, i + 1), *back = check_memory(width * height);
        CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                             .srcArray = levels[i],
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = back,
                             .dstPitch = width,
                             .WidthInBytes = width,
                             .Height = height};
        CU_OK(cuMemcpy2D(&out));
        check_equal("bytes of a level", 0, memcmp(back, host + width * height * i, width * height));
        free(host);
        free(back);
    }
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&again, mipmap, 4));
    CU_OK(cuMipmappedArrayDestroy(mipmap));
}

static void refused(void) {
    CUDA_ARRAY3D_DESCRIPTOR bad = {.Width = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUarray array;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
    bad.Width = 16;
    bad.NumChannels = 3;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
    bad.NumChannels = 1;
    bad.Width = (size_t) 1 << 40;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
    bad.Width = 16;
    bad.Height = 8;
    bad.Depth = 6;
    bad.Flags = CUDA_ARRAY3D_CUBEMAP;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
    array = array_of(16, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    char host[1024] = {0};
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcPitch = 64,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = 64,
                          .Height = 9};
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy)); /* a row too many */
    copy.Height = 8;
    copy.dstXInBytes = 4;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy)); /* an element too many */
    copy.WidthInBytes = 60;
    CU_OK(cuMemcpy2D(&copy));
    CU_OK(cuArrayDestroy(array));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    descriptors();
    boxes_2d();
    boxes_3d();
    linear();
    large(1000, 700, 1);
    large(90000, 3, 4);
    for (int i = 0; i < 3; i++) {
        large(30000, 100, 2); /* long enough for several connections */
    }
    mipmaps();
    refused();
    return check_pass("descriptors, boxes, offsets, large copies and levels of arrays");
}

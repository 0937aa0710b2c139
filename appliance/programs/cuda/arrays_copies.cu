// CUDA arrays and mipmapped arrays by the Runtime API: their properties, copies of every kind, refused calls.
#include "check_cuda.h"

#include <cstring>

typedef std::vector<unsigned char> Bytes;

static unsigned char pattern(size_t x, size_t y, size_t z) {
    return (unsigned char) (x * 3 + y * 41 + z * 97 + 11);
}

static Bytes filled(size_t width, size_t height, size_t depth) {
    Bytes bytes(width * height * depth);
    for (size_t i = 0; i < bytes.size(); i++) {
        bytes[i] = pattern(i % width, i / width % height, i / width / height);
    }
    return bytes;
}

template <typename T> static void expect_info(const char *what, const cudaExtent &extent, unsigned int flags) {
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<T>(), got, again;
    cudaExtent lengths;
    unsigned int kind = 99;
    cudaArray_t array;
    CUDA_OK(cudaMalloc3DArray(&array, &desc, extent, flags));
    CUDA_OK(cudaArrayGetInfo(&got, &lengths, &kind, array));
    CUDA_OK(cudaGetChannelDesc(&again, array));
    check_true(what, got.x == desc.x && got.y == desc.y && got.z == desc.z && got.w == desc.w && got.f == desc.f);
    check_equal(what, 0, memcmp(&got, &again, sizeof got));
    check_true(what, lengths.width == extent.width && lengths.height == extent.height && lengths.depth == extent.depth);
    check_equal(what, flags, kind);
    CUDA_OK(cudaFreeArray(array));
}

static void descriptions() {
    expect_info<float>("one dimension", make_cudaExtent(100, 0, 0), 0);
    expect_info<uchar4>("two dimensions", make_cudaExtent(33, 17, 0), 0);
    expect_info<short2>("three dimensions", make_cudaExtent(12, 10, 5), 0);
    expect_info<unsigned int>("surfaces", make_cudaExtent(64, 64, 0), cudaArraySurfaceLoadStore);
    expect_info<float4>("layers", make_cudaExtent(20, 10, 7), cudaArrayLayered);
    expect_info<char>("a cube", make_cudaExtent(8, 8, 6), cudaArrayCubemap);
    const cudaChannelFormatDesc half = cudaCreateChannelDescHalf2();
    cudaChannelFormatDesc got;
    cudaArray_t array;
    CUDA_OK(cudaMallocArray(&array, &half, 16, 16));
    CUDA_OK(cudaGetChannelDesc(&got, array));
    check_equal("halves", 0, memcmp(&half, &got, sizeof got));
    CUDA_OK(cudaFreeArray(array));
    CUDA_OK(cudaFreeArray(nullptr));
}

// Boxes of rows: to an array, between arrays and from an array, with and without a stream.
static void rows() {
    const size_t width = 64 * 4, height = 30, pitch = 300;
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaArray_t first, second;
    CUDA_OK(cudaMallocArray(&first, &desc, 64, height));
    CUDA_OK(cudaMallocArray(&second, &desc, 64, height));
    Bytes host = filled(pitch, height, 1), zeros(width * height), back(pitch * height, 0xEE);
    CUDA_OK(cudaMemcpy2DToArray(first, 0, 0, zeros.data(), width, width, height, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy2DToArray(second, 0, 0, zeros.data(), width, width, height, cudaMemcpyDefault));
    CUDA_OK(cudaMemcpy2DToArray(first, 16, 3, host.data(), pitch, 200, 20, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy2DArrayToArray(second, 40, 5, first, 24, 4, 160, 18));
    unsigned char *device;
    size_t device_pitch;
    CUDA_OK(cudaMallocPitch(&device, &device_pitch, width, height));
    CUDA_OK(cudaMemcpy2DFromArray(device, device_pitch, second, 0, 0, width, height, cudaMemcpyDeviceToDevice));
    CUDA_OK(cudaMemcpy2DToArray(first, 0, 0, device, device_pitch, width, height, cudaMemcpyDeviceToDevice));
    CUDA_OK(cudaMemcpy2DFromArray(back.data() + 30, pitch, first, 0, 0, width, height, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < back.size(); i++) {
        size_t x = i % pitch, y = i / pitch;
        int expected = 0xEE;
        if (x >= 30 && x < 30 + width) {
            size_t ax = x - 30;
            expected = ax >= 40 && ax < 200 && y >= 5 && y < 23 ? pattern(ax - 40 + 24 - 16, y - 5 + 4 - 3, 0) : 0;
        }
        check_element("rows", (long long) i, expected, back[i]);
    }
    cudaStream_t stream;
    unsigned char *pinned;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaMallocHost(&pinned, width * height));
    memcpy(pinned, filled(width, height, 1).data(), width * height);
    CUDA_OK(cudaMemcpy2DToArrayAsync(second, 0, 0, pinned, width, width, height, cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    memset(pinned, 0, width * height);
    CUDA_OK(cudaMemcpy2DFromArrayAsync(pinned, width, second, 0, 0, width, height, cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("rows by a stream", 0, memcmp(pinned, filled(width, height, 1).data(), width * height));
    CUDA_OK(cudaFreeHost(pinned));
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFreeArray(first));
    CUDA_OK(cudaFreeArray(second));
}

// Positions and lengths are in elements if an array takes part in the copy.
static void volumes(unsigned int flags) {
    const size_t width = 20, height = 11, depth = 6, row = width * 8;
    const cudaExtent extent = make_cudaExtent(width, height, depth);
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float2>();
    cudaArray_t first, second;
    CUDA_OK(cudaMalloc3DArray(&first, &desc, extent, flags));
    CUDA_OK(cudaMalloc3DArray(&second, &desc, extent, flags));
    Bytes host = filled(row, height, depth), back(host.size());
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(back.data(), row, row, height); // zeros
    copy.dstArray = first;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    CUDA_OK(cudaMemcpy3D(&copy));
    copy.dstArray = second;
    copy.srcPtr = make_cudaPitchedPtr(host.data(), row, row, height);
    CUDA_OK(cudaMemcpy3D(&copy));
    cudaMemcpy3DParms within = {};
    within.srcArray = second;
    within.srcPos = make_cudaPos(3, 2, 1);
    within.dstArray = first;
    within.dstPos = make_cudaPos(5, 1, 2);
    within.extent = make_cudaExtent(12, 9, 4);
    within.kind = cudaMemcpyDeviceToDevice;
    CUDA_OK(cudaMemcpy3D(&within));
    cudaPitchedPtr device;
    CUDA_OK(cudaMalloc3D(&device, make_cudaExtent(row, height, depth)));
    cudaMemcpy3DParms down = {};
    down.srcArray = first;
    down.dstPtr = device;
    down.extent = extent;
    down.kind = cudaMemcpyDeviceToDevice;
    CUDA_OK(cudaMemcpy3D(&down));
    cudaMemcpy3DParms up = {};
    up.srcPtr = device;
    up.srcPos = make_cudaPos(2, 0, 2); // elements of the array
    up.dstArray = second;
    up.dstPos = make_cudaPos(0, 0, 0);
    up.extent = make_cudaExtent(width - 2, height, 3);
    up.kind = cudaMemcpyDeviceToDevice;
    CUDA_OK(cudaMemcpy3D(&up));
    cudaMemcpy3DParms out = {};
    out.srcArray = second;
    out.dstPtr = make_cudaPitchedPtr(back.data(), row, row, height);
    out.extent = extent;
    out.kind = cudaMemcpyDeviceToHost;
    CUDA_OK(cudaMemcpy3D(&out));
    for (size_t i = 0; i < back.size(); i++) {
        size_t x = i % row, y = i / row % height, z = i / row / height;
        int expected = pattern(x, y, z);
        if (z < 3 && x < row - 16) {
            size_t fx = x + 16, fz = z + 2; // in the first array
            expected = fx >= 40 && fx < 136 && y >= 1 && y < 10 ? pattern(fx - 40 + 24, y - 1 + 2, fz - 2 + 1) : 0;
        }
        check_element("volumes", (long long) i, expected, back[i]);
    }
    CUDA_OK(cudaFree(device.ptr));
    CUDA_OK(cudaFreeArray(first));
    CUDA_OK(cudaFreeArray(second));
}

static void mipmaps() {
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<unsigned char>();
    cudaMipmappedArray_t mipmap;
    CUDA_OK(cudaMallocMipmappedArray(&mipmap, &desc, make_cudaExtent(48, 20, 0), 100)); // as many levels as possible
    cudaArray_t level;
    unsigned int levels = 0;
    for (size_t width = 48, height = 20; levels < 6;
         levels++, width = width / 2, height = height > 1 ? height / 2 : 1) {
        cudaExtent extent;
        CUDA_OK(cudaGetMipmappedArrayLevel(&level, mipmap, levels));
        CUDA_OK(cudaArrayGetInfo(nullptr, &extent, nullptr, level));
        check_equal("width of a level", (long long) width, (long long) extent.width);
        check_equal("height of a level", (long long) height, (long long) extent.height);
        Bytes host = filled(width, height, levels + 1);
        CUDA_OK(cudaMemcpy2DToArray(level, 0, 0, host.data() + width * height * levels, width, width, height,
                                    cudaMemcpyHostToDevice));
    }
    levels = 0;
    for (size_t width = 48, height = 20; levels < 6;
         levels++, width = width / 2, height = height > 1 ? height / 2 : 1) {
        Bytes host = filled(width, height, levels + 1), back(width * height);
        CUDA_OK(cudaGetMipmappedArrayLevel(&level, mipmap, levels));
        CUDA_OK(cudaMemcpy2DFromArray(back.data(), width, level, 0, 0, width, height, cudaMemcpyDeviceToHost));
        check_equal("bytes of a level", 0, memcmp(back.data(), host.data() + width * height * levels, back.size()));
    }
    CUDA_IS(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&level, mipmap, 6));
    CUDA_OK(cudaFreeMipmappedArray(mipmap));
    CUDA_OK(cudaFreeMipmappedArray(nullptr));
}

// The deprecated functions count bytes, which continue in the next row.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma nv_diag_suppress 1444
static void runs() {
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaArray_t first, second;
    CUDA_OK(cudaMallocArray(&first, &desc, 16, 8));
    CUDA_OK(cudaMallocArray(&second, &desc, 10, 12));
    Bytes host = filled(512, 1, 1), zeros(512), back(512);
    CUDA_OK(cudaMemcpyToArray(first, 0, 0, zeros.data(), 512, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpyToArray(second, 0, 0, zeros.data(), 480, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpyToArray(first, 40, 1, host.data(), 300, cudaMemcpyHostToDevice)); // 104 to 404
    CUDA_OK(cudaMemcpyArrayToArray(second, 12, 2, first, 8, 2, 240));                   // 136 to 376, to 92
    CUDA_OK(cudaMemcpyFromArray(back.data(), second, 0, 0, 480, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 480; i++) {
        check_element("runs", i, i >= 92 && i < 332 ? host[i - 92 + 136 - 104] : 0, back[i]);
    }
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpyToArray(first, 40, 1, host.data(), 409, cudaMemcpyHostToDevice));
    CUDA_OK(cudaFreeArray(first));
    CUDA_OK(cudaFreeArray(second));
}

static void refused() {
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    const cudaChannelFormatDesc three = {32, 32, 32, 0, cudaChannelFormatKindFloat};
    const cudaChannelFormatDesc mixed = {32, 16, 0, 0, cudaChannelFormatKindFloat};
    const cudaChannelFormatDesc narrow = {8, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array, other;
    Bytes host(4096);
    CUDA_IS(cudaErrorInvalidValue, cudaMallocArray(&array, &desc, 0, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaMallocArray(&array, &desc, 1 << 20, 8));
    CUDA_IS(cudaErrorInvalidValue, cudaMallocArray(&array, &desc, 16, 8, cudaArrayLayered));
    CUDA_IS(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &three, 16, 8));
    CUDA_IS(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &mixed, 16, 8));
    CUDA_IS(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &narrow, 16, 8));
    CUDA_OK(cudaMallocArray(&array, &desc, 16, 8));
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 0, 0, host.data(), 64, 64, 9, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 4, 0, host.data(), 64, 64, 8, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidPitchValue,
            cudaMemcpy2DToArray(array, 0, 0, host.data(), 32, 64, 8, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy2DToArray(array, 0, 0, host.data(), 64, 64, 8, cudaMemcpyDeviceToHost));
    CUDA_IS(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy2DFromArray(host.data(), 64, array, 0, 0, 64, 8, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidResourceHandle,
            cudaMemcpy2DToArray(nullptr, 0, 0, host.data(), 64, 64, 8, cudaMemcpyHostToDevice));
    const cudaChannelFormatDesc small = cudaCreateChannelDesc<short>();
    CUDA_OK(cudaMallocArray(&other, &small, 32, 8));
    cudaMemcpy3DParms copy = {};
    copy.srcArray = array;
    copy.dstArray = other;
    copy.extent = make_cudaExtent(8, 8, 1);
    copy.kind = cudaMemcpyDeviceToDevice;
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy3D(&copy)); // elements of two sizes
    copy.dstArray = nullptr;
    copy.dstPtr = make_cudaPitchedPtr(host.data(), 64, 64, 8);
    copy.kind = cudaMemcpyDeviceToHost;
    copy.extent = make_cudaExtent(16, 8, 2);
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy3D(&copy)); // one slice
    copy.extent.depth = 1;
    CUDA_OK(cudaMemcpy3D(&copy));
    CUDA_OK(cudaFreeArray(array));
    CUDA_OK(cudaFreeArray(other));
}

static cudaMemcpy3DOperand at_array(cudaArray_t array, size_t x, size_t y) {
    cudaMemcpy3DOperand operand = {};
    operand.type = cudaMemcpyOperandTypeArray;
    operand.op.array.array = array;
    operand.op.array.offset.x = x;
    operand.op.array.offset.y = y;
    return operand;
}

static cudaMemcpy3DOperand at_memory(void *memory, size_t row) {
    cudaMemcpy3DOperand operand = {};
    operand.type = cudaMemcpyOperandTypePointer;
    operand.op.ptr.ptr = memory;
    operand.op.ptr.rowLength = row;
    return operand;
}

// Boxes of batches: their lengths count the array's elements. A batch may run its copies in any order.
static void batches() {
    const size_t bytes = sizeof(uchar4), row = 20, width = 12, height = 6;
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<uchar4>(), other = cudaCreateChannelDesc<char>();
    cudaArray_t first, second, narrow;
    cudaStream_t stream;
    unsigned char *device;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaMallocArray(&first, &desc, 32, 16));
    CUDA_OK(cudaMallocArray(&second, &desc, 32, 16));
    CUDA_OK(cudaMallocArray(&narrow, &other, 32, 16));
    CUDA_OK(cudaMalloc(&device, 2 * row * bytes * height));
    Bytes host = filled(row * bytes, height, 1), back(row * bytes * height);
    CUDA_OK(cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice));
    cudaMemcpy3DBatchOp copy = {};
    copy.extent = make_cudaExtent(width, height, 1);
    copy.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    const cudaMemcpy3DOperand ends[] = {at_memory(device, row), at_array(first, 3, 2), at_array(second, 5, 4),
                                        at_memory(device + host.size(), 0)};
    for (int i = 0; i < 3; i++) {
        copy.src = ends[i];
        copy.dst = ends[i + 1];
        CUDA_OK(cudaMemcpy3DBatchAsync(1, &copy, 0, stream));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaMemcpy(back.data(), device + host.size(), width * bytes * height, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < width * bytes * height; i++) {
        check_element("batches", (long long) i, pattern(i % (width * bytes), i / (width * bytes), 0), back[i]);
    }
    copy.src = ends[1];
    copy.dst = at_array(narrow, 0, 0);
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(1, &copy, 0, stream)); // elements of two sizes
    copy.dst = at_array(second, 32 - width + 1, 0);
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(1, &copy, 0, stream)); // beyond the row
    cudaGetLastError();
    for (cudaArray_t array : {first, second, narrow}) {
        CUDA_OK(cudaFreeArray(array));
    }
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    descriptions();
    rows();
    volumes(0);
    volumes(cudaArrayLayered);
    mipmaps();
    runs();
    batches();
    refused();
    return check_pass("descriptions, rows, volumes, levels, runs, batches and errors of arrays");
}

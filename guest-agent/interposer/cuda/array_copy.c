/*
 * Copies with the part of an array that begins at an offset in bytes: as boxes. A part of a two-dimensional array goes
 * on in the next row, as in CUDA.
 */
#include "array.h"
#include "copy.h"

/* The end of a copy that is not cut into rows: host or device memory at an address. */
typedef struct hws_linear_end {
    CUmemorytype type;
    uint64_t address;
} hws_linear_end_t;

/* A box of the array, and bytes that lie together. */
static CUresult copy_rows(bool to_array, CUarray array, uint64_t x, uint64_t y, uint64_t width, uint64_t rows,
                          const hws_linear_end_t *other, uint64_t at, CUstream stream, bool wait) {
    const void *host = (const void *) (uintptr_t) (other->address + at);
    CUDA_MEMCPY3D copy = {.WidthInBytes = width, .Height = rows, .Depth = 1};
    if (to_array) {
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = array;
        copy.dstXInBytes = x;
        copy.dstY = y;
        copy.srcMemoryType = other->type;
        copy.srcHost = host;
        copy.srcDevice = other->address + at;
        copy.srcPitch = width;
        copy.srcHeight = rows;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = array;
        copy.srcXInBytes = x;
        copy.srcY = y;
        copy.dstMemoryType = other->type;
        copy.dstHost = (void *) (uintptr_t) host;
        copy.dstDevice = other->address + at;
        copy.dstPitch = width;
        copy.dstHeight = rows;
    }
    return hws_copy_3d(&copy, stream, wait);
}

/* Up to three boxes: the rest of the first row, whole rows, the beginning of the last one. */
static CUresult copy_part(bool to_array, CUarray array, uint64_t offset, const hws_linear_end_t *other, uint64_t bytes,
                          CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_TAKE_ARRAY(kept, array);
    uint64_t width = hws_array_width_bytes(kept), total = width * hws_array_rows(kept);
    HWS_REQUIRE(bytes <= total && offset <= total - bytes && (bytes == 0 || other->address != 0));
    HWS_REQUIRE(offset % kept->element_bytes == 0 && bytes % kept->element_bytes == 0);
    for (uint64_t at = 0; at < bytes;) {
        uint64_t x = (offset + at) % width, y = (offset + at) / width, left = bytes - at;
        uint64_t rows = x == 0 && left >= width ? left / width : 1;
        uint64_t part = rows > 1 || left >= width - x ? width - x : left;
        HWS_TRY(copy_rows(to_array, array, x, y, part, rows, other, at, stream, wait));
        at += part * rows;
    }
    return CUDA_SUCCESS;
}

static CUresult host_to_array(CUarray array, size_t offset, const void *host, size_t bytes, CUstream stream,
                              bool wait) {
    const hws_linear_end_t other = {CU_MEMORYTYPE_HOST, (uint64_t) (uintptr_t) host};
    return copy_part(true, array, offset, &other, bytes, stream, wait);
}

static CUresult array_to_host(void *host, CUarray array, size_t offset, size_t bytes, CUstream stream, bool wait) {
    const hws_linear_end_t other = {CU_MEMORYTYPE_HOST, (uint64_t) (uintptr_t) host};
    return copy_part(false, array, offset, &other, bytes, stream, wait);
}

static CUresult device_to_array(CUarray array, size_t offset, CUdeviceptr device, size_t bytes, CUstream stream) {
    const hws_linear_end_t other = {CU_MEMORYTYPE_DEVICE, device};
    return copy_part(true, array, offset, &other, bytes, stream, true);
}

static CUresult array_to_device(CUdeviceptr device, CUarray array, size_t offset, size_t bytes, CUstream stream) {
    const hws_linear_end_t other = {CU_MEMORYTYPE_DEVICE, device};
    return copy_part(false, array, offset, &other, bytes, stream, true);
}

/* Runs of bytes that are in one row on either side. */
static CUresult array_to_array(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes,
                               CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_TAKE_ARRAY(to, dst);
    HWS_TAKE_ARRAY(from, src);
    uint64_t to_width = hws_array_width_bytes(to), to_bytes = to_width * hws_array_rows(to);
    uint64_t from_width = hws_array_width_bytes(from), from_bytes = from_width * hws_array_rows(from);
    HWS_REQUIRE(bytes <= to_bytes && dst_offset <= to_bytes - bytes);
    HWS_REQUIRE(bytes <= from_bytes && src_offset <= from_bytes - bytes);
    for (uint64_t at = 0; at < bytes;) {
        uint64_t to_x = (dst_offset + at) % to_width, from_x = (src_offset + at) % from_width, part = bytes - at;
        part = part < to_width - to_x ? part : to_width - to_x;
        part = part < from_width - from_x ? part : from_width - from_x;
        const CUDA_MEMCPY3D copy = {
            .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = dst, .dstXInBytes = to_x,
            .dstY = (dst_offset + at) / to_width,
            .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = src, .srcXInBytes = from_x,
            .srcY = (src_offset + at) / from_width,
            .WidthInBytes = part, .Height = 1, .Depth = 1};
        HWS_TRY(hws_copy_3d(&copy, stream, true));
        at += part;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount) {
    return host_to_array(dstArray, dstOffset, srcHost, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpyHtoA_v2_ptds(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount) {
    return host_to_array(dstArray, dstOffset, srcHost, ByteCount, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                                         CUstream hStream) {
    return host_to_array(dstArray, dstOffset, srcHost, ByteCount, hStream, false);
}

HWS_EXPORT CUresult cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    return array_to_host(dstHost, srcArray, srcOffset, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpyAtoH_v2_ptds(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    return array_to_host(dstHost, srcArray, srcOffset, ByteCount, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                                         CUstream hStream) {
    return array_to_host(dstHost, srcArray, srcOffset, ByteCount, hStream, false);
}

HWS_EXPORT CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
    return device_to_array(dstArray, dstOffset, srcDevice, ByteCount, NULL);
}

HWS_EXPORT CUresult cuMemcpyDtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
    return device_to_array(dstArray, dstOffset, srcDevice, ByteCount, CU_STREAM_PER_THREAD);
}

HWS_EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    return array_to_device(dstDevice, srcArray, srcOffset, ByteCount, NULL);
}

HWS_EXPORT CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    return array_to_device(dstDevice, srcArray, srcOffset, ByteCount, CU_STREAM_PER_THREAD);
}

HWS_EXPORT CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                                    size_t ByteCount) {
    return array_to_array(dstArray, dstOffset, srcArray, srcOffset, ByteCount, NULL);
}

HWS_EXPORT CUresult cuMemcpyAtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                                         size_t ByteCount) {
    return array_to_array(dstArray, dstOffset, srcArray, srcOffset, ByteCount, CU_STREAM_PER_THREAD);
}

/* Copies between memory and part of an array's first row, from an offset in bytes on. They are boxes of one row. */
#include "array.h"
#include "copy.h"

/* One end of such a copy. */
typedef struct hws_row_end {
    CUmemorytype type;
    uint64_t address; /* of memory */
    CUarray array;
    uint64_t offset; /* in the array */
} hws_row_end_t;

static CUresult copy_row(const hws_row_end_t *dst, const hws_row_end_t *src, uint64_t bytes, CUstream stream,
                         bool wait) {
    const CUDA_MEMCPY3D copy = {.dstMemoryType = dst->type,
                                .dstHost = (void *) (uintptr_t) dst->address,
                                .dstDevice = dst->address,
                                .dstArray = dst->array,
                                .dstXInBytes = dst->offset,
                                .srcMemoryType = src->type,
                                .srcHost = (const void *) (uintptr_t) src->address,
                                .srcDevice = src->address,
                                .srcArray = src->array,
                                .srcXInBytes = src->offset,
                                .WidthInBytes = bytes,
                                .Height = 1,
                                .Depth = 1};
    return hws_copy_3d(&copy, stream, wait);
}

static hws_row_end_t in_array(CUarray array, uint64_t offset) {
    return (hws_row_end_t) {.type = CU_MEMORYTYPE_ARRAY, .array = array, .offset = offset};
}

static CUresult host_to_array(CUarray array, size_t offset, const void *host, size_t bytes, CUstream stream,
                              bool wait) {
    const hws_row_end_t dst = in_array(array, offset);
    const hws_row_end_t src = {.type = CU_MEMORYTYPE_HOST, .address = (uint64_t) (uintptr_t) host};
    return copy_row(&dst, &src, bytes, stream, wait);
}

static CUresult array_to_host(void *host, CUarray array, size_t offset, size_t bytes, CUstream stream, bool wait) {
    const hws_row_end_t src = in_array(array, offset);
    const hws_row_end_t dst = {.type = CU_MEMORYTYPE_HOST, .address = (uint64_t) (uintptr_t) host};
    return copy_row(&dst, &src, bytes, stream, wait);
}

static CUresult device_to_array(CUarray array, size_t offset, CUdeviceptr device, size_t bytes, CUstream stream) {
    const hws_row_end_t dst = in_array(array, offset), src = {.type = CU_MEMORYTYPE_DEVICE, .address = device};
    return copy_row(&dst, &src, bytes, stream, true);
}

static CUresult array_to_device(CUdeviceptr device, CUarray array, size_t offset, size_t bytes, CUstream stream) {
    const hws_row_end_t src = in_array(array, offset), dst = {.type = CU_MEMORYTYPE_DEVICE, .address = device};
    return copy_row(&dst, &src, bytes, stream, true);
}

static CUresult array_to_array(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes,
                               CUstream stream) {
    const hws_row_end_t to = in_array(dst, dst_offset), from = in_array(src, src_offset);
    return copy_row(&to, &from, bytes, stream, true);
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

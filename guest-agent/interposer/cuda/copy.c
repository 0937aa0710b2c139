/*
 * Copies of bytes. To the device: pieces of at most the worker's limit, sent when the call returns, so that the
 * memory may be used again. To the host: into the memory itself; to pinned memory asynchronously.
 */
#include "copy.h"

#include "hws_cuda_calls.h"

#include <string.h>

bool hws_copy_is_device(CUdeviceptr address) {
    hws_range_t range;
    return !hws_interval_find(HWS_SIDE_HOST, address, &range) && hws_interval_find(HWS_SIDE_DEVICE, address, &range);
}

bool hws_copy_is_pinned(const void *host, uint64_t bytes) {
    hws_range_t range;
    uint64_t address = (uint64_t) (uintptr_t) host;
    return hws_interval_find(HWS_SIDE_HOST, address, &range) && bytes <= range.bytes - (address - range.base);
}

CUresult hws_copy_check_device(CUdeviceptr address, uint64_t bytes) {
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_DEVICE, address, &range) && bytes <= range.bytes - (address - range.base));
    return CUDA_SUCCESS;
}

CUresult hws_copy_wait(CUstream stream) {
    return hws_call_cuStreamSynchronize(stream);
}

static CUresult to_device(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(src != NULL);
    HWS_TRY(hws_copy_check_device(dst, bytes));
    size_t limit = hws_channel_welcome()->max_bulk_bytes;
    for (size_t at = 0; at < bytes; at += limit) {
        size_t part = bytes - at < limit ? bytes - at : limit;
        HWS_TRY(hws_call_hwsCopyHtoD(dst + at, stream, part, (const char *) src + at));
    }
    return CUDA_SUCCESS;
}

static CUresult to_host(void *dst, CUdeviceptr src, size_t bytes, CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(dst != NULL);
    HWS_TRY(hws_copy_check_device(src, bytes));
    const hws_target_t target = {.base = dst, .width_bytes = bytes, .rows = 1, .slices = 1};
    return hws_call_hwsCopyDtoH(src, bytes, stream, &target, wait || !hws_copy_is_pinned(dst, bytes));
}

static CUresult on_device(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    HWS_TRY(hws_copy_check_device(dst, bytes));
    HWS_TRY(hws_copy_check_device(src, bytes));
    return hws_call_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

HWS_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
    return on_device(dstDevice, srcDevice, ByteCount, hStream);
}

/* The kind is found from the addresses, as unified addressing promises. */
static CUresult unified(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool wait) {
    bool from_device = hws_copy_is_device(src);
    void *host_dst = (void *) (uintptr_t) dst;
    const void *host_src = (const void *) (uintptr_t) src;
    if (hws_copy_is_device(dst)) {
        return from_device ? on_device(dst, src, bytes, stream) : to_device(dst, host_src, bytes, stream);
    }
    if (from_device) {
        return to_host(host_dst, src, bytes, stream, wait);
    }
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_REQUIRE(bytes == 0 || (host_dst != NULL && host_src != NULL));
    HWS_TRY(hws_copy_wait(stream));
    if (bytes != 0) {
        memmove(host_dst, host_src, bytes);
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return unified(dst, src, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return unified(dst, src, ByteCount, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    return unified(dst, src, ByteCount, hStream, false);
}

HWS_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    return to_device(dstDevice, srcHost, ByteCount, NULL);
}

HWS_EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    return to_device(dstDevice, srcHost, ByteCount, CU_STREAM_PER_THREAD);
}

HWS_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                         CUstream hStream) {
    return to_device(dstDevice, srcHost, ByteCount, hStream);
}

HWS_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return to_host(dstHost, srcDevice, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return to_host(dstHost, srcDevice, ByteCount, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    return to_host(dstHost, srcDevice, ByteCount, hStream, false);
}

/* Between contexts of one worker addresses are unique, so that a copy between peers is one on the device. */
static CUresult peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
                     CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, dst_context);
    HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, src_context);
    return on_device(dst, src, bytes, stream);
}

HWS_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                 CUcontext srcContext, size_t ByteCount) {
    return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, NULL);
}

HWS_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                      CUcontext srcContext, size_t ByteCount) {
    return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, CU_STREAM_PER_THREAD);
}

HWS_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                      CUcontext srcContext, size_t ByteCount, CUstream hStream) {
    return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream);
}

/* 2D and 3D copies of linear memory. Arrays are not supported yet: they are opaque to this library. */
#include <string.h>

#include "copy.h"

/* What the driver is told of each side. The numbers are checked by the caller: kind <= cudaMemcpyDefault. */
static CUmemorytype hws_box_source(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                           ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
                                                                               : CU_MEMORYTYPE_DEVICE;
}

static CUmemorytype hws_box_target(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                           ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
                                                                               : CU_MEMORYTYPE_DEVICE;
}

static cudaError_t hws_copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                               enum cudaMemcpyKind kind, hws_copy_mode_t mode, cudaStream_t stream) {
    if ((unsigned int)kind > cudaMemcpyDefault) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    HWS_ENTER_CONTEXT();
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    if (width > dpitch || width > spitch) {
        return hws_error_record(cudaErrorInvalidPitchValue);
    }
    HWS_REQUIRE(dst != NULL && src != NULL);
    CUDA_MEMCPY2D copy;
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = hws_box_source(kind);
    copy.srcHost = src;
    copy.srcDevice = (CUdeviceptr)(uintptr_t)src;
    copy.srcPitch = spitch;
    copy.dstMemoryType = hws_box_target(kind);
    copy.dstHost = dst;
    copy.dstDevice = (CUdeviceptr)(uintptr_t)dst;
    copy.dstPitch = dpitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return hws_result(mode == HWS_COPY_ASYNC              ? cuMemcpy2DAsync_v2(&copy, stream)
                      : mode == HWS_COPY_SYNC_PER_THREAD ? cuMemcpy2DUnaligned_v2_ptds(&copy)
                                                          : cuMemcpy2DUnaligned_v2(&copy));
}

#define HWS_COPY_2D                                                                                                    \
    void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind

HWS_API cudaError_t cudaMemcpy2D(HWS_COPY_2D) {
    return hws_copy_2d(dst, dpitch, src, spitch, width, height, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpy2D_ptds(HWS_COPY_2D);
HWS_API cudaError_t cudaMemcpy2D_ptds(HWS_COPY_2D) {
    return hws_copy_2d(dst, dpitch, src, spitch, width, height, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpy2DAsync(HWS_COPY_2D, cudaStream_t stream) {
    return hws_copy_2d(dst, dpitch, src, spitch, width, height, kind, HWS_COPY_ASYNC, stream);
}
HWS_PTSZ(cudaMemcpy2DAsync, (HWS_COPY_2D, cudaStream_t stream),
         (dst, dpitch, src, spitch, width, height, kind, hws_stream_ptsz(stream)))

/* Rows of a slice: ysize, unless the program left it 0, when only one slice can be meant. */
static size_t hws_box_rows(const struct cudaPitchedPtr *pitched, const struct cudaPos *pos, size_t height) {
    return pitched->ysize != 0 ? pitched->ysize : pos->y + height;
}

static cudaError_t hws_copy_3d_check(const struct cudaPitchedPtr *pitched, const struct cudaPos *pos,
                                     const struct cudaExtent *extent) {
    if (pitched->ptr == NULL) {
        return cudaErrorInvalidValue;
    }
    if (extent->width > pitched->pitch || pos->x > pitched->pitch - extent->width) {
        return cudaErrorInvalidPitchValue;
    }
    return cudaSuccess;
}

static cudaError_t hws_copy_3d(const struct cudaMemcpy3DParms *p, hws_copy_mode_t mode, cudaStream_t stream) {
    static atomic_flag named = ATOMIC_FLAG_INIT;
    HWS_REQUIRE(p != NULL);
    if ((unsigned int)p->kind > cudaMemcpyDefault) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    HWS_ENTER_CONTEXT();
    if (p->srcArray != NULL || p->dstArray != NULL) {
        return hws_unsupported("cudaMemcpy3D with an array", &named);
    }
    if (p->extent.width == 0 || p->extent.height == 0 || p->extent.depth == 0) {
        return cudaSuccess;
    }
    HWS_TRY(hws_copy_3d_check(&p->srcPtr, &p->srcPos, &p->extent));
    HWS_TRY(hws_copy_3d_check(&p->dstPtr, &p->dstPos, &p->extent));
    CUDA_MEMCPY3D copy;
    memset(&copy, 0, sizeof copy);
    copy.srcXInBytes = p->srcPos.x;
    copy.srcY = p->srcPos.y;
    copy.srcZ = p->srcPos.z;
    copy.srcMemoryType = hws_box_source(p->kind);
    copy.srcHost = p->srcPtr.ptr;
    copy.srcDevice = (CUdeviceptr)(uintptr_t)p->srcPtr.ptr;
    copy.srcPitch = p->srcPtr.pitch;
    copy.srcHeight = hws_box_rows(&p->srcPtr, &p->srcPos, p->extent.height);
    copy.dstXInBytes = p->dstPos.x;
    copy.dstY = p->dstPos.y;
    copy.dstZ = p->dstPos.z;
    copy.dstMemoryType = hws_box_target(p->kind);
    copy.dstHost = p->dstPtr.ptr;
    copy.dstDevice = (CUdeviceptr)(uintptr_t)p->dstPtr.ptr;
    copy.dstPitch = p->dstPtr.pitch;
    copy.dstHeight = hws_box_rows(&p->dstPtr, &p->dstPos, p->extent.height);
    copy.WidthInBytes = p->extent.width;
    copy.Height = p->extent.height;
    copy.Depth = p->extent.depth;
    return hws_result(mode == HWS_COPY_ASYNC              ? cuMemcpy3DAsync_v2(&copy, stream)
                      : mode == HWS_COPY_SYNC_PER_THREAD ? cuMemcpy3D_v2_ptds(&copy)
                                                          : cuMemcpy3D_v2(&copy));
}

HWS_API cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) {
    return hws_copy_3d(p, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *p);
HWS_API cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *p) {
    return hws_copy_3d(p, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream) {
    return hws_copy_3d(p, HWS_COPY_ASYNC, stream);
}
HWS_PTSZ(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream), (p, hws_stream_ptsz(stream)))

static cudaError_t hws_copy_3d_peer(const struct cudaMemcpy3DPeerParms *p, hws_copy_mode_t mode,
                                    cudaStream_t stream) {
    static atomic_flag named = ATOMIC_FLAG_INIT;
    CUDA_MEMCPY3D_PEER copy;
    HWS_REQUIRE(p != NULL);
    HWS_ENTER_CONTEXT();
    if (p->srcArray != NULL || p->dstArray != NULL) {
        return hws_unsupported("cudaMemcpy3DPeer with an array", &named);
    }
    memset(&copy, 0, sizeof copy);
    HWS_TRY(hws_context_primary(p->srcDevice, &copy.srcContext));
    HWS_TRY(hws_context_primary(p->dstDevice, &copy.dstContext));
    if (p->extent.width == 0 || p->extent.height == 0 || p->extent.depth == 0) {
        return cudaSuccess;
    }
    HWS_TRY(hws_copy_3d_check(&p->srcPtr, &p->srcPos, &p->extent));
    HWS_TRY(hws_copy_3d_check(&p->dstPtr, &p->dstPos, &p->extent));
    copy.srcXInBytes = p->srcPos.x;
    copy.srcY = p->srcPos.y;
    copy.srcZ = p->srcPos.z;
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = (CUdeviceptr)(uintptr_t)p->srcPtr.ptr;
    copy.srcPitch = p->srcPtr.pitch;
    copy.srcHeight = hws_box_rows(&p->srcPtr, &p->srcPos, p->extent.height);
    copy.dstXInBytes = p->dstPos.x;
    copy.dstY = p->dstPos.y;
    copy.dstZ = p->dstPos.z;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = (CUdeviceptr)(uintptr_t)p->dstPtr.ptr;
    copy.dstPitch = p->dstPtr.pitch;
    copy.dstHeight = hws_box_rows(&p->dstPtr, &p->dstPos, p->extent.height);
    copy.WidthInBytes = p->extent.width;
    copy.Height = p->extent.height;
    copy.Depth = p->extent.depth;
    return hws_result(mode == HWS_COPY_ASYNC              ? cuMemcpy3DPeerAsync(&copy, stream)
                      : mode == HWS_COPY_SYNC_PER_THREAD ? cuMemcpy3DPeer_ptds(&copy)
                                                          : cuMemcpy3DPeer(&copy));
}

HWS_API cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p) {
    return hws_copy_3d_peer(p, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpy3DPeer_ptds(const struct cudaMemcpy3DPeerParms *p);
HWS_API cudaError_t cudaMemcpy3DPeer_ptds(const struct cudaMemcpy3DPeerParms *p) {
    return hws_copy_3d_peer(p, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream) {
    return hws_copy_3d_peer(p, HWS_COPY_ASYNC, stream);
}
HWS_PTSZ(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream),
         (p, hws_stream_ptsz(stream)))

/* 2D and 3D copies. */
#include <string.h>

#include "array.h"
#include "copy.h"

/* The driver's memory type of each side. The caller has checked that kind <= cudaMemcpyDefault. */
static CUmemorytype hws_box_source(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                     ? CU_MEMORYTYPE_UNIFIED
        : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
                                                                         : CU_MEMORYTYPE_DEVICE;
}

static CUmemorytype hws_box_target(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                     ? CU_MEMORYTYPE_UNIFIED
        : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
                                                                         : CU_MEMORYTYPE_DEVICE;
}

static cudaError_t hws_copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                               enum cudaMemcpyKind kind, hws_copy_mode_t mode, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    HWS_TRY(hws_context_ask());
    if (height > 1 && (width > dpitch || width > spitch)) {
        return hws_error_record(cudaErrorInvalidPitchValue); /* one row too wide is an invalid value, by the driver */
    }
    if ((unsigned int) kind > cudaMemcpyDefault) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    HWS_REQUIRE(dst != NULL && src != NULL);
    CUDA_MEMCPY2D copy;
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = hws_box_source(kind);
    copy.srcHost = src;
    copy.srcDevice = (CUdeviceptr) (uintptr_t) src;
    copy.srcPitch = spitch;
    copy.dstMemoryType = hws_box_target(kind);
    copy.dstHost = dst;
    copy.dstDevice = (CUdeviceptr) (uintptr_t) dst;
    copy.dstPitch = dpitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return hws_result(mode == HWS_COPY_ASYNC                 ? cuMemcpy2DAsync_v2(&copy, stream)
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
HWS_TWIN(cudaMemcpy2DAsync, (HWS_COPY_2D, cudaStream_t stream),
         (dst, dpitch, src, spitch, width, height, kind, hws_stream_ptsz(stream)))

/* Rows of a slice: ysize, unless the program left it 0; then the copy can only have one slice. */
static size_t hws_box_rows(const struct cudaPitchedPtr *pitched, const struct cudaPos *pos, size_t height) {
    return pitched->ysize != 0 ? pitched->ysize : pos->y + height;
}

/*
 * Checks one end of a 3D copy: an array or memory. Positions in memory are bytes, but if the other end is an array,
 * they are its elements. NVIDIA's runtime 13.0 does this, against its documentation.
 */
static cudaError_t hws_copy_3d_check(cudaArray_const_t array, const struct cudaPitchedPtr *pitched,
                                     const struct cudaPos *pos, size_t width, size_t element, bool arrays) {
    size_t x;
    if (array != NULL) {
        return pitched->ptr != NULL ? cudaErrorInvalidValue : cudaSuccess;
    }
    if (pitched->ptr == NULL || __builtin_mul_overflow(pos->x, element, &x)) {
        return cudaErrorInvalidValue;
    }
    return width <= pitched->pitch && x <= pitched->pitch - width ? cudaSuccess
        : arrays                                                  ? cudaErrorInvalidValue
                                                                  : cudaErrorInvalidPitchValue;
}

/* Bytes of an element of the copy: of its arrays, which must agree, or one byte without arrays. */
static cudaError_t hws_copy_3d_element(cudaArray_const_t src, cudaArray_const_t dst, size_t *element) {
    size_t other;
    *element = 1;
    if (src != NULL) {
        cudaError_t error = hws_array_element(src, element);
        if (error != cudaSuccess) {
            return error;
        }
    }
    if (dst != NULL) {
        cudaError_t error = hws_array_element(dst, &other);
        if (error != cudaSuccess) {
            return error;
        }
        if (src != NULL && other != *element) {
            return cudaErrorInvalidValue;
        }
        *element = other;
    }
    return cudaSuccess;
}

/* One end of a copy for the driver. */
typedef struct {
    CUmemorytype type;
    size_t x, pitch, rows;
    CUarray array;
    void *memory;
} hws_end_t;

static hws_end_t hws_copy_3d_end(cudaArray_const_t array, const struct cudaPitchedPtr *pitched,
                                 const struct cudaPos *pos, size_t height, size_t element, CUmemorytype memory) {
    if (array != NULL) {
        return (hws_end_t) {.type = CU_MEMORYTYPE_ARRAY, .x = pos->x * element, .array = hws_array_driver(array)};
    }
    return (hws_end_t) {.type = memory,
                        .x = pos->x * element,
                        .pitch = pitched->pitch,
                        .rows = hws_box_rows(pitched, pos, height),
                        .memory = pitched->ptr};
}

cudaError_t hws_copy_3d_params(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy) {
    size_t element, width;
    if ((unsigned int) p->kind > cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    memset(copy, 0, sizeof *copy);
    if (p->extent.width == 0 || p->extent.height == 0 || p->extent.depth == 0) {
        return cudaSuccess;
    }
    bool arrays = p->srcArray != NULL || p->dstArray != NULL;
    cudaError_t error = hws_copy_3d_element(p->srcArray, p->dstArray, &element);
    if (error == cudaSuccess) {
        error = __builtin_mul_overflow(p->extent.width, element, &width) ? cudaErrorInvalidValue : cudaSuccess;
    }
    if (error == cudaSuccess) {
        error = hws_copy_3d_check(p->srcArray, &p->srcPtr, &p->srcPos, width, element, arrays);
    }
    if (error == cudaSuccess) {
        error = hws_copy_3d_check(p->dstArray, &p->dstPtr, &p->dstPos, width, element, arrays);
    }
    if (error != cudaSuccess) {
        return error;
    }
    hws_end_t src =
        hws_copy_3d_end(p->srcArray, &p->srcPtr, &p->srcPos, p->extent.height, element, hws_box_source(p->kind));
    hws_end_t dst =
        hws_copy_3d_end(p->dstArray, &p->dstPtr, &p->dstPos, p->extent.height, element, hws_box_target(p->kind));
    copy->srcXInBytes = src.x;
    copy->srcY = p->srcPos.y;
    copy->srcZ = p->srcPos.z;
    copy->srcMemoryType = src.type;
    copy->srcHost = src.memory;
    copy->srcDevice = (CUdeviceptr) (uintptr_t) src.memory;
    copy->srcArray = src.array;
    copy->srcPitch = src.pitch;
    copy->srcHeight = src.rows;
    copy->dstXInBytes = dst.x;
    copy->dstY = p->dstPos.y;
    copy->dstZ = p->dstPos.z;
    copy->dstMemoryType = dst.type;
    copy->dstHost = dst.memory;
    copy->dstDevice = (CUdeviceptr) (uintptr_t) dst.memory;
    copy->dstArray = dst.array;
    copy->dstPitch = dst.pitch;
    copy->dstHeight = dst.rows;
    copy->WidthInBytes = width;
    copy->Height = p->extent.height;
    copy->Depth = p->extent.depth;
    return cudaSuccess;
}

static cudaError_t hws_copy_3d(const struct cudaMemcpy3DParms *p, hws_copy_mode_t mode, cudaStream_t stream) {
    CUDA_MEMCPY3D copy;
    HWS_REQUIRE(p != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_copy_3d_params(p, &copy));
    if (copy.WidthInBytes == 0) {
        CUstreamCaptureStatus status; /* the legacy stream would wait for a capture even without bytes */
        HWS_TRY(hws_context_ask());
        return hws_result(
            cuStreamIsCapturing(mode == HWS_COPY_SYNC_PER_THREAD ? cudaStreamPerThread : stream, &status));
    }
    return hws_result(mode == HWS_COPY_ASYNC                 ? cuMemcpy3DAsync_v2(&copy, stream)
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
HWS_TWIN(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream), (p, hws_stream_ptsz(stream)))

static cudaError_t hws_copy_3d_peer(const struct cudaMemcpy3DPeerParms *p, hws_copy_mode_t mode, cudaStream_t stream) {
    CUDA_MEMCPY3D_PEER copy;
    CUDA_MEMCPY3D plain;
    HWS_REQUIRE(p != NULL);
    HWS_ENTER_CONTEXT();
    memset(&copy, 0, sizeof copy);
    HWS_TRY(hws_context_primary(p->srcDevice, &copy.srcContext));
    HWS_TRY(hws_context_primary(p->dstDevice, &copy.dstContext));
    const struct cudaMemcpy3DParms single = {.srcArray = p->srcArray,
                                             .srcPos = p->srcPos,
                                             .srcPtr = p->srcPtr,
                                             .dstArray = p->dstArray,
                                             .dstPos = p->dstPos,
                                             .dstPtr = p->dstPtr,
                                             .extent = p->extent,
                                             .kind = cudaMemcpyDeviceToDevice};
    HWS_TRY(hws_copy_3d_params(&single, &plain));
    if (plain.WidthInBytes == 0) {
        return cudaSuccess;
    }
    copy.srcXInBytes = plain.srcXInBytes;
    copy.srcY = plain.srcY;
    copy.srcZ = plain.srcZ;
    copy.srcMemoryType = plain.srcMemoryType;
    copy.srcDevice = plain.srcDevice;
    copy.srcArray = plain.srcArray;
    copy.srcPitch = plain.srcPitch;
    copy.srcHeight = plain.srcHeight;
    copy.dstXInBytes = plain.dstXInBytes;
    copy.dstY = plain.dstY;
    copy.dstZ = plain.dstZ;
    copy.dstMemoryType = plain.dstMemoryType;
    copy.dstDevice = plain.dstDevice;
    copy.dstArray = plain.dstArray;
    copy.dstPitch = plain.dstPitch;
    copy.dstHeight = plain.dstHeight;
    copy.WidthInBytes = plain.WidthInBytes;
    copy.Height = plain.Height;
    copy.Depth = plain.Depth;
    return hws_result(mode == HWS_COPY_ASYNC                 ? cuMemcpy3DPeerAsync(&copy, stream)
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
HWS_TWIN(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream),
         (p, hws_stream_ptsz(stream)))

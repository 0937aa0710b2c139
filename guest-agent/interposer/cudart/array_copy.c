/* Copies of rows with arrays; offsets in a row are bytes. */
#include <string.h>

#include "array.h"
#include "copy.h"

/* The kinds of copies to and from an array. Any other kind has the wrong direction. */
static bool hws_kind_to_array(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

static bool hws_kind_from_array(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

static bool hws_kind_between_arrays(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

static CUmemorytype hws_memory_type(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault       ? CU_MEMORYTYPE_UNIFIED
        : kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
                                           : CU_MEMORYTYPE_HOST;
}

static cudaError_t hws_run_2d(const CUDA_MEMCPY2D *copy, hws_copy_mode_t mode, cudaStream_t stream) {
    return hws_result(mode == HWS_COPY_ASYNC                 ? cuMemcpy2DAsync_v2(copy, stream)
                          : mode == HWS_COPY_SYNC_PER_THREAD ? cuMemcpy2DUnaligned_v2_ptds(copy)
                                                             : cuMemcpy2DUnaligned_v2(copy));
}

static cudaError_t hws_2d_to_array(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
                                   size_t width, size_t height, enum cudaMemcpyKind kind, hws_copy_mode_t mode,
                                   cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    if (width > spitch && height > 1) {
        return hws_error_record(cudaErrorInvalidPitchValue);
    }
    if (!hws_kind_to_array(kind)) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    if (dst == NULL) {
        return hws_error_record(cudaErrorInvalidResourceHandle);
    }
    HWS_REQUIRE(src != NULL);
    CUDA_MEMCPY2D copy;
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = hws_memory_type(kind);
    copy.srcHost = src;
    copy.srcDevice = (CUdeviceptr) (uintptr_t) src;
    copy.srcPitch = spitch;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = hws_array_driver(dst);
    copy.dstXInBytes = wOffset;
    copy.dstY = hOffset;
    copy.WidthInBytes = width;
    copy.Height = height;
    return hws_run_2d(&copy, mode, stream);
}

static cudaError_t hws_2d_from_array(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                     size_t width, size_t height, enum cudaMemcpyKind kind, hws_copy_mode_t mode,
                                     cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    if (width > dpitch && height > 1) {
        return hws_error_record(cudaErrorInvalidPitchValue);
    }
    if (!hws_kind_from_array(kind)) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    if (src == NULL) {
        return hws_error_record(cudaErrorInvalidResourceHandle);
    }
    HWS_REQUIRE(dst != NULL);
    CUDA_MEMCPY2D copy;
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = hws_array_driver(src);
    copy.srcXInBytes = wOffset;
    copy.srcY = hOffset;
    copy.dstMemoryType = hws_memory_type(kind);
    copy.dstHost = dst;
    copy.dstDevice = (CUdeviceptr) (uintptr_t) dst;
    copy.dstPitch = dpitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return hws_run_2d(&copy, mode, stream);
}

static cudaError_t hws_2d_between_arrays(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                         size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height,
                                         enum cudaMemcpyKind kind, hws_copy_mode_t mode) {
    HWS_ENTER_CONTEXT();
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    if (!hws_kind_between_arrays(kind)) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    if (dst == NULL || src == NULL) {
        return hws_error_record(cudaErrorInvalidResourceHandle);
    }
    CUDA_MEMCPY2D copy;
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = hws_array_driver(src);
    copy.srcXInBytes = wOffsetSrc;
    copy.srcY = hOffsetSrc;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = hws_array_driver(dst);
    copy.dstXInBytes = wOffsetDst;
    copy.dstY = hOffsetDst;
    copy.WidthInBytes = width;
    copy.Height = height;
    return hws_run_2d(&copy, mode, NULL);
}

#define HWS_TO_ARRAY                                                                                                   \
    cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width, size_t height,      \
        enum cudaMemcpyKind kind
#define HWS_FROM_ARRAY                                                                                                 \
    void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width, size_t height,      \
        enum cudaMemcpyKind kind
#define HWS_BETWEEN_ARRAYS                                                                                             \
    cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,                   \
        size_t hOffsetSrc, size_t width, size_t height, enum cudaMemcpyKind kind

HWS_API cudaError_t cudaMemcpy2DToArray(HWS_TO_ARRAY) {
    return hws_2d_to_array(dst, wOffset, hOffset, src, spitch, width, height, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpy2DToArray_ptds(HWS_TO_ARRAY);
HWS_API cudaError_t cudaMemcpy2DToArray_ptds(HWS_TO_ARRAY) {
    return hws_2d_to_array(dst, wOffset, hOffset, src, spitch, width, height, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpy2DToArrayAsync(HWS_TO_ARRAY, cudaStream_t stream) {
    return hws_2d_to_array(dst, wOffset, hOffset, src, spitch, width, height, kind, HWS_COPY_ASYNC, stream);
}
HWS_TWIN(cudaMemcpy2DToArrayAsync, (HWS_TO_ARRAY, cudaStream_t stream),
         (dst, wOffset, hOffset, src, spitch, width, height, kind, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemcpy2DFromArray(HWS_FROM_ARRAY) {
    return hws_2d_from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpy2DFromArray_ptds(HWS_FROM_ARRAY);
HWS_API cudaError_t cudaMemcpy2DFromArray_ptds(HWS_FROM_ARRAY) {
    return hws_2d_from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpy2DFromArrayAsync(HWS_FROM_ARRAY, cudaStream_t stream) {
    return hws_2d_from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind, HWS_COPY_ASYNC, stream);
}
HWS_TWIN(cudaMemcpy2DFromArrayAsync, (HWS_FROM_ARRAY, cudaStream_t stream),
         (dst, dpitch, src, wOffset, hOffset, width, height, kind, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemcpy2DArrayToArray(HWS_BETWEEN_ARRAYS) {
    return hws_2d_between_arrays(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width, height, kind,
                                 HWS_COPY_SYNC);
}

HWS_API cudaError_t cudaMemcpy2DArrayToArray_ptds(HWS_BETWEEN_ARRAYS);
HWS_API cudaError_t cudaMemcpy2DArrayToArray_ptds(HWS_BETWEEN_ARRAYS) {
    return hws_2d_between_arrays(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width, height, kind,
                                 HWS_COPY_SYNC_PER_THREAD);
}

/* ---- deprecated copies of bytes that continue in the next row ---- */

/* The place of the bytes in an array, and the length of its rows. */
typedef struct {
    size_t rowBytes, first;
} hws_run_t;

static cudaError_t hws_run_begin(cudaArray_const_t array, size_t wOffset, size_t hOffset, size_t count,
                                 hws_run_t *run) {
    *run = (hws_run_t) {.rowBytes = 1}; /* never 0: callers divide by it */
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    size_t element, rows;
    cudaError_t error = hws_array_element(array, &element);
    CUresult result = cuArray3DGetDescriptor_v2(&descriptor, hws_array_driver(array));
    if (error != cudaSuccess || result != CUDA_SUCCESS) {
        return error != cudaSuccess ? error : hws_error_from_driver(result);
    }
    rows = descriptor.Height == 0 ? 1 : descriptor.Height;
    run->rowBytes = descriptor.Width * element;
    size_t total = rows * run->rowBytes;
    if (hOffset > rows || wOffset > total || hOffset * run->rowBytes + wOffset > total) {
        return cudaErrorInvalidValue;
    }
    run->first = hOffset * run->rowBytes + wOffset; /* an offset beyond the row continues in the next one */
    return count <= total - run->first ? cudaSuccess : cudaErrorInvalidValue;
}

/* The box with which the run's bytes from `at` on begin: whole rows, or a part of one. */
static void hws_run_box(const hws_run_t *run, size_t at, size_t count, size_t *x, size_t *y, size_t *width,
                        size_t *rows) {
    size_t left = count - at;
    *x = (run->first + at) % run->rowBytes;
    *y = (run->first + at) / run->rowBytes;
    *rows = *x == 0 && left >= run->rowBytes ? left / run->rowBytes : 1;
    *width = left < run->rowBytes - *x ? left : run->rowBytes - *x;
}

static cudaError_t hws_run_to_array(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                                    enum cudaMemcpyKind kind, hws_copy_mode_t mode, cudaStream_t stream) {
    hws_run_t run;
    HWS_ENTER_CONTEXT();
    if (count == 0 || (unsigned int) kind > cudaMemcpyDefault) {
        return cudaSuccess; /* as NVIDIA's runtime, which copies nothing for an unknown kind */
    }
    if (!hws_kind_to_array(kind)) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    HWS_TRY(hws_run_begin(dst, wOffset, hOffset, count, &run));
    for (size_t at = 0, x, y, width, rows; at < count; at += width * rows) {
        hws_run_box(&run, at, count, &x, &y, &width, &rows);
        HWS_TRY(hws_2d_to_array(dst, x, y, (const char *) src + at, width, width, rows, kind, mode, stream));
    }
    return cudaSuccess;
}

static cudaError_t hws_run_from_array(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                      enum cudaMemcpyKind kind, hws_copy_mode_t mode, cudaStream_t stream) {
    hws_run_t run;
    HWS_ENTER_CONTEXT();
    if (count == 0 || (unsigned int) kind > cudaMemcpyDefault) {
        return cudaSuccess; /* as NVIDIA's runtime, which copies nothing for an unknown kind */
    }
    if (!hws_kind_from_array(kind)) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    HWS_TRY(hws_run_begin(src, wOffset, hOffset, count, &run));
    for (size_t at = 0, x, y, width, rows; at < count; at += width * rows) {
        hws_run_box(&run, at, count, &x, &y, &width, &rows);
        HWS_TRY(hws_2d_from_array((char *) dst + at, width, src, x, y, width, rows, kind, mode, stream));
    }
    return cudaSuccess;
}

static cudaError_t hws_run_between_arrays(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                          size_t wOffsetSrc, size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind,
                                          hws_copy_mode_t mode) {
    hws_run_t to, from;
    HWS_ENTER_CONTEXT();
    if (count == 0) {
        return cudaSuccess;
    }
    if (!hws_kind_between_arrays(kind)) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    /* NVIDIA's runtime makes a call here that no capture allows, and that fails after the error of a kernel. */
    HWS_TRY(hws_error_from_driver(cuMemFree_v2(0)));
    HWS_TRY(hws_run_begin(src, wOffsetSrc, hOffsetSrc, count, &from));
    HWS_TRY(hws_run_begin(dst, wOffsetDst, hOffsetDst, count, &to));
    for (size_t at = 0, width; at < count; at += width) {
        size_t toX = (to.first + at) % to.rowBytes, fromX = (from.first + at) % from.rowBytes;
        width = count - at;
        width = width < to.rowBytes - toX ? width : to.rowBytes - toX;
        width = width < from.rowBytes - fromX ? width : from.rowBytes - fromX;
        HWS_TRY(hws_2d_between_arrays(dst, toX, (to.first + at) / to.rowBytes, src, fromX,
                                      (from.first + at) / from.rowBytes, width, 1, kind, mode));
    }
    return cudaSuccess;
}

#define HWS_RUN_TO_ARRAY                                                                                               \
    cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count, enum cudaMemcpyKind kind
#define HWS_RUN_FROM_ARRAY                                                                                             \
    void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count, enum cudaMemcpyKind kind
#define HWS_RUN_BETWEEN                                                                                                \
    cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,                   \
        size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind

HWS_API cudaError_t cudaMemcpyToArray(HWS_RUN_TO_ARRAY) {
    return hws_run_to_array(dst, wOffset, hOffset, src, count, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpyToArray_ptds(HWS_RUN_TO_ARRAY);
HWS_API cudaError_t cudaMemcpyToArray_ptds(HWS_RUN_TO_ARRAY) {
    return hws_run_to_array(dst, wOffset, hOffset, src, count, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpyToArrayAsync(HWS_RUN_TO_ARRAY, cudaStream_t stream) {
    return hws_run_to_array(dst, wOffset, hOffset, src, count, kind, HWS_COPY_ASYNC, stream);
}

HWS_API cudaError_t cudaMemcpyToArrayAsync_ptsz(HWS_RUN_TO_ARRAY, cudaStream_t stream);
HWS_API cudaError_t cudaMemcpyToArrayAsync_ptsz(HWS_RUN_TO_ARRAY, cudaStream_t stream) {
    return hws_run_to_array(dst, wOffset, hOffset, src, count, kind, HWS_COPY_ASYNC, hws_stream_ptsz(stream));
}

HWS_API cudaError_t cudaMemcpyFromArray(HWS_RUN_FROM_ARRAY) {
    return hws_run_from_array(dst, src, wOffset, hOffset, count, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpyFromArray_ptds(HWS_RUN_FROM_ARRAY);
HWS_API cudaError_t cudaMemcpyFromArray_ptds(HWS_RUN_FROM_ARRAY) {
    return hws_run_from_array(dst, src, wOffset, hOffset, count, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpyFromArrayAsync(HWS_RUN_FROM_ARRAY, cudaStream_t stream) {
    return hws_run_from_array(dst, src, wOffset, hOffset, count, kind, HWS_COPY_ASYNC, stream);
}

HWS_API cudaError_t cudaMemcpyFromArrayAsync_ptsz(HWS_RUN_FROM_ARRAY, cudaStream_t stream);
HWS_API cudaError_t cudaMemcpyFromArrayAsync_ptsz(HWS_RUN_FROM_ARRAY, cudaStream_t stream) {
    return hws_run_from_array(dst, src, wOffset, hOffset, count, kind, HWS_COPY_ASYNC, hws_stream_ptsz(stream));
}

HWS_API cudaError_t cudaMemcpyArrayToArray(HWS_RUN_BETWEEN) {
    return hws_run_between_arrays(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count, kind, HWS_COPY_SYNC);
}

HWS_API cudaError_t cudaMemcpyArrayToArray_ptds(HWS_RUN_BETWEEN);
HWS_API cudaError_t cudaMemcpyArrayToArray_ptds(HWS_RUN_BETWEEN) {
    return hws_run_between_arrays(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count, kind,
                                  HWS_COPY_SYNC_PER_THREAD);
}

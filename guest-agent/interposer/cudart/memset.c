/* Fills memory. */
#include "copy.h"

static CUresult hws_fill_1d(CUdeviceptr dst, unsigned char value, size_t count, hws_copy_mode_t mode,
                            cudaStream_t stream) {
    return mode == HWS_COPY_ASYNC          ? cuMemsetD8Async(dst, value, count, stream)
        : mode == HWS_COPY_SYNC_PER_THREAD ? cuMemsetD8_v2_ptds(dst, value, count)
                                           : cuMemsetD8_v2(dst, value, count);
}

static CUresult hws_fill_2d(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
                            hws_copy_mode_t mode, cudaStream_t stream) {
    return mode == HWS_COPY_ASYNC          ? cuMemsetD2D8Async(dst, pitch, value, width, height, stream)
        : mode == HWS_COPY_SYNC_PER_THREAD ? cuMemsetD2D8_v2_ptds(dst, pitch, value, width, height)
                                           : cuMemsetD2D8_v2(dst, pitch, value, width, height);
}

static cudaError_t hws_memset(void *devPtr, int value, size_t count, hws_copy_mode_t mode, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    if (count == 0) {
        return cudaSuccess;
    }
    return hws_result(hws_fill_1d((CUdeviceptr) (uintptr_t) devPtr, (unsigned char) value, count, mode, stream));
}

static cudaError_t hws_memset_2d(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                                 hws_copy_mode_t mode, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    return hws_result(
        hws_fill_2d((CUdeviceptr) (uintptr_t) devPtr, pitch, (unsigned char) value, width, height, mode, stream));
}

static cudaError_t hws_memset_3d(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
                                 hws_copy_mode_t mode, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) {
        return cudaSuccess;
    }
    if (extent.width > pitched.pitch || (extent.depth > 1 && extent.height > pitched.ysize)) {
        return hws_error_record(cudaErrorInvalidValue);
    }
    CUdeviceptr address = (CUdeviceptr) (uintptr_t) pitched.ptr;
    if (extent.depth == 1 || extent.height == pitched.ysize) {
        /* Slices follow each other without gaps, so one fill is enough. */
        return hws_result(hws_fill_2d(address, pitched.pitch, (unsigned char) value, extent.width,
                                      extent.height * extent.depth, mode, stream));
    }
    for (size_t z = 0; z < extent.depth; z++) {
        CUresult result = hws_fill_2d(address + z * pitched.pitch * pitched.ysize, pitched.pitch, (unsigned char) value,
                                      extent.width, extent.height, mode, stream);
        if (result != CUDA_SUCCESS) {
            return hws_result(result);
        }
    }
    return cudaSuccess;
}

HWS_API cudaError_t cudaMemset(void *devPtr, int value, size_t count) {
    return hws_memset(devPtr, value, count, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemset_ptds(void *devPtr, int value, size_t count);
HWS_API cudaError_t cudaMemset_ptds(void *devPtr, int value, size_t count) {
    return hws_memset(devPtr, value, count, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream) {
    return hws_memset(devPtr, value, count, HWS_COPY_ASYNC, stream);
}
HWS_TWIN(cudaMemsetAsync, (void *devPtr, int value, size_t count, cudaStream_t stream),
         (devPtr, value, count, hws_stream_ptsz(stream)))

#define HWS_MEMSET_2D void *devPtr, size_t pitch, int value, size_t width, size_t height

HWS_API cudaError_t cudaMemset2D(HWS_MEMSET_2D) {
    return hws_memset_2d(devPtr, pitch, value, width, height, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemset2D_ptds(HWS_MEMSET_2D);
HWS_API cudaError_t cudaMemset2D_ptds(HWS_MEMSET_2D) {
    return hws_memset_2d(devPtr, pitch, value, width, height, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemset2DAsync(HWS_MEMSET_2D, cudaStream_t stream) {
    return hws_memset_2d(devPtr, pitch, value, width, height, HWS_COPY_ASYNC, stream);
}
HWS_TWIN(cudaMemset2DAsync, (HWS_MEMSET_2D, cudaStream_t stream),
         (devPtr, pitch, value, width, height, hws_stream_ptsz(stream)))

#define HWS_MEMSET_3D struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent

HWS_API cudaError_t cudaMemset3D(HWS_MEMSET_3D) {
    return hws_memset_3d(pitchedDevPtr, value, extent, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemset3D_ptds(HWS_MEMSET_3D);
HWS_API cudaError_t cudaMemset3D_ptds(HWS_MEMSET_3D) {
    return hws_memset_3d(pitchedDevPtr, value, extent, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemset3DAsync(HWS_MEMSET_3D, cudaStream_t stream) {
    return hws_memset_3d(pitchedDevPtr, value, extent, HWS_COPY_ASYNC, stream);
}
HWS_TWIN(cudaMemset3DAsync, (HWS_MEMSET_3D, cudaStream_t stream),
         (pitchedDevPtr, value, extent, hws_stream_ptsz(stream)))

/*
 * Fills device memory. The calls do not wait, except the blocking ones for managed memory. So the guest checks what
 * CUDA checks at once: alignment and existing memory.
 */
#include "copy.h"

#include "capture.h"

#include "hws_cuda_calls.h"

/* Checks `rows` rows of `count` elements, pitch bytes apart. */
static CUresult check(CUdeviceptr address, size_t pitch, size_t count, size_t rows, size_t element_bytes,
                      CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    CUresult asked = HWS_CAPTURING() ? hws_capture_ask(stream) : CUDA_SUCCESS;
    if (asked != CUDA_SUCCESS && asked != HWS_CAPTURED) {
        return asked;
    }
    size_t width, before;
    HWS_REQUIRE(!__builtin_mul_overflow(count, element_bytes, &width));
    if (rows == 0 || width == 0) {
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(address % element_bytes == 0);
    HWS_REQUIRE(rows == 1 || (pitch % element_bytes == 0 && pitch >= width));
    HWS_REQUIRE(!__builtin_mul_overflow(pitch, rows - 1, &before) && !__builtin_add_overflow(before, width, &before));
    return hws_copy_check_device(address, before);
}

HWS_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
    HWS_TRY(check(dstDevice, 0, N, 1, 1, hStream));
    HWS_CAPTURE(hStream, hws_capture_memset(dstDevice, 0, uc, 1, N, 1, hStream));
    return N == 0 ? CUDA_SUCCESS : hws_call_cuMemsetD8Async(dstDevice, uc, N, hStream);
}

HWS_EXPORT CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
    HWS_TRY(check(dstDevice, 0, N, 1, 2, hStream));
    HWS_CAPTURE(hStream, hws_capture_memset(dstDevice, 0, us, 2, N, 1, hStream));
    return N == 0 ? CUDA_SUCCESS : hws_call_cuMemsetD16Async(dstDevice, us, N, hStream);
}

HWS_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
    HWS_TRY(check(dstDevice, 0, N, 1, 4, hStream));
    HWS_CAPTURE(hStream, hws_capture_memset(dstDevice, 0, ui, 4, N, 1, hStream));
    return N == 0 ? CUDA_SUCCESS : hws_call_cuMemsetD32Async(dstDevice, ui, N, hStream);
}

HWS_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                                      size_t Height, CUstream hStream) {
    HWS_TRY(check(dstDevice, dstPitch, Width, Height, 1, hStream));
    HWS_CAPTURE(hStream, hws_capture_memset(dstDevice, dstPitch, uc, 1, Width, Height, hStream));
    return Width == 0 || Height == 0 ? CUDA_SUCCESS
                                     : hws_call_cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, hStream);
}

HWS_EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                                       size_t Height, CUstream hStream) {
    HWS_TRY(check(dstDevice, dstPitch, Width, Height, 2, hStream));
    HWS_CAPTURE(hStream, hws_capture_memset(dstDevice, dstPitch, us, 2, Width, Height, hStream));
    return Width == 0 || Height == 0 ? CUDA_SUCCESS
                                     : hws_call_cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, hStream);
}

HWS_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                                       size_t Height, CUstream hStream) {
    HWS_TRY(check(dstDevice, dstPitch, Width, Height, 4, hStream));
    HWS_CAPTURE(hStream, hws_capture_memset(dstDevice, dstPitch, ui, 4, Width, Height, hStream));
    return Width == 0 || Height == 0 ? CUDA_SUCCESS
                                     : hws_call_cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, hStream);
}

/* The variant of a fill that blocks: `name` in the default stream, name_ptds in the calling thread's. */
#define BLOCKING_FILL(name, async, parameters, ...)                                                                    \
    HWS_EXPORT CUresult name parameters {                                                                              \
        return hws_copy_settle(async(__VA_ARGS__, NULL), dstDevice, 0, NULL);                                          \
    }                                                                                                                  \
    HWS_EXPORT CUresult name##_ptds parameters {                                                                       \
        return hws_copy_settle(async(__VA_ARGS__, CU_STREAM_PER_THREAD), dstDevice, 0, CU_STREAM_PER_THREAD);          \
    }

BLOCKING_FILL(cuMemsetD8_v2, cuMemsetD8Async, (CUdeviceptr dstDevice, unsigned char uc, size_t N), dstDevice, uc, N)
BLOCKING_FILL(cuMemsetD16_v2, cuMemsetD16Async, (CUdeviceptr dstDevice, unsigned short us, size_t N), dstDevice, us, N)
BLOCKING_FILL(cuMemsetD32_v2, cuMemsetD32Async, (CUdeviceptr dstDevice, unsigned int ui, size_t N), dstDevice, ui, N)
BLOCKING_FILL(cuMemsetD2D8_v2, cuMemsetD2D8Async,
              (CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height), dstDevice,
              dstPitch, uc, Width, Height)
BLOCKING_FILL(cuMemsetD2D16_v2, cuMemsetD2D16Async,
              (CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height), dstDevice,
              dstPitch, us, Width, Height)
BLOCKING_FILL(cuMemsetD2D32_v2, cuMemsetD2D32Async,
              (CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height), dstDevice,
              dstPitch, ui, Width, Height)

/*
 * Batches of decompressions, by the device's engine. A device without one refuses them.
 *
 * Known deviation: an error of the driver belongs to no decompression of the batch (index SIZE_MAX).
 */
#include "capture.h"
#include "context.h"
#include "copy.h"
#include "device.h"

#include "hws_cuda_calls.h"

#define MAX_OPS 256u /* of one record; a larger batch travels in several */
#define ALGORITHMS                                                                                                     \
    (CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE | CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY | CU_MEM_DECOMPRESS_ALGORITHM_LZ4)

static CUresult check(const CUmemDecompressParams *params, unsigned supported) {
    const CUdeviceptr target = (uintptr_t) params->dst, source = (uintptr_t) params->src;
    const unsigned algorithm = params->algo;
    HWS_REQUIRE((algorithm & ALGORITHMS) != 0 && (algorithm & (algorithm - 1)) == 0);
    if ((algorithm & supported) == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    HWS_REQUIRE(params->srcNumBytes != 0);
    HWS_TRY(hws_copy_check_device(source, params->srcNumBytes));
    HWS_TRY(hws_copy_check_device(target, params->dstNumBytes == 0 ? 1 : params->dstNumBytes));
    return hws_copy_check_device((uintptr_t) params->dstActBytes, sizeof *params->dstActBytes);
}

static CUresult send(const CUmemDecompressParams *params, size_t count, CUstream stream) {
    HwsDecompression ops[MAX_OPS];
    for (size_t i = 0; i < count; i++) {
        ops[i] = (HwsDecompression) {.srcNumBytes = params[i].srcNumBytes,
                                     .dstNumBytes = params[i].dstNumBytes,
                                     .dstActBytes = (uintptr_t) params[i].dstActBytes,
                                     .src = (uintptr_t) params[i].src,
                                     .dst = (uintptr_t) params[i].dst,
                                     .algo = params[i].algo};
    }
    return hws_call_hwsBatchDecompress(stream, (uint32_t) (count * sizeof *ops), ops);
}

HWS_EXPORT CUresult cuMemBatchDecompressAsync(CUmemDecompressParams *paramsArray, size_t count, unsigned int flags,
                                              size_t *errorIndex, CUstream stream) {
    size_t unused, *index_p = errorIndex == NULL ? &unused : errorIndex;
    CUdevice device;
    HWS_ENTER_CONTEXT();
    *index_p = SIZE_MAX;
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_REFUSE_CAPTURES(stream);
    HWS_TRY(hws_context_device(&device));
    const int supported = hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK);
    if (supported == CU_MEM_DECOMPRESS_UNSUPPORTED) {
        return CUDA_ERROR_NOT_SUPPORTED; /* driver 580 checks this first */
    }
    HWS_REQUIRE(paramsArray != NULL && count != 0 && flags == 0);
    for (size_t i = 0; i < count; i++) {
        CUresult result = check(&paramsArray[i], (unsigned) supported);
        if (result != CUDA_SUCCESS) {
            *index_p = i;
            return result;
        }
    }
    for (size_t i = 0; i < count; i += MAX_OPS) {
        HWS_TRY(send(paramsArray + i, count - i < MAX_OPS ? count - i : MAX_OPS, stream));
    }
    return CUDA_SUCCESS;
}

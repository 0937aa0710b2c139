/* Managed memory needs pages that both sides see. Devices say that they have none (attributes 83, 88, 89 are 0). */
#include "hws_driver.h"

#define REFUSE(name)             \
    static _Atomic bool said;    \
    HWS_ENTER();                 \
    return hws_unsupported_use(&said, name)

HWS_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    (void) dptr;
    (void) bytesize;
    (void) flags;
    REFUSE("managed memory (cuMemAllocManaged)");
}

HWS_EXPORT CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    (void) devPtr;
    (void) count;
    (void) advice;
    (void) device;
    REFUSE("managed memory (cuMemAdvise)");
}

HWS_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
    (void) devPtr;
    (void) count;
    (void) advice;
    (void) location;
    REFUSE("managed memory (cuMemAdvise)");
}

HWS_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
    (void) devPtr;
    (void) count;
    (void) dstDevice;
    (void) hStream;
    REFUSE("managed memory (cuMemPrefetchAsync)");
}

HWS_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                                          CUstream hStream) {
    (void) devPtr;
    (void) count;
    (void) location;
    (void) flags;
    (void) hStream;
    REFUSE("managed memory (cuMemPrefetchAsync)");
}

HWS_EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                           CUdeviceptr devPtr, size_t count) {
    (void) data;
    (void) dataSize;
    (void) attribute;
    (void) devPtr;
    (void) count;
    REFUSE("managed memory (cuMemRangeGetAttribute)");
}

HWS_EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                            size_t numAttributes, CUdeviceptr devPtr, size_t count) {
    (void) data;
    (void) dataSizes;
    (void) attributes;
    (void) numAttributes;
    (void) devPtr;
    (void) count;
    REFUSE("managed memory (cuMemRangeGetAttributes)");
}

HWS_EXPORT CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
    (void) hStream;
    (void) dptr;
    (void) length;
    (void) flags;
    REFUSE("managed memory (cuStreamAttachMemAsync)");
}

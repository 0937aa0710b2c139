/* Hints for managed memory. CUDA 13 made the location a struct; CUDA 12 has both forms. */
#include "runtime.h"

#define HWS_MEM_PREFETCH                                                                                               \
    (const void *devPtr, size_t count, struct cudaMemLocation location, unsigned int flags, cudaStream_t stream)

static cudaError_t hws_mem_prefetch HWS_MEM_PREFETCH {
    HWS_ENTER_CONTEXT();
    CUmemLocation driverLocation = {.type = (CUmemLocationType) location.type, .id = location.id};
    return hws_result(cuMemPrefetchAsync_v2((CUdeviceptr) (uintptr_t) devPtr, count, driverLocation, flags, stream));
}

static cudaError_t hws_mem_advise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                                  struct cudaMemLocation location) {
    HWS_REQUIRE(advice >= cudaMemAdviseSetReadMostly && advice <= cudaMemAdviseUnsetAccessedBy);
    HWS_ENTER_CONTEXT();
    CUmemLocation driverLocation = {.type = (CUmemLocationType) location.type, .id = location.id};
    return hws_result(cuMemAdvise_v2((CUdeviceptr) (uintptr_t) devPtr, count, (CUmem_advise) advice, driverLocation));
}

#if HWS_CUDART_MAJOR >= 13

HWS_API cudaError_t cudaMemPrefetchAsync HWS_MEM_PREFETCH {
    return hws_mem_prefetch(devPtr, count, location, flags, stream);
}
HWS_TWIN(cudaMemPrefetchAsync, HWS_MEM_PREFETCH, (devPtr, count, location, flags, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                                  struct cudaMemLocation location) {
    return hws_mem_advise(devPtr, count, advice, location);
}

/* Batches: arrays of pointers and locations have the driver's layout. */
#define HWS_PREFETCH_BATCH                                                                                             \
    (void **dptrs, size_t *sizes, size_t count, struct cudaMemLocation *prefetchLocs, size_t *prefetchLocIdxs,         \
     size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream)
#define HWS_DISCARD_BATCH (void **dptrs, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream)

HWS_API cudaError_t cudaMemPrefetchBatchAsync HWS_PREFETCH_BATCH;
HWS_API cudaError_t cudaMemPrefetchBatchAsync HWS_PREFETCH_BATCH {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemPrefetchBatchAsync((CUdeviceptr *) dptrs, sizes, count, (CUmemLocation *) prefetchLocs,
                                              prefetchLocIdxs, numPrefetchLocs, flags, stream));
}
HWS_TWIN(cudaMemPrefetchBatchAsync, HWS_PREFETCH_BATCH,
         (dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemDiscardBatchAsync HWS_DISCARD_BATCH;
HWS_API cudaError_t cudaMemDiscardBatchAsync HWS_DISCARD_BATCH {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemDiscardBatchAsync((CUdeviceptr *) dptrs, sizes, count, flags, stream));
}
HWS_TWIN(cudaMemDiscardBatchAsync, HWS_DISCARD_BATCH, (dptrs, sizes, count, flags, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemDiscardAndPrefetchBatchAsync HWS_PREFETCH_BATCH;
HWS_API cudaError_t cudaMemDiscardAndPrefetchBatchAsync HWS_PREFETCH_BATCH {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemDiscardAndPrefetchBatchAsync((CUdeviceptr *) dptrs, sizes, count,
                                                        (CUmemLocation *) prefetchLocs, prefetchLocIdxs,
                                                        numPrefetchLocs, flags, stream));
}
HWS_TWIN(cudaMemDiscardAndPrefetchBatchAsync, HWS_PREFETCH_BATCH,
         (dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hws_stream_ptsz(stream)))

#else

/* CUDA 12: a device ordinal; cudaCpuDeviceId means the host. */
static struct cudaMemLocation hws_mem_location(int device) {
    return device == cudaCpuDeviceId ? (struct cudaMemLocation) {cudaMemLocationTypeHost, 0}
                                     : (struct cudaMemLocation) {cudaMemLocationTypeDevice, device};
}

HWS_API cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, int dstDevice, cudaStream_t stream);
HWS_API cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, int dstDevice, cudaStream_t stream) {
    return hws_mem_prefetch(devPtr, count, hws_mem_location(dstDevice), 0, stream);
}
HWS_TWIN(cudaMemPrefetchAsync, (const void *devPtr, size_t count, int dstDevice, cudaStream_t stream),
         (devPtr, count, dstDevice, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemPrefetchAsync_v2 HWS_MEM_PREFETCH;
HWS_API cudaError_t cudaMemPrefetchAsync_v2 HWS_MEM_PREFETCH {
    return hws_mem_prefetch(devPtr, count, location, flags, stream);
}
HWS_TWIN(cudaMemPrefetchAsync_v2, HWS_MEM_PREFETCH, (devPtr, count, location, flags, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice, int device);
HWS_API cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice, int device) {
    return hws_mem_advise(devPtr, count, advice, hws_mem_location(device));
}

HWS_API cudaError_t cudaMemAdvise_v2(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                                     struct cudaMemLocation location);
HWS_API cudaError_t cudaMemAdvise_v2(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                                     struct cudaMemLocation location) {
    return hws_mem_advise(devPtr, count, advice, location);
}

#endif

HWS_API cudaError_t cudaMemRangeGetAttribute(void *data, size_t dataSize, enum cudaMemRangeAttribute attribute,
                                             const void *devPtr, size_t count) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemRangeGetAttribute(data, dataSize, (CUmem_range_attribute) attribute,
                                             (CUdeviceptr) (uintptr_t) devPtr, count));
}

HWS_API cudaError_t cudaMemRangeGetAttributes(void **data, size_t *dataSizes, enum cudaMemRangeAttribute *attributes,
                                              size_t numAttributes, const void *devPtr, size_t count) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemRangeGetAttributes(data, dataSizes, (CUmem_range_attribute *) attributes, numAttributes,
                                              (CUdeviceptr) (uintptr_t) devPtr, count));
}

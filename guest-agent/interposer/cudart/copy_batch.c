/*
 * Batches of copies, and the memory pools of a location: the driver's structures under the Runtime API's names. Known
 * deviation: CUDA 12's failIdx never names a copy.
 */
#include "runtime.h"

#include <stdint.h>

struct cudaMemcpyAttributes;
struct cudaMemcpy3DBatchOp;

static cudaError_t hws_copy_batch(const void *dsts, const void *srcs, const size_t *sizes, size_t count,
                                  struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                  size_t *failIdx, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    /* The driver only reads these arrays; its prototype lacks the const. */
    CUresult result = cuMemcpyBatchAsync_v2((CUdeviceptr *) dsts, (CUdeviceptr *) srcs, (size_t *) sizes, count,
                                            (CUmemcpyAttributes *) attrs, attrsIdxs, numAttrs, stream);
    if (result != CUDA_SUCCESS && failIdx != NULL) {
        *failIdx = SIZE_MAX; /* CUDA's value for "no copy in particular" */
    }
    return hws_result(result);
}

static cudaError_t hws_copy_boxes(size_t numOps, struct cudaMemcpy3DBatchOp *opList, size_t *failIdx,
                                  unsigned long long flags, cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    CUresult result = cuMemcpy3DBatchAsync_v2(numOps, (CUDA_MEMCPY3D_BATCH_OP *) opList, flags, stream);
    if (result != CUDA_SUCCESS && failIdx != NULL) {
        *failIdx = SIZE_MAX;
    }
    return hws_result(result);
}

#if HWS_CUDART_MAJOR >= 13

#define HWS_BATCH                                                                                                      \
    (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,                                    \
     struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, cudaStream_t stream)

HWS_API cudaError_t cudaMemcpyBatchAsync HWS_BATCH;
HWS_API cudaError_t cudaMemcpyBatchAsync HWS_BATCH {
    return hws_copy_batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, stream);
}
HWS_TWIN(cudaMemcpyBatchAsync, HWS_BATCH,
         (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hws_stream_ptsz(stream)))

#define HWS_BOXES (size_t numOps, struct cudaMemcpy3DBatchOp *opList, unsigned long long flags, cudaStream_t stream)

HWS_API cudaError_t cudaMemcpy3DBatchAsync HWS_BOXES;
HWS_API cudaError_t cudaMemcpy3DBatchAsync HWS_BOXES {
    return hws_copy_boxes(numOps, opList, NULL, flags, stream);
}
HWS_TWIN(cudaMemcpy3DBatchAsync, HWS_BOXES, (numOps, opList, flags, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                             enum cudaMemAllocationType type);
HWS_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                             enum cudaMemAllocationType type) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemGetDefaultMemPool(memPool, (CUmemLocation *) location, (CUmemAllocationType) type));
}

HWS_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                      enum cudaMemAllocationType type);
HWS_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                      enum cudaMemAllocationType type) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemGetMemPool(memPool, (CUmemLocation *) location, (CUmemAllocationType) type));
}

HWS_API cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
                                      cudaMemPool_t memPool);
HWS_API cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
                                      cudaMemPool_t memPool) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuMemSetMemPool((CUmemLocation *) location, (CUmemAllocationType) type, memPool));
}

#else

#define HWS_BATCH                                                                                                      \
    (void **dsts, void **srcs, size_t *sizes, size_t count, struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs,     \
     size_t numAttrs, size_t *failIdx, cudaStream_t stream)

HWS_API cudaError_t cudaMemcpyBatchAsync HWS_BATCH;
HWS_API cudaError_t cudaMemcpyBatchAsync HWS_BATCH {
    return hws_copy_batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, stream);
}
HWS_TWIN(cudaMemcpyBatchAsync, HWS_BATCH,
         (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hws_stream_ptsz(stream)))

#define HWS_BOXES                                                                                                      \
    (size_t numOps, struct cudaMemcpy3DBatchOp *opList, size_t *failIdx, unsigned long long flags, cudaStream_t stream)

HWS_API cudaError_t cudaMemcpy3DBatchAsync HWS_BOXES;
HWS_API cudaError_t cudaMemcpy3DBatchAsync HWS_BOXES {
    return hws_copy_boxes(numOps, opList, failIdx, flags, stream);
}
HWS_TWIN(cudaMemcpy3DBatchAsync, HWS_BOXES, (numOps, opList, failIdx, flags, hws_stream_ptsz(stream)))

#endif

/*
 * Copies in batches: each copy travels by itself, in order. CUDA promises less: copies of a batch may overtake one
 * another. Pageable memory is read before the call returns, which every order of access allows.
 */
#include "hws_driver.h"

#include <string.h>

/* CUDA's index of the failed copy when no single copy failed. */
#define NO_INDEX SIZE_MAX

/* CUDA: the legacy stream takes no batches. This is checked before the error of a kernel. */
static CUresult enter(CUstream stream) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(stream != NULL && stream != CU_STREAM_LEGACY);
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    return CUDA_SUCCESS;
}

static CUresult check_batch(size_t count, const CUmemcpyAttributes *attrs, const size_t *indices, size_t attr_count) {
    HWS_REQUIRE(count != 0 && attrs != NULL && indices != NULL && attr_count != 0 && attr_count <= count);
    for (size_t i = 0; i < attr_count; i++) {
        HWS_REQUIRE(attrs[i].srcAccessOrder >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
                    && attrs[i].srcAccessOrder <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
        HWS_REQUIRE(i == 0 ? indices[0] == 0 : indices[i] > indices[i - 1] && indices[i] < count);
    }
    return CUDA_SUCCESS;
}

static CUresult run_batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                          size_t *indices, size_t attr_count, size_t *failed_p, CUstream stream) {
    *failed_p = NO_INDEX;
    HWS_TRY(enter(stream));
    HWS_REQUIRE(dsts != NULL && srcs != NULL && sizes != NULL);
    HWS_TRY(check_batch(count, attrs, indices, attr_count));
    for (size_t i = 0; i < count; i++) {
        CUresult result = sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE : cuMemcpyAsync(dsts[i], srcs[i], sizes[i], stream);
        if (result != CUDA_SUCCESS) {
            *failed_p = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                          CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                          CUstream hStream) {
    size_t failed;
    return run_batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);
}

HWS_EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                       CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
                                       CUstream hStream) {
    size_t failed;
    CUresult result = run_batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);
    if (result != CUDA_SUCCESS && failIdx != NULL) {
        *failIdx = failed;
    }
    return result;
}

/* One side of a box. Rows and layers without a length have the box's own. */
static CUresult put_side(const CUmemcpy3DOperand *operand, const CUextent3D *extent, bool source,
                         CUDA_MEMCPY3D *copy_p) {
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
        size_t pitch = operand->op.ptr.rowLength != 0 ? operand->op.ptr.rowLength : extent->width;
        size_t height = operand->op.ptr.layerHeight != 0 ? operand->op.ptr.layerHeight : extent->height;
        HWS_REQUIRE(pitch >= extent->width && height >= extent->height);
        if (source) {
            copy_p->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
            copy_p->srcDevice = operand->op.ptr.ptr;
            copy_p->srcPitch = pitch;
            copy_p->srcHeight = height;
        } else {
            copy_p->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
            copy_p->dstDevice = operand->op.ptr.ptr;
            copy_p->dstPitch = pitch;
            copy_p->dstHeight = height;
        }
        return CUDA_SUCCESS;
    }
    static _Atomic bool logged;
    HWS_REQUIRE(operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY);
    return hws_unsupported_use(&logged, "a CUDA array in a batch of copies");
}

static CUresult run_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, size_t *failed_p,
                          CUstream stream) {
    *failed_p = NO_INDEX;
    HWS_TRY(enter(stream));
    HWS_REQUIRE(count != 0 && ops != NULL && flags == 0);
    for (size_t i = 0; i < count; i++) {
        CUDA_MEMCPY3D copy;
        memset(&copy, 0, sizeof copy);
        copy.WidthInBytes = ops[i].extent.width;
        copy.Height = ops[i].extent.height;
        copy.Depth = ops[i].extent.depth;
        CUresult result = put_side(&ops[i].src, &ops[i].extent, true, &copy);
        result = result != CUDA_SUCCESS ? result : put_side(&ops[i].dst, &ops[i].extent, false, &copy);
        result = result != CUDA_SUCCESS ? result : cuMemcpy3DAsync_v2(&copy, stream);
        if (result != CUDA_SUCCESS) {
            *failed_p = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                                            CUstream hStream) {
    size_t failed;
    return run_boxes(numOps, opList, flags, &failed, hStream);
}

HWS_EXPORT CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                         unsigned long long flags, CUstream hStream) {
    size_t failed;
    CUresult result = run_boxes(numOps, opList, flags, &failed, hStream);
    if (result != CUDA_SUCCESS && failIdx != NULL) {
        *failIdx = failed;
    }
    return result;
}

/*
 * Copies in batches: each copy travels by itself, in order. CUDA promises less: copies of a batch may overtake one
 * another. Pageable memory is read before the call returns, which every order of access allows.
 */
#include "array.h"

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

/* Bytes of an element of a side: of its array, else one. */
static CUresult element_of(const CUmemcpy3DOperand *operand, size_t *element_p) {
    *element_p = 1;
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY);
    HWS_TAKE_ARRAY(kept, operand->op.array.array);
    *element_p = hws_array_channel_bytes(kept->descriptor.Format) * kept->descriptor.NumChannels;
    return CUDA_SUCCESS;
}

/* One side of a copy, in bytes. */
typedef struct hws_side {
    CUmemorytype type;
    CUdeviceptr address;
    size_t pitch, height; /* of memory */
    CUarray array;
    size_t x, y, z; /* in the array */
} hws_side_t;

/* Describes one side of a box. Rows and layers without a length have the box's own. */
static CUresult side_of(const CUmemcpy3DOperand *operand, const CUextent3D *extent, size_t element,
                        hws_side_t *side_p) {
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        const CUoffset3D *at = &operand->op.array.offset;
        *side_p = (hws_side_t) {.type = CU_MEMORYTYPE_ARRAY, .array = operand->op.array.array, .y = at->y, .z = at->z};
        HWS_REQUIRE(!__builtin_mul_overflow(at->x, element, &side_p->x));
        return CUDA_SUCCESS;
    }
    size_t row = operand->op.ptr.rowLength != 0 ? operand->op.ptr.rowLength : extent->width;
    size_t height = operand->op.ptr.layerHeight != 0 ? operand->op.ptr.layerHeight : extent->height;
    HWS_REQUIRE(row >= extent->width && height >= extent->height);
    *side_p = (hws_side_t) {.type = CU_MEMORYTYPE_UNIFIED, .address = operand->op.ptr.ptr, .height = height};
    HWS_REQUIRE(!__builtin_mul_overflow(row, element, &side_p->pitch));
    return CUDA_SUCCESS;
}

/* Describes a box as a single copy. Its lengths count elements of the arrays that take part, else bytes. */
static CUresult copy_of(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *copy_p) {
    size_t of_source, of_target, width;
    HWS_TRY(element_of(&op->src, &of_source));
    HWS_TRY(element_of(&op->dst, &of_target));
    const bool arrays = op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY && op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    HWS_REQUIRE(!arrays || of_source == of_target);
    const size_t element = of_source > of_target ? of_source : of_target;
    HWS_REQUIRE(!__builtin_mul_overflow(op->extent.width, element, &width));
    hws_side_t src, dst;
    HWS_TRY(side_of(&op->src, &op->extent, element, &src));
    HWS_TRY(side_of(&op->dst, &op->extent, element, &dst));
    *copy_p = (CUDA_MEMCPY3D) {.srcMemoryType = src.type,
                               .srcDevice = src.address,
                               .srcPitch = src.pitch,
                               .srcHeight = src.height,
                               .srcArray = src.array,
                               .srcXInBytes = src.x,
                               .srcY = src.y,
                               .srcZ = src.z,
                               .dstMemoryType = dst.type,
                               .dstDevice = dst.address,
                               .dstPitch = dst.pitch,
                               .dstHeight = dst.height,
                               .dstArray = dst.array,
                               .dstXInBytes = dst.x,
                               .dstY = dst.y,
                               .dstZ = dst.z,
                               .WidthInBytes = width,
                               .Height = op->extent.height,
                               .Depth = op->extent.depth};
    return CUDA_SUCCESS;
}

static CUresult run_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, size_t *failed_p,
                          CUstream stream) {
    *failed_p = NO_INDEX;
    HWS_TRY(enter(stream));
    HWS_REQUIRE(count != 0 && ops != NULL && flags == 0);
    for (size_t i = 0; i < count; i++) {
        CUDA_MEMCPY3D copy;
        CUresult result = copy_of(&ops[i], &copy);
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

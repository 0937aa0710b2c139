/* Waits for values in memory, and writes of values, in stream order. The guest checks what CUDA checks at once. */
#include "stream_memory.h"

#include "capture.h"
#include "context.h"
#include "copy.h"
#include "device.h"

#include "hws_cuda_calls.h"
#include "hws_interval.h"

static CUresult check_address(CUdeviceptr address, unsigned bytes) {
    hws_range_t range;
    HWS_REQUIRE(address % bytes == 0);
    HWS_TRY(hws_copy_check_device(address, bytes));
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_DEVICE, address, &range) && range.memory != HWS_MEMORY_MANAGED); /* 580 */
    return CUDA_SUCCESS;
}

static CUresult check_wait(CUdevice device, unsigned flags) {
    HWS_REQUIRE((flags & ~(3u | CU_STREAM_WAIT_VALUE_FLUSH)) == 0);
    if ((flags & 3u) == CU_STREAM_WAIT_VALUE_NOR
        && hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR) == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return (flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0
            && hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES) == 0
        ? CUDA_ERROR_NOT_SUPPORTED
        : CUDA_SUCCESS;
}

static CUresult check(CUdevice device, const HwsMemoryOp *op) {
    switch (op->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            HWS_TRY(check_wait(device, op->flags));
            return check_address(op->address, op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? 4 : 8);
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            HWS_REQUIRE(op->flags == 0); /* as NVIDIA's driver 580: the other flag was for the first version */
            return check_address(op->address, op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4 : 8);
        case CU_STREAM_MEM_OP_BARRIER:
            HWS_REQUIRE(op->flags <= 1);
            return CUDA_SUCCESS;
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
            HWS_REQUIRE(op->flags == 0);
            return hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES) == 0
                ? CUDA_ERROR_NOT_SUPPORTED
                : CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult hws_memory_ops_check(CUdevice device, const HwsMemoryOp *ops, unsigned count) {
    static _Atomic bool logged;
    if (hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) == 0) {
        return hws_unsupported_use(&logged, "a stream memory operation on this device");
    }
    for (unsigned i = 0; i < count; i++) {
        HWS_TRY(check(device, &ops[i]));
    }
    return CUDA_SUCCESS;
}

void hws_memory_ops_describe(const CUstreamBatchMemOpParams *from, unsigned count, HwsMemoryOp *ops_p) {
    for (unsigned i = 0; i < count; i++, from++) {
        HwsMemoryOp *op = &ops_p[i];
        *op = (HwsMemoryOp) {.operation = from->operation};
        switch (from->operation) {
            case CU_STREAM_MEM_OP_BARRIER:
                op->flags = from->memoryBarrier.flags;
                break;
            case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
                op->flags = from->flushRemoteWrites.flags;
                break;
            default: /* waits and writes have the same fields; 32-bit values leave the upper half undefined */
                op->flags = from->waitValue.flags;
                op->address = from->waitValue.address;
                op->value = from->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32
                        || from->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32
                    ? (uint32_t) from->waitValue.value64
                    : from->waitValue.value64;
                break;
        }
    }
}

static CUresult issue(CUstream stream, const CUstreamBatchMemOpParams *params, unsigned count) {
    HwsMemoryOp ops[HWS_MAX_MEMORY_OPS];
    CUdevice device;
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_TRY(hws_context_device(&device));
    hws_memory_ops_describe(params, count, ops);
    HWS_TRY(hws_memory_ops_check(device, ops, count));
    HWS_CAPTURE(stream, hws_capture_memory_ops(stream, params, count));
    return hws_call_hwsStreamMemOps(stream, count * (uint32_t) sizeof *ops, ops);
}

static CUresult issue_one(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value,
                          unsigned flags) {
    CUstreamBatchMemOpParams params = {.waitValue = {.operation = operation, .address = address, .value64 = value}};
    params.waitValue.flags = flags;
    return issue(stream, &params, 1);
}

HWS_EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    return issue_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

HWS_EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
    return issue_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

HWS_EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    return issue_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags);
}

HWS_EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
    return issue_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags);
}

/* Whether the device has the first version of these functions, which later devices lack. */
static CUresult check_first_version(CUstream stream, CUdevice_attribute attribute) {
    CUdevice device;
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_REFUSE_QUERY(stream);
    HWS_TRY(hws_context_device(&device));
    return hws_device_attribute(device, attribute) == 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    HWS_TRY(check_first_version(stream, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1));
    return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

HWS_EXPORT CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
    HWS_TRY(check_first_version(stream, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1));
    return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

HWS_EXPORT CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    HWS_TRY(check_first_version(stream, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1));
    return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

HWS_EXPORT CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
    HWS_TRY(check_first_version(stream, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1));
    return cuStreamWriteValue64_v2(stream, addr, value, flags);
}

HWS_EXPORT CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                                       unsigned int flags) {
    HWS_TRY(check_first_version(stream, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1));
    return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}

HWS_EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                                          unsigned int flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(count <= HWS_MAX_MEMORY_OPS && (paramArray != NULL || count == 0) && flags == 0);
    return count == 0 ? CUDA_SUCCESS : issue(stream, paramArray, count);
}

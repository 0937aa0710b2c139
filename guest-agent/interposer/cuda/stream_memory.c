/* Waits for values in memory, and writes of values, in stream order. The guest checks what CUDA checks at once. */
#include "capture.h"
#include "context.h"
#include "copy.h"
#include "device.h"

#include "hws_cuda_calls.h"

#define MAX_OPERATIONS 256u /* memops.yaml, hwsStreamMemOps; as CUDA documents */

/* The wire form. */
typedef struct hws_memory_op {
    uint32_t operation, flags;
    uint64_t address, value;
} hws_memory_op_t;

static CUresult check_address(CUdeviceptr address, unsigned bytes) {
    HWS_REQUIRE(address % bytes == 0);
    return hws_copy_check_device(address, bytes);
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

static CUresult check(CUdevice device, const hws_memory_op_t *op) {
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

static CUresult issue(CUstream stream, const hws_memory_op_t *ops, unsigned count) {
    static _Atomic bool logged;
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    if (hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) == 0) {
        return hws_unsupported_use(&logged, "a stream memory operation on this device");
    }
    for (unsigned i = 0; i < count; i++) {
        HWS_TRY(check(device, &ops[i]));
    }
    HWS_REFUSE_CAPTURE(stream); /* a batch in a graph would be a node type that is not implemented */
    return hws_call_hwsStreamMemOps(stream, count * (uint32_t) sizeof *ops, ops);
}

static CUresult issue_one(CUstream stream, uint32_t operation, CUdeviceptr address, uint64_t value, unsigned flags) {
    const hws_memory_op_t op = {.operation = operation, .flags = flags, .address = address, .value = value};
    return issue(stream, &op, 1);
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

HWS_EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                                          unsigned int flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(count <= MAX_OPERATIONS && (paramArray != NULL || count == 0) && flags == 0);
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    hws_memory_op_t ops[MAX_OPERATIONS];
    for (unsigned i = 0; i < count; i++) {
        const CUstreamBatchMemOpParams *from = &paramArray[i];
        hws_memory_op_t *op = &ops[i];
        *op = (hws_memory_op_t) {.operation = from->operation};
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
    return issue(stream, ops, count);
}

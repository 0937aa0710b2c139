package io.hawser.cuda.backend;

import io.hawser.cuda.generated.nccl.HwsNcclKind;
import io.hawser.cuda.generated.nccl.HwsNcclOperation;
import io.hawser.cuda.generated.nccl.HwsNcclReduction;
import io.hawser.cuda.generated.nccl.ncclDataType_t;
import io.hawser.cuda.generated.nccl.ncclRedOp_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * An operation of one rank.
 *
 * @param kind of HwsNcclKind.
 * @param datatype of ncclDataType_t.
 * @param reduction of ncclRedOp_t or HwsNcclReduction.
 * @param peer the root or the other rank; 0 where there is none.
 * @param count as the program has given it.
 * @param comm the native communicator.
 * @param stream the native stream, in the communicator's context.
 * @param send device address; 0 for none.
 * @param receive device address; 0 for none.
 * @param factor of HWS_NCCL_PRE_MUL_SUM: the number's bytes, or its device address.
 */
public record NcclOperation(int kind, int datatype, int reduction, int peer, long count, long comm, long stream,
    long send, long receive, long factor, boolean isFactorOnDevice) {
    /** Reads an operation with resolved handles. */
    public static NcclOperation of(MemorySegment content, long comm, long stream) {
        return new NcclOperation(number(content, HwsNcclOperation.KIND_OFFSET),
            number(content, HwsNcclOperation.DATATYPE_OFFSET), number(content, HwsNcclOperation.REDUCTION_OFFSET),
            number(content, HwsNcclOperation.PEER_OFFSET), wide(content, HwsNcclOperation.COUNT_OFFSET), comm, stream,
            wide(content, HwsNcclOperation.SENDBUFF_OFFSET), wide(content, HwsNcclOperation.RECVBUFF_OFFSET),
            wide(content, HwsNcclOperation.FACTOR_OFFSET),
            number(content, HwsNcclOperation.IS_FACTOR_ON_DEVICE_OFFSET) != 0);
    }

    private static int number(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    private static long wide(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }

    /** Bytes of a number of a type; 0 for an unknown type. */
    public static int bytesOf(int datatype) {
        return switch (datatype) {
            case ncclDataType_t.ncclInt8, ncclDataType_t.ncclUint8, ncclDataType_t.ncclFloat8e4m3,
                ncclDataType_t.ncclFloat8e5m2 -> 1;
            case ncclDataType_t.ncclFloat16, ncclDataType_t.ncclBfloat16 -> 2;
            case ncclDataType_t.ncclInt32, ncclDataType_t.ncclUint32, ncclDataType_t.ncclFloat32 -> 4;
            case ncclDataType_t.ncclInt64, ncclDataType_t.ncclUint64, ncclDataType_t.ncclFloat64 -> 8;
            default -> 0;
        };
    }

    /** Whether the operation reduces numbers. */
    public boolean isReduction() {
        return kind == HwsNcclKind.HWS_NCCL_ALL_REDUCE || kind == HwsNcclKind.HWS_NCCL_REDUCE
            || kind == HwsNcclKind.HWS_NCCL_REDUCE_SCATTER;
    }

    /** Whether the operation is between two ranks only. */
    public boolean isPointToPoint() {
        return kind == HwsNcclKind.HWS_NCCL_SEND || kind == HwsNcclKind.HWS_NCCL_RECEIVE;
    }

    /** Whether a rank may have this operation: the guest's library sends no other. */
    public boolean isValid(int ranks) {
        int bytes = bytesOf(datatype);
        return kind >= HwsNcclKind.HWS_NCCL_ALL_REDUCE && kind <= HwsNcclKind.HWS_NCCL_RECEIVE && bytes > 0
            && peer >= 0 && peer < ranks && count > 0 && count <= Long.MAX_VALUE / bytes / ranks
            && reduction >= ncclRedOp_t.ncclSum && reduction <= HwsNcclReduction.HWS_NCCL_PRE_MUL_SUM
            && (reduction == 0 || isReduction());
    }

    /** Bytes that the operation reads; it {@link #isValid}. */
    public long sendBytes(int ranks, int rank) {
        long bytes = count * bytesOf(datatype);
        return switch (kind) {
            case HwsNcclKind.HWS_NCCL_REDUCE_SCATTER -> bytes * ranks;
            case HwsNcclKind.HWS_NCCL_BROADCAST -> rank == peer ? bytes : 0;
            case HwsNcclKind.HWS_NCCL_RECEIVE -> 0;
            default -> bytes;
        };
    }

    /** Bytes that the operation writes; it {@link #isValid}. */
    public long receiveBytes(int ranks, int rank) {
        long bytes = count * bytesOf(datatype);
        return switch (kind) {
            case HwsNcclKind.HWS_NCCL_ALL_GATHER -> bytes * ranks;
            case HwsNcclKind.HWS_NCCL_REDUCE -> rank == peer ? bytes : 0;
            case HwsNcclKind.HWS_NCCL_SEND -> 0;
            default -> bytes;
        };
    }

    /** Bytes of the factor in device memory; 0 when it lies there not. */
    public long factorBytes() {
        return reduction == HwsNcclReduction.HWS_NCCL_PRE_MUL_SUM && isFactorOnDevice ? bytesOf(datatype) : 0;
    }
}

package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidArgument;

import io.hawser.cuda.backend.NcclMember;
import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.nccl.HwsNcclKind;
import io.hawser.cuda.generated.nccl.NcclNative;
import io.hawser.cuda.generated.nccl.ncclConfig_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Arguments of NCCL's functions. Any thread. */
final class NcclArguments {
    private static final int MAGIC = 0xcafebeef; // nccl.h, NCCL_API_MAGIC
    /** Of the structure: 2.25 added trafficClass, its last field here. NCCL takes its defaults for younger fields. */
    private static final int VERSION = 22_500;

    private NcclArguments() {
    }

    /** A program's choices as ncclConfig_t; NULL for none. Calls wait for other ranks, on threads of their own. */
    static MemorySegment of(NcclMember.Settings settings, Arena arena) {
        if (settings.equals(new NcclMember.Settings(NcclMember.UNDEFINED, NcclMember.UNDEFINED, NcclMember.UNDEFINED,
            NcclMember.UNDEFINED))) {
            return MemorySegment.NULL;
        }
        MemorySegment config = arena.allocate(ncclConfig_t.BYTES, Long.BYTES);
        config.set(ValueLayout.JAVA_LONG, ncclConfig_t.SIZE_OFFSET, ncclConfig_t.BYTES);
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.MAGIC_OFFSET, MAGIC);
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.VERSION_OFFSET, VERSION);
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.BLOCKING_OFFSET, NcclMember.UNDEFINED);
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.CGA_CLUSTER_SIZE_OFFSET, settings.cgaClusterSize());
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.MIN_CTAS_OFFSET, settings.minCtas());
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.MAX_CTAS_OFFSET, settings.maxCtas());
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.SPLIT_SHARE_OFFSET, settings.splitShare());
        config.set(ValueLayout.JAVA_INT, ncclConfig_t.TRAFFIC_CLASS_OFFSET, NcclMember.UNDEFINED);
        return config;
    }

    /** Calls the function of an operation. */
    static int call(NcclNative library, NcclOperation operation, int op, long comm, long stream) {
        MemorySegment send = MemorySegment.ofAddress(operation.send());
        MemorySegment receive = MemorySegment.ofAddress(operation.receive());
        long count = operation.count();
        int type = operation.datatype();
        return switch (operation.kind()) {
            case HwsNcclKind.HWS_NCCL_ALL_REDUCE -> library.ncclAllReduce(send, receive, count, type, op, comm, stream);
            case HwsNcclKind.HWS_NCCL_BROADCAST ->
                library.ncclBroadcast(send, receive, count, type, operation.peer(), comm, stream);
            case HwsNcclKind.HWS_NCCL_REDUCE ->
                library.ncclReduce(send, receive, count, type, op, operation.peer(), comm, stream);
            case HwsNcclKind.HWS_NCCL_ALL_GATHER -> library.ncclAllGather(send, receive, count, type, comm, stream);
            case HwsNcclKind.HWS_NCCL_REDUCE_SCATTER ->
                library.ncclReduceScatter(send, receive, count, type, op, comm, stream);
            case HwsNcclKind.HWS_NCCL_SEND -> library.ncclSend(send, count, type, operation.peer(), comm, stream);
            case HwsNcclKind.HWS_NCCL_RECEIVE -> library.ncclRecv(receive, count, type, operation.peer(), comm, stream);
            default -> ncclInvalidArgument;
        };
    }
}

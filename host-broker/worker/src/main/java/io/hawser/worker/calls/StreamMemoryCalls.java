package io.hawser.worker.calls;

import io.hawser.cuda.generated.CUstreamBatchMemOpParams;
import io.hawser.cuda.generated.CUtensorMap;
import io.hawser.cuda.generated.HwsTensorMap;
import io.hawser.cuda.generated.MemopsManualCalls;
import io.hawser.cuda.generated.TensorMapManualCalls;
import io.hawser.cuda.generated.TensorMapReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Stream memory operations (waits for values in memory, and writes of values), and tensor maps. Session thread. */
final class StreamMemoryCalls implements MemopsManualCalls<Call>, TensorMapManualCalls<Call> {
    // An operation of hwsStreamMemOps: u32 type, u32 flags, u64 address, u64 value.
    private static final int OP_BYTES = 24;
    private static final int OP_FLAGS_OFFSET = 4;
    private static final int OP_ADDRESS_OFFSET = 8;
    private static final int OP_VALUE_OFFSET = 16;
    // CUstreamBatchMemOpParams of CUDA 13.0 cuda.h. Waits and writes have the same fields, and so have barriers and
    // flushes.
    private static final int ADDRESS_OFFSET = 8;
    private static final int VALUE_OFFSET = 16;
    private static final int FLAGS_OFFSET = 24;
    private static final int BARRIER_FLAGS_OFFSET = 4;
    // CUstreamBatchMemOpType
    private static final int WAIT_32 = 1;
    private static final int WRITE_32 = 2;
    private static final int FLUSH_REMOTE_WRITES = 3;
    private static final int WAIT_64 = 4;
    private static final int WRITE_64 = 5;
    private static final int BARRIER = 6;
    private static final int WAIT_FLAGS = 3 | 1 << 30; // comparison; CU_STREAM_WAIT_VALUE_FLUSH
    private static final int MAP_ALIGNMENT = 64;

    private final Session session;

    StreamMemoryCalls(Session session) {
        this.session = session;
    }

    @Override
    public void hwsStreamMemOps(Call call, long stream, int opsBytes, MemorySegment ops) {
        int count = (int) (ops.byteSize() / OP_BYTES);
        if (count == 0 || ops.byteSize() % OP_BYTES != 0) {
            call.fatal("operations must be complete and at least one: bytes=" + ops.byteSize());
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate((long) count * CUstreamBatchMemOpParams.BYTES, Long.BYTES);
            for (int i = 0; i < count; i++) {
                if (!put(call, ops.asSlice((long) i * OP_BYTES, OP_BYTES),
                    params.asSlice((long) i * CUstreamBatchMemOpParams.BYTES, CUstreamBatchMemOpParams.BYTES))) {
                    return;
                }
            }
            session.gates().issued(count);
            call.finish(session.backend().streamMemOps(call.lastStream().stream(), count, params));
        }
    }

    /** Converts one operation to the driver's form; false when this has ended the call. */
    private static boolean put(Call call, MemorySegment op, MemorySegment params) {
        int type = op.get(ValueLayout.JAVA_INT_UNALIGNED, 0);
        int flags = op.get(ValueLayout.JAVA_INT_UNALIGNED, OP_FLAGS_OFFSET);
        long address = op.get(ValueLayout.JAVA_LONG_UNALIGNED, OP_ADDRESS_OFFSET);
        int known = switch (type) {
            case WAIT_32, WAIT_64 -> WAIT_FLAGS;
            case WRITE_32, WRITE_64, BARRIER -> 1;
            default -> 0;
        };
        if (type < WAIT_32 || type > BARRIER || (flags & ~known) != 0) {
            call.fatal("an operation must have a type and flags of CUDA: type=" + type + " flags=" + flags);
            return false;
        }
        params.set(ValueLayout.JAVA_INT, 0, type);
        if (type == BARRIER || type == FLUSH_REMOTE_WRITES) {
            params.set(ValueLayout.JAVA_INT, BARRIER_FLAGS_OFFSET, flags);
            return true;
        }
        int bytes = type == WAIT_32 || type == WRITE_32 ? Integer.BYTES : Long.BYTES;
        if (!call.checkDevice(address, bytes)) {
            return false;
        }
        params.set(ValueLayout.JAVA_LONG, ADDRESS_OFFSET, address);
        params.set(ValueLayout.JAVA_LONG, VALUE_OFFSET, op.get(ValueLayout.JAVA_LONG_UNALIGNED, OP_VALUE_OFFSET));
        params.set(ValueLayout.JAVA_INT, FLAGS_OFFSET, flags);
        return true;
    }

    @Override
    public void hwsTensorMapEncode(Call call, MemorySegment params) {
        int kind = params.get(ValueLayout.JAVA_INT_UNALIGNED, HwsTensorMap.KIND_OFFSET);
        int rank = params.get(ValueLayout.JAVA_INT_UNALIGNED, HwsTensorMap.RANK_OFFSET);
        if (kind < 0 || kind > 3 || rank < (kind == 3 ? 0 : 1) || rank > 5) {
            call.fatal("a tensor map must have a kind and a rank of CUDA: kind=" + kind + " rank=" + rank);
            return;
        }
        // The address may be NULL: the program sets it later.
        long address = params.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsTensorMap.ADDRESS_OFFSET);
        if (!call.checkDevice(address, address == 0 ? 0 : 1)) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment own = arena.allocate(HwsTensorMap.BYTES, Long.BYTES).copyFrom(
                params.asSlice(0, HwsTensorMap.BYTES));
            MemorySegment map = arena.allocate(CUtensorMap.BYTES, MAP_ALIGNMENT);
            int result = session.backend().tensorMap(own, map);
            if (result == 0) {
                TensorMapReplies.hwsTensorMapEncode(call.reply(), map);
            }
            call.finish(result);
        }
    }
}

package io.hawser.worker.calls;

import io.hawser.cuda.generated.CUtensorMap;
import io.hawser.cuda.generated.HwsTensorMap;
import io.hawser.cuda.generated.MemopsManualCalls;
import io.hawser.cuda.generated.TensorMapManualCalls;
import io.hawser.cuda.generated.TensorMapReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GraphParameters.Range;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Stream memory operations (waits for values in memory, and writes of values), and tensor maps. Session thread. */
final class StreamMemoryCalls implements MemopsManualCalls<Call>, TensorMapManualCalls<Call> {
    private static final int MAP_ALIGNMENT = 64;
    private static final int REPLACE = 3; // stream_memory_types.yaml, HwsTensorMap: a kind

    private final Session session;

    StreamMemoryCalls(Session session) {
        this.session = session;
    }

    @Override
    public void hwsStreamMemOps(Call call, long stream, int opsBytes, MemorySegment ops) {
        try (Arena arena = Arena.ofConfined()) {
            MemoryOperations operations = new MemoryOperations(ops, arena);
            if (operations.malformed() != null) {
                call.fatal(operations.malformed());
                return;
            }
            for (Range range : operations.ranges()) {
                if (!call.checkDevice(range.address(), range.bytes())) {
                    return;
                }
            }
            session.work().issued(call.lastStream(), operations.count() - 1);
            call.finish(session.backend().streamMemOps(call.lastStream().stream(), operations.count(),
                operations.params()));
        }
    }

    @Override
    public void hwsTensorMapEncode(Call call, MemorySegment params) {
        int kind = params.get(ValueLayout.JAVA_INT_UNALIGNED, HwsTensorMap.KIND_OFFSET);
        int rank = params.get(ValueLayout.JAVA_INT_UNALIGNED, HwsTensorMap.RANK_OFFSET);
        if (kind < 0 || kind > 3 || rank < (kind == 3 ? 0 : 1) || rank > 5) {
            call.fatal("a tensor map must have a kind and a rank of CUDA: kind=" + kind + " rank=" + rank);
            return;
        }
        // The address may be NULL: the program sets it later, and CUDA then takes any address.
        long address = params.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsTensorMap.ADDRESS_OFFSET);
        if (kind != REPLACE && !call.checkDevice(address, address == 0 ? 0 : 1)) {
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

package io.hawser.worker.calls;

import io.hawser.cuda.generated.CUmemDecompressParams;
import io.hawser.cuda.generated.DecompressManualCalls;
import io.hawser.cuda.generated.HwsDecompression;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Batches of decompressions. Session thread. */
final class DecompressCalls implements DecompressManualCalls<Call> {
    private final Session session;

    DecompressCalls(Session session) {
        this.session = session;
    }

    @Override
    public void hwsBatchDecompress(Call call, long stream, int opsBytes, MemorySegment ops) {
        int count = (int) (ops.byteSize() / HwsDecompression.BYTES);
        if (count == 0 || ops.byteSize() % HwsDecompression.BYTES != 0) {
            call.fatal("decompressions must be complete, and at least one: bytes=" + ops.byteSize());
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate((long) count * CUmemDecompressParams.BYTES, Long.BYTES);
            for (int i = 0; i < count; i++) {
                if (!put(call, ops.asSlice((long) i * HwsDecompression.BYTES, HwsDecompression.BYTES),
                    params.asSlice((long) i * CUmemDecompressParams.BYTES, CUmemDecompressParams.BYTES))) {
                    return;
                }
            }
            session.work().issued(call.lastStream(), count - 1);
            call.finish(session.backend().decompress(call.lastStream().stream(), count, params));
        }
    }

    /** Converts a decompression; false when it uses memory that is not the session's, which fails the call. */
    private static boolean put(Call call, MemorySegment from, MemorySegment to) {
        long sourceBytes = number(from, HwsDecompression.SRC_NUM_BYTES_OFFSET);
        long targetBytes = number(from, HwsDecompression.DST_NUM_BYTES_OFFSET);
        long actual = number(from, HwsDecompression.DST_ACT_BYTES_OFFSET);
        long source = number(from, HwsDecompression.SRC_OFFSET);
        long target = number(from, HwsDecompression.DST_OFFSET);
        to.set(ValueLayout.JAVA_LONG, CUmemDecompressParams.SRC_NUM_BYTES_OFFSET, sourceBytes);
        to.set(ValueLayout.JAVA_LONG, CUmemDecompressParams.DST_NUM_BYTES_OFFSET, targetBytes);
        to.set(ValueLayout.JAVA_LONG, CUmemDecompressParams.DST_ACT_BYTES_OFFSET, actual);
        to.set(ValueLayout.JAVA_LONG, CUmemDecompressParams.SRC_OFFSET, source);
        to.set(ValueLayout.JAVA_LONG, CUmemDecompressParams.DST_OFFSET, target);
        to.set(ValueLayout.JAVA_INT, CUmemDecompressParams.ALGO_OFFSET,
            (int) number(from, HwsDecompression.ALGO_OFFSET));
        return call.checkDevice(source, sourceBytes) && call.checkDevice(target, targetBytes == 0 ? 1 : targetBytes)
            && call.checkDevice(actual, Integer.BYTES);
    }

    private static long number(MemorySegment from, long offset) {
        return from.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }
}

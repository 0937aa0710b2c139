package io.hawser.worker.calls;

import io.hawser.cuda.generated.CUstreamBatchMemOpParams;
import io.hawser.cuda.generated.CUstreamBatchMemOpType;
import io.hawser.cuda.generated.HwsMemoryOp;
import io.hawser.worker.session.GraphParameters.Range;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** Waits for values in memory and writes of values, from the guest's form to the driver's. Any thread. */
final class MemoryOperations {
    /** As CUDA documents; sizes what the driver keeps for a guest. */
    static final int MAX_OPERATIONS = 256;
    // CUstreamBatchMemOpParams of CUDA 13.0 cuda.h. Waits and writes have the same fields, and so have barriers and
    // flushes.
    private static final int ADDRESS_OFFSET = 8;
    private static final int VALUE_OFFSET = 16;
    private static final int FLAGS_OFFSET = 24;
    private static final int BARRIER_FLAGS_OFFSET = 4;
    private static final int WAIT_FLAGS = 3 | 1 << 30; // comparison; CU_STREAM_WAIT_VALUE_FLUSH

    private final MemorySegment params;
    private final List<Range> ranges = new ArrayList<>();
    private String malformed;

    /**
     * Converts operations.
     *
     * @param operations array of HwsMemoryOp from the guest.
     * @param arena receives the driver's form.
     */
    MemoryOperations(MemorySegment operations, Arena arena) {
        long count = operations.byteSize() / HwsMemoryOp.BYTES;
        if (count == 0 || count > MAX_OPERATIONS || operations.byteSize() % HwsMemoryOp.BYTES != 0) {
            malformed = "operations must be complete, and 1 to " + MAX_OPERATIONS + ": bytes=" + operations.byteSize();
            params = MemorySegment.NULL;
            return;
        }
        params = arena.allocate(count * CUstreamBatchMemOpParams.BYTES, Long.BYTES);
        for (long i = 0; i < count && malformed == null; i++) {
            put(operations.asSlice(i * HwsMemoryOp.BYTES, HwsMemoryOp.BYTES),
                params.asSlice(i * CUstreamBatchMemOpParams.BYTES, CUstreamBatchMemOpParams.BYTES));
        }
    }

    private void put(MemorySegment operation, MemorySegment out) {
        int type = operation.get(ValueLayout.JAVA_INT_UNALIGNED, HwsMemoryOp.OPERATION_OFFSET);
        int flags = operation.get(ValueLayout.JAVA_INT_UNALIGNED, HwsMemoryOp.FLAGS_OFFSET);
        int known = switch (type) {
            case CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_32,
                CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_64 -> WAIT_FLAGS;
            case CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32,
                CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_64,
                CUstreamBatchMemOpType.CU_STREAM_MEM_OP_BARRIER -> 1;
            case CUstreamBatchMemOpType.CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES -> 0;
            default -> -1;
        };
        if (known < 0 || (flags & ~known) != 0) {
            malformed = "an operation must have a type and flags of CUDA: type=" + type + " flags=" + flags;
            return;
        }
        out.set(ValueLayout.JAVA_INT, 0, type);
        if (type == CUstreamBatchMemOpType.CU_STREAM_MEM_OP_BARRIER
            || type == CUstreamBatchMemOpType.CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES) {
            out.set(ValueLayout.JAVA_INT, BARRIER_FLAGS_OFFSET, flags);
            return;
        }
        boolean isShort = type == CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_32
            || type == CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32;
        long address = operation.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsMemoryOp.ADDRESS_OFFSET);
        ranges.add(new Range(address, isShort ? Integer.BYTES : Long.BYTES));
        out.set(ValueLayout.JAVA_LONG, ADDRESS_OFFSET, address);
        out.set(ValueLayout.JAVA_LONG, VALUE_OFFSET,
            operation.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsMemoryOp.VALUE_OFFSET));
        out.set(ValueLayout.JAVA_INT, FLAGS_OFFSET, flags);
    }

    /** The rule that the operations break and their values; null for none. */
    String malformed() {
        return malformed;
    }

    /** Array of CUstreamBatchMemOpParams; empty when malformed. */
    MemorySegment params() {
        return params;
    }

    int count() {
        return (int) (params.byteSize() / CUstreamBatchMemOpParams.BYTES);
    }

    /** The memory that they wait for and write, not yet checked. */
    List<Range> ranges() {
        return ranges;
    }
}

package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * Pinned memory for copies, cut from a few large allocations, because pinning is slow (cuMemHostAlloc: 100 us and
 * more). Returned memory serves later requests of the same length. Thread-safe.
 */
final class StagingSlabs {
    /**
     * As much as a session can use: the credit window and the buffers of copies to the host. It is allocated at the
     * start, because cuMemHostAlloc waits for host functions, and these may wait for the session thread.
     */
    private static final long FIRST_SLAB_BYTES = 128L << 20;
    private static final long SLAB_BYTES = 16L << 20;
    private static final long ALIGNMENT = 256;
    private static final int CU_MEMHOSTALLOC_PORTABLE = 1; // cuda.h

    private final Map<Long, ArrayDeque<MemorySegment>> idle = new HashMap<>();
    private MemorySegment slab = MemorySegment.NULL;
    private long used;

    /** Allocates the first slab; a context must be current. Returns a CUresult. */
    synchronized int open() {
        return grow(FIRST_SLAB_BYTES) ? 0 : CUresult.CUDA_ERROR_OUT_OF_MEMORY;
    }

    /** Takes memory; a context must be current. Null when none is left. */
    synchronized MemorySegment take(long bytes) {
        ArrayDeque<MemorySegment> list = idle.get(bytes);
        if (list != null && !list.isEmpty()) {
            return list.pop();
        }
        long padded = (bytes + ALIGNMENT - 1) & -ALIGNMENT;
        if (slab.byteSize() - used < padded && !grow(Math.max(SLAB_BYTES, padded))) {
            return null;
        }
        MemorySegment taken = slab.asSlice(used, bytes);
        used += padded;
        return taken;
    }

    private boolean grow(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            if (CudaNative.cuMemHostAlloc(out, bytes, CU_MEMHOSTALLOC_PORTABLE) != 0) {
                return false;
            }
            slab = out.get(ValueLayout.ADDRESS, 0).reinterpret(bytes);
            used = 0;
            return true;
        }
    }

    synchronized void give(MemorySegment memory) {
        idle.computeIfAbsent(memory.byteSize(), key -> new ArrayDeque<>()).push(memory);
    }
}

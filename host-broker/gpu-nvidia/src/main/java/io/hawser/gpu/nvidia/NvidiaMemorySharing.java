package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.MemorySharing;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The driver's sharing of memory between processes. Session thread only. */
final class NvidiaMemorySharing implements MemorySharing {
    // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only value that CUDA accepts
    private static final int LAZY_ENABLE_PEER_ACCESS = 1;

    @Override
    public int share(long address, MemorySegment out) {
        return CudaNative.cuIpcGetMemHandle(out, address);
    }

    @Override
    public int open(MemorySegment handle, MemorySegment out) {
        int result = CudaNative.cuIpcOpenMemHandle_v2(out, handle, LAZY_ENABLE_PEER_ACCESS);
        if (result != 0) {
            return result;
        }
        long address = out.get(JAVA_LONG, 0);
        result = mappedFrom(address, out.asSlice(Long.BYTES));
        if (result != 0) {
            close(address);
        }
        return result;
    }

    /**
     * The length from an address to the end of its allocation, from this process's driver. The length that another
     * session reports is not trusted.
     */
    private static int mappedFrom(long address, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment range = arena.allocate(2 * Long.BYTES, Long.BYTES);
            int result = CudaNative.cuMemGetAddressRange_v2(range, range.asSlice(Long.BYTES), address);
            out.set(JAVA_LONG, 0, range.get(JAVA_LONG, 0) + range.get(JAVA_LONG, Long.BYTES) - address);
            return result;
        }
    }

    @Override
    public int close(long address) {
        return CudaNative.cuIpcCloseMemHandle(address);
    }
}

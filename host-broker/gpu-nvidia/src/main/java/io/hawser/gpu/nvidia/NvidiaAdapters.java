package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** The driver's functions for network adapters that use the GPU's memory. Methods return a CUresult. */
final class NvidiaAdapters {
    // CUDA 13.0 cuda.h
    private static final int DMA_BUF = 1; // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    private static final int CURRENT_CONTEXT = 0; // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX
    private static final int TO_OWNER = 100; // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER

    private final MethodHandle handleForRange;
    private final MethodHandle flush;

    private NvidiaAdapters(NativeLibrary driver) {
        handleForRange = driver.find("cuMemGetHandleForAddressRange", CUresult.CUDA_ERROR_NOT_SUPPORTED,
            ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT,
            ValueLayout.JAVA_LONG);
        flush = driver.find("cuFlushGPUDirectRDMAWrites", CUresult.CUDA_ERROR_NOT_SUPPORTED, ValueLayout.JAVA_INT,
            ValueLayout.JAVA_INT);
    }

    static NvidiaAdapters open() {
        return new NvidiaAdapters(NativeLibrary.open(NvidiaProvider.LIBRARY));
    }

    /**
     * Makes a dma-buf.
     *
     * @param out receives the descriptor (4 bytes).
     */
    int dmaBuf(long address, long bytes, MemorySegment out) {
        try {
            return (int) handleForRange.invokeExact(out, address, bytes, DMA_BUF, 0L);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    /** Makes what adapters have written visible to later work of the current context's device. */
    int flush() {
        try {
            return (int) flush.invokeExact(CURRENT_CONTEXT, TO_OWNER);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}

package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * Access to another process's device memory. Methods return a CUresult and use the current context. The
 * caller has checked the addresses. Session thread.
 */
public interface MemorySharing {
    /** Bytes of a handle: CU_IPC_HANDLE_SIZE. */
    int HANDLE_BYTES = 64;

    /**
     * Creates the handle of an allocation.
     *
     * @param address first byte of the allocation.
     * @param out receives the handle ({@value #HANDLE_BYTES} bytes).
     */
    int share(long address, MemorySegment out);

    /**
     * Opens another process's memory, with peer access if it is on another device.
     *
     * @param handle normally a handle from {@link #share}, but the guest can send any bytes.
     * @param out receives the address of the allocation's first byte, and the number of bytes mapped from there (8
     *     bytes each).
     */
    int open(MemorySegment handle, MemorySegment out);

    /**
     * Closes memory from {@link #open} that no work uses any more.
     *
     * @param address the address from {@link #open}.
     */
    int close(long address);
}

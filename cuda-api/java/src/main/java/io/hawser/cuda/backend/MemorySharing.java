package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * Device memory and events of one process in another. Methods answer a CUresult, and are for the current context. The
 * caller has checked what an address is. Session thread.
 */
public interface MemorySharing {
    /** Bytes of a handle: CU_IPC_HANDLE_SIZE. */
    int HANDLE_BYTES = 64;

    /**
     * The handle of an allocation.
     *
     * @param address its first byte.
     * @param out receives the handle ({@value #HANDLE_BYTES} bytes).
     */
    int share(long address, MemorySegment out);

    /**
     * Opens another process's memory, with access to a peer's as far as that is needed.
     *
     * @param handle what {@link #share} gave there, or anything else: it is a guest's.
     * @param out receives the address of the allocation's first byte, and how many bytes are mapped from there (8 and
     *     8 bytes).
     */
    int open(MemorySegment handle, MemorySegment out);

    /**
     * Closes what {@link #open} has opened; no work uses it any more.
     *
     * @param address as it gave.
     */
    int close(long address);

    /**
     * The handle of an event.
     *
     * @param event created with CU_EVENT_INTERPROCESS; any other is CUDA_ERROR_INVALID_HANDLE.
     * @param out receives the handle ({@value #HANDLE_BYTES} bytes).
     */
    int shareEvent(long event, MemorySegment out);

    /**
     * Opens another process's event; it is destroyed like any other.
     *
     * @param handle what {@link #shareEvent} gave there, or anything else: it is a guest's.
     * @param out receives the event (8 bytes).
     */
    int openEvent(MemorySegment handle, MemorySegment out);
}

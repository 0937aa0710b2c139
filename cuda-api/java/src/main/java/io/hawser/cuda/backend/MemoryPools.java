package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * Pools that a session creates, and attributes of any pool; the other functions of pools are in the Driver API. Methods
 * return a CUresult. Decoder's thread.
 */
public interface MemoryPools {
    /**
     * Creates a pool of a device's memory.
     *
     * @param maxBytes maximum size of the pool; 0 for the backend's choice.
     * @param out receives its handle (8 bytes).
     */
    int create(int device, long maxBytes, MemorySegment out);

    /**
     * Reads a CUmemPool_attribute.
     *
     * @param out 8 zero bytes; an int is written to the first 4.
     * @return CUDA_ERROR_NOT_SUPPORTED for values that the guest counts itself.
     */
    int getAttribute(long pool, int attribute, MemorySegment out);

    /**
     * Makes the backend process the frees of completed streams, so that their memory can be released. A driver does so
     * when the program synchronises, but the guest's synchronising calls do not reach it. Waits for nothing.
     */
    default void noticeFrees() {
    }

    /** Sets a CUmemPool_attribute; for an int, only the lower half of the value is used. */
    int setAttribute(long pool, int attribute, long value);
}

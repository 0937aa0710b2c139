package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * Pools of a session's own, and what is known of any pool; the rest of their functions is in the Driver API. Methods
 * answer a CUresult. Decoder's thread.
 */
public interface MemoryPools {
    /**
     * Makes a pool of a device's memory.
     *
     * @param maxBytes the most that it may hold; 0 for the backend's choice.
     * @param out receives its handle (8 bytes).
     */
    int create(int device, long maxBytes, MemorySegment out);

    /**
     * Reads a CUmemPool_attribute.
     *
     * @param out 8 zero bytes; those of an int begin there.
     * @return CUDA_ERROR_NOT_SUPPORTED for what the guest counts better.
     */
    int getAttribute(long pool, int attribute, MemorySegment out);

    /**
     * Makes the backend notice frees in streams whose work is over, so that their memory can be given back: a driver
     * does when a program synchronises, which the guest's synchronising calls are not for it. Waits for nothing.
     */
    default void noticeFrees() {
    }

    /** Sets a CUmemPool_attribute; of the value only what fits its type counts. */
    int setAttribute(long pool, int attribute, long value);
}

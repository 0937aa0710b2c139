package io.hawser.worker.channel;

import java.io.IOException;
import java.lang.foreign.MemorySegment;

/**
 * Memory of the guest that the carrier writes and reads by itself, and memory of the worker that it lets the guest
 * write. Session thread.
 */
public interface GuestMemory {
    /**
     * Sends a piece of a copy straight to the guest's memory. It is there before any record that is appended later.
     * The guest answers for the place: with a wrong one it loses its session.
     *
     * @param address of the first byte, chosen by the guest.
     * @param key that admits to the memory there, chosen by the guest.
     * @param memory of the worker, which stays until {@link #forget}; the bytes must not change until {@code sent}.
     * @param offset in it, of the first byte.
     * @param bytes their number, over 0.
     * @param sent runs on the session thread when the bytes have been sent or never will be; possibly during this call.
     * @throws IOException if the worker's memory cannot be used for this; {@code sent} then does not run.
     */
    void write(long address, int key, MemorySegment memory, long offset, int bytes, Runnable sent) throws IOException;

    /**
     * Fetches memory of the guest. The guest answers for the place, as for {@link #write}.
     *
     * @param address of the first byte, chosen by the guest.
     * @param key that admits to the memory there, chosen by the guest.
     * @param memory of the worker, which stays until {@link #forget}.
     * @param offset in it, where the bytes belong.
     * @param bytes their number, over 0.
     * @param arrived runs on the session thread when the bytes are there; never if the session ends before.
     * @throws IOException if the worker's memory cannot be used for this.
     */
    void read(long address, int key, MemorySegment memory, long offset, int bytes, Runnable arrived)
        throws IOException;

    /**
     * Lets the guest write memory of the worker, until {@link #forget}.
     *
     * @return the key for the guest, which also needs the address.
     * @throws IOException if the memory cannot be used for this.
     */
    int share(MemorySegment memory) throws IOException;

    /**
     * Lets {@link #read} and {@link #write} use memory of a GPU, until {@link #forget}.
     *
     * @param memory at its device address.
     * @param descriptor of a dma-buf that begins with the memory; stays the caller's. -1: the carrier must know the
     *     address without one.
     * @throws IOException if the memory cannot be used for this.
     */
    void adopt(MemorySegment memory, int descriptor) throws IOException;

    /** Ends all use of memory by the carrier. Call it before the memory is freed. */
    void forget(MemorySegment memory);
}

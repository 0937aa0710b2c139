package io.hawser.worker.channel;

import io.hawser.worker.memory.StagingPool.Staging;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/**
 * Memory of the guest that the carrier writes by itself, and memory of the worker that it lets the guest write. Session
 * thread.
 */
public interface GuestMemory {
    /**
     * Sends a piece of a copy straight to the guest's memory. It is there before any record that is appended later.
     * The guest answers for the place: with a wrong one it loses its session.
     *
     * @param address of the first byte, chosen by the guest.
     * @param key that admits to the memory there, chosen by the guest.
     * @param piece memory that begins with the bytes; must not change until {@code sent}.
     * @param bytes their number, over 0.
     * @param sent runs on the session thread when the bytes have been sent or never will be; possibly during this call.
     * @throws IOException if the worker's memory cannot be used for this; {@code sent} then does not run.
     */
    void write(long address, int key, Staging piece, int bytes, Runnable sent) throws IOException;

    /**
     * Lets the guest write memory of the worker, until {@link #forget}.
     *
     * @return the key for the guest, which also needs the address.
     * @throws IOException if the memory cannot be used for this.
     */
    int share(MemorySegment memory) throws IOException;

    /** Ends all use of memory by the carrier. Call it before the memory is freed. */
    void forget(MemorySegment memory);
}

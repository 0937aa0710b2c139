package io.hawser.worker.channel;

import java.lang.foreign.MemorySegment;

/** Memory through which the bytes of copies go, in chunks that the guest lends. Any thread. */
public interface BulkArea {
    /** The memory that holds the chunks. The guest may change it at any time. */
    MemorySegment memory();

    /** Number of the chunks. */
    int chunkCount();

    /** Length of each chunk. */
    long chunkBytes();

    /**
     * Offset of a chunk in the memory.
     *
     * @param chunk its number, from 0.
     */
    long chunkOffset(int chunk);

    /**
     * Whether a copy may use these bytes of the memory.
     *
     * @param offset unsigned offset of the first byte, chosen by the guest.
     * @param bytes unsigned number of bytes, chosen by the guest.
     * @param chunk 0 for bytes of the heap, where there is one, else 1 + the chunk that holds them.
     */
    boolean allows(long offset, long bytes, int chunk);

    /**
     * Returns a chunk to the guest, which then sees the bytes that have been written to it.
     *
     * @param chunk its number, from 0.
     * @param offset of the bytes in the memory, in the chunk.
     * @param bytes their number; 0 when nothing was written for the guest.
     * @param result CUresult of the copy.
     */
    void giveBack(int chunk, long offset, long bytes, int result);
}

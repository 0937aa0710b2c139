package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * Addresses and memory apart: what CUDA calls virtual memory management, for memory of devices. Methods answer a
 * CUresult. The caller has checked that a mapping lies in a reservation and touches no other, that a range which is
 * unmapped or opened consists of whole mappings, and that nothing uses what is taken away. Decoder's thread.
 */
public interface VirtualMemory {
    /**
     * What sizes and addresses must be multiples of.
     *
     * @param compression CUmemAllocationCompType.
     * @param usage bits of CU_MEM_CREATE_USAGE.
     * @param option CUmemAllocationGranularity_flags.
     * @param out receives bytes (8 bytes).
     */
    int granularity(int device, int compression, int usage, int option, MemorySegment out);

    /**
     * Reserves addresses.
     *
     * @param alignment a power of two, or 0.
     * @param wanted where, if it is free there; 0 for anywhere.
     * @param out receives the first address (8 bytes).
     */
    int reserve(long bytes, long alignment, long wanted, MemorySegment out);

    /** Gives back a whole reservation without mappings. */
    int unreserve(long address, long bytes);

    /**
     * Makes memory without an address.
     *
     * @param outHandleAndCompression receives its handle (8 bytes) and, behind it, the compression that it has (4).
     */
    int create(long bytes, int device, int compression, int usage, MemorySegment outHandleAndCompression);

    /** Gives memory back; it has no mappings any more. */
    int release(long handle);

    /** Maps a part of memory; nothing can use it before {@link #setAccess}. */
    int map(long address, long bytes, long offset, long handle);

    /** Takes mappings away. */
    int unmap(long address, long bytes);

    /** Opens mappings to a device: CUmemAccess_flags. */
    int setAccess(long address, long bytes, int device, int flags);
}

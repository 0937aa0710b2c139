package io.hawser.cuda.backend;

import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.MemorySegment;

/**
 * CUDA's virtual memory management for memory of devices: addresses and memory are allocated separately. Methods return
 * a CUresult. The caller guarantees three conditions. A mapping lies in a reservation and overlaps no other mapping. An
 * unmapped or opened range consists of whole mappings. Nothing uses memory or addresses that are released. Decoder's
 * thread.
 */
public interface VirtualMemory {
    /**
     * Reads the number of which sizes and addresses must be multiples.
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
     * @param wanted preferred first address; 0 for any.
     * @param out receives the first address (8 bytes).
     */
    int reserve(long bytes, long alignment, long wanted, MemorySegment out);

    /** Releases a whole reservation without mappings. */
    int unreserve(long address, long bytes);

    /**
     * Allocates memory without an address.
     *
     * @param outHandleAndCompression receives the memory's handle (8 bytes), followed by its actual compression (4
     *     bytes).
     */
    int create(long bytes, int device, int compression, int usage, MemorySegment outHandleAndCompression);

    /**
     * Allocates memory without an address for the session's arena. Other processes can import it, and network adapters
     * can access it, where the device allows that.
     *
     * @param out as for {@link #create}.
     */
    default int createSlab(long bytes, int device, MemorySegment out) {
        return create(bytes, device, 0, 0, out);
    }

    /** Whether network adapters can use the arena's slabs on a device. */
    default boolean servesAdapters(int device) {
        return false;
    }

    /**
     * Makes a dma-buf of mapped memory of {@link #createSlab}, by which an adapter uses that memory.
     *
     * @param address first byte of the mapping.
     * @param bytes length of the mapping and of the memory.
     * @param handle the memory's.
     * @param out receives the descriptor (4 bytes), which the caller closes.
     */
    default int dmaBuf(long address, long bytes, long handle, MemorySegment out) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Makes what adapters have written to a device's memory visible to later work. Its context is current. */
    default int flushAdapterWrites(int device) {
        return CUresult.CUDA_SUCCESS;
    }

    /**
     * Whether kernels may use only blocks of the arena's slabs that {@link #openBlock} has opened, instead of whole
     * slabs. The caller then gives no access to slabs.
     */
    default boolean opensBlocks() {
        return false;
    }

    /** Lets kernels and copies use a block of a mapped slab; whole granules of 512 bytes. */
    default void openBlock(long address, long bytes) {
        throw new UnsupportedOperationException("a backend without blocks opens none");
    }

    /** Ends what {@link #openBlock} began. */
    default void closeBlock(long address, long bytes) {
        throw new UnsupportedOperationException("a backend without blocks closes none");
    }

    /**
     * Makes a descriptor of memory for another process, which gets the memory by {@link #open}. The memory lives until
     * its last handle and descriptor are gone.
     *
     * @param handle from {@link #create} or {@link #open}.
     * @param out receives the descriptor (4 bytes), which the caller closes.
     */
    int share(long handle, MemorySegment out);

    /**
     * Makes a handle of another process's memory. No byte of it is charged to this process.
     *
     * @param descriptor normally from {@link #share}, but the other process can pass a descriptor of any file. It stays
     *     the caller's.
     * @param bytes length that the other process reports. A wrong length makes this call fail, or {@link #map}.
     * @param outHandleAndCompression as for {@link #create}.
     */
    int open(int descriptor, long bytes, MemorySegment outHandleAndCompression);

    /** Releases memory that has no mappings any more. */
    int release(long handle);

    /** Maps a part of memory; nothing can use it before {@link #setAccess}. */
    int map(long address, long bytes, long offset, long handle);

    /** Removes mappings. */
    int unmap(long address, long bytes);

    /** Gives a device access to mappings: CUmemAccess_flags. */
    int setAccess(long address, long bytes, int device, int flags);
}

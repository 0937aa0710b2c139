package io.hawser.worker.move;

import io.hawser.cuda.backend.VirtualMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A slab at further addresses, by which all of it can be copied, also what the program has not allocated. The current
 * context is of the slab's GPU. One thread.
 *
 * @param address of the mapping.
 */
public record MappedSlab(VirtualMemory memory, long address, long bytes, long handle) {
    private static final int ACCESS_READ_WRITE = 3; // CUmemAccess_flags

    /**
     * Maps a slab.
     *
     * @param descriptor of its memory, still the caller's.
     * @param device ordinal of the GPU that copies.
     * @param out receives the mapping as its only element, unless this fails.
     * @return CUresult.
     */
    public static int map(VirtualMemory memory, int descriptor, long bytes, int device, MappedSlab[] out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(2 * Long.BYTES, Long.BYTES);
            int result = memory.reserve(bytes, 0, 0, value);
            if (result != 0) {
                return result;
            }
            long address = value.get(ValueLayout.JAVA_LONG, 0);
            result = memory.open(descriptor, bytes, value);
            if (result != 0) {
                memory.unreserve(address, bytes);
                return result;
            }
            long handle = value.get(ValueLayout.JAVA_LONG, 0);
            result = memory.map(address, bytes, 0, handle);
            if (result != 0) {
                memory.release(handle);
                memory.unreserve(address, bytes);
                return result;
            }
            MappedSlab mapped = new MappedSlab(memory, address, bytes, handle);
            result = memory.setAccess(address, bytes, device, ACCESS_READ_WRITE);
            if (result == 0) {
                out[0] = mapped;
            } else {
                mapped.unmap();
            }
            return result;
        }
    }

    /** Ends the mapping. Returns a CUresult. */
    public int unmap() {
        int unmapped = memory.unmap(address, bytes);
        int released = memory.release(handle);
        int unreserved = memory.unreserve(address, bytes);
        return unmapped != 0 ? unmapped : released != 0 ? released : unreserved;
    }
}

package io.hawser.gpu.software.device;

import io.hawser.gpu.software.exec.GlobalMemory;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Best-fit allocator of the device's arena. It merges neighbouring free blocks, so that freeing everything leaves one
 * block. A worker serves one session and its arena is a new mapping, so memory begins as zeros and never holds another
 * session's bytes. Thread-safe.
 */
public final class DeviceMemory implements AutoCloseable {
    /** Freeing a block of at least this size returns its pages to the machine. */
    private static final long DECOMMIT_BYTES = 1 << 20;

    private record Block(long bytes, long address) implements Comparable<Block> {
        @Override
        public int compareTo(Block other) {
            return bytes != other.bytes ? Long.compare(bytes, other.bytes) : Long.compare(address, other.address);
        }
    }

    private final GlobalMemory arena;
    private final boolean isReserved; // the memory is a reservation outside the arena
    private final long totalBytes;
    private final TreeMap<Long, Long> freeByAddress = new TreeMap<>();
    private final TreeSet<Block> freeBySize = new TreeSet<>();
    private final Map<Long, Long> allocated = new HashMap<>();
    private long allocatedBytes;

    /**
     * Reserves the arena; pages are committed when they are first written.
     *
     * @param bytes rounded down to whole granules.
     */
    public DeviceMemory(long bytes) {
        arena = GlobalMemory.reserve(bytes & -GlobalMemory.GRANULE_BYTES);
        isReserved = false;
        totalBytes = arena.size();
        insertFree(arena.base(), totalBytes);
    }

    /** Divides a reservation of the arena's addresses; {@link #close} leaves it to the arena. */
    DeviceMemory(GlobalMemory arena, long address, long bytes) {
        this.arena = arena;
        isReserved = true;
        totalBytes = bytes;
        insertFree(address, bytes);
    }

    /** The memory that kernels run on. */
    public GlobalMemory arena() {
        return arena;
    }

    /** Size of the memory in bytes. */
    public long totalBytes() {
        return totalBytes;
    }

    /** Unallocated bytes. */
    public synchronized long freeBytes() {
        return totalBytes - allocatedBytes;
    }

    /** Number of live allocations. */
    public synchronized int allocations() {
        return allocated.size();
    }

    /**
     * Allocates.
     *
     * @param bytes positive; rounded up to whole granules of 512 bytes.
     * @return the address, a multiple of 512, or 0 when no free block is large enough.
     */
    public synchronized long allocate(long bytes) {
        if (bytes <= 0) {
            throw new IllegalArgumentException("allocation must be positive: bytes=" + bytes);
        }
        if (bytes > totalBytes) {
            return 0;
        }
        long size = (bytes + GlobalMemory.GRANULE_BYTES - 1) & -GlobalMemory.GRANULE_BYTES;
        if (size > freeBytes()) {
            return 0;
        }
        Block block = freeBySize.ceiling(new Block(size, 0));
        if (block == null) {
            return 0;
        }
        removeFree(block);
        if (block.bytes > size) {
            insertFree(block.address + size, block.bytes - size);
        }
        allocated.put(block.address, size);
        allocatedBytes += size;
        if (isReserved) {
            arena.openAddresses(block.address, size);
        } else {
            arena.markAllocated(block.address, size);
        }
        return block.address;
    }

    /** Never again allocates the memory that is free now, except for the last block without its first bytes. */
    synchronized void skip(long bytes) {
        Map.Entry<Long, Long> last = freeByAddress.lastEntry();
        freeByAddress.clear();
        freeBySize.clear();
        if (last != null && last.getValue() > bytes) {
            insertFree(last.getKey() + bytes, last.getValue() - bytes);
        }
    }

    /**
     * Counts memory outside the arena as the device's.
     *
     * @param bytes negative to subtract memory that was freed.
     * @return false, with nothing changed, when the device has less memory left.
     */
    synchronized boolean charge(long bytes) {
        if (bytes > freeBytes()) {
            return false;
        }
        allocatedBytes += bytes;
        return true;
    }

    /** Size in bytes, in whole granules, of the allocation that begins at {@code address}; 0 if none does. */
    public synchronized long sizeOf(long address) {
        return allocated.getOrDefault(address, 0L);
    }

    /**
     * Frees an allocation.
     *
     * @return false if none begins at {@code address}.
     */
    public synchronized boolean free(long address) {
        Long size = allocated.remove(address);
        if (size == null) {
            return false;
        }
        allocatedBytes -= size;
        if (isReserved) {
            arena.closeAddresses(address, size);
        } else {
            arena.markFree(address, size);
        }
        if (size >= DECOMMIT_BYTES) {
            arena.decommit(address, size);
        }
        long from = address;
        long bytes = size;
        Map.Entry<Long, Long> before = freeByAddress.lowerEntry(address);
        if (before != null && before.getKey() + before.getValue() == address) {
            removeFree(new Block(before.getValue(), before.getKey()));
            from = before.getKey();
            bytes += before.getValue();
        }
        Map.Entry<Long, Long> after = freeByAddress.higherEntry(address);
        if (after != null && address + size == after.getKey()) {
            removeFree(new Block(after.getValue(), after.getKey()));
            bytes += after.getValue();
        }
        insertFree(from, bytes);
        return true;
    }

    /** Number of free blocks: 1 when everything is free. */
    synchronized int freeBlocks() {
        return freeByAddress.size();
    }

    private void insertFree(long address, long bytes) {
        freeByAddress.put(address, bytes);
        freeBySize.add(new Block(bytes, address));
    }

    private void removeFree(Block block) {
        freeByAddress.remove(block.address);
        freeBySize.remove(block);
    }

    /** Unmaps the arena; no kernel or copy may be running. */
    @Override
    public void close() {
        if (!isReserved) {
            arena.close();
        }
    }
}

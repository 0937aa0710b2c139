package io.hawser.gpu.software.exec;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * The device's global memory: one lazily committed mapping of real memory, device address = real address. A shadow byte
 * for each granule tells whether it belongs to an allocation; kernels fault outside of those. The allocator (not here)
 * calls {@link #markAllocated} and {@link #markFree}; kernels on any thread read the shadow without a lock, so a kernel
 * that races with the free of what it uses may or may not fault, as on a GPU.
 */
public final class GlobalMemory implements AutoCloseable {
    /** Allocations begin at and are rounded up to multiples of this. */
    public static final int GRANULE_BYTES = 512;
    /** log2 of {@link #GRANULE_BYTES}. */
    static final int GRANULE_SHIFT = 9;

    private static final int PROT_READ_WRITE = 3;
    // mman.h of Linux on x86-64 and AArch64: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE.
    private static final int MAP_FLAGS = 0x2 | 0x20 | 0x4000;
    private static final int MADV_DONTNEED = 4;
    // More than any machine has: the rule that refuses it says so instead of mmap's ENOMEM.
    private static final long MAX_BYTES = 1L << 44;

    private static final MethodHandle MMAP;
    private static final MethodHandle MUNMAP;
    private static final MethodHandle MADVISE;

    static {
        Linker linker = Linker.nativeLinker();
        var lookup = linker.defaultLookup();
        MMAP = linker.downcallHandle(lookup.findOrThrow("mmap"), FunctionDescriptor.of(ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT,
            ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG));
        MUNMAP = linker.downcallHandle(lookup.findOrThrow("munmap"), FunctionDescriptor.of(ValueLayout.JAVA_INT,
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
        MADVISE = linker.downcallHandle(lookup.findOrThrow("madvise"), FunctionDescriptor.of(ValueLayout.JAVA_INT,
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));
    }

    private final long base;
    private final long size;
    private final long shadow;
    private final MemorySegment segment;
    private final MemorySegment shadowSegment;
    private boolean closed;

    private GlobalMemory(long base, long size, long shadow) {
        this.base = base;
        this.size = size;
        this.shadow = shadow;
        this.segment = MemorySegment.ofAddress(base).reinterpret(size, Arena.global(), null);
        this.shadowSegment = MemorySegment.ofAddress(shadow).reinterpret(size >> GRANULE_SHIFT, Arena.global(), null);
    }

    /**
     * Reserves address space; pages are committed when first written.
     *
     * @param bytes a positive multiple of {@link #GRANULE_BYTES}.
     * @throws OutOfMemoryError if the address space is refused.
     */
    public static GlobalMemory reserve(long bytes) {
        if (bytes <= 0 || bytes % GRANULE_BYTES != 0 || bytes > MAX_BYTES) {
            throw new IllegalArgumentException("arena must be a positive multiple of " + GRANULE_BYTES
                + " of at most " + MAX_BYTES + " bytes: bytes=" + bytes);
        }
        long base = map(bytes);
        return new GlobalMemory(base, bytes, map(bytes >> GRANULE_SHIFT));
    }

    private static long map(long bytes) {
        long address;
        try {
            address = (long) MMAP.invokeExact(0L, bytes, PROT_READ_WRITE, MAP_FLAGS, -1, 0L);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
        if (address == -1L) {
            throw new OutOfMemoryError("mmap refused the device's memory: bytes=" + bytes);
        }
        return address;
    }

    /** First address; a multiple of the page size. */
    public long base() {
        return base;
    }

    /** Length in bytes. */
    public long size() {
        return size;
    }

    long shadowAddress() {
        return shadow;
    }

    /**
     * Opens granules to kernels.
     *
     * @param address a multiple of {@link #GRANULE_BYTES} inside the arena.
     * @param bytes   rounded up to whole granules.
     */
    public void markAllocated(long address, long bytes) {
        granules(address, bytes).fill((byte) 1);
    }

    /** Closes granules to kernels; arguments as for {@link #markAllocated}. */
    public void markFree(long address, long bytes) {
        granules(address, bytes).fill((byte) 0);
    }

    private MemorySegment granules(long address, long bytes) {
        long offset = address - base;
        if (offset < 0 || bytes <= 0 || bytes > size - offset || offset % GRANULE_BYTES != 0) {
            throw new IllegalArgumentException("range must begin at a granule inside the arena: offset=" + offset
                + " bytes=" + bytes + " size=" + size);
        }
        return shadowSegment.asSlice(offset >> GRANULE_SHIFT, (bytes + GRANULE_BYTES - 1) >> GRANULE_SHIFT);
    }

    /** Whether every byte of the range lies in an allocated granule; true for an empty range. Any thread. */
    public boolean isAllocated(long address, long bytes) {
        long offset = address - base;
        if (bytes == 0) {
            return true;
        }
        if (offset < 0 || bytes < 0 || bytes > size - offset) {
            return false;
        }
        long last = (offset + bytes - 1) >> GRANULE_SHIFT;
        for (long granule = offset >> GRANULE_SHIFT; granule <= last; granule++) {
            if (shadowSegment.get(ValueLayout.JAVA_BYTE, granule) == 0) {
                return false;
            }
        }
        return true;
    }

    /**
     * The bytes at an address, for the host's copies.
     *
     * @throws IndexOutOfBoundsException if the range leaves the arena.
     */
    public MemorySegment slice(long address, long bytes) {
        return segment.asSlice(address - base, bytes);
    }

    /** Gives whole pages inside the range back to the machine; they read as zero afterwards. */
    public void decommit(long address, long bytes) {
        long page = 4096;
        long from = (address + page - 1) & -page;
        long to = (address + bytes) & -page;
        if (address < base || bytes < 0 || bytes > size - (address - base) || from >= to) {
            return;
        }
        try {
            int ignored = (int) MADVISE.invokeExact(from, to - from, MADV_DONTNEED);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** Unmaps; no kernel may be running. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            int first = (int) MUNMAP.invokeExact(base, size);
            int second = (int) MUNMAP.invokeExact(shadow, size >> GRANULE_SHIFT);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }
}

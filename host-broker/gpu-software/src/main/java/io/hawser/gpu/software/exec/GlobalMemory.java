package io.hawser.gpu.software.exec;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * The device's global memory: one lazily committed mapping; a device address equals the real address. A shadow byte for
 * each granule marks whether an allocation contains it; kernels fault outside allocations. The allocator, a class of
 * its own, calls {@link #markAllocated} and {@link #markFree}. Kernels on any thread read the shadow without a lock. A
 * kernel that races with the free of its memory may or may not fault, as on a GPU.
 *
 * <p>Where the system grants enough addresses, the shadow spans the whole address space, and the system commits only
 * its marked pages. The arena's check then covers mapped host memory at any address. Otherwise the shadow spans only
 * the arena, and host memory cannot be mapped.
 */
public final class GlobalMemory implements AutoCloseable {
    /** Allocations begin at multiples of this; their sizes are rounded up to multiples of this. */
    public static final int GRANULE_BYTES = 512;
    /** log2 of {@link #GRANULE_BYTES}. */
    static final int GRANULE_SHIFT = 9;

    private static final int PROT_READ_WRITE = 3;
    // mman.h of Linux on x86-64 and AArch64: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE.
    private static final int MAP_FLAGS = 0x2 | 0x20 | 0x4000;
    private static final int MADV_DONTNEED = 4;
    private static final long PAGE_BYTES = 4096;
    /** Zeroes shorter ranges by writing: a system call and the later page faults take longer. */
    private static final long ZERO_BY_PAGES_BYTES = 1 << 20;
    private static final long REFUSED = -1; // MAP_FAILED
    // More than any machine has. Larger sizes get this rule's message instead of mmap's ENOMEM.
    private static final long MAX_BYTES = 1L << 44;
    /** Above all user addresses of Linux: 47 bits on x86-64 (unless a process asks for more), 48 bits on AArch64. */
    private static final long ADDRESS_SPACE_BYTES = 1L << 48;
    private static final long ALL_ALLOCATED = 0x0101010101010101L;
    /**
     * Where the first device of a process lies, if the system agrees: variables of a moved session then keep their
     * addresses.
     */
    private static final long WANTED_BASE = 0x1000_0000_0000L;

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
    private final long shadowBase;
    private final long shadowSpan;
    private final MemorySegment segment;
    private final MemorySegment shadowSegment;
    private MemorySegment host = MemorySegment.NULL;
    private final ConcurrentSkipListMap<Long, Long> reserved = new ConcurrentSkipListMap<>(); // address to bytes
    private final KernelObjects objects = new KernelObjects();
    private boolean closed;

    private GlobalMemory(long base, long size, long shadow, long shadowBase, long shadowSpan) {
        this.base = base;
        this.size = size;
        this.shadow = shadow;
        this.shadowBase = shadowBase;
        this.shadowSpan = shadowSpan;
        this.segment = MemorySegment.ofAddress(base).reinterpret(size, Arena.global(), null);
        this.shadowSegment = MemorySegment.ofAddress(shadow).reinterpret(shadowSpan >> GRANULE_SHIFT, Arena.global(),
            null);
    }

    /**
     * Reserves address space; the system commits a page at its first write.
     *
     * @param bytes a positive multiple of {@link #GRANULE_BYTES}.
     * @throws OutOfMemoryError if the system refuses the address space.
     */
    public static GlobalMemory reserve(long bytes) {
        return reserve(bytes, ADDRESS_SPACE_BYTES);
    }

    /** As {@link #reserve(long)}; the shadow spans the addresses below {@code wantedSpan} if the system allows it. */
    static GlobalMemory reserve(long bytes, long wantedSpan) {
        if (bytes <= 0 || bytes % GRANULE_BYTES != 0 || bytes > MAX_BYTES) {
            throw new IllegalArgumentException("arena must be a positive multiple of " + GRANULE_BYTES
                + " of at most " + MAX_BYTES + " bytes: bytes=" + bytes);
        }
        long base = map(WANTED_BASE, bytes);
        if (base == REFUSED) {
            throw new OutOfMemoryError("mmap refused the device's memory: bytes=" + bytes);
        }
        // The system refuses if it limits address space or does not overcommit memory.
        long whole = base > wantedSpan - bytes ? REFUSED : map(0, wantedSpan >> GRANULE_SHIFT);
        if (whole != REFUSED) {
            return new GlobalMemory(base, bytes, whole, 0, wantedSpan);
        }
        long own = map(0, bytes >> GRANULE_SHIFT);
        if (own == REFUSED) {
            unmap(base, bytes);
            throw new OutOfMemoryError("mmap refused the device's shadow: bytes=" + (bytes >> GRANULE_SHIFT));
        }
        return new GlobalMemory(base, bytes, own, base, bytes);
    }

    private static long map(long wanted, long bytes) {
        try {
            return (long) MMAP.invokeExact(wanted, bytes, PROT_READ_WRITE, MAP_FLAGS, -1, 0L);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static void unmap(long address, long bytes) {
        try {
            // Fails only for arguments that no mapping has.
            int ignored = (int) MUNMAP.invokeExact(address, bytes);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** First address; a multiple of the page size. */
    public long base() {
        return base;
    }

    /** Length in bytes. */
    public long size() {
        return size;
    }

    /** The location of global memory, for kernel code. */
    Globals globals() {
        return new Globals(shadowBase, shadowSpan, shadow, objects);
    }

    /** Textures and surfaces, whose texels lie in this memory. */
    public KernelObjects objects() {
        return objects;
    }

    /** Whether {@link #attachHost} and the methods that follow it work. */
    public boolean canMapHost() {
        return shadowSpan != size;
    }

    /**
     * Sets the host memory whose parts {@link #markHostMapped} may open to kernels. Call once, before any part.
     *
     * @param region native memory that stays mapped while this object is in use.
     */
    public void attachHost(MemorySegment region) {
        if (!canMapHost() || !region.isNative() || region.address() <= 0 || region.byteSize() == 0
            || region.address() > shadowSpan - region.byteSize()) {
            throw new IllegalArgumentException("region must be native memory that the shadow spans: address=0x"
                + Long.toHexString(region.address()) + " bytes=" + region.byteSize() + " span=0x"
                + Long.toHexString(shadowSpan));
        }
        // Accessible from every thread of the device, whichever thread created the region.
        host = MemorySegment.ofAddress(region.address()).reinterpret(region.byteSize());
    }

    /** Opens host memory to kernels and copies: whole granules inside the attached region. */
    public void markHostMapped(long address, long bytes) {
        hostGranules(address, bytes).fill((byte) 1);
    }

    /** Closes host memory that {@link #markHostMapped} opened. */
    public void markHostUnmapped(long address, long bytes) {
        hostGranules(address, bytes).fill((byte) 0);
    }

    private MemorySegment hostGranules(long address, long bytes) {
        if (!inHost(address, bytes) || bytes <= 0 || (address | bytes) % GRANULE_BYTES != 0) {
            throw new IllegalArgumentException("part must be whole granules inside the attached region: address=0x"
                + Long.toHexString(address) + " bytes=" + bytes);
        }
        return shadowSegment.asSlice(address - shadowBase >> GRANULE_SHIFT, bytes >> GRANULE_SHIFT);
    }

    private boolean inHost(long address, long bytes) {
        long offset = address - host.address();
        return offset >= 0 && bytes >= 0 && bytes <= host.byteSize() - offset;
    }

    /**
     * Reserves addresses outside the arena. Their pages read as zeros; kernels cannot access them yet.
     *
     * @param bytes whole pages.
     * @param alignment a power of two of at least a page.
     * @param wanted preferred first address, if it is aligned and the addresses there are free; 0 for any.
     * @return the first address, or 0 when the system or the shadow has no room.
     */
    public long reserveAddresses(long bytes, long alignment, long wanted) {
        long longer = bytes + alignment;
        long from = longer < bytes || longer > MAX_BYTES ? REFUSED : map(wanted, longer);
        if (from == REFUSED) {
            return 0;
        }
        long address = from + alignment - 1 & -alignment;
        if (from + longer > shadowSpan) {
            unmap(from, longer);
            return 0;
        }
        if (address > from) {
            unmap(from, address - from);
        }
        unmap(address + bytes, from + longer - (address + bytes));
        reserved.put(address, bytes);
        return address;
    }

    /** Releases addresses from {@link #reserveAddresses} that nothing uses any more. */
    public void unreserveAddresses(long address, long bytes) {
        closeAddresses(address, bytes);
        reserved.remove(address);
        unmap(address, bytes);
    }

    /** Opens reserved addresses to kernels and copies; whole granules of one reservation. */
    public void openAddresses(long address, long bytes) {
        reservedGranules(address, bytes).fill((byte) 1);
    }

    /** Closes addresses that {@link #openAddresses} opened. */
    public void closeAddresses(long address, long bytes) {
        reservedGranules(address, bytes).fill((byte) 0);
    }

    private MemorySegment reservedGranules(long address, long bytes) {
        if (!inReserved(address, bytes) || bytes <= 0 || (address | bytes) % GRANULE_BYTES != 0) {
            throw new IllegalArgumentException("range must be whole granules of a reservation: address=0x"
                + Long.toHexString(address) + " bytes=" + bytes);
        }
        return shadowSegment.asSlice(address - shadowBase >> GRANULE_SHIFT, bytes >> GRANULE_SHIFT);
    }

    private boolean inReserved(long address, long bytes) {
        Map.Entry<Long, Long> below = reserved.floorEntry(address);
        return below != null && bytes >= 0 && bytes <= below.getValue() - (address - below.getKey());
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
        return shadowSegment.asSlice(address - shadowBase >> GRANULE_SHIFT,
            (bytes + GRANULE_BYTES - 1) >> GRANULE_SHIFT);
    }

    /**
     * Whether every byte of the range lies in an allocated granule, in mapped host memory or in an open part of a
     * reservation; true for an empty range. Any thread.
     */
    public boolean isAllocated(long address, long bytes) {
        if (bytes == 0) {
            return true;
        }
        // A range that crosses the end of one kind of memory is invalid, even if the other kind is adjacent.
        boolean inArena = address >= base && bytes > 0 && bytes <= size - (address - base);
        if (!inArena && (bytes < 0 || !inHost(address, bytes) && !inReserved(address, bytes))) {
            return false;
        }
        long granule = address - shadowBase >> GRANULE_SHIFT;
        long last = address - shadowBase + bytes - 1 >> GRANULE_SHIFT;
        // Checks eight granules at a time, because a long copy has many.
        for (; granule + 7 <= last; granule += 8) {
            if (shadowSegment.get(ValueLayout.JAVA_LONG_UNALIGNED, granule) != ALL_ALLOCATED) {
                return false;
            }
        }
        for (; granule <= last; granule++) {
            if (shadowSegment.get(ValueLayout.JAVA_BYTE, granule) == 0) {
                return false;
            }
        }
        return true;
    }

    /**
     * The bytes at an address, for the host's copies.
     *
     * @throws IndexOutOfBoundsException if the range leaves the arena, the attached region, or a reservation.
     */
    public MemorySegment slice(long address, long bytes) {
        if (inHost(address, bytes)) {
            return host.asSlice(address - host.address(), bytes);
        }
        // Reserved pages stay mapped until all work that may use them has ended.
        return inReserved(address, bytes) ? MemorySegment.ofAddress(address).reinterpret(bytes)
            : segment.asSlice(address - base, bytes);
    }

    /**
     * Zeroes a range of the arena or of a reservation. In a long range of the arena, whole pages return to the machine
     * instead of being written. An array that a program never touches therefore uses no memory of the machine.
     *
     * @throws IndexOutOfBoundsException if the range leaves its memory.
     */
    public void zero(long address, long bytes) {
        MemorySegment range = slice(address, bytes);
        long from = address + PAGE_BYTES - 1 & -PAGE_BYTES;
        long to = address + bytes & -PAGE_BYTES;
        if (bytes < ZERO_BY_PAGES_BYTES || !decommit(address, bytes)) {
            range.fill((byte) 0);
            return;
        }
        range.asSlice(0, from - address).fill((byte) 0);
        range.asSlice(to - address).fill((byte) 0);
    }

    /**
     * Returns whole pages inside the range to the machine; they read as zero afterwards.
     *
     * @return false, with nothing changed, when the range has no whole page, or when the system refuses (locked
     *     memory).
     */
    public boolean decommit(long address, long bytes) {
        long from = address + PAGE_BYTES - 1 & -PAGE_BYTES;
        long to = address + bytes & -PAGE_BYTES;
        if (address < base || bytes < 0 || bytes > size - (address - base) || from >= to) {
            return false;
        }
        try {
            return (int) MADVISE.invokeExact(from, to - from, MADV_DONTNEED) == 0;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** Unmaps the memory; no kernel may be running. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        reserved.forEach(GlobalMemory::unmap);
        unmap(base, size);
        unmap(shadow, shadowSpan >> GRANULE_SHIFT);
    }
}

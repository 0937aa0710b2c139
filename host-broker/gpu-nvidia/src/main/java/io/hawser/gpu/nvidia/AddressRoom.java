package io.hawser.gpu.nvidia;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Takes all room for long mappings above a fixed address, until it is closed. The kernel gives the highest room that is
 * free, and begins at a random address. A context that the driver makes meanwhile gets its range directly below the
 * fixed address. Variables of device code then have equal addresses in all workers (moving.md). The ranges taken cost
 * neither memory nor page tables. Other threads may map memory at the same time: short mappings get room above. One
 * thread.
 */
final class AddressRoom implements AutoCloseable {
    /** Below the libraries of any process: the kernel moves them by at most 16 TiB from the end of the user's half. */
    static final long FLOOR = 0x6e00_0000_0000L;
    // Linux asm-generic/mman-common.h
    private static final int PROT_NONE = 0;
    private static final int MAP_PRIVATE = 2;
    private static final int MAP_ANONYMOUS = 0x20;
    private static final int MAP_NORESERVE = 0x4000;
    private static final int MAP_FIXED_NOREPLACE = 0x100000;
    private static final long MAP_FAILED = -1;
    private static final long PAGE_BYTES = 4096;
    private static final long LONGEST_BYTES = 1L << 40;
    /** Driver 580 takes 518 MiB for a context and longer ranges once a process; all else is shorter than this. */
    private static final long SHORTEST_BYTES = 256L << 20;
    /** Room for short mappings, in openings that a context's range does not fit into. */
    private static final long OPENING_BYTES = 384L << 20;
    /** The C library takes 128 MiB for each of several threads that begin to allocate memory. */
    private static final int OPENINGS = 16;

    private static final Logger LOG = System.getLogger(AddressRoom.class.getName());
    private static final MethodHandle MAP = find("mmap", ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG,
        ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG);
    private static final MethodHandle UNMAP = find("munmap", ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG,
        ValueLayout.JAVA_LONG);

    private record Range(long address, long bytes) {}

    private final Deque<Range> taken = new ArrayDeque<>();

    private AddressRoom() {}

    private static MethodHandle find(String name, ValueLayout result, ValueLayout... arguments) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name),
            FunctionDescriptor.of(result, arguments));
    }

    /** Takes the room. Where the kernel refuses it, addresses are as random as before. */
    static AddressRoom take() {
        AddressRoom room = new AddressRoom();
        for (long bytes = LONGEST_BYTES; bytes >= SHORTEST_BYTES; bytes /= 2) {
            room.fill(bytes);
        }
        room.fillToFloor();
        room.open();
        return room;
    }

    /** Gives back parts of the first range for the mappings of other threads. */
    private void open() {
        Range whole = taken.poll();
        if (whole == null || whole.bytes < LONGEST_BYTES) {
            LOG.log(Level.DEBUG, "no fixed addresses: the kernel gives too little room above 0x{0}",
                Long.toHexString(FLOOR));
            if (whole != null) {
                taken.add(whole);
            }
            close();
            return;
        }
        long end = whole.address + whole.bytes;
        for (int i = 0; i < OPENINGS; i++) {
            end -= OPENING_BYTES;
            unmap(end, OPENING_BYTES);
            end -= PAGE_BYTES;
            taken.add(new Range(end, PAGE_BYTES));
        }
        taken.add(new Range(whole.address, end - whole.address));
    }

    /** Takes ranges of one length while the kernel gives them above the floor. */
    private void fill(long bytes) {
        long address = map(0, bytes, 0);
        while (address != MAP_FAILED && address >= FLOOR) {
            taken.add(new Range(address, bytes));
            address = map(0, bytes, 0);
        }
        if (address != MAP_FAILED) {
            unmap(address, bytes);
        }
    }

    /** Takes the rest between the floor and the lowest mapping above it, which is shorter than all ranges above. */
    private void fillToFloor() {
        long at = FLOOR;
        for (long bytes = SHORTEST_BYTES; bytes >= PAGE_BYTES;) {
            long address = map(at, bytes, MAP_FIXED_NOREPLACE);
            if (address == at) {
                taken.add(new Range(at, bytes));
                at += bytes;
                continue;
            }
            if (address != MAP_FAILED) { // a kernel before 4.17 takes the flag for a wish
                unmap(address, bytes);
            }
            bytes /= 2;
        }
    }

    /** Takes addresses without memory; {@link #MAP_FAILED} where there are none. */
    static long map(long address, long bytes, int flags) {
        try {
            return (long) MAP.invokeExact(address, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0L);
        } catch (Throwable e) {
            throw new IllegalStateException("a function of the C library throws nothing", e);
        }
    }

    static void unmap(long address, long bytes) {
        int result;
        try {
            result = (int) UNMAP.invokeExact(address, bytes);
        } catch (Throwable e) {
            throw new IllegalStateException("a function of the C library throws nothing", e);
        }
        if (result != 0) {
            throw new IllegalStateException("a range of addresses must be given back: address=0x"
                + Long.toHexString(address) + " bytes=" + bytes);
        }
    }

    /** Gives the room back. */
    @Override
    public void close() {
        for (Range range = taken.poll(); range != null; range = taken.poll()) {
            unmap(range.address, range.bytes);
        }
    }
}

package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** Memory of this process alone, in huge pages where the system has them. Any thread. */
public final class PrivateMemory {
    /** A huge page of x86-64 and of arm64 with pages of 4 KiB. */
    public static final long HUGE_PAGE_BYTES = 2L << 20;

    // Linux asm-generic/mman-common.h
    private static final int MAP_PRIVATE_ANONYMOUS = 0x22;
    private static final int MADV_HUGEPAGE = 14;
    private static final long PAGE_BYTES = 4096;

    private static final MethodHandle ADVISE = Libc.find("madvise", Libc.INT, Libc.LONG, Libc.LONG, Libc.INT);

    private PrivateMemory() {}

    /**
     * Maps memory and touches each page, so that the system has allocated all of it. This takes about 0.2 s a GiB with
     * huge pages, and 0.5 s without; several threads do it side by side.
     *
     * @param bytes length, a multiple of {@link #HUGE_PAGE_BYTES}.
     * @return the memory, at a multiple of {@link #HUGE_PAGE_BYTES}, full of zeros, until it is unreachable.
     * @throws IOException if the system refuses. A system that is short of memory may end processes instead.
     */
    public static MemorySegment map(long bytes) throws IOException {
        if (bytes <= 0 || bytes % HUGE_PAGE_BYTES != 0) {
            throw new IllegalArgumentException("memory must consist of huge pages: bytes=" + bytes);
        }
        Libc.Scratch scratch = Libc.scratch();
        long whole = SharedMemory.map(scratch, 0, bytes + HUGE_PAGE_BYTES, MAP_PRIVATE_ANONYMOUS, -1);
        if (whole == SharedMemory.MAP_FAILED) {
            throw Libc.failure("memory must be mapped: bytes=" + bytes, scratch.errno());
        }
        long address = (whole + HUGE_PAGE_BYTES - 1) & -HUGE_PAGE_BYTES;
        unmap(whole, address - whole);
        unmap(address + bytes, whole + HUGE_PAGE_BYTES - address);
        MemorySegment memory = MemorySegment.ofAddress(address).reinterpret(bytes, Arena.ofAuto(),
            SharedMemory::unmap);
        touch(scratch, memory);
        return memory;
    }

    private static void touch(Libc.Scratch scratch, MemorySegment memory) {
        try {
            // A kernel without huge pages refuses, and the memory gets small ones.
            int _ = (int) ADVISE.invokeExact(scratch.state, memory.address(), memory.byteSize(), MADV_HUGEPAGE);
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
        for (long at = 0; at < memory.byteSize(); at += PAGE_BYTES) {
            memory.set(ValueLayout.JAVA_BYTE, at, (byte) 0);
        }
    }

    private static void unmap(long address, long bytes) {
        if (bytes != 0) {
            SharedMemory.unmap(MemorySegment.ofAddress(address).reinterpret(bytes));
        }
    }
}

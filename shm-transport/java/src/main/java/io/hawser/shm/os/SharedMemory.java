package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * A mapping, of any length, of a descriptor that other processes map as well. The mapping never becomes invalid during
 * an access: after {@link #close} each access throws {@link IllegalStateException}. If another process has truncated
 * the file, an access throws {@link InternalError}. Any thread.
 */
public final class SharedMemory implements AutoCloseable {
    // Linux asm-generic/mman-common.h
    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_SHARED = 1;
    private static final int MAP_FIXED_NOREPLACE = 0x100000;
    static final long MAP_FAILED = -1;
    private static final long PAGE_BYTES = 4096;
    // A guest chooses the address. Below are the libraries of programs, above are addresses that user space cannot
    // have.
    private static final long LOWEST_ADDRESS = 1L << 32;
    private static final long HIGHEST_ADDRESS = 1L << 47;

    private static final MethodHandle MAP = Libc.find("mmap", Libc.LONG, Libc.LONG, Libc.LONG, Libc.INT, Libc.INT,
        Libc.INT, Libc.LONG);
    private static final MethodHandle UNMAP = Libc.find("munmap", Libc.INT, Libc.LONG, Libc.LONG);

    private final Arena arena;
    private final MemorySegment memory;

    private SharedMemory(Arena arena, MemorySegment memory) {
        this.arena = arena;
        this.memory = memory;
    }

    /**
     * Maps a file from its start, for reading and writing.
     *
     * @param fd descriptor of the file, which may be closed afterwards.
     * @param bytes length, at most the file's: pages beyond its end fault.
     * @param wantedAddress preferred address: used if it is free, a multiple of a page, and in the part of the address
     *     space for such mappings. Otherwise, or with 0, any address.
     * @throws IOException if mapping fails, or if the file is shorter than {@code bytes}.
     */
    public static SharedMemory map(int fd, long bytes, long wantedAddress) throws IOException {
        long fileBytes = Descriptors.fileBytes(fd);
        if (bytes <= 0 || bytes > fileBytes) {
            throw new IOException("a mapping must not be longer than its file: bytes=" + bytes + ", fileBytes="
                + fileBytes);
        }
        Libc.Scratch scratch = Libc.scratch();
        long address = MAP_FAILED;
        if (isUsable(wantedAddress, bytes)) {
            address = map(scratch, wantedAddress, bytes, MAP_SHARED | MAP_FIXED_NOREPLACE, fd);
        }
        if (address == MAP_FAILED) {
            address = map(scratch, 0, bytes, MAP_SHARED, fd);
        }
        if (address == MAP_FAILED) {
            throw Libc.failure("a file must be mapped: fd=" + fd + ", bytes=" + bytes, scratch.errno());
        }
        Arena arena = Arena.ofShared();
        MemorySegment memory = MemorySegment.ofAddress(address).reinterpret(bytes, arena, SharedMemory::unmap);
        return new SharedMemory(arena, memory);
    }

    /**
     * Maps a file from its start, for reading and writing, until the mapping becomes unreachable. For memory of threads
     * that cannot be notified before an unmapping.
     *
     * @param fd descriptor of the file, which may be closed afterwards.
     * @param bytes length, at most the file's.
     * @throws IOException if mapping fails, or if the file is shorter than {@code bytes}.
     */
    public static MemorySegment mapWhileReachable(int fd, long bytes) throws IOException {
        long fileBytes = Descriptors.fileBytes(fd);
        if (bytes <= 0 || bytes > fileBytes) {
            throw new IOException("a mapping must not be longer than its file: bytes=" + bytes + ", fileBytes="
                + fileBytes);
        }
        Libc.Scratch scratch = Libc.scratch();
        long address = map(scratch, 0, bytes, MAP_SHARED, fd);
        if (address == MAP_FAILED) {
            throw Libc.failure("a file must be mapped: fd=" + fd + ", bytes=" + bytes, scratch.errno());
        }
        return MemorySegment.ofAddress(address).reinterpret(bytes, Arena.ofAuto(), SharedMemory::unmap);
    }

    /** The mapped memory. */
    public MemorySegment memory() {
        return memory;
    }

    /** The address of the mapping in this process. */
    public long address() {
        return memory.address();
    }

    /** Unmaps the memory after accesses in progress have ended. */
    @Override
    public void close() {
        arena.close();
    }

    private static boolean isUsable(long address, long bytes) {
        return address % PAGE_BYTES == 0 && address >= LOWEST_ADDRESS && address < HIGHEST_ADDRESS
            && bytes <= HIGHEST_ADDRESS - address;
    }

    /** Calls mmap; {@link #MAP_FAILED} with errno in the scratch after a failure. */
    static long map(Libc.Scratch scratch, long address, long bytes, int flags, int fd) {
        try {
            return (long) MAP.invokeExact(scratch.state, address, bytes, PROT_READ_WRITE, flags, fd, 0L);
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Unmaps memory, or a part of it in whole pages. */
    static void unmap(MemorySegment memory) {
        try {
            int result = (int) UNMAP.invokeExact(Libc.scratch().state, memory.address(), memory.byteSize());
            if (result != 0) {
                throw new IllegalStateException("a mapping must be unmapped whole: address=0x"
                    + Long.toHexString(memory.address()) + ", bytes=" + memory.byteSize());
            }
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }
}

package io.hawser.gpu.software.exec;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * An unnamed file whose memory can be mapped at several addresses. It reads as zeros, and the system allocates a page
 * at its first write. Its length is sealed, so that a process that shares it cannot make others fault. Mappings stay
 * valid after close. One thread.
 */
public final class MemoryFile implements AutoCloseable {
    private static final int MEMFD_FLAGS = 1 | 2; // memfd_create(2), MFD_CLOEXEC and MFD_ALLOW_SEALING
    // fcntl.h of Linux
    private static final int F_DUPFD_CLOEXEC = 1030;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_GET_SEALS = 1034;
    private static final int LENGTH_SEALS = 1 | 2 | 4; // F_SEAL_SEAL, F_SEAL_SHRINK and F_SEAL_GROW
    private static final int SEEK_END = 2;
    private static final int PROT_READ_WRITE = 3;
    // mman.h of Linux on x86-64 and AArch64
    private static final int MAP_SHARED_FIXED = 0x1 | 0x10;
    private static final int MAP_PRIVATE_ANONYMOUS_FIXED = 0x2 | 0x10 | 0x20 | 0x4000; // and MAP_NORESERVE

    private static final MethodHandle MEMFD_CREATE;
    private static final MethodHandle FTRUNCATE;
    private static final MethodHandle FCNTL;
    private static final MethodHandle SEEK;
    private static final MethodHandle CLOSE;
    private static final MethodHandle MMAP;

    static {
        Linker linker = Linker.nativeLinker();
        var lookup = linker.defaultLookup();
        MEMFD_CREATE = linker.downcallHandle(lookup.findOrThrow("memfd_create"), FunctionDescriptor.of(
            ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
        FTRUNCATE = linker.downcallHandle(lookup.findOrThrow("ftruncate"), FunctionDescriptor.of(
            ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG));
        FCNTL = linker.downcallHandle(lookup.findOrThrow("fcntl"), FunctionDescriptor.of(ValueLayout.JAVA_INT,
            ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT), Linker.Option.firstVariadicArg(2));
        SEEK = linker.downcallHandle(lookup.findOrThrow("lseek"), FunctionDescriptor.of(ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));
        CLOSE = linker.downcallHandle(lookup.findOrThrow("close"), FunctionDescriptor.of(ValueLayout.JAVA_INT,
            ValueLayout.JAVA_INT));
        MMAP = linker.downcallHandle(lookup.findOrThrow("mmap"), FunctionDescriptor.of(ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT,
            ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG));
    }

    private final int descriptor;
    private final long bytes;
    private final boolean isOpened;

    private MemoryFile(int descriptor, long bytes, boolean isOpened) {
        this.descriptor = descriptor;
        this.bytes = bytes;
        this.isOpened = isOpened;
    }

    /**
     * Creates a file.
     *
     * @param bytes its length, a multiple of the page size.
     * @return null when the system refuses.
     */
    public static MemoryFile create(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            int descriptor = (int) MEMFD_CREATE.invokeExact(arena.allocateFrom("hawser-device"), MEMFD_FLAGS);
            if (descriptor < 0) {
                return null;
            }
            MemoryFile file = new MemoryFile(descriptor, bytes, false);
            if ((int) FTRUNCATE.invokeExact(descriptor, bytes) != 0
                || fcntl(descriptor, F_ADD_SEALS, LENGTH_SEALS) != 0) {
                file.close();
                return null;
            }
            return file;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /**
     * Opens a file that another process has created.
     *
     * @param descriptor of any file; it stays the caller's.
     * @return null unless this is a file like those of {@link #create}, with this length.
     */
    public static MemoryFile open(int descriptor, long bytes) {
        // Only anonymous memory has seals. With them its length cannot change after the look at it.
        int seals = fcntl(descriptor, F_GET_SEALS, 0);
        if (seals != LENGTH_SEALS || length(descriptor) != bytes) {
            return null;
        }
        int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        return own < 0 ? null : new MemoryFile(own, bytes, true);
    }

    /** Another descriptor of the file, which the caller closes; negative when the system refuses. */
    public int duplicate() {
        return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    }

    /** Whether another process has created the file. */
    public boolean isOpened() {
        return isOpened;
    }

    private static int fcntl(int descriptor, int command, int argument) {
        try {
            return (int) FCNTL.invokeExact(descriptor, command, argument);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static long length(int descriptor) {
        try {
            return (long) SEEK.invokeExact(descriptor, 0L, SEEK_END);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** Length in bytes. */
    public long bytes() {
        return bytes;
    }

    /**
     * Maps a part of the file; it replaces the existing mapping.
     *
     * @return false when the system refuses; the existing mapping then stays.
     */
    public boolean map(long address, long length, long offset) {
        return mmap(address, length, MAP_SHARED_FIXED, descriptor, offset) == address;
    }

    /** Replaces a mapping with private pages, which read as zeros. Returns false when the system refuses. */
    public static boolean unmap(long address, long length) {
        return mmap(address, length, MAP_PRIVATE_ANONYMOUS_FIXED, -1, 0) == address;
    }

    private static long mmap(long address, long length, int flags, int descriptor, long offset) {
        try {
            return (long) MMAP.invokeExact(address, length, PROT_READ_WRITE, flags, descriptor, offset);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public void close() {
        try {
            int ignored = (int) CLOSE.invokeExact(descriptor);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }
}

package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * Descriptors, closed on exec: files for shared memory, and descriptors for other processes by SCM_RIGHTS. Any thread;
 * the code that opened a descriptor closes it once.
 */
public final class Descriptors {
    // Linux asm-generic/fcntl.h
    private static final int O_RDWR = 2;
    private static final int O_CREAT = 0100;
    private static final int O_EXCL = 0200;
    private static final int O_NOFOLLOW = 0400000;
    private static final int O_CLOEXEC = 02000000;
    private static final int O_PATH = 010000000;
    // Linux memfd.h, fcntl.h, and stdio.h
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_SEAL_SEAL = 1;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    // Linux x86-64 asm/statfs.h, struct statfs
    private static final int STATFS_BYTES = 120;
    private static final int OWNER_ONLY = 0600;
    private static final int SHUT_RDWR = 2; // Linux socket.h

    private static final MethodHandle OPEN = Libc.findVariadic(2, "open", Libc.INT, Libc.ADDRESS, Libc.INT, Libc.INT);
    private static final MethodHandle CLOSE = Libc.find("close", Libc.INT, Libc.INT);
    private static final MethodHandle SHUTDOWN = Libc.find("shutdown", Libc.INT, Libc.INT, Libc.INT);
    private static final MethodHandle STATFS = Libc.find("fstatfs", Libc.INT, Libc.INT, Libc.ADDRESS);
    private static final MethodHandle TRUNCATE = Libc.find("ftruncate", Libc.INT, Libc.INT, Libc.LONG);
    private static final MethodHandle ALLOCATE = Libc.find("fallocate", Libc.INT, Libc.INT, Libc.INT, Libc.LONG,
        Libc.LONG);
    private static final MethodHandle MEMFD = Libc.find("memfd_create", Libc.INT, Libc.ADDRESS, Libc.INT);
    private static final MethodHandle FCNTL = Libc.findVariadic(2, "fcntl", Libc.INT, Libc.INT, Libc.INT, Libc.INT);

    private Descriptors() {
    }

    /**
     * Opens an existing file for reading and writing.
     *
     * @return the descriptor.
     */
    public static int open(Path path) throws IOException {
        return open(path, O_RDWR | O_CLOEXEC);
    }

    /**
     * Opens an existing file for reading and writing; fails if the name is a link.
     *
     * @return the descriptor.
     */
    public static int openNoLink(Path path) throws IOException {
        return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    }

    /**
     * Opens the file of a descriptor again, for reading and writing. The new descriptor has its own locks.
     *
     * @return a descriptor, which the caller closes.
     */
    public static int reopen(int fd) throws IOException {
        return open(Path.of("/proc/self/fd/" + fd));
    }

    /** Opens a descriptor that only identifies the file of a path; a link is not followed ({@code O_PATH}). */
    static int pin(Path path) throws IOException {
        return open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    }

    /**
     * Creates an empty file with access only for its owner, and opens it for reading and writing. Fails if the name
     * exists, so that nobody can place a link there first.
     *
     * @return the descriptor.
     */
    public static int create(Path path) throws IOException {
        return open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL | O_NOFOLLOW);
    }

    /**
     * Creates anonymous shared memory with a fixed length, so that no process can make its users fault.
     *
     * @param name name for people, shown in /proc.
     * @param bytes length of the memory.
     * @return the descriptor.
     */
    public static int memory(String name, long bytes) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            int fd = (int) MEMFD.invokeExact(scratch.state, arena.allocateFrom(name), MFD_CLOEXEC | MFD_ALLOW_SEALING);
            if (fd < 0) {
                throw Libc.failure("anonymous memory must be made: name=" + name, scratch.errno());
            }
            try {
                resize(fd, bytes);
                if ((int) FCNTL.invokeExact(scratch.state, fd, F_ADD_SEALS,
                    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
                    throw Libc.failure("anonymous memory must be sealed: name=" + name, scratch.errno());
                }
                return fd;
            } catch (Throwable e) {
                close(fd);
                throw e;
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Sets a file's length; new bytes are 0 and occupy no memory until written. */
    public static void resize(int fd, long bytes) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try {
            if ((int) TRUNCATE.invokeExact(scratch.state, fd, bytes) < 0) {
                throw Libc.failure("a file's length must be set: fd=" + fd + ", bytes=" + bytes, scratch.errno());
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /**
     * Allocates the memory of a file's first {@code bytes} now, and extends a shorter file to that length. If a page of
     * a file in /dev/shm cannot be allocated later, SIGBUS ends the process that touches it.
     *
     * @throws IOException if there is not enough memory.
     */
    public static void reserve(int fd, long bytes) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try {
            int result;
            do {
                result = (int) ALLOCATE.invokeExact(scratch.state, fd, 0, 0L, bytes);
            } while (result < 0 && scratch.errno() == Libc.EINTR);
            if (result < 0) {
                throw Libc.failure("memory must be reserved: fd=" + fd + ", bytes=" + bytes, scratch.errno());
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /**
     * Length in bytes of a file or of a device's resource. Does not seek, because for a PCI device's resource in sysfs
     * Linux 5.12 to 6.6 then reports 0.
     */
    public static long fileBytes(int fd) throws IOException {
        return FileStatus.of(fd).bytes();
    }

    /** The magic number of a file's file system (Linux linux/magic.h). */
    static long fileSystem(int fd) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment status = arena.allocate(STATFS_BYTES, Long.BYTES);
            int result = (int) STATFS.invokeExact(scratch.state, fd, status);
            if (result < 0) {
                throw Libc.failure("a file must have a file system: fd=" + fd, scratch.errno());
            }
            return status.get(ValueLayout.JAVA_LONG, 0);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Ends both directions of a connected socket, so that a thread that waits for its bytes goes on. */
    public static void shutdown(int socket) {
        try {
            int ignored = (int) SHUTDOWN.invokeExact(Libc.scratch().state, socket, SHUT_RDWR); // fails if the peer has
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Closes a descriptor; as with close(2), it is closed even after an error. */
    public static void close(int fd) {
        try {
            int ignored = (int) CLOSE.invokeExact(Libc.scratch().state, fd);
            assert ignored == 0 : "a descriptor must be open to be closed: fd=" + fd;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    private static int open(Path path, int flags) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            int fd = (int) OPEN.invokeExact(scratch.state, arena.allocateFrom(path.toString()), flags, OWNER_ONLY);
            if (fd < 0) {
                throw Libc.failure("a file must open: path=" + path, scratch.errno());
            }
            return fd;
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }
}

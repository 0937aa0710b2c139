package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Anonymous memory that is written once and that no holder of its descriptor can write later. One process passes it to
 * another that does not trust it. Any thread.
 */
public final class SealedMemory {
    // Linux memfd.h and fcntl.h
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_SEAL_SEAL = 1;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int F_SEAL_WRITE = 8;

    private static final MethodHandle MEMFD = Libc.find("memfd_create", Libc.INT, Libc.ADDRESS, Libc.INT);
    private static final MethodHandle FCNTL = Libc.findVariadic(2, "fcntl", Libc.INT, Libc.INT, Libc.INT, Libc.INT);
    private static final MethodHandle PREAD = Libc.find("pread", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.LONG,
        Libc.LONG);
    private static final MethodHandle PWRITE = Libc.find("pwrite", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.LONG,
        Libc.LONG);

    private SealedMemory() {
    }

    /**
     * Creates writable memory with a fixed length.
     *
     * @param name name for people, shown in /proc.
     * @param bytes length; occupies no memory until written.
     * @return the descriptor, which the caller closes.
     */
    public static int create(String name, long bytes) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            int fd = (int) MEMFD.invokeExact(scratch.state, arena.allocateFrom(name), MFD_CLOEXEC | MFD_ALLOW_SEALING);
            if (fd < 0) {
                throw Libc.failure("anonymous memory must be made: name=" + name, scratch.errno());
            }
            try {
                Descriptors.resize(fd, bytes);
                seal(fd, F_SEAL_SHRINK | F_SEAL_GROW);
                return fd;
            } catch (IOException e) {
                Descriptors.close(fd);
                throw e;
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /**
     * Prevents all further writes.
     *
     * @throws IOException if a writable mapping exists.
     */
    public static void seal(int fd) throws IOException {
        seal(fd, F_SEAL_WRITE | F_SEAL_SEAL);
    }

    private static void seal(int fd, int seals) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try {
            if ((int) FCNTL.invokeExact(scratch.state, fd, F_ADD_SEALS, seals) < 0) {
                throw Libc.failure("anonymous memory must be sealed: seals=" + seals, scratch.errno());
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Writes the bytes at the beginning of the memory. */
    public static void write(int fd, MemorySegment bytes) throws IOException {
        move(PWRITE, "written", fd, bytes);
    }

    /** Fills the segment from the beginning of the memory. */
    public static void read(int fd, MemorySegment bytes) throws IOException {
        move(PREAD, "read", fd, bytes);
    }

    private static void move(MethodHandle call, String done, int fd, MemorySegment bytes) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        long at = 0;
        try {
            while (at < bytes.byteSize()) {
                MemorySegment rest = bytes.asSlice(at);
                long moved = (long) call.invokeExact(scratch.state, fd, rest, rest.byteSize(), at);
                if (moved < 0 && scratch.errno() == Libc.EINTR) {
                    continue;
                }
                if (moved <= 0) {
                    throw Libc.failure("anonymous memory must be " + done + ": at=" + at + ", bytes="
                        + bytes.byteSize(), moved < 0 ? scratch.errno() : 0);
                }
                at += moved;
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }
}

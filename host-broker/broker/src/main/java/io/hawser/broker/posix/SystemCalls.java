package io.hawser.broker.posix;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/**
 * System calls by number (Linux on x86_64) that neither jnr-posix nor Java offers. Any thread. Where the kernel
 * distinguishes threads, a call affects the calling thread.
 */
public final class SystemCalls {
    public static final int EPERM = 1;
    public static final int ENOENT = 2;
    public static final int EINTR = 4;
    public static final int EACCES = 13;
    public static final int EEXIST = 17;
    public static final int ENOSPC = 28;
    // Linux fcntl.h
    public static final int O_ACCMODE = 3;
    public static final int O_RDONLY = 0;
    public static final int O_WRONLY = 1;
    public static final int O_RDWR = 2;
    public static final int O_CREAT = 0100;
    public static final int O_EXCL = 0200;
    public static final int O_TRUNC = 01000;
    public static final int O_LARGEFILE = 0100000;
    public static final int O_NOFOLLOW = 0400000;
    public static final int O_CLOEXEC = 02000000;

    // Linux asm/unistd_64.h
    private static final long POLL = 7;
    private static final long IOCTL = 16;
    private static final long SOCKET = 41;
    private static final long SENDTO = 44;
    private static final long RECVFROM = 45;
    private static final long UNSHARE = 272;
    private static final long MEMFD_CREATE = 319;
    private static final int MFD_CLOEXEC = 1;
    private static final long OPENAT = 257;
    private static final long PROCESS_VM_READV = 310;
    private static final long PIDFD_OPEN = 434;
    private static final long PIDFD_GETFD = 438;
    private static final int AT_FDCWD = -100;
    private static final int IOVEC_BYTES = 16;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = CALL_STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final MethodHandle SYSCALL = LINKER.downcallHandle(
        LINKER.defaultLookup().find("syscall").orElseThrow(),
        FunctionDescriptor.of(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG),
        Linker.Option.captureCallState("errno"), Linker.Option.firstVariadicArg(1));

    private SystemCalls() {
    }

    /** The result, or the negated errno. */
    private static long call(long number, long a, long b, long c, long d, long e, long f) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            long result = (long) SYSCALL.invokeExact(state, number, a, b, c, d, e, f);
            return result < 0 ? -(int) ERRNO.get(state, 0L) : result;
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable thrown) {
            throw new IllegalStateException("syscall", thrown);
        }
    }

    private static long check(String name, long result) throws PosixException {
        if (result < 0) {
            throw new PosixException(name, Spawn.error((int) -result));
        }
        return result;
    }

    /** Moves the calling thread, and its later children, to new namespaces: CLONE_NEW... flags. */
    public static void unshare(long flags) throws PosixException {
        check("unshare", call(UNSHARE, flags, 0, 0, 0, 0, 0));
    }

    /** Opens a socket in the calling thread's network namespace, close-on-exec. */
    public static int socket(int family, int type) throws PosixException {
        return socket(family, type, 0);
    }

    /** Opens a socket for a protocol of the family. */
    static int socket(int family, int type, int protocol) throws PosixException {
        return (int) check("socket", call(SOCKET, family, type | 02000000, protocol, 0, 0, 0));
    }

    /** Sends a message to a socket's peer, the kernel for a netlink socket. */
    static void send(int socket, MemorySegment message) throws PosixException {
        check("sendto", call(SENDTO, socket, message.address(), message.byteSize(), 0, 0, 0));
    }

    /**
     * Receives a queued message without waiting.
     *
     * @return the message's length in bytes.
     */
    static int receive(int socket, MemorySegment target) throws PosixException {
        return (int) check("recvfrom", call(RECVFROM, socket, target.address(), target.byteSize(), 0x40, 0, 0));
    }

    /**
     * Waits without timeout for events of one descriptor (poll(2)).
     *
     * @return the events that occurred.
     */
    public static int poll(int descriptor, int events) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment entry = arena.allocate(8, 4);
            entry.set(ValueLayout.JAVA_INT, 0, descriptor);
            entry.set(ValueLayout.JAVA_SHORT, 4, (short) events);
            long ready;
            do {
                ready = call(POLL, entry.address(), 1, -1, 0, 0, 0);
            } while (ready == -EINTR);
            check("poll", ready);
            return entry.get(ValueLayout.JAVA_SHORT, 6);
        }
    }

    /** The result, or the negated errno. */
    public static long ioctl(int descriptor, long request, MemorySegment argument) {
        return call(IOCTL, descriptor, request, argument.address(), 0, 0, 0);
    }

    /** Copies a child's descriptor, close-on-exec. The child must not have been reaped. */
    public static int takeDescriptor(int pid, int descriptor) throws PosixException {
        int process = (int) check("pidfd_open", call(PIDFD_OPEN, pid, 0, 0, 0, 0, 0));
        try {
            return (int) check("pidfd_getfd", call(PIDFD_GETFD, process, descriptor, 0, 0, 0, 0));
        } finally {
            Posix.close(process);
        }
    }

    /**
     * Opens a file, close-on-exec.
     *
     * @return the descriptor, or the negated errno.
     */
    public static long open(String path, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            return call(OPENAT, AT_FDCWD, arena.allocateFrom(path).address(), flags | 02000000, 0, 0, 0);
        }
    }

    /**
     * Makes empty memory that can be mapped and passed on, close-on-exec.
     *
     * @param name for people, in /proc; at most 249 bytes.
     * @return the descriptor, or the negated errno.
     */
    public static long memory(String name) {
        try (Arena arena = Arena.ofConfined()) {
            return call(MEMFD_CREATE, arena.allocateFrom(name).address(), MFD_CLOEXEC, 0, 0, 0, 0);
        }
    }

    /**
     * Copies another process's memory.
     *
     * @param thread id of a thread of that process.
     * @param target receives up to its own size, less where the memory ends.
     * @return number of bytes copied, or the negated errno.
     */
    public static long read(int thread, long address, MemorySegment target) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment here = arena.allocate(IOVEC_BYTES, Long.BYTES);
            MemorySegment there = arena.allocate(IOVEC_BYTES, Long.BYTES);
            here.set(LONG, 0, target.address());
            here.set(LONG, Long.BYTES, target.byteSize());
            there.set(LONG, 0, address);
            there.set(LONG, Long.BYTES, target.byteSize());
            return call(PROCESS_VM_READV, thread, here.address(), 1, there.address(), 1, 0);
        }
    }
}

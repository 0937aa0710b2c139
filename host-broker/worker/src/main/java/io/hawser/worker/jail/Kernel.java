package io.hawser.worker.jail;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/** System calls that build the jail. Each returns 0 or more, or the negated errno. Any thread. */
final class Kernel {
    static final int EPERM = 1;
    static final int EINVAL = 22;
    static final int ENOSYS = 38;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final AddressLayout ADDRESS = ValueLayout.ADDRESS;
    private static final Linker LINKER = Linker.nativeLinker();
    private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = CALL_STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final MethodHandle SYSCALL = LINKER.downcallHandle(symbol("syscall"),
        FunctionDescriptor.of(LONG, LONG, LONG, LONG, LONG, LONG, LONG), Linker.Option.captureCallState("errno"),
        Linker.Option.firstVariadicArg(1));
    // These three functions of the C library change all threads, not only the calling one.
    private static final MethodHandle SETGROUPS = find("setgroups", LONG, ADDRESS);
    private static final MethodHandle SETRESGID = find("setresgid", INT, INT, INT);
    private static final MethodHandle SETRESUID = find("setresuid", INT, INT, INT);
    private static final MethodHandle MALLOC = LINKER.downcallHandle(symbol("malloc"),
        FunctionDescriptor.of(ADDRESS, LONG));
    private static final MethodHandle FREE = LINKER.downcallHandle(symbol("free"), FunctionDescriptor.ofVoid(ADDRESS));
    private static final MethodHandle STRERROR = LINKER.downcallHandle(symbol("strerror"),
        FunctionDescriptor.of(ADDRESS, INT));

    // Above glibc's FASTBIN_CONSOLIDATION_THRESHOLD (64 KiB), and below the 128 KiB that it maps instead. All blocks
    // together exceed the length from which it returns memory to the kernel.
    private static final int BLOCK_BYTES = 100 << 10;
    private static final int BLOCKS = 80;

    // Linux asm/unistd_64.h
    private static final int SYS_PRCTL = 157;
    private static final int SYS_PRLIMIT64 = 302;
    private static final int SYS_SECCOMP = 317;
    private static final int SYS_CHDIR = 80;
    private static final int SYS_CHROOT = 161;
    private static final int SYS_MKDIR = 83;
    private static final int SYS_RMDIR = 84;
    private static final int SYS_CLOSE = 3;

    private Kernel() {
    }

    private static MemorySegment symbol(String name) {
        return LINKER.defaultLookup().find(name).orElseThrow(() -> new UnsupportedOperationException(
            "the jail needs Linux with glibc: missing symbol=" + name));
    }

    private static MethodHandle find(String name, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.of(INT, arguments),
            Linker.Option.captureCallState("errno"));
    }

    static long prctl(int command, long value) {
        return call(SYS_PRCTL, command, value, 0, 0, 0);
    }

    /** Installs a filter for all threads: SECCOMP_SET_MODE_FILTER with these flags. */
    static long seccomp(long flags, MemorySegment program) {
        return call(SYS_SECCOMP, 1, flags, program.address(), 0, 0);
    }

    /** Lowers a resource's soft and hard limit to {@code value}; never raises the hard limit. */
    static long limit(int resource, long value) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment limits = arena.allocate(2 * Long.BYTES, Long.BYTES);
            long read = call(SYS_PRLIMIT64, 0, resource, 0, limits.address(), 0);
            if (read < 0) {
                return read;
            }
            long hard = limits.get(LONG, Long.BYTES);
            long wanted = Long.compareUnsigned(hard, value) < 0 ? hard : value;
            limits.set(LONG, 0, wanted);
            limits.set(LONG, Long.BYTES, wanted);
            return call(SYS_PRLIMIT64, 0, resource, limits.address(), 0, 0);
        }
    }

    /** Raises a resource's soft limit to at least {@code value}, and the hard limit where that is lower. */
    static long raiseLimit(int resource, long value) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment limits = arena.allocate(2 * Long.BYTES, Long.BYTES);
            long read = call(SYS_PRLIMIT64, 0, resource, 0, limits.address(), 0);
            if (read < 0 || Long.compareUnsigned(limits.get(LONG, 0), value) >= 0) {
                return read;
            }
            limits.set(LONG, 0, value);
            if (Long.compareUnsigned(limits.get(LONG, Long.BYTES), value) < 0) {
                limits.set(LONG, Long.BYTES, value);
            }
            return call(SYS_PRLIMIT64, 0, resource, limits.address(), 0, 0);
        }
    }

    static long makeFolder(MemorySegment path) {
        return call(SYS_MKDIR, path.address(), 0, 0, 0, 0);
    }

    static long removeFolder(MemorySegment path) {
        return call(SYS_RMDIR, path.address(), 0, 0, 0, 0);
    }

    static long changeFolder(MemorySegment path) {
        return call(SYS_CHDIR, path.address(), 0, 0, 0, 0);
    }

    static long changeRoot(MemorySegment path) {
        return call(SYS_CHROOT, path.address(), 0, 0, 0, 0);
    }

    static long close(int descriptor) {
        return call(SYS_CLOSE, descriptor, 0, 0, 0, 0);
    }

    /** Makes any system call. */
    static long call(long number, long a, long b, long c, long d, long e) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            long result = (long) SYSCALL.invokeExact(state, number, a, b, c, d, e);
            return result < 0 ? -(int) ERRNO.get(state, 0L) : result;
        } catch (Throwable e2) {
            throw unexpected(e2);
        }
    }

    /** Gives all threads one user and one group, no other group, and no capabilities. */
    static long becomeUser(int id) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            // Changes to root first, because the kernel drops capabilities only when a process stops being root. A
            // broker that runs under its own user got its capabilities from the service manager.
            if ((int) SETGROUPS.invokeExact(state, 0L, MemorySegment.NULL) < 0
                || (int) SETRESGID.invokeExact(state, id, id, id) < 0
                || (int) SETRESUID.invokeExact(state, 0, 0, 0) < 0
                || (int) SETRESUID.invokeExact(state, id, id, id) < 0) {
                return -(int) ERRNO.get(state, 0L);
            }
            return 0;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Makes glibc return memory to the kernel. The first time, it opens a file while it holds the lock of the memory.
     * In a jail this open waits for the watcher, while the thread that must call the watcher waits for the lock. Call
     * it on a thread other than the process's first.
     */
    static void returnMemory() {
        try {
            FREE.invokeExact(MemorySegment.NULL); // the first call takes memory, which must not lie behind the blocks
            MemorySegment[] blocks = new MemorySegment[BLOCKS];
            for (int i = 0; i < BLOCKS; i++) {
                blocks[i] = (MemorySegment) MALLOC.invokeExact((long) BLOCK_BYTES);
            }
            for (int i = BLOCKS - 1; i >= 0; i--) { // the last block first, because memory shrinks from its end
                FREE.invokeExact(blocks[i]);
            }
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** The text of an errno; {@code result} is the negative result of a call in this class. */
    static String error(long result) {
        try {
            MemorySegment text = (MemorySegment) STRERROR.invokeExact((int) -result);
            return text.reinterpret(256).getString(0);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    private static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException runtime ? runtime : new IllegalStateException(thrown);
    }
}

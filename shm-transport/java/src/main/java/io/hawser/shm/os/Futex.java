package io.hawser.shm.os;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Objects;

/**
 * Sleeping on a word of shared memory until another process on this machine's kernel wakes it. Any thread; allocates
 * nothing after a thread's first call.
 */
public final class Futex {
    // Linux futex.h; without FUTEX_PRIVATE_FLAG, because several processes share the word
    private static final int FUTEX_WAIT = 0;
    private static final int FUTEX_WAKE = 1;
    private static final long SYS_FUTEX = switch (System.getProperty("os.arch")) {
        case "amd64", "x86_64" -> 202; // asm/unistd_64.h
        case "aarch64", "riscv64" -> 98; // asm-generic/unistd.h
        default -> throw new UnsupportedOperationException("futex is known for amd64, aarch64 and riscv64: os.arch="
            + System.getProperty("os.arch"));
    };
    private static final long SECOND_NS = 1_000_000_000L;
    private static final int EFAULT = 14;
    private static final MethodHandle SYSCALL = Libc.findVariadic(1, "syscall", Libc.LONG, Libc.LONG, Libc.LONG,
        Libc.INT, Libc.INT, Libc.ADDRESS);

    private Futex() {
    }

    /**
     * Sleeps until the word is woken; returns at once if it is not {@code expected}. May return early: check the word
     * again.
     *
     * @param memory shared memory, native.
     * @param offset offset of the word in it, a multiple of 4.
     * @param timeoutNs maximum sleep; 0 or less does not sleep.
     * @return false after the timeout.
     */
    public static boolean await(MemorySegment memory, long offset, int expected, long timeoutNs) {
        if (timeoutNs <= 0) {
            return false;
        }
        Libc.Scratch scratch = Libc.scratch();
        scratch.struct.set(ValueLayout.JAVA_LONG, 0, timeoutNs / SECOND_NS);
        scratch.struct.set(ValueLayout.JAVA_LONG, 8, timeoutNs % SECOND_NS);
        long word = address(memory, offset);
        try {
            long result = (long) SYSCALL.invokeExact(scratch.state, SYS_FUTEX, word, FUTEX_WAIT, expected,
                scratch.struct);
            if (result == 0) {
                return true;
            }
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
        int errno = scratch.errno();
        if (errno == EFAULT) {
            throw new IllegalStateException("a futex must lie in mapped memory: address=0x"
                + Long.toHexString(word));
        }
        return errno == Libc.EAGAIN || errno == Libc.EINTR;
    }

    /**
     * Wakes all sleepers of the word.
     *
     * @return number of sleepers.
     */
    public static int wake(MemorySegment memory, long offset) {
        Libc.Scratch scratch = Libc.scratch();
        long word = address(memory, offset);
        try {
            return (int) Math.max(0, (long) SYSCALL.invokeExact(scratch.state, SYS_FUTEX, word, FUTEX_WAKE,
                Integer.MAX_VALUE, MemorySegment.NULL));
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    // As a number, so that a sleeping thread does not keep the mapping open.
    private static long address(MemorySegment memory, long offset) {
        return memory.address() + Objects.checkFromIndexSize(offset, Integer.BYTES, memory.byteSize());
    }
}

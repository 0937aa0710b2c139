package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Locks on single bytes of a file. The kernel drops them when their holder dies, so they show whether a slot's process
 * lives. Any thread.
 */
public final class FileLocks {
    // Linux asm-generic/fcntl.h
    private static final int F_GETLK = 5;
    private static final int F_OFD_SETLK = 37;
    private static final short F_WRLCK = 1;
    private static final short F_UNLCK = 2;
    private static final int EACCES = 13;
    // struct flock of a 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid
    private static final int TYPE_OFFSET = 0;
    private static final int WHENCE_OFFSET = 2;
    private static final int START_OFFSET = 8;
    private static final int LENGTH_OFFSET = 16;
    private static final int PID_OFFSET = 24;
    private static final MethodHandle FCNTL = Libc.findVariadic(2, "fcntl", Libc.INT, Libc.INT, Libc.INT,
        Libc.ADDRESS);

    private FileLocks() {
    }

    /**
     * Whether another holder has a write lock on a byte of the file. A process does not see its own locks of F_SETLK.
     *
     * @param fd the file, open for writing.
     */
    public static boolean isLocked(int fd, long byteOffset) throws IOException {
        MemorySegment lock = call(fd, F_GETLK, F_WRLCK, byteOffset);
        return lock.get(ValueLayout.JAVA_SHORT, TYPE_OFFSET) != F_UNLCK;
    }

    /**
     * Takes a write lock on a byte of the file. The lock belongs to the open file (F_OFD_SETLK). Unlike a guest's
     * locks, it is also visible to others in this process, and it ends when the last copy of the descriptor is closed.
     *
     * @return false when another holder has the lock.
     */
    public static boolean tryLock(int fd, long byteOffset) throws IOException {
        return call(fd, F_OFD_SETLK, F_WRLCK, byteOffset) != null;
    }

    /** Releases a lock from {@link #tryLock}. */
    public static void unlock(int fd, long byteOffset) throws IOException {
        call(fd, F_OFD_SETLK, F_UNLCK, byteOffset);
    }

    private static MemorySegment call(int fd, int command, short type, long byteOffset) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        MemorySegment lock = scratch.struct;
        lock.set(ValueLayout.JAVA_SHORT, TYPE_OFFSET, type);
        lock.set(ValueLayout.JAVA_SHORT, WHENCE_OFFSET, (short) 0);
        lock.set(ValueLayout.JAVA_LONG, START_OFFSET, byteOffset);
        lock.set(ValueLayout.JAVA_LONG, LENGTH_OFFSET, 1);
        lock.set(ValueLayout.JAVA_INT, PID_OFFSET, 0);
        try {
            if ((int) FCNTL.invokeExact(scratch.state, fd, command, lock) == 0) {
                return lock;
            }
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
        int errno = scratch.errno();
        if (command == F_OFD_SETLK && (errno == Libc.EAGAIN || errno == EACCES)) {
            return null;
        }
        throw Libc.failure("a lock must be possible: fd=" + fd + ", byteOffset=" + byteOffset, errno);
    }
}

package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * An event descriptor: a counter that one side increments and the other waits for. ivshmem delivers its doorbells this
 * way. Any thread; allocates nothing after a thread's first call.
 */
public final class EventFd implements AutoCloseable {
    // Linux eventfd.h, poll.h and fcntl.h
    private static final int EFD_CLOEXEC_NONBLOCK = 02000000 | 04000;
    private static final short POLLIN = 1;
    private static final int F_GETFL = 3;
    private static final int F_SETFL = 4;
    private static final int O_NONBLOCK = 04000;
    private static final long SECOND_NS = 1_000_000_000L;
    private static final MethodHandle EVENTFD = Libc.find("eventfd", Libc.INT, Libc.INT, Libc.INT);
    private static final MethodHandle PPOLL = Libc.find("ppoll", Libc.INT, Libc.ADDRESS, Libc.LONG, Libc.ADDRESS,
        Libc.ADDRESS);
    private static final MethodHandle READ = Libc.find("read", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.LONG);
    private static final MethodHandle WRITE = Libc.find("write", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.LONG);
    private static final MethodHandle FCNTL = Libc.findVariadic(2, "fcntl", Libc.INT, Libc.INT, Libc.INT, Libc.INT);

    private final int fd;

    private EventFd(int fd) {
        this.fd = fd;
    }

    /** Creates an event descriptor with the count 0. */
    public static EventFd create() throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try {
            int fd = (int) EVENTFD.invokeExact(scratch.state, 0, EFD_CLOEXEC_NONBLOCK);
            if (fd < 0) {
                throw Libc.failure("an event descriptor must be made: fd=" + fd, scratch.errno());
            }
            return new EventFd(fd);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Takes over a descriptor that another process has sent, and makes it non-blocking. */
    public static EventFd of(int fd) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try {
            int flags = (int) FCNTL.invokeExact(scratch.state, fd, F_GETFL, 0);
            if (flags < 0 || (int) FCNTL.invokeExact(scratch.state, fd, F_SETFL, flags | O_NONBLOCK) < 0) {
                throw Libc.failure("an event descriptor must be open: fd=" + fd, scratch.errno());
            }
            return new EventFd(fd);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** The descriptor, to pass it on or for an epoll set. */
    public int fd() {
        return fd;
    }

    /** Adds 1 to the count, which ends a {@link #poll}. */
    public void signal() throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        scratch.struct.set(ValueLayout.JAVA_LONG, 0, 1);
        try {
            long written = (long) WRITE.invokeExact(scratch.state, fd, scratch.struct, (long) Long.BYTES);
            // EAGAIN: the count has its maximum, so the other side has an event anyway.
            if (written < 0 && scratch.errno() != Libc.EAGAIN) {
                throw Libc.failure("an event must be signalled: fd=" + fd, scratch.errno());
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /**
     * Waits until the count is not 0 and resets it to 0.
     *
     * @param timeoutNs maximum wait; 0 does not wait. May return early.
     * @return whether the count was not 0.
     */
    public boolean poll(long timeoutNs) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        MemorySegment struct = scratch.struct;
        if (timeoutNs > 0) {
            struct.set(ValueLayout.JAVA_INT, 0, fd);
            struct.set(ValueLayout.JAVA_SHORT, 4, POLLIN);
            struct.set(ValueLayout.JAVA_SHORT, 6, (short) 0);
            struct.set(ValueLayout.JAVA_LONG, 8, timeoutNs / SECOND_NS);
            struct.set(ValueLayout.JAVA_LONG, 16, timeoutNs % SECOND_NS);
        }
        try {
            if (timeoutNs > 0) {
                int ready = (int) PPOLL.invokeExact(scratch.state, struct, 1L, struct.asSlice(8, 16),
                    MemorySegment.NULL);
                if (ready < 0 && scratch.errno() != Libc.EINTR) {
                    throw Libc.failure("an event must be waited for: fd=" + fd, scratch.errno());
                }
                if (ready <= 0) {
                    return false;
                }
            }
            long read = (long) READ.invokeExact(scratch.state, fd, struct, (long) Long.BYTES);
            if (read < 0 && scratch.errno() != Libc.EAGAIN && scratch.errno() != Libc.EINTR) {
                throw Libc.failure("an event must be read: fd=" + fd, scratch.errno());
            }
            return read == Long.BYTES;
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    @Override
    public void close() {
        Descriptors.close(fd);
    }
}

package io.hawser.broker.pool;

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
 * A fake worker's calls of glibc. The tests start hundreds of fake workers, and jnr-posix would take half a second of
 * processor time in each worker. Any thread.
 */
final class FakeSocket {
    /** The result of a socket call that would block: -EAGAIN (Linux asm-generic/errno-base.h). */
    static final int EAGAIN = -11;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    // Linux socket.h on a 64-bit machine: struct msghdr, then struct iovec, then a struct cmsghdr with one int
    private static final long HEADER_IOV = 16;
    private static final long HEADER_IOV_COUNT = 24;
    private static final long HEADER_CONTROL = 32;
    private static final long HEADER_CONTROL_BYTES = 40;
    private static final long IOV = 56;
    private static final long IOV_BYTES = IOV + 8;
    private static final long CONTROL = 72;
    private static final long CONTROL_DATA = CONTROL + 16;
    private static final long ONE_DESCRIPTOR_BYTES = 20; // CMSG_LEN(sizeof(int))
    private static final long DATA = CONTROL + 24; // CMSG_SPACE(sizeof(int))

    private static final Linker LINKER = Linker.nativeLinker();
    private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = CALL_STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final MethodHandle READ = find("read", LONG);
    private static final MethodHandle WRITE = find("write", LONG);
    private static final MethodHandle RECVMSG = find("recvmsg", INT);

    private static final MethodHandle SHUTDOWN = LINKER.downcallHandle(LINKER.defaultLookup().find("shutdown")
        .orElseThrow(), FunctionDescriptor.of(INT, INT, INT));
    private static final int SHUT_RD = 0; // POSIX sys/socket.h

    private FakeSocket() {
    }

    /** Makes all further messages to this socket fail at the sender. */
    static void shutdownReading(int socket) {
        try {
            if ((int) SHUTDOWN.invokeExact(socket, SHUT_RD) != 0) {
                throw new IllegalStateException("the socket cannot be shut down: descriptor=" + socket);
            }
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private static MethodHandle find(String name, MemoryLayout last) {
        return LINKER.downcallHandle(LINKER.defaultLookup().find(name).orElseThrow(),
            FunctionDescriptor.of(LONG, INT, ValueLayout.ADDRESS, last), Linker.Option.captureCallState("errno"));
    }

    /** Reads into the array. Returns the number of bytes, 0 at the end, or the error as -errno. */
    static int read(int descriptor, byte[] into) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            MemorySegment data = arena.allocate(into.length);
            long count = (long) READ.invokeExact(state, descriptor, data, (long) into.length);
            if (count > 0) {
                MemorySegment.copy(data, ValueLayout.JAVA_BYTE, 0, into, 0, (int) count);
            }
            return result(count, state);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** Writes bytes. Returns the number of bytes that the kernel has taken, or the error as -errno. */
    static int write(int descriptor, byte[] bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
            return result((long) WRITE.invokeExact(state, descriptor, data, (long) bytes.length), state);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** Reads like {@link #read}, and stores a descriptor that came with the bytes. */
    static int receive(int socket, byte[] into, int[] descriptor) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            MemorySegment message = arena.allocate(DATA + into.length, Long.BYTES);
            message.set(ValueLayout.ADDRESS, HEADER_IOV, message.asSlice(IOV));
            message.set(LONG, HEADER_IOV_COUNT, 1);
            message.set(ValueLayout.ADDRESS, HEADER_CONTROL, message.asSlice(CONTROL));
            message.set(LONG, HEADER_CONTROL_BYTES, ONE_DESCRIPTOR_BYTES);
            message.set(ValueLayout.ADDRESS, IOV, message.asSlice(DATA));
            message.set(LONG, IOV_BYTES, into.length);
            long count = (long) RECVMSG.invokeExact(state, socket, message, 0);
            if (count > 0) {
                MemorySegment.copy(message, ValueLayout.JAVA_BYTE, DATA, into, 0, (int) count);
                if (message.get(LONG, HEADER_CONTROL_BYTES) >= ONE_DESCRIPTOR_BYTES) {
                    descriptor[0] = message.get(INT, CONTROL_DATA);
                }
            }
            return result(count, state);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private static int result(long count, MemorySegment state) {
        return (int) (count < 0 ? -(int) ERRNO.get(state, 0L) : count);
    }
}

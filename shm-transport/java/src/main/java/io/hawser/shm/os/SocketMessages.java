package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Bytes and at most one descriptor over a Unix stream socket, as sendmsg and recvmsg carry them. Memory for the calls
 * is made once. One thread at a time; another object for the other direction.
 */
public final class SocketMessages {
    // Linux socket.h, on a 64-bit machine: struct msghdr, struct iovec behind it, then a struct cmsghdr with one int
    private static final long HEADER_IOV = 16;
    private static final long HEADER_IOV_COUNT = 24;
    private static final long HEADER_CONTROL = 32;
    private static final long HEADER_CONTROL_BYTES = 40;
    private static final long HEADER_FLAGS = 48;
    private static final long IOV = 56;
    private static final long IOV_BYTES = IOV + 8;
    private static final long CONTROL = 72;
    private static final long CONTROL_LEVEL = CONTROL + 8;
    private static final long CONTROL_TYPE = CONTROL + 12;
    private static final long CONTROL_DATA = CONTROL + 16;
    private static final long ONE_DESCRIPTOR_BYTES = 20; // CMSG_LEN(sizeof(int)): the kernel closes what goes beyond
    private static final long SCRATCH_BYTES = CONTROL + 24; // CMSG_SPACE(sizeof(int))
    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int MSG_CMSG_CLOEXEC = 0x40000000;
    private static final int MSG_NOSIGNAL = 0x4000; // a gone peer is an error, not SIGPIPE
    private static final int ECONNRESET = 104; // Linux asm-generic/errno.h

    private static final MethodHandle SENDMSG = Libc.find("sendmsg", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.INT);
    private static final MethodHandle RECVMSG = Libc.find("recvmsg", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.INT);

    private final MemorySegment data;
    private final MemorySegment scratch = Arena.ofAuto().allocate(SCRATCH_BYTES, Long.BYTES);
    private int descriptor = -1;

    /**
     * Makes one.
     *
     * @param data native memory that is sent from or received into; kept reachable by this.
     */
    public SocketMessages(MemorySegment data) {
        this.data = data;
        scratch.set(ValueLayout.ADDRESS, HEADER_IOV, scratch.asSlice(IOV));
        scratch.set(ValueLayout.JAVA_LONG, HEADER_IOV_COUNT, 1);
    }

    /** Loads what the first message needs, which takes tens of milliseconds. Any thread. */
    public static void load() {
        new SocketMessages(MemorySegment.NULL);
    }

    private void prepare(long offset, int bytes, boolean control) {
        scratch.set(ValueLayout.ADDRESS, IOV, data.asSlice(offset, bytes));
        scratch.set(ValueLayout.JAVA_LONG, IOV_BYTES, bytes);
        scratch.set(ValueLayout.ADDRESS, HEADER_CONTROL, control ? scratch.asSlice(CONTROL) : MemorySegment.NULL);
        scratch.set(ValueLayout.JAVA_LONG, HEADER_CONTROL_BYTES, control ? ONE_DESCRIPTOR_BYTES : 0);
        scratch.set(ValueLayout.JAVA_INT, HEADER_FLAGS, 0);
    }

    /**
     * Waits for bytes. A descriptor that comes with them is {@link #takeDescriptor}'s.
     *
     * @param offset in the data, of {@code bytes} that are written.
     * @return how many came; 0 when the peer has closed the socket.
     */
    public int receive(int socket, long offset, int bytes) throws IOException {
        Libc.Scratch state = Libc.scratch();
        while (true) {
            prepare(offset, bytes, true);
            long received;
            try {
                received = (long) RECVMSG.invokeExact(state.state, socket, scratch, MSG_CMSG_CLOEXEC);
            } catch (Throwable e) {
                throw Libc.unexpected(e);
            }
            if (received >= 0) {
                noteDescriptor();
                return (int) received;
            }
            int errno = state.errno();
            if (errno == ECONNRESET) {
                return 0; // the peer has closed, with something of ours unread
            }
            if (errno != Libc.EINTR) {
                throw Libc.failure("a message must be received: socket=" + socket, errno);
            }
        }
    }

    private void noteDescriptor() throws IOException {
        boolean came = scratch.get(ValueLayout.JAVA_LONG, HEADER_CONTROL_BYTES) >= ONE_DESCRIPTOR_BYTES
                && scratch.get(ValueLayout.JAVA_INT, CONTROL_LEVEL) == SOL_SOCKET
                && scratch.get(ValueLayout.JAVA_INT, CONTROL_TYPE) == SCM_RIGHTS;
        if (!came) {
            return;
        }
        int got = scratch.get(ValueLayout.JAVA_INT, CONTROL_DATA);
        if (descriptor >= 0) {
            Descriptors.close(got);
            throw new IOException("a descriptor must be taken before the next one comes");
        }
        descriptor = got;
    }

    /** The descriptor that has come and was not yet taken, which is the caller's to close; -1 for none. */
    public int takeDescriptor() {
        int taken = descriptor;
        descriptor = -1;
        return taken;
    }

    /**
     * Sends bytes, waiting until the kernel has taken some.
     *
     * @param offset of {@code bytes} in the data.
     * @param passed a descriptor that goes with the first byte and stays the caller's; -1 for none.
     * @return how many the kernel has taken.
     */
    public int send(int socket, long offset, int bytes, int passed) throws IOException {
        Libc.Scratch state = Libc.scratch();
        while (true) {
            prepare(offset, bytes, passed >= 0);
            if (passed >= 0) {
                scratch.set(ValueLayout.JAVA_LONG, CONTROL, ONE_DESCRIPTOR_BYTES);
                scratch.set(ValueLayout.JAVA_INT, CONTROL_LEVEL, SOL_SOCKET);
                scratch.set(ValueLayout.JAVA_INT, CONTROL_TYPE, SCM_RIGHTS);
                scratch.set(ValueLayout.JAVA_INT, CONTROL_DATA, passed);
            }
            long sent;
            try {
                sent = (long) SENDMSG.invokeExact(state.state, socket, scratch, MSG_NOSIGNAL);
            } catch (Throwable e) {
                throw Libc.unexpected(e);
            }
            if (sent >= 0) {
                return (int) sent;
            }
            if (state.errno() != Libc.EINTR) {
                throw Libc.failure("a message must be sent: socket=" + socket, state.errno());
            }
        }
    }
}

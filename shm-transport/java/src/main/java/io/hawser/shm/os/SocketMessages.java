package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Sends and receives bytes and at most one descriptor over a Unix stream socket, by sendmsg and recvmsg. Allocates the
 * memory for the calls once. One thread at a time; each direction needs its own object.
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
    private static final long ONE_DESCRIPTOR_BYTES = 20; // CMSG_LEN(sizeof(int)): the kernel closes further descriptors
    private static final long SCRATCH_BYTES = CONTROL + 24; // CMSG_SPACE(sizeof(int))
    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int MSG_CMSG_CLOEXEC = 0x40000000;
    private static final int MSG_NOSIGNAL = 0x4000; // a closed peer causes an error, not SIGPIPE
    private static final int ECONNRESET = 104; // Linux asm-generic/errno.h

    private static final MethodHandle SENDMSG = Libc.find("sendmsg", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.INT);
    private static final MethodHandle RECVMSG = Libc.find("recvmsg", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.INT);

    private final MemorySegment data;
    private final MemorySegment scratch = Arena.ofAuto().allocate(SCRATCH_BYTES, Long.BYTES);
    private int descriptor = -1;

    /**
     * Creates an object for one direction.
     *
     * @param data native memory for sent or received bytes; this object keeps it reachable.
     */
    public SocketMessages(MemorySegment data) {
        this.data = data;
        scratch.set(ValueLayout.ADDRESS, HEADER_IOV, scratch.asSlice(IOV));
        scratch.set(ValueLayout.JAVA_LONG, HEADER_IOV_COUNT, 1);
    }

    /** Loads the code for the first message, which takes tens of milliseconds. Any thread. */
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
     * Waits for bytes. {@link #takeDescriptor} returns a descriptor that comes with them.
     *
     * @param offset offset in the data of the {@code bytes} that may be written.
     * @return number of received bytes; 0 when the peer has closed the socket.
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
                return 0; // the peer has closed without reading all of our bytes
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

    /** The received descriptor, which the caller then closes; -1 for none. */
    public int takeDescriptor() {
        int taken = descriptor;
        descriptor = -1;
        return taken;
    }

    /**
     * Sends bytes; waits until the kernel has accepted some.
     *
     * @param offset offset of the {@code bytes} in the data.
     * @param passed descriptor to send with the first byte, still owned by the caller; -1 for none.
     * @return number of bytes that the kernel has accepted.
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

package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * A connected stream socket, TCP or Unix, whose calls block. One thread may receive while another sends; several
 * threads may call {@link #shutdown}.
 */
public final class StreamSocket {
    // Linux socket.h
    private static final int MSG_WAITALL = 0x100;
    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_NOSIGNAL = 0x4000; // a closed peer causes an error, not SIGPIPE
    private static final int MSG_MORE = 0x8000;
    private static final int SHUT_RDWR = 2;
    private static final int IPPROTO_TCP = 6;
    // Linux tcp.h
    private static final int TCP_NODELAY = 1;
    private static final int TCP_KEEPIDLE = 4;
    private static final int TCP_KEEPINTVL = 5;
    private static final int TCP_KEEPCNT = 6;
    // Linux asm-generic/socket.h
    private static final int SOL_SOCKET = 1;
    private static final int SO_KEEPALIVE = 9;
    private static final int F_SETFL = 4; // Linux asm-generic/fcntl.h
    private static final int EOPNOTSUPP = 95;
    // Linux asm-generic/errno.h
    private static final int EPIPE = 32;
    private static final int ECONNRESET = 104;
    private static final int ENOTCONN = 107;

    // Linux poll.h
    private static final short POLLIN = 1;
    private static final int POLLFD_BYTES = 8;
    private static final int REVENTS_OFFSET = 6;

    private static final MethodHandle RECV = Libc.find("recv", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.LONG, Libc.INT);
    private static final MethodHandle SEND = Libc.find("send", Libc.LONG, Libc.INT, Libc.ADDRESS, Libc.LONG, Libc.INT);
    private static final MethodHandle FCNTL = Libc.findVariadic(2, "fcntl", Libc.INT, Libc.INT, Libc.INT, Libc.INT);
    private static final MethodHandle SETSOCKOPT = Libc.find("setsockopt", Libc.INT, Libc.INT, Libc.INT, Libc.INT,
        Libc.ADDRESS, Libc.INT);
    private static final MethodHandle POLL = Libc.find("poll", Libc.INT, Libc.ADDRESS, Libc.LONG, Libc.INT);
    private static final MethodHandle SHUTDOWN = Libc.find("shutdown", Libc.INT, Libc.INT, Libc.INT);

    private final int descriptor;

    /**
     * Takes a socket. Its calls block from now on, in all processes that have it, and TCP sends short records at once.
     *
     * @param descriptor of the socket; {@link #close} closes it.
     * @throws IOException if it is no stream socket; it then stays the caller's.
     */
    public StreamSocket(int descriptor) throws IOException {
        this.descriptor = descriptor;
        Libc.Scratch state = Libc.scratch();
        state.struct.set(Libc.INT, 0, 1);
        try {
            if ((int) FCNTL.invokeExact(state.state, descriptor, F_SETFL, 0) != 0) {
                throw Libc.failure("a socket must be set to block: socket=" + descriptor, state.errno());
            }
            if ((int) SETSOCKOPT.invokeExact(state.state, descriptor, IPPROTO_TCP, TCP_NODELAY, state.struct,
                Integer.BYTES) != 0 && state.errno() != EOPNOTSUPP) { // a Unix socket never delays
                throw Libc.failure("a socket must send at once: socket=" + descriptor, state.errno());
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Loads the code for the first call, which takes tens of milliseconds. Any thread. */
    public static void load() {
        Libc.scratch();
    }

    /**
     * Fills memory with received bytes.
     *
     * @param memory native memory.
     * @param offset of the first byte in the memory.
     * @param bytes their number.
     * @return false when the peer has closed the connection, or {@link #shutdown} was called, before all had come.
     * @throws IOException if the connection fails.
     */
    public boolean receive(MemorySegment memory, long offset, long bytes) throws IOException {
        Libc.Scratch state = Libc.scratch();
        for (long done = 0; done < bytes;) {
            long received;
            try {
                received = (long) RECV.invokeExact(state.state, descriptor, memory.asSlice(offset + done, bytes - done),
                    bytes - done, MSG_WAITALL);
            } catch (Throwable e) {
                throw Libc.unexpected(e);
            }
            if (received < 0 && state.errno() == Libc.EINTR) {
                continue;
            }
            if (received == 0 || received < 0 && hasGone(state.errno())) {
                return false;
            }
            if (received < 0) {
                throw Libc.failure("bytes must be received: socket=" + descriptor, state.errno());
            }
            done += received;
        }
        return true;
    }

    /**
     * Waits until the peer has sent a byte or has gone, or until an event.
     *
     * @param event stays as it is.
     * @return false for an event without either of the others.
     * @throws IOException if the wait fails.
     */
    public boolean await(EventFd event) throws IOException {
        Libc.Scratch state = Libc.scratch();
        MemorySegment both = state.struct.asSlice(0, 2 * POLLFD_BYTES);
        while (true) {
            both.fill((byte) 0);
            both.set(Libc.INT, 0, descriptor);
            both.set(ValueLayout.JAVA_SHORT, 4, POLLIN);
            both.set(Libc.INT, POLLFD_BYTES, event.fd());
            both.set(ValueLayout.JAVA_SHORT, POLLFD_BYTES + 4, POLLIN);
            int ready;
            try {
                ready = (int) POLL.invokeExact(state.state, both, 2L, -1);
            } catch (Throwable e) {
                throw Libc.unexpected(e);
            }
            if (ready > 0) {
                return both.get(ValueLayout.JAVA_SHORT, REVENTS_OFFSET) != 0;
            } else if (state.errno() != Libc.EINTR) {
                throw Libc.failure("a socket must be waited for: socket=" + descriptor, state.errno());
            }
        }
    }

    /**
     * Sends bytes, and waits until the kernel has taken all of them.
     *
     * @param memory native memory.
     * @param offset of the first byte in the memory.
     * @param bytes their number.
     * @param hasMore whether the caller sends more at once, so that the kernel may wait for a full packet.
     * @return false when the peer has closed the connection, or {@link #shutdown} was called.
     * @throws IOException if the connection fails.
     */
    public boolean send(MemorySegment memory, long offset, long bytes, boolean hasMore) throws IOException {
        Libc.Scratch state = Libc.scratch();
        for (long done = 0; done < bytes;) {
            long sent;
            try {
                sent = (long) SEND.invokeExact(state.state, descriptor, memory.asSlice(offset + done, bytes - done),
                    bytes - done, hasMore ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL);
            } catch (Throwable e) {
                throw Libc.unexpected(e);
            }
            if (sent >= 0) {
                done += sent;
            } else if (hasGone(state.errno())) {
                return false;
            } else if (state.errno() != Libc.EINTR) {
                throw Libc.failure("bytes must be sent: socket=" + descriptor, state.errno());
            }
        }
        return true;
    }

    private static boolean hasGone(int errno) {
        return errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN;
    }

    /** What a peer has done since the last look. */
    public enum Look {
        /** Nothing. */
        QUIET,
        /** It has sent bytes, of which one is received. */
        SENT,
        /** It has closed the connection, or the connection has failed. */
        ENDED
    }

    /** Looks at what the peer has done, and does not wait. */
    public Look look() {
        Libc.Scratch state = Libc.scratch();
        long received;
        try {
            received = (long) RECV.invokeExact(state.state, descriptor, state.struct, 1L, MSG_DONTWAIT);
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
        if (received > 0) {
            return Look.SENT;
        }
        return received < 0 && (state.errno() == Libc.EAGAIN || state.errno() == Libc.EINTR) ? Look.QUIET : Look.ENDED;
    }

    /**
     * Sends bytes, and does not wait.
     *
     * @return false when the kernel has not taken all of them.
     */
    public boolean sendAtOnce(byte[] bytes) {
        Libc.Scratch state = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(Math.max(1, bytes.length));
            memory.asSlice(0, bytes.length).copyFrom(MemorySegment.ofArray(bytes));
            long sent = (long) SEND.invokeExact(state.state, descriptor, memory, (long) bytes.length,
                MSG_NOSIGNAL | MSG_DONTWAIT);
            return sent == bytes.length;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /**
     * Makes the kernel end the connection when the peer's machine has vanished; without effect on a Unix socket.
     *
     * @param idleS seconds without traffic before the first probe.
     * @param intervalS seconds between two probes.
     * @param probes unanswered probes that end the connection.
     */
    public void keepAlive(int idleS, int intervalS, int probes) {
        option(SOL_SOCKET, SO_KEEPALIVE, 1);
        option(IPPROTO_TCP, TCP_KEEPIDLE, idleS);
        option(IPPROTO_TCP, TCP_KEEPINTVL, intervalS);
        option(IPPROTO_TCP, TCP_KEEPCNT, probes);
    }

    private void option(int level, int name, int value) {
        Libc.Scratch state = Libc.scratch();
        state.struct.set(Libc.INT, 0, value);
        try {
            int _ = (int) SETSOCKOPT.invokeExact(state.state, descriptor, level, name, state.struct, Integer.BYTES);
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** The socket's number, for a poll. */
    public int descriptor() {
        return descriptor;
    }

    /** Ends both directions: blocked and later calls of all threads return. The socket stays open. */
    public void shutdown() {
        try {
            // A peer that has gone makes this fail, which changes nothing: the calls return for that reason.
            int _ = (int) SHUTDOWN.invokeExact(Libc.scratch().state, descriptor, SHUT_RDWR);
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Closes the socket. No call may be running. */
    public void close() {
        Descriptors.close(descriptor);
    }
}

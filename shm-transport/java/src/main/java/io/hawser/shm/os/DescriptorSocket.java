package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * One end of a Unix socket on which a process passes descriptors to another, one with each packet. The receiver need
 * not trust the sender: it receives when it chooses, and at most one descriptor a packet. Descriptors that nobody has
 * received are closed with the socket. Any thread.
 */
public final class DescriptorSocket implements AutoCloseable {
    // Linux socket.h and asm-generic/fcntl.h
    private static final int AF_UNIX = 1;
    private static final int SOCK_SEQPACKET = 5;
    private static final int SOCK_CLOEXEC = 02000000;
    private static final int F_SETFL = 4;
    private static final int O_NONBLOCK = 04000;

    private static final MethodHandle SOCKETPAIR = Libc.find("socketpair", Libc.INT, Libc.INT, Libc.INT, Libc.INT,
        Libc.ADDRESS);
    private static final MethodHandle FCNTL = Libc.findVariadic(2, "fcntl", Libc.INT, Libc.INT, Libc.INT, Libc.INT);

    private final int fd;
    private final SocketMessages messages = new SocketMessages(Arena.ofAuto().allocate(1));

    private DescriptorSocket(int fd) {
        this.fd = fd;
    }

    /**
     * Two connected ends.
     *
     * @param receiver does not wait when it receives.
     * @param sender the descriptor of the other end, for another process; the caller closes it.
     */
    public record Pair(DescriptorSocket receiver, int sender) {}

    /** Creates two connected ends. */
    public static Pair pair() throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment ends = arena.allocate(ValueLayout.JAVA_INT, 2);
            if ((int) SOCKETPAIR.invokeExact(scratch.state, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
                throw Libc.failure("a pair of sockets must be made", scratch.errno());
            }
            int receiver = ends.getAtIndex(ValueLayout.JAVA_INT, 0);
            int sender = ends.getAtIndex(ValueLayout.JAVA_INT, 1);
            if ((int) FCNTL.invokeExact(scratch.state, receiver, F_SETFL, O_NONBLOCK) < 0) {
                int errno = scratch.errno();
                Descriptors.close(receiver);
                Descriptors.close(sender);
                throw Libc.failure("a socket must stop waiting: fd=" + receiver, errno);
            }
            return new Pair(new DescriptorSocket(receiver), sender);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Takes over a {@link Pair#sender}. */
    public static DescriptorSocket of(int fd) {
        return new DescriptorSocket(fd);
    }

    /**
     * Passes a descriptor. Waits while the receiver has many to receive.
     *
     * @param descriptor still the caller's afterwards.
     */
    public synchronized void send(int descriptor) throws IOException {
        messages.send(fd, 0, 1, descriptor);
    }

    /**
     * Receives the descriptor of the next packet.
     *
     * @return the descriptor, which the caller closes.
     * @throws IOException if no packet has come, or it has no descriptor.
     */
    public synchronized int receive() throws IOException {
        messages.receive(fd, 0, 1);
        int descriptor = messages.takeDescriptor();
        if (descriptor < 0) {
            throw new IOException("a packet must carry a descriptor: fd=" + fd);
        }
        return descriptor;
    }

    /** Closes this end. */
    @Override
    public void close() {
        Descriptors.close(fd);
    }
}

package io.hawser.broker.posix;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import jnr.constants.platform.Errno;
import jnr.posix.CmsgHdr;
import jnr.posix.MsgHdr;
import jnr.posix.POSIX;
import jnr.posix.POSIXFactory;

/** The system calls of the broker. Stateless; any thread. */
public final class Posix {
    public static final int SIGTERM = 15;
    public static final int SIGKILL = 9;
    // Linux socket.h
    private static final int AF_UNIX = 1;
    private static final int SOCK_STREAM = 1;
    private static final int SOCK_CLOEXEC = 0x80000;
    private static final int SOCK_NONBLOCK = 0x800;
    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_NOSIGNAL = 0x4000;

    private static final POSIX NATIVE = POSIXFactory.getNativePOSIX();

    private Posix() {
    }

    /**
     * Two connected Unix stream sockets, close-on-exec. The first is non-blocking; the second, meant for a child,
     * blocks.
     */
    public static int[] socketPair() throws PosixException {
        int[] pair = {-1, -1};
        check("socketpair", NATIVE.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
        if (NATIVE.fcntlInt(pair[1], jnr.constants.platform.Fcntl.F_SETFL, 0) < 0) {
            PosixException failure = failure("fcntl");
            close(pair[0]);
            close(pair[1]);
            throw failure;
        }
        return pair;
    }

    /** Two connected Unix stream sockets for two other processes: close-on-exec, and both block. */
    public static int[] blockingPair() throws PosixException {
        int[] pair = {-1, -1};
        check("socketpair", NATIVE.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
        return pair;
    }

    /**
     * Sends bytes whose first carries a descriptor (SCM_RIGHTS). Does not block: a full socket buffer is an error.
     *
     * @throws PosixException when not all bytes fit into the socket's buffer at once, or the peer has closed its end.
     */
    public static void sendWithDescriptor(int socket, byte[] message, int descriptor) throws PosixException {
        ByteBuffer body = ByteBuffer.allocateDirect(message.length).put(message).flip();
        ByteBuffer rights = ByteBuffer.allocateDirect(Integer.BYTES).order(ByteOrder.nativeOrder());
        rights.putInt(descriptor).flip();
        MsgHdr header = NATIVE.allocateMsgHdr();
        header.setIov(new ByteBuffer[] {body});
        CmsgHdr control = header.allocateControl(Integer.BYTES);
        control.setLevel(SOL_SOCKET);
        control.setType(SCM_RIGHTS);
        control.setData(rights);
        int sent = NATIVE.sendmsg(socket, header, MSG_DONTWAIT | MSG_NOSIGNAL);
        check("sendmsg", sent);
        if (sent != message.length) {
            throw new PosixException("sendmsg", "sent=" + sent + " of bytes=" + message.length);
        }
    }

    /** Writes a last message to a socket before its close, as far as the socket's buffer takes it. */
    public static void writeAtOnce(int socket, byte[] message) throws PosixException {
        check("write", NATIVE.write(socket, message, message.length));
    }

    /** Effective user id of this process. */
    public static int userId() {
        return NATIVE.geteuid();
    }

    /** Closes a descriptor; the caller owns it. */
    public static void close(int descriptor) {
        NATIVE.close(descriptor);
    }

    /** Sends a signal to the process group of a child that has not been reaped. */
    static void killGroup(int pid, int signal) {
        NATIVE.kill(-pid, signal);
    }

    /** Reaps a child that has ended. */
    static ExitStatus reap(int pid) throws PosixException {
        int[] status = {0};
        check("waitpid " + pid, NATIVE.waitpid(pid, status, 0));
        return ExitStatus.of(status[0]);
    }

    static int spawn(List<String> command, List<String> environment, int log, int control) throws PosixException {
        return Spawn.spawn(command, environment, log, control);
    }

    private static void check(String call, int result) throws PosixException {
        if (result < 0) {
            throw failure(call);
        }
    }

    private static PosixException failure(String call) {
        return new PosixException(call, Errno.valueOf(NATIVE.errno()).description());
    }
}

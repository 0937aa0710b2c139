package io.hawser.broker.posix;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.OptionalInt;

/** Finds the user of a TCP socket of this machine through the kernel (sock_diag(7)). Stateless; any thread. */
public final class SocketOwner {
    // Linux linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
    private static final int AF_NETLINK = 16;
    private static final int AF_INET = 2;
    private static final int AF_INET6 = 10;
    private static final int SOCK_DGRAM = 2;
    private static final int NETLINK_SOCK_DIAG = 4;
    private static final short SOCK_DIAG_BY_FAMILY = 20;
    private static final short NLM_F_REQUEST = 1;
    private static final int HEADER_BYTES = 16;
    private static final int REQUEST_BYTES = HEADER_BYTES + 56;
    private static final int ANSWER_BYTES = HEADER_BYTES + 72;
    private static final int TYPE_OFFSET = 4;
    private static final int STATE_OFFSET = HEADER_BYTES + 1;
    private static final int UID_OFFSET = HEADER_BYTES + 64;
    private static final int INODE_OFFSET = HEADER_BYTES + 68;
    private static final int ADDRESS_BYTES = 16;
    private static final int ALL_STATES = -1;
    private static final int NO_COOKIE = -1;
    private static final byte TCP = 6;
    private static final byte ESTABLISHED = 1;
    private static final int ROOM = 4096;

    private SocketOwner() {
    }

    /**
     * The user of a connected socket; empty when no process of this machine has the socket. The kernel reports root for
     * a socket that its process has closed, so such a socket counts as without a user.
     *
     * @param local the socket's own address.
     * @param remote the address that the socket is connected to, of the same family.
     * @throws PosixException when the kernel does not answer such requests here.
     */
    public static OptionalInt of(InetSocketAddress local, InetSocketAddress remote) throws PosixException {
        int socket = SystemCalls.socket(AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment request = arena.allocate(REQUEST_BYTES, Integer.BYTES);
            request.asByteBuffer().put(request(local, remote));
            SystemCalls.send(socket, request);
            // The kernel has queued its answer before it returns from the call.
            MemorySegment answer = arena.allocate(ROOM, Integer.BYTES);
            int bytes = SystemCalls.receive(socket, answer);
            return read(answer.asByteBuffer().order(ByteOrder.nativeOrder()).limit(bytes));
        } finally {
            Posix.close(socket);
        }
    }

    private static OptionalInt read(ByteBuffer answer) {
        boolean owned = answer.limit() >= ANSWER_BYTES && answer.getShort(TYPE_OFFSET) == SOCK_DIAG_BY_FAMILY
            && answer.get(STATE_OFFSET) == ESTABLISHED && answer.getInt(INODE_OFFSET) != 0;
        return owned ? OptionalInt.of(answer.getInt(UID_OFFSET)) : OptionalInt.empty();
    }

    private static ByteBuffer request(InetSocketAddress local, InetSocketAddress remote) {
        ByteBuffer request = ByteBuffer.allocate(REQUEST_BYTES).order(ByteOrder.nativeOrder());
        // struct nlmsghdr
        request.putInt(REQUEST_BYTES).putShort(SOCK_DIAG_BY_FAMILY).putShort(NLM_F_REQUEST).putInt(0).putInt(0);
        // struct inet_diag_req_v2
        boolean six = local.getAddress().getAddress().length == ADDRESS_BYTES;
        request.put((byte) (six ? AF_INET6 : AF_INET)).put(TCP).put((byte) 0).put((byte) 0).putInt(ALL_STATES);
        // struct inet_diag_sockid; ports and addresses in the network's order
        request.order(ByteOrder.BIG_ENDIAN).putShort((short) local.getPort()).putShort((short) remote.getPort());
        address(request, local);
        address(request, remote);
        request.order(ByteOrder.nativeOrder()).putInt(0).putInt(NO_COOKIE).putInt(NO_COOKIE);
        return request.flip();
    }

    private static void address(ByteBuffer request, InetSocketAddress address) {
        int start = request.position();
        request.put(address.getAddress().getAddress()).position(start + ADDRESS_BYTES);
    }
}

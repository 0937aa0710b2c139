package io.hawser.gpu.software.nccl;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.HexFormat;

/**
 * The first message of a connection between workers.
 *
 * @param isJoin whether a rank joins a communicator at its root; else it becomes the link of two ranks.
 * @param from the rank that has connected.
 * @param number a join: ranks of the communicator; else the rank that is wanted.
 * @param port a join: where the rank listens.
 * @param secret of the communicator.
 */
record Hello(boolean isJoin, int from, int number, int port, String secret) {
    private static final int BYTES = 16 + UniqueId.SECRET_BYTES;

    void write(SocketChannel channel) throws IOException {
        ByteBuffer out = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(isJoin ? 1 : 0).putInt(from).putInt(number).putInt(port).put(HexFormat.of().parseHex(secret));
        SocketLink.write(channel, out.flip());
    }

    static Hello read(SocketChannel channel) throws IOException {
        ByteBuffer in = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        SocketLink.read(channel, in);
        in.flip();
        boolean isJoin = in.getInt() != 0;
        int from = in.getInt();
        int number = in.getInt();
        int port = in.getInt();
        byte[] secret = new byte[UniqueId.SECRET_BYTES];
        in.get(secret);
        return new Hello(isJoin, from, number, port, HexFormat.of().formatHex(secret));
    }
}

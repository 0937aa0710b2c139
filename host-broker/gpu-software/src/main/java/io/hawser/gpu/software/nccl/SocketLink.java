package io.hawser.gpu.software.nccl;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;

/** Connects two ranks of different workers by a TCP connection. A message is its length in 8 bytes, then its bytes. */
final class SocketLink extends Link {
    private static final int PIECE_BYTES = 1 << 20; // the JVM copies a piece on its way to the kernel

    private final SocketChannel channel;
    private final ByteBuffer sendHead = ByteBuffer.allocateDirect(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private final ByteBuffer receiveHead = ByteBuffer.allocateDirect(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);

    SocketLink(SocketChannel channel) throws IOException {
        this.channel = channel;
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    }

    @Override
    void send(MemorySegment data) throws IOException {
        sendHead.clear().putLong(data.byteSize()).flip();
        write(channel, sendHead);
        for (long at = 0; at < data.byteSize(); at += PIECE_BYTES) {
            write(channel, data.asSlice(at, Math.min(PIECE_BYTES, data.byteSize() - at)).asByteBuffer());
        }
    }

    @Override
    void receive(MemorySegment into) throws IOException {
        receiveHead.clear();
        read(channel, receiveHead);
        long bytes = receiveHead.flip().getLong();
        if (bytes != into.byteSize()) {
            throw new MismatchException(bytes, into.byteSize());
        }
        for (long at = 0; at < bytes; at += PIECE_BYTES) {
            read(channel, into.asSlice(at, Math.min(PIECE_BYTES, bytes - at)).asByteBuffer());
        }
    }

    @Override
    void close() {
        close(channel);
    }

    /** Writes all bytes of a buffer. */
    static void write(SocketChannel channel, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
    }

    /** Fills a buffer. */
    static void read(SocketChannel channel, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            if (channel.read(bytes) < 0) {
                throw new EOFException("the other rank has ended");
            }
        }
    }

    /** Closes a connection; both sides' waiting threads fail. */
    static void close(SocketChannel channel) {
        try {
            channel.shutdownInput();
            channel.shutdownOutput();
        } catch (IOException e) {
            // It was not connected any more; closing is all that is left.
        }
        try {
            channel.close();
        } catch (IOException e) {
            System.getLogger(SocketLink.class.getName()).log(System.Logger.Level.DEBUG, "a connection: {0}",
                e.getMessage());
        }
    }
}

package io.hawser.broker.region;

import io.hawser.broker.TestBroker;
import io.hawser.shm.os.EventFd;
import io.netty.channel.unix.DomainSocketAddress;
import io.netty.channel.unix.Socket;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import jnr.constants.platform.Errno;
import jnr.posix.MsgHdr;
import jnr.posix.POSIX;
import jnr.posix.POSIXFactory;

/** QEMU's side of the socket of an ivshmem-doorbell device. */
final class TestMachine implements AutoCloseable {
    private static final POSIX POSIX = POSIXFactory.getNativePOSIX();
    private static final int END = 0;

    private final Socket socket = Socket.newSocketDomain();

    /** A message of the server: a number, and a descriptor or -1. */
    record Message(long value, int descriptor) {}

    TestMachine(Path path) throws IOException {
        socket.connect(new DomainSocketAddress(path.toFile()));
    }

    /** Receives the next message; null when the server has closed the connection. */
    Message receive() {
        Message[] received = {null};
        TestBroker.await("a message of the ivshmem server", () -> {
            ByteBuffer value = ByteBuffer.allocateDirect(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            MsgHdr header = POSIX.allocateMsgHdr();
            header.setIov(new ByteBuffer[] {value});
            header.allocateControl(Integer.BYTES);
            int bytes = POSIX.recvmsg(socket.intValue(), header, 0);
            if (bytes < 0) {
                if (POSIX.errno() == Errno.EAGAIN.intValue()) {
                    return false;
                }
                return true;
            }
            if (bytes != END) {
                int descriptor = header.getControlLen() > 0
                    ? header.getControls()[0].getData().order(ByteOrder.nativeOrder()).getInt(0) : -1;
                received[0] = new Message(value.getLong(0), descriptor);
            }
            return true;
        });
        return received[0];
    }

    /** The doorbell whose descriptor came with a message. */
    static EventFd doorbell(Message message) throws IOException {
        return EventFd.of(message.descriptor());
    }

    void send(byte[] bytes) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
        socket.write(buffer, 0, bytes.length);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}

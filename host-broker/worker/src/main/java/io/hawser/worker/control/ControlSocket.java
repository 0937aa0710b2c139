package io.hawser.worker.control;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jnr.constants.platform.Errno;
import jnr.posix.CmsgHdr;
import jnr.posix.MsgHdr;
import jnr.posix.POSIX;
import jnr.posix.POSIXFactory;

/**
 * Frames on a Unix stream socket: a little-endian u32 length, then so many bytes; a frame's first byte may carry one
 * descriptor. One thread reads; any thread writes.
 */
public final class ControlSocket implements Closeable {
    /** The largest frame either way; stops a peer from making the other side hold an unbounded message. */
    public static final int MAX_FRAME_BYTES = 64 * 1024;

    private static final int LENGTH_BYTES = 4;
    private static final int SOL_SOCKET = 1; // Linux asm-generic/socket.h
    private static final int SCM_RIGHTS = 1; // Linux linux/socket.h
    private static final int MSG_CMSG_CLOEXEC = 0x40000000; // Linux linux/socket.h
    private static final int MSG_NOSIGNAL = 0x4000; // Linux linux/socket.h: a gone peer is an error, not SIGPIPE
    private static final int DESCRIPTOR_BYTES = 4;

    private final POSIX posix = POSIXFactory.getNativePOSIX();
    private final int fd;
    private final ByteBuffer input = ByteBuffer.allocateDirect(LENGTH_BYTES + MAX_FRAME_BYTES)
        .order(ByteOrder.LITTLE_ENDIAN);
    private final Object readLock = new Object();
    private final Object writeLock = new Object();
    private long receivedBytes;
    private long consumedBytes;
    private boolean isClosed; // guarded by readLock
    private int pendingDescriptor = -1;
    private long descriptorEnd; // receivedBytes after the bytes with which the pending descriptor came

    /**
     * Takes over a connected Unix stream socket.
     *
     * @param fd its descriptor; closed by {@link #close()}.
     */
    public ControlSocket(int fd) {
        this.fd = fd;
        input.limit(0);
    }

    /**
     * One message of the peer.
     *
     * @param json its bytes as they came, at most {@link #MAX_FRAME_BYTES}.
     * @param descriptor a descriptor that came with it and now belongs to the caller, or -1.
     */
    public record Frame(byte[] json, int descriptor) { }

    /**
     * Waits for the next frame. Reader thread only.
     *
     * @return the frame, or null when the peer has closed the socket between two frames, or this side has.
     * @throws IOException if the peer breaks the framing, closes inside a frame, or the socket fails.
     */
    public Frame read() throws IOException {
        synchronized (readLock) {
            return isClosed ? null : readLocked();
        }
    }

    private Frame readLocked() throws IOException {
        while (true) {
            if (input.remaining() >= LENGTH_BYTES) {
                int lengthBytes = input.getInt(input.position());
                if (lengthBytes <= 0 || lengthBytes > MAX_FRAME_BYTES) {
                    throw new IOException("control frame must be 1.." + MAX_FRAME_BYTES + " bytes: lengthBytes="
                        + Integer.toUnsignedString(lengthBytes));
                }
                if (input.remaining() >= LENGTH_BYTES + lengthBytes) {
                    byte[] json = new byte[lengthBytes];
                    input.position(input.position() + LENGTH_BYTES).get(json);
                    consumedBytes += LENGTH_BYTES + lengthBytes;
                    return new Frame(json, takeDescriptor());
                }
            }
            if (!fill()) {
                if (input.hasRemaining()) {
                    throw new EOFException("control socket closed inside a frame: bytes=" + input.remaining());
                }
                return null;
            }
        }
    }

    /**
     * The descriptor of the frame that has just been consumed. The kernel may deliver earlier frames together with the
     * one that carries it, but nothing after: it belongs to the frame in which the delivery ended.
     */
    private int takeDescriptor() {
        if (consumedBytes < descriptorEnd) {
            return -1;
        }
        int descriptor = pendingDescriptor;
        pendingDescriptor = -1;
        return descriptor;
    }

    /** Reads what is there, at least one byte; false at the end of the stream. */
    private boolean fill() throws IOException {
        input.compact();
        try {
            MsgHdr message = posix.allocateMsgHdr();
            message.setIov(new ByteBuffer[] {input.slice()});
            message.allocateControl(DESCRIPTOR_BYTES);
            int received = posix.recvmsg(fd, message, MSG_CMSG_CLOEXEC);
            while (received < 0 && posix.errno() == Errno.EINTR.intValue()) {
                received = posix.recvmsg(fd, message, MSG_CMSG_CLOEXEC);
            }
            if (received < 0 && posix.errno() == Errno.ECONNRESET.intValue()) {
                received = 0; // the peer has closed, with something of ours unread
            }
            if (received < 0) {
                throw new IOException("control socket: recvmsg failed: errno=" + posix.errno());
            }
            receivedBytes += received;
            receiveDescriptor(message);
            input.position(input.position() + received);
            return received > 0;
        } finally {
            input.flip();
        }
    }

    private void receiveDescriptor(MsgHdr message) throws IOException {
        if (message.getControlLen() == 0) {
            return;
        }
        for (CmsgHdr control : message.getControls()) {
            if (control.getLevel() != SOL_SOCKET || control.getType() != SCM_RIGHTS) {
                continue;
            }
            int descriptor = control.getData().order(ByteOrder.nativeOrder()).getInt(0);
            if (pendingDescriptor >= 0) {
                posix.close(descriptor);
                throw new IOException("a control frame carries at most one descriptor");
            }
            pendingDescriptor = descriptor;
            descriptorEnd = receivedBytes;
        }
    }

    /**
     * Sends one frame, waiting until the kernel has taken it. Any thread.
     *
     * @param json the frame's bytes, 1..{@link #MAX_FRAME_BYTES}.
     * @throws IOException if the peer has gone.
     */
    public void write(byte[] json) throws IOException {
        write(json, -1);
    }

    /**
     * Sends one frame with a descriptor on its first byte, waiting until the kernel has taken it. Any thread.
     *
     * @param json the frame's bytes, 1..{@link #MAX_FRAME_BYTES}.
     * @param descriptor the descriptor to pass, which stays the caller's, or -1 for none.
     * @throws IOException if the peer has gone.
     */
    public void write(byte[] json, int descriptor) throws IOException {
        if (json.length == 0 || json.length > MAX_FRAME_BYTES) {
            throw new IllegalArgumentException("control frame must be 1.." + MAX_FRAME_BYTES + " bytes: lengthBytes="
                + json.length);
        }
        ByteBuffer frame = ByteBuffer.allocateDirect(LENGTH_BYTES + json.length).order(ByteOrder.LITTLE_ENDIAN);
        frame.putInt(json.length).put(json).flip();
        synchronized (writeLock) {
            int passed = descriptor;
            while (frame.hasRemaining()) {
                MsgHdr message = posix.allocateMsgHdr();
                message.setIov(new ByteBuffer[] {frame.slice()});
                if (passed >= 0) {
                    CmsgHdr control = message.allocateControl(DESCRIPTOR_BYTES);
                    control.setLevel(SOL_SOCKET);
                    control.setType(SCM_RIGHTS);
                    control.setData(ByteBuffer.allocateDirect(DESCRIPTOR_BYTES).order(ByteOrder.nativeOrder())
                        .putInt(0, passed));
                }
                int sent = posix.sendmsg(fd, message, MSG_NOSIGNAL);
                if (sent < 0 && posix.errno() == Errno.EINTR.intValue()) {
                    continue;
                }
                if (sent < 0) {
                    throw new IOException("control socket: sendmsg failed: errno=" + posix.errno());
                }
                passed = -1;
                frame.position(frame.position() + sent);
            }
        }
    }

    /** Closes the descriptor when no read is waiting on it, since its number could then be another file's. */
    @Override
    public void close() {
        synchronized (readLock) {
            if (pendingDescriptor >= 0) {
                posix.close(pendingDescriptor);
                pendingDescriptor = -1;
            }
            if (!isClosed) {
                isClosed = true; // a later read would be another file's
                posix.close(fd);
            }
        }
    }
}

package io.hawser.worker.control;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SocketMessages;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Frames on a Unix stream socket: a little-endian u32 length, then as many bytes. The first byte of a frame may carry
 * one descriptor. One thread reads; any thread writes.
 */
public final class ControlSocket implements Closeable {
    /**
     * The largest frame in either direction; stops a peer that would make the other side buffer an unbounded message.
     */
    public static final int MAX_FRAME_BYTES = 64 * 1024;

    private static final int LENGTH_BYTES = 4;
    private static final int BUFFER_BYTES = LENGTH_BYTES + MAX_FRAME_BYTES;

    // Uses java.lang.foreign, because jnr-posix added 0.2 s of processor time to a worker's start.
    private final int fd;
    private final MemorySegment inputMemory = Arena.ofAuto().allocate(BUFFER_BYTES, Long.BYTES);
    private final ByteBuffer input = inputMemory.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    private final SocketMessages incoming = new SocketMessages(inputMemory);
    private final MemorySegment outputMemory = Arena.ofAuto().allocate(BUFFER_BYTES, Long.BYTES);
    // This and the next field are guarded by writeLock.
    private final ByteBuffer output = outputMemory.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    private final SocketMessages outgoing = new SocketMessages(outputMemory);
    private final Object readLock = new Object();
    private final Object writeLock = new Object();
    private long receivedBytes;
    private long consumedBytes;
    private final Object closeLock = new Object();
    private boolean isClosed; // written with readLock, writeLock and closeLock
    private int pendingDescriptor = -1;
    private long descriptorEnd; // value of receivedBytes after the bytes that carried the pending descriptor

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
     * @param json its bytes, at most {@link #MAX_FRAME_BYTES}.
     * @param descriptor the descriptor that came with it, now the caller's, or -1.
     */
    public record Frame(byte[] json, int descriptor) {}

    /**
     * Waits for the next frame. Reader thread only.
     *
     * @return the frame, or null when the peer closed the socket between two frames or this side closed it.
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
     * The descriptor of the frame that has just been consumed. A delivery of the kernel may hold earlier frames before
     * the frame with the descriptor, but no bytes after that frame. So the descriptor belongs to the frame that ends
     * the delivery.
     */
    private int takeDescriptor() {
        if (consumedBytes < descriptorEnd) {
            return -1;
        }
        int descriptor = pendingDescriptor;
        pendingDescriptor = -1;
        return descriptor;
    }

    /** Reads the bytes that are available, at least one; false at the end of the stream. */
    private boolean fill() throws IOException {
        input.compact();
        try {
            int received = incoming.receive(fd, input.position(), input.remaining());
            receivedBytes += received;
            input.position(input.position() + received);
            receiveDescriptor();
            return received > 0;
        } finally {
            input.flip();
        }
    }

    private void receiveDescriptor() throws IOException {
        int descriptor = incoming.takeDescriptor();
        if (descriptor < 0) {
            return;
        }
        if (pendingDescriptor >= 0) {
            Descriptors.close(descriptor);
            throw new IOException("a control frame must carry at most one descriptor");
        }
        pendingDescriptor = descriptor;
        descriptorEnd = receivedBytes;
    }

    /**
     * Sends one frame and waits until the kernel has taken it. Any thread.
     *
     * @param json the frame's bytes, 1..{@link #MAX_FRAME_BYTES}.
     * @throws IOException if the peer has gone.
     */
    public void write(byte[] json) throws IOException {
        write(json, -1);
    }

    /**
     * Sends one frame with a descriptor on its first byte, and waits until the kernel has taken it. Any thread.
     *
     * @param json the frame's bytes, 1..{@link #MAX_FRAME_BYTES}.
     * @param descriptor the descriptor to pass, still the caller's afterwards, or -1 for none.
     * @throws IOException if the peer has gone.
     */
    public void write(byte[] json, int descriptor) throws IOException {
        if (json.length == 0 || json.length > MAX_FRAME_BYTES) {
            throw new IllegalArgumentException("control frame must be 1.." + MAX_FRAME_BYTES + " bytes: lengthBytes="
                + json.length);
        }
        synchronized (writeLock) {
            if (isClosed) {
                throw new IOException("the socket must be open for a frame: lengthBytes=" + json.length);
            }
            output.clear().putInt(json.length).put(json).flip();
            int passed = descriptor;
            while (output.hasRemaining()) {
                int sent = outgoing.send(fd, output.position(), output.remaining(), passed);
                passed = -1;
                output.position(output.position() + sent);
            }
        }
    }

    /** Ends the connection: a waiting {@link #read} returns, and the peer sees the end. Any thread. */
    public void end() {
        synchronized (closeLock) {
            if (!isClosed) { // else the number may belong to another file by now
                Descriptors.shutdown(fd);
            }
        }
    }

    /**
     * Ends the connection and closes the descriptor. Waits for a running read or write first, because the number could
     * be reused for another file. Any thread.
     */
    @Override
    public void close() {
        end(); // or a read or a write could wait for the peer
        synchronized (readLock) {
            if (pendingDescriptor >= 0) {
                Descriptors.close(pendingDescriptor);
                pendingDescriptor = -1;
            }
            synchronized (writeLock) {
                synchronized (closeLock) {
                    if (!isClosed) {
                        isClosed = true; // stops later calls: the number may belong to another file by then
                        Descriptors.close(fd);
                    }
                }
            }
        }
    }
}

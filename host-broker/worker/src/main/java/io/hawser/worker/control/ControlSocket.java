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
 * Frames on a Unix stream socket: a little-endian u32 length, then so many bytes; a frame's first byte may carry one
 * descriptor. One thread reads; any thread writes.
 */
public final class ControlSocket implements Closeable {
    /** The largest frame either way; stops a peer from making the other side hold an unbounded message. */
    public static final int MAX_FRAME_BYTES = 64 * 1024;

    private static final int LENGTH_BYTES = 4;
    private static final int BUFFER_BYTES = LENGTH_BYTES + MAX_FRAME_BYTES;

    // By java.lang.foreign: jnr-posix made a worker's start a fifth of a second of a processor's time longer.
    private final int fd;
    private final MemorySegment inputMemory = Arena.ofAuto().allocate(BUFFER_BYTES, Long.BYTES);
    private final ByteBuffer input = inputMemory.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    private final SocketMessages incoming = new SocketMessages(inputMemory);
    private final MemorySegment outputMemory = Arena.ofAuto().allocate(BUFFER_BYTES, Long.BYTES);
    private final ByteBuffer output = outputMemory.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN); // this and the next:
    private final SocketMessages outgoing = new SocketMessages(outputMemory); // guarded by writeLock
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
            throw new IOException("a control frame carries at most one descriptor");
        }
        pendingDescriptor = descriptor;
        descriptorEnd = receivedBytes;
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
        synchronized (writeLock) {
            output.clear().putInt(json.length).put(json).flip();
            int passed = descriptor;
            while (output.hasRemaining()) {
                int sent = outgoing.send(fd, output.position(), output.remaining(), passed);
                passed = -1;
                output.position(output.position() + sent);
            }
        }
    }

    /** Closes the descriptor when no read is waiting on it, since its number could then be another file's. */
    @Override
    public void close() {
        synchronized (readLock) {
            if (pendingDescriptor >= 0) {
                Descriptors.close(pendingDescriptor);
                pendingDescriptor = -1;
            }
            if (!isClosed) {
                isClosed = true; // a later read would be another file's
                Descriptors.close(fd);
            }
        }
    }
}

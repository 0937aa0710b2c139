package io.hawser.shm.rdma;

import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;

/**
 * One end of a session over RDMA: a reliable connection, and a mirror that the other end writes. The C library does the
 * work; {@code hws_rdma.h} describes each function. Methods with a result return it: 0 or more, or -1 after the
 * connection is lost.
 */
public final class RdmaEnd implements AutoCloseable {
    /** Offset in {@link #words} of the bytes that the other end ever put into the ring that this end reads. */
    public static final int PEER_TAIL_OFFSET = 0;
    /** Offset of the bytes that the other end ever took from the ring that this end writes. */
    public static final int PEER_HEAD_OFFSET = 8;
    /** Offset of this end's position in the ring that it writes. */
    public static final int OWN_TAIL_OFFSET = 16;
    /** Offset of this end's position in the ring that it reads. */
    public static final int OWN_HEAD_OFFSET = 24;
    /** Offset of the word that is 1 after the other end has left in order. */
    public static final int PEER_LEFT_OFFSET = 32;
    /** {@link #read} writes the memory. */
    public static final int FILLED = 1;
    /** The other end reads the memory. */
    public static final int PEER_READS = 2;
    /** The other end writes the memory. */
    public static final int PEER_WRITES = 4;
    /** Offset of the first chunk's word, at a guest. */
    public static final int CHUNKS_OFFSET = 40;

    private static final int WORDS_BYTES = CHUNKS_OFFSET + RecordLayout.MIRROR_CHUNKS * Integer.BYTES;
    private static final int ERROR_BYTES = 512;
    private static final int NAME_BYTES = 256;
    // hws_rdma.h, hws_rdma_options_t
    private static final int OPTIONS_BYTES = 40;
    private static final int PORT_OFFSET = 8;
    private static final int GID_INDEX_OFFSET = 12;
    private static final int PARTITION_OFFSET = 16;
    private static final int SERVICE_LEVEL_OFFSET = 20;
    private static final int TRAFFIC_CLASS_OFFSET = 24;
    private static final int RETRY_OFFSET = 28;
    private static final int IS_WORKER_OFFSET = 32;
    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

    private final MemorySegment end;
    private final MemorySegment words;
    private final MemorySegment ticket = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
    private MemorySegment mirror;

    /**
     * Memory that the device reads and writes by itself, of this end.
     *
     * @param handle of the C library.
     * @param address of its first byte in this process.
     * @param key by which the other end uses it, if it may.
     */
    public record Registration(MemorySegment handle, long address, int key) {
    }

    private RdmaEnd(MemorySegment end) {
        this.end = end;
        try {
            words = ((MemorySegment) RdmaLibrary.WORDS.invokeExact(end)).reinterpret(WORDS_BYTES);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Opens a device. Everything that needs files happens here.
     *
     * @param options the device and its use.
     * @param isWorker whether this is a worker's end, which writes the reply ring; else a guest's.
     * @throws IOException if there is no such device, or no library; the message gives the reason.
     */
    public static RdmaEnd open(RdmaOptions options, boolean isWorker) throws IOException {
        if (RdmaLibrary.problem() != null) {
            throw new IOException(RdmaLibrary.problem());
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = arena.allocate(OPTIONS_BYTES, Long.BYTES);
            struct.set(ValueLayout.ADDRESS, 0, arena.allocateFrom(options.device()));
            struct.set(ValueLayout.JAVA_INT, PORT_OFFSET, options.port());
            struct.set(ValueLayout.JAVA_INT, GID_INDEX_OFFSET, options.gidIndex());
            struct.set(ValueLayout.JAVA_INT, PARTITION_OFFSET, options.partition());
            struct.set(ValueLayout.JAVA_INT, SERVICE_LEVEL_OFFSET, options.serviceLevel());
            struct.set(ValueLayout.JAVA_INT, TRAFFIC_CLASS_OFFSET, options.trafficClass());
            struct.set(ValueLayout.JAVA_INT, RETRY_OFFSET, options.retryMs());
            struct.set(ValueLayout.JAVA_INT, IS_WORKER_OFFSET, isWorker ? 1 : 0);
            MemorySegment error = arena.allocate(ERROR_BYTES);
            MemorySegment opened = (MemorySegment) RdmaLibrary.OPEN.invokeExact(struct, error, (long) ERROR_BYTES);
            if (opened.address() == 0) {
                throw new IOException(text(error));
            }
            return new RdmaEnd(opened);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Makes the mirror and this end of the connection. Once.
     *
     * @return the description for the other end, RDMA_END_BYTES long.
     * @throws IOException if the device refuses; the message gives the reason.
     */
    public byte[] prepare() throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment description = arena.allocate(RecordLayout.RDMA_END_BYTES, Long.BYTES);
            MemorySegment error = arena.allocate(ERROR_BYTES);
            if ((int) RdmaLibrary.PREPARE.invokeExact(end, description, error, (long) ERROR_BYTES) != 0) {
                throw new IOException(text(error));
            }
            mirror = ((MemorySegment) RdmaLibrary.MIRROR.invokeExact(end)).reinterpret(RecordLayout.MIRROR_BYTES);
            return description.toArray(ValueLayout.JAVA_BYTE);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Connects with the other end. Once, after {@link #prepare}.
     *
     * @param peer the other end's description, RDMA_END_BYTES long; the library checks it.
     * @throws IOException if it describes no such end; the message gives the reason.
     */
    public void connect(byte[] peer) throws IOException {
        if (peer.length != RecordLayout.RDMA_END_BYTES) {
            throw new IOException("an end of RDMA must have " + RecordLayout.RDMA_END_BYTES + " bytes: bytes="
                + peer.length);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment description = arena.allocate(RecordLayout.RDMA_END_BYTES, Long.BYTES);
            description.copyFrom(MemorySegment.ofArray(peer));
            MemorySegment error = arena.allocate(ERROR_BYTES);
            if ((int) RdmaLibrary.CONNECT.invokeExact(end, description, error, (long) ERROR_BYTES) != 0) {
                throw new IOException(text(error));
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** The mirror, after {@link #prepare}. The other end may change it at any time. */
    public MemorySegment mirror() {
        return mirror;
    }

    /** The positions of both ends, in memory of this process alone. */
    public MemorySegment words() {
        return words;
    }

    /** Whether the other end has left in order. */
    public boolean hasPeerLeft() {
        return (int) WORD.getAcquire(words, (long) PEER_LEFT_OFFSET) != 0;
    }

    /** The state of a guest's chunk: CHUNK_BUSY, or the CUresult of its copy. */
    public int chunk(int chunk) {
        return (int) WORD.getAcquire(words, CHUNKS_OFFSET + (long) chunk * Integer.BYTES);
    }

    /** Sets the state of a guest's chunk, before a copy uses it. */
    public void setChunk(int chunk, int state) {
        WORD.setRelease(words, CHUNKS_OFFSET + (long) chunk * Integer.BYTES, state);
    }

    /** Whether {@link #sendTail} may be called now: 1 or 0. One sender at a time. */
    public int canSend() {
        try {
            return (int) RdmaLibrary.CAN_SEND.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Sends the bytes [from, to) of the ring that this end writes. One sender at a time. */
    public int sendTail(long from, long to) {
        try {
            return (int) RdmaLibrary.SEND_TAIL.invokeExact(end, from, to);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Notes that this end has read its ring up to a position. One reader at a time. */
    public int taken(long head) {
        try {
            return (int) RdmaLibrary.TAKEN.invokeExact(end, head);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** A guest's end: sends bytes of a chunk, before the record that names them. Any thread. */
    public int sendChunk(int chunk, int offset, int bytes) {
        try {
            return (int) RdmaLibrary.SEND_CHUNK.invokeExact(end, chunk, offset, bytes);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** A worker's end: sends bytes of a chunk, 0 for none, and then returns the chunk with a CUresult. Any thread. */
    public int returnChunk(int chunk, int offset, int bytes, int result) {
        try {
            return (int) RdmaLibrary.RETURN_CHUNK.invokeExact(end, chunk, offset, bytes, result);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Registers memory, which must stay until {@link #unregister} or {@link #close}. Any thread.
     *
     * @param memory native memory.
     * @param access sum of FILLED, PEER_READS and PEER_WRITES. The device can always read it.
     * @throws IOException if the device refuses; the message gives the reason.
     */
    public Registration register(MemorySegment memory, int access) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment error = arena.allocate(ERROR_BYTES);
            return registration((MemorySegment) RdmaLibrary.REGISTER.invokeExact(end, memory, memory.byteSize(), access,
                error, (long) ERROR_BYTES), memory.address(), error);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Registers memory of a GPU, as {@link #register} does with FILLED. Any thread.
     *
     * @param address of its first byte, on the device.
     * @param bytes its length.
     * @param descriptor of a dma-buf that begins with the memory, which stays the caller's; -1: the kernel's module for
     *     peer memory must know the address.
     * @throws IOException if the device refuses; the message gives the reason.
     */
    public Registration registerDevice(long address, long bytes, int descriptor) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment error = arena.allocate(ERROR_BYTES);
            return registration((MemorySegment) RdmaLibrary.REGISTER_DEVICE.invokeExact(end, address, bytes, descriptor,
                error, (long) ERROR_BYTES), address, error);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    private static Registration registration(MemorySegment handle, long address, MemorySegment error)
        throws IOException {
        if (handle.address() == 0) {
            throw new IOException(text(error));
        }
        try {
            return new Registration(handle, address, (int) RdmaLibrary.KEY.invokeExact(handle));
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Ends a registration, after all requests with it are done, or after a limit. The other end's next use of the
     * memory loses the connection.
     *
     * @param limitMs the longest wait.
     */
    public void unregister(Registration registration, int limitMs) {
        try {
            RdmaLibrary.UNREGISTER.invokeExact(end, registration.handle(), limitMs);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * Writes registered bytes to memory of the other end, ahead of all that is sent later. They must not change until
     * {@link #done} has reached the ticket. One caller at a time.
     *
     * @param from registered memory.
     * @param offset in it, of the first byte.
     * @param bytes their number.
     * @param to address in the other end's process.
     * @param key the other end's.
     * @return the ticket, over 0; -1 after the connection is lost.
     */
    public long write(Registration from, long offset, int bytes, long to, int key) {
        try {
            int rc = (int) RdmaLibrary.WRITE.invokeExact(end, from.handle(),
                MemorySegment.ofAddress(from.address() + offset), bytes, to, key, ticket);
            return rc == 0 ? ticket.get(ValueLayout.JAVA_LONG, 0) : -1;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /**
     * A worker's end: fetches memory of the other end. The bytes are here when {@link #done} has reached the ticket.
     * One caller at a time.
     *
     * @param to registered memory.
     * @param offset in it, of the first byte.
     * @param bytes their number.
     * @param from address in the other end's process.
     * @param key the other end's.
     * @return the ticket, over 0; -1 after the connection is lost.
     */
    public long read(Registration to, long offset, int bytes, long from, int key) {
        try {
            int rc = (int) RdmaLibrary.READ.invokeExact(end, to.handle(),
                MemorySegment.ofAddress(to.address() + offset), bytes, from, key, ticket);
            return rc == 0 ? ticket.get(ValueLayout.JAVA_LONG, 0) : -1;
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** The ticket up to which all writes and reads are done. Any thread. */
    public long done() {
        try {
            return (long) RdmaLibrary.DONE.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Leaves in order, and waits until the other end has all that was sent. Any thread. */
    public int leave(int limitMs) {
        try {
            return (int) RdmaLibrary.LEAVE.invokeExact(end, limitMs);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Learns what the other end has done, and updates the words: 1 when there was something. Any thread. */
    public int progress() {
        try {
            return (int) RdmaLibrary.PROGRESS.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** The descriptor that can be read after {@link #arm}, when the other end has done something. */
    public int channel() {
        try {
            return (int) RdmaLibrary.CHANNEL.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Prepares a sleep on the channel; call {@link #progress} once more before it. One thread at a time. */
    public int arm() {
        try {
            return (int) RdmaLibrary.ARM.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Takes the channel's events after a sleep. */
    public void awake() {
        try {
            RdmaLibrary.AWAKE.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Why the connection is lost; null while it is not. Any thread. */
    public String fault() {
        try {
            MemorySegment text = (MemorySegment) RdmaLibrary.FAULT.invokeExact(end);
            return text.address() == 0 ? null : text(text.reinterpret(ERROR_BYTES));
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** The device's name. */
    public String device() {
        try {
            MemorySegment text = (MemorySegment) RdmaLibrary.DEVICE.invokeExact(end);
            return text.address() == 0 ? "" : text(text.reinterpret(NAME_BYTES));
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** The descriptor of the device's commands, which a jail must allow. */
    public int deviceDescriptor() {
        try {
            return (int) RdmaLibrary.DESCRIPTOR.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Frees everything. No thread may use the end or its memory any more. */
    @Override
    public void close() {
        try {
            RdmaLibrary.CLOSE.invokeExact(end);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** A text of C in memory of at most this length. */
    private static String text(MemorySegment memory) {
        int length = 0;
        while (length < memory.byteSize() && memory.get(ValueLayout.JAVA_BYTE, length) != 0) {
            length++;
        }
        return new String(memory.asSlice(0, length).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
    }

    private static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException runtime ? runtime : new IllegalStateException(thrown);
    }
}

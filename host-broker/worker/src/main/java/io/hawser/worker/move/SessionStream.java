package io.hawser.worker.move;

import io.hawser.shm.os.StreamSocket;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * A session on its way to another machine, as bytes of a connection between its two workers. First the form, the length
 * of the state and the state; then each slab as its address, its length and its contents; then two zeros. The target
 * answers with the length of a reason and the reason, which is empty when it has all. Numbers have 8 bytes and are in
 * little endian. Both ends are assumed to be captured: each can only spoil its own session. One thread at a time.
 */
public final class SessionStream {
    /** Length of the parts in which slabs travel. */
    public static final long CHUNK_BYTES = 8L << 20;

    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final long FORM = 0x314d525453535748L; // "HWSSTRM1"
    private static final int MAX_REASON_BYTES = 4096;

    private final StreamSocket socket;
    private final MemorySegment pair = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);

    /** The place of a slab. The last one is followed by {@link #END}. */
    public record Slab(long address, long bytes) {
        /** Follows the last slab. */
        public static final Slab END = new Slab(0, 0);
    }

    /**
     * Takes a connection.
     *
     * @param descriptor of a stream socket; {@link #close} closes it.
     * @throws IOException if it is no stream socket; it then stays the caller's.
     */
    public SessionStream(int descriptor) throws IOException {
        socket = new StreamSocket(descriptor);
    }

    /** Sends the state. */
    public void sendState(MemorySegment state) throws IOException {
        sendPair(FORM, state.byteSize());
        send(state, state.byteSize());
    }

    /** Announces a slab, or the end. */
    public void sendSlab(Slab slab) throws IOException {
        sendPair(slab.address, slab.bytes);
    }

    /** Sends the next bytes of the announced slab. */
    public void send(MemorySegment memory, long bytes) throws IOException {
        if (!socket.send(memory, 0, bytes, false)) {
            throw new EOFException("the other worker has closed the connection");
        }
    }

    private void sendPair(long one, long other) throws IOException {
        pair.set(I64, 0, one);
        pair.set(I64, Long.BYTES, other);
        send(pair, pair.byteSize());
    }

    /**
     * Waits for the target's answer.
     *
     * @return why the target cannot take the session; empty when it has all.
     */
    public String receiveAnswer() throws IOException {
        receive(pair, Long.BYTES);
        long bytes = pair.get(I64, 0);
        if (bytes < 0 || bytes > MAX_REASON_BYTES) {
            throw new IOException("an answer must be a reason: bytes=" + bytes);
        }
        MemorySegment reason = Arena.ofAuto().allocate(Math.max(1, bytes));
        receive(reason, bytes);
        return new String(reason.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
    }

    /**
     * Waits for the state.
     *
     * @return a reader of private memory.
     */
    public StateReader receiveState() throws IOException {
        receive(pair, pair.byteSize());
        long bytes = pair.get(I64, Long.BYTES);
        if (pair.get(I64, 0) != FORM || bytes <= 0 || bytes > StateReader.MAX_BYTES) {
            throw new IOException("a session must begin with its state of 1 to " + StateReader.MAX_BYTES
                + " bytes: form=" + Long.toHexString(pair.get(I64, 0)) + " bytes=" + bytes);
        }
        Arena arena = Arena.ofShared(); // the control thread receives, the session thread reads
        MemorySegment state = arena.allocate(bytes, Long.BYTES);
        try {
            receive(state, bytes);
        } catch (IOException e) {
            arena.close();
            throw e;
        }
        return StateReader.of(arena, state);
    }

    /** Waits for the next slab, or the end. */
    public Slab receiveSlab() throws IOException {
        receive(pair, pair.byteSize());
        return new Slab(pair.get(I64, 0), pair.get(I64, Long.BYTES));
    }

    /** Fills the beginning of memory with the next bytes of the slab. */
    public void receive(MemorySegment memory, long bytes) throws IOException {
        if (!socket.receive(memory, 0, bytes)) {
            throw new EOFException("the other worker has closed the connection");
        }
    }

    /** Answers the source; the rest of a longer reason is cut off. */
    public void answer(String reason) throws IOException {
        byte[] all = reason.getBytes(StandardCharsets.UTF_8);
        int bytes = Math.min(all.length, MAX_REASON_BYTES);
        MemorySegment answer = Arena.ofAuto().allocate(Long.BYTES + MAX_REASON_BYTES, Long.BYTES);
        answer.set(I64, 0, bytes);
        MemorySegment.copy(all, 0, answer, ValueLayout.JAVA_BYTE, Long.BYTES, bytes);
        send(answer, (long) Long.BYTES + bytes);
    }

    /** Ends all calls, on whatever thread. The connection stays open until {@link #close}. */
    public void shutdown() {
        socket.shutdown();
    }

    /** Closes the connection. No call may be running. */
    public void close() {
        socket.close();
    }
}
